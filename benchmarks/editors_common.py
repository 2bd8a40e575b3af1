"""What benchmarks share: places, edits, and what they were measured on."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import torch

from seesaw_cf.records import table_to_cases
from seesaw_cf.types import EditRequest

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).parent / "results"


def requests(n: int) -> list[EditRequest]:
    """Edits of the embedded sample, spread over its relations."""
    table = pq.read_table(ROOT / "seesaw_cf" / "data" / "cross_subject")
    cases = table_to_cases(table)
    return [case.request for case in cases[:: max(1, len(cases) // n)]][:n]


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    facts = {"threads": torch.get_num_threads(), "cpus": os.cpu_count(), "machine": platform.machine()}
    return {**facts, "torch": torch.__version__, "python": platform.python_version()}
