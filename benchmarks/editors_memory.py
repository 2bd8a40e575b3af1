"""Peak memory of a single edit above the model, each editor in a process of its own (Linux).

    python -m benchmarks.editors_memory [--layers 24] [--width 640]

The second moments are made beforehand (or found in $SEESAW_CF_CACHE, if that is set); a process loads the model, fits
the editor from them and edits one request. Reported per editor, as shares of the model's own size: the peak while
editing above what the process held before the fit, with the second moments taken off (they are the user's data: 4 bytes
an entry and layer, stated), and with them.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import subprocess
import sys
import tempfile
from typing import Any

import torch

from benchmarks.editors_common import RESULTS, TEMPLATES, gpt2, machine, requests, reset_peak, resident, tokenizer
from seesaw_cf.base.files import write_text
from seesaw_cf.editors import load_editor
from seesaw_cf.models.load import sample_corpus

WARM = ["Paris is the capital of France and lies on the river Seine."] * 2
_WITH_MOMENTS = ("rome", "memit", "emmet")
SETTINGS: dict[str, dict[str, Any]] = {
    "rome": {"layers": [4]},
    "memit": {"layers": [3, 4, 5, 6, 7]},
    "emmet": {"layers": [4]},
    "ft": {"layers": [12]},
    "lora": {"layers": [3, 4, 5, 6, 7]},
}


def measure(name: str, layers: int, width: int) -> dict[str, Any]:
    """Peaks of one editor in this process, bytes."""
    model, names = gpt2(layers, width), tokenizer()
    cls = load_editor(name)
    templates = {"context_templates": TEMPLATES} if name in _WITH_MOMENTS else {}
    editor = cls(cls.config_class(**SETTINGS[name], **templates), corpus=sample_corpus(400))
    small, beside = gpt2(6, 64), cls(cls.config_class(**{**SETTINGS[name], "layers": [1]}, **templates), corpus=WARM)
    beside.fit(small, names).edit(small, names, requests(1))  # code and thread buffers that any first edit brings in
    model(model.dummy_inputs["input_ids"])
    torch.linalg.cholesky(torch.eye(512, dtype=torch.float64))  # the solver library's own buffers, of fixed size
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)  # what the first edit freed is no room that the second has for nothing
    before = resident("VmRSS")
    reset_peak()
    editor = editor.fit(model, names)
    fitted = resident("VmHWM")
    reset_peak()
    delta = editor.edit(model, names, requests(1))
    peak = resident("VmHWM")
    moments = getattr(getattr(editor, "fitted", None), "moments", {})
    return {
        "model": sum(parameter.nbytes for parameter in model.parameters()),
        "second_moments": sum(moment.matrix.nbytes for moment in moments.values()),
        "peak_while_editing": peak - before,
        "peak_while_fitting": fitted - before,
        "delta": sum(part.nbytes for part in delta.tensors()),
    }


def main() -> None:
    """Measures all editors and writes benchmarks/results/editors_memory.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--width", type=int, default=640)
    parser.add_argument("--only", choices=list(SETTINGS), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only:
        print(json.dumps(measure(given.only, given.layers, given.width)))
        return
    record: dict[str, Any] = {"settings": {"layers": given.layers, "width": given.width, "editors": SETTINGS}}
    with tempfile.TemporaryDirectory() as cache:
        environment = {"SEESAW_CF_CACHE": cache, **os.environ}
        for name in SETTINGS:
            words = [sys.executable, "-m", "benchmarks.editors_memory", "--only", name]
            words += ["--layers", str(given.layers), "--width", str(given.width)]
            for _ in range(2 if name in _WITH_MOMENTS else 1):  # the first run leaves the second moments behind
                done = subprocess.run(words, env=environment, check=True, capture_output=True, text=True)
            row = json.loads(done.stdout.splitlines()[-1])
            above = row["peak_while_editing"]
            row["share_of_model"] = (above - row["second_moments"]) / row["model"]
            row["share_of_model_with_second_moments"] = above / row["model"]
            record[name] = row
            print(name, json.dumps(row), flush=True)
    write_text(RESULTS / "editors_memory.json", json.dumps({**record, **machine()}, indent=1) + "\n")


if __name__ == "__main__":
    main()
