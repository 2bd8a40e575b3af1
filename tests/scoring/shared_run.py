"""A small run for several processes, some of which die.

With the variable SEESAW_TEST_DIES set to a path, a worker kills itself with SIGKILL in the middle of its first task,
once: the path is made first and stops the second time.
"""

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from seesaw_cf.models.weights import WeightDelta
from seesaw_cf.run.runner import Run
from seesaw_cf.scoring import TrieScorer
from seesaw_cf.types import EditRequest
from tests.runner import small
from tests.tokenizer_styles import byte_level


@dataclass(frozen=True)
class Mortal(small.Nudge):
    def edit(self, model: Any, tokenizer: Any, requests: Sequence[EditRequest]) -> WeightDelta:
        if dies := os.environ.get("SEESAW_TEST_DIES"):
            try:
                Path(dies).touch(exist_ok=os.environ.get("SEESAW_TEST_ALWAYS") == "1")
            except FileExistsError:
                pass
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        return super().edit(model, tokenizer, requests)


def make(out: Path, **changes: object) -> Run:
    torch.set_num_threads(1)
    model, tokenizer = small.model(), byte_level(bos=False)
    scorer = TrieScorer(model, tokenizer)
    manifest = small.manifest(model, **{"settings": {"block": 2}, "scoring": scorer.describe(), **changes})
    editors: dict[str, Any] = {"nudge": Mortal(seen=[])}
    return Run(model, tokenizer, scorer, editors, small.cases(), manifest, out, progress=False)


def same_tables(first: Path, second: Path) -> None:
    for table in ("scores.parquet", "edits.parquet"):
        assert (first / table).read_bytes() == (second / table).read_bytes()
