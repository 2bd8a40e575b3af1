"""What an edit costs: seconds, floating-point operations and memory by model and editor, measured; larger models by
arithmetic.

    python -m benchmarks.editors_cost [--model seesaw-tiny] [--editor rome] [--threads 2]
    python -m benchmarks.editors_cost --page docs/cost.md     # only writes the page from the figures

Every pair of a model and an editor has a process of its own (Linux): it loads the model, fits the editor on the first
`TEXTS` texts (timed apart, or taken from the cache), edits one request alone and `TOGETHER` requests by themselves in
one call as `seesaw-cf run` does (MEND: one after the other), and scores `PROMPTS` prompts. Operations are counted by
torch. SmolLM2 is what `python -m benchmarks.real_model smollm2-135m-q4` writes; "llama-360m" has random weights
and the shape of SmolLM2-360M (speed does not depend on weights).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel, PreTrainedTokenizerBase

from benchmarks.editors_common import RESULTS, machine, requests
from seesaw_cf.base.files import write_text
from seesaw_cf.models.corpus import sample_corpus
from seesaw_cf.models.load import load_model
from seesaw_cf.run.make_editors import make_editor
from seesaw_cf.scoring import make_scorer
from seesaw_cf.types import Cloze

RESULT = RESULTS / "editors_cost.json"
MODELS = ("seesaw-tiny", "smollm2-135m-q4", "llama-360m")
EDITORS = ("ft", "lora", "rome", "memit", "emmet", "alphaedit", "mend")
MEND_STEPS = 20
# MEND's editing network is trained before its first edit: a few steps here, to know what one costs.
SETTINGS: dict[str, dict[str, Any]] = {
    "mend": {"training": {"steps": MEND_STEPS, "batch": 8, "validate_every": MEND_STEPS, "held_out": 8}}
}
TEXTS, TOGETHER, PROMPTS = 400, 8, 200
LARGER = (1e9, 7e9, 13e9, 70e9)
_FROM = "smollm2-135m-q4"


def load(name: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A model by its row."""
    if name != "llama-360m":
        return load_model(name, device="cpu", dtype="float32", progress=False)
    _, tokenizer = load_model("smollm2-135m-q4", device="cpu", dtype="float32", progress=False)
    torch.manual_seed(0)
    shape: dict[str, Any] = {"num_hidden_layers": 32, "num_attention_heads": 15, "num_key_value_heads": 5}
    sizes: dict[str, Any] = {"hidden_size": 960, "intermediate_size": 2560, "vocab_size": 49152}
    return LlamaForCausalLM(LlamaConfig(**shape, **sizes, tie_word_embeddings=True)).eval(), tokenizer


def _peak() -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def _seconds(work: Any) -> tuple[float, Any]:
    started = time.perf_counter()
    found = work()
    return time.perf_counter() - started, found


def measure(name: str, kind: str, threads: int) -> dict[str, Any]:
    """One row, in this process."""
    torch.set_num_threads(threads)
    model, tokenizer = load(name)
    editor = make_editor(kind, model, SETTINGS.get(kind, {}), sample_corpus(TEXTS))
    fit, editor = _seconds(lambda: editor.fit(model, tokenizer))
    asked = requests(TOGETHER)
    editor.edit(model, tokenizer, asked[-1:])  # what only the first edit of a process does
    alone, _ = _seconds(lambda: editor.edit(model, tokenizer, asked[:1]))
    each = getattr(editor, "edit_each", lambda *args: [editor.edit(*args[:2], [request]) for request in asked])
    together, deltas = _seconds(lambda: each(model, tokenizer, asked))
    with FlopCounterMode(display=False) as counted:
        editor.edit(model, tokenizer, asked[:1])
    scorer, _ = make_scorer(model, tokenizer, "auto", None, None)
    clozes = [Cloze(f"{request.subject} {n} works in the field of", "law") for request in asked for n in range(PROMPTS)]
    clozes = clozes[:PROMPTS]
    tokens = sum(len(tokenizer(cloze.context + " law")["input_ids"]) for cloze in clozes)
    scoring, _ = _seconds(lambda: scorer.score(clozes))
    return {
        "model": name,
        "editor": kind,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "model_bytes": sum(parameter.nbytes for parameter in model.parameters()),
        "fit_s": fit,
        "edit_alone_s": alone,
        "edit_of_8_s": together / TOGETHER,
        "flops": counted.get_total_flops(),
        "scored_tokens_per_s": tokens / scoring,
        "peak_bytes": _peak(),
        "delta_bytes": sum(part.nbytes for part in deltas[0].tensors()),
    }


