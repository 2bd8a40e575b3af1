"""An estimate, not a measurement: GPU-hours of the whole SEESAW-CF study with this package on one H200.

    python -m benchmarks.gpu_hours

Scoring is arithmetic from token counts and FLOPs for GPT-J-6B, before any edit and after three editors, at the
machine's peak and at the share of it that cross-subject prompts reached with GPT-J's shape. MEMIT's edits take what 32
of them took together (`benchmarks/results/gpu.json`). Two of the cross-subject files (622,346 of 734,620 prompts) are
not released, so their tokens are taken to be like those of the others.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PARTS", "Part", "hours"]

MEASURED = json.loads((Path(__file__).parent / "results" / "gpu.json").read_text(encoding="utf-8"))
PEAK = 1e12 * MEASURED["peak_tflops"]["bfloat16"]  # FLOP/s of a large product
SHARE = MEASURED["gpt-j-6b"]["cross-subject"]["share_of_peak"]
EDITS_PER_S = MEASURED["gpt-j-6b"]["memit"]["edits_per_s"]["32"]
PER_TOKEN = 11.27e9  # GPT-J: two FLOPs for each of 5.64e9 weights of the blocks
PER_ROW = 0.413e9  # one row of logits: 2 x 4096 x 50,400
# Parts of the 28 blocks that are run again after an edit: FT edits layer 0, MEMIT 3 to 8, MEND the last three.
AFTER = 28 / 28 + 25 / 28 + 3 / 28


@dataclass(frozen=True, slots=True)
class Part:
    """Work of one kind.

    Attributes:
        name: What it is.
        tokens: Trie tokens of all cases, each case on its own.
        rows: Rows of logits, once before and once for each of three editors.
        unique: Part of the tokens that is left when equal prompts of all cases are scored once, as before any edit.
        seconds: Time that is bound by memory, not by arithmetic.
        measured: Seconds that were measured: they are no shorter at the peak.
    """

    name: str
    tokens: float = 0.0
    rows: float = 0.0
    unique: float = 0.0
    seconds: float = 0.0
    measured: float = 0.0


PARTS = (
    Part("cross-subject: 734,620 prompts x 2 targets", tokens=10.4e6, rows=3 * 734_620 * 2, unique=0.22),
    Part("cross-property: 3,516 cases", tokens=1.55e6, rows=1.5e6, unique=0.5),
    Part("open-ended: 27,010 texts of 88 new tokens, 512 at once", seconds=4 * 27_010 / 512 * 88 * 7.6e-3),
    Part(f"MEMIT: 3,516 edits, {EDITS_PER_S:.1f} a second", measured=3_516 / EDITS_PER_S),
)


def hours(part: Part, use: float = 1.0) -> float:
    """GPU-hours of one part.

    Args:
        part: The work.
        use: Part of the peak rate that is reached.
    """
    flops = part.tokens * PER_TOKEN * (part.unique + AFTER) + part.rows * PER_ROW
    return ((flops / PEAK + part.seconds) / use + part.measured) / 3600


if __name__ == "__main__":
    for part in PARTS:
        print(f"{part.name:56} {hours(part):6.3f} h at peak {hours(part, SHARE):6.3f} h at {SHARE:.0%} of it")
    print(f"{'all (estimate)':56} {sum(map(hours, PARTS)):6.2f} h at peak {sum(hours(p, SHARE) for p in PARTS):6.2f} h")