def page(record: dict[str, Any]) -> str:
    """The table of measured rows, and what larger models cost by arithmetic."""
    rows = record["rows"]
    lines = [
        "| model | parameters | editor | s per edit alone | s per edit, 8 at once | 10^12 operations | tokens/s "
        "| peak, GB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        lines.append(
            f"| {row['model']} | {row['parameters'] / 1e6:,.1f} M | {row['editor']} | {row['edit_alone_s']:.2f} | "
            f"{row['edit_of_8_s']:.2f} | {row['flops'] / 1e12:.3g} | {row['scored_tokens_per_s']:,.0f} | "
            f"{row['peak_bytes'] / 1e9:.1f} |"
        )
    measured = "\n".join(lines)
    base = {row["editor"]: row for row in rows if row["model"] == _FROM}
    heads = [f"{size / 1e9:.0f} B" for size in LARGER]
    lines = [f"| editor | {' | '.join(heads)} |", "|---|" + "---|" * len(heads)]
    for editor, row in base.items():
        cells = [f"{row['flops'] * size / row['parameters'] / 1e12:.3g}" for size in LARGER]
        lines.append(f"| {editor} | {' | '.join(cells)} |")
    return _PAGE.format(
        measured=measured,
        larger="\n".join(lines),
        threads=record["threads"],
        cpus=record["cpus"],
        sizes=", ".join(f"{size / 1e9:.0f} B: {2 * size / 1e9:,.0f} GB" for size in LARGER),
    )


_PAGE = """# What an edit costs

## Measured

On {cpus} CPU cores ({threads} threads, float32), every row in a process of its own, with the settings that `seesaw-cf
run` uses when none are given (`python -m benchmarks.editors_cost`; figures in `benchmarks/results/editors_cost.json`).
*8 at once* is what a run does: eight edits, each by itself, made in one call. Operations are those of one edit alone,
counted by torch. *Tokens/s* is the rate of scoring short prompts. *Peak* is the most memory of the whole process:
Python and its libraries (0.6 GB), model, second moments, edits and scoring.

"llama-360m" has random weights and the shape of SmolLM2-360M; the editors that stop early when an edit has taken do all
their steps there. The rows of seesaw-tiny were measured on an earlier one of 1.8 M parameters; it has 2.3 M now.

{measured}

The second moments of MEMIT, ROME, EMMET and AlphaEdit, and MEND's network, are made once for a model and kept, see
[Texts and second moments](moments.md).

**A whole audit.** SmolLM2, 160 edits, 172,000 scores, MEMIT and a random control, second moments
of 800 texts, report included: 17 min 8 s on two cores, 32.6 CPU minutes, 1.9 GB (with `/usr/bin/time -v` in front):

```sh
seesaw-cf run --model smollm2-135m-q4 --editor memit --control random --corpus texts.txt --corpus-limit 800 \\
  --config cross_subject --config cross_property --out audit --report audit-report
```

## By arithmetic, not measured

Operations of an edit grow with the number of parameters that the edit is sent through, so those of SmolLM2 times
(parameters of the larger model / 134.5 M) are what one edit takes there, in 10^12 operations. Divide by the rate that
your device reaches to get seconds: 0.05 x 10^12 a second for one CPU core, 20 to 60 x 10^12 for a GPU in float32, 300
to 800 x 10^12 in bfloat16. Vocabulary and depth of a family move this by a factor of up to two.

{larger}

Memory: weights take 2 bytes a parameter in bfloat16 ({sizes}), twice that in float32. Second
moments take 4 x d_ff x d_ff bytes for each edited block (0.8 GB a block for d_ff = 14,336; 3.3 GB for the 28,672 of a
70 B Llama), and a forward pass up to the last edited block: 2 x parameters below it operations for each token.
"""


def main() -> None:
    """Measures the rows asked for, each in its own process, and writes benchmarks/results/editors_cost.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", action="append", choices=MODELS, help="only this one; give it again for more")
    parser.add_argument("--editor", action="append", choices=EDITORS, help="only this one; give it again for more")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--page", type=Path, help="write the page from the figures, and measure nothing")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.page is not None:
        write_text(given.page, page(json.loads(RESULT.read_text(encoding="utf-8"))))
        return
    if given.one:
        print(json.dumps(measure(given.model[0], given.editor[0], given.threads)))
        return
    record = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {"rows": []}
    known = {(row["model"], row["editor"]): row for row in record["rows"] if record.get("threads") == given.threads}
    for model in given.model or MODELS:
        for editor in given.editor or EDITORS:
            command = [sys.executable, "-m", "benchmarks.editors_cost", "--one", "--threads", str(given.threads)]
            done = subprocess.run(
                [*command, "--model", model, "--editor", editor], check=True, text=True, stdout=subprocess.PIPE
            )
            known[model, editor] = json.loads(done.stdout.splitlines()[-1])
            rows = [known[model, editor] for model in MODELS for editor in EDITORS if (model, editor) in known]
            record = {"rows": rows, "texts": TEXTS, "prompts": PROMPTS, **machine(), "threads": given.threads}
            write_text(RESULT, json.dumps(record, indent=1) + "\n")
            print(json.dumps(known[model, editor]), flush=True)


if __name__ == "__main__":
    main()
