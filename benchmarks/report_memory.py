"""How much memory and time does a report of many rows take, and are its figures those of a table held in memory?

    python -m benchmarks.report_memory [--prompts 2500000] [--compare 30000]

writes an invented run (`benchmarks.synthetic_run`, four rows per prompt) and reports it in a process of its own. It
prints rows, peak resident memory, and seconds of the processor and of the clock. Then it reports a smaller run twice,
from its file part by part and from a table in memory, and prints by how much any number of any table differs at most,
relative to its size. Writes benchmarks/results/report_memory.json.
"""

from __future__ import annotations

import argparse
import csv
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.synthetic_run import write_synthetic_run
from seesaw_cf.base.files import write_text
from seesaw_cf.base.tables import SCORES, read_table
from seesaw_cf.effects.tables import ScoreFile
from seesaw_cf.report import report

RESULT = Path(__file__).parent / "results" / "report_memory.json"


class WholeTable(ScoreFile):
    """A score table that is read at once."""

    @cached_property
    def _table(self) -> pa.Table:
        return read_table(self.path, SCORES)

    def rows(self, columns: Sequence[str], where: pc.Expression | None = None) -> pa.Table:
        """Return some columns of some rows."""
        return (self._table if where is None else self._table.filter(where)).select(columns)


def figures(folder: Path) -> dict[tuple[str, int, int], str]:
    """Return every cell of every table of a report, by file, row and column."""
    return {
        (file.name, row, column): cell
        for file in sorted((folder / "tables").glob("*.csv"))
        for row, line in enumerate(csv.reader(file.read_text(encoding="utf-8").splitlines()))
        for column, cell in enumerate(line)
    }


def apart(first: str, second: str) -> float:
    """Return how far two cells are apart, relative to their size; 1 for words that differ."""
    if first == second:
        return 0.0
    try:
        a, b = float(first), float(second)
    except ValueError:
        return 1.0
    return abs(a - b) / max(abs(a), abs(b))


def compared(folder: Path, prompts: int) -> dict[str, float]:
    """Return rows, cells and the largest difference of the reports of one run, in parts and at once."""
    rows = write_synthetic_run(folder / "run", prompts)
    report(folder / "run").write(folder / "parts")
    with patch("seesaw_cf.report.pairs.ScoreFile", WholeTable):
        report(folder / "run").write(folder / "whole")
    parts, whole = figures(folder / "parts"), figures(folder / "whole")
    if parts.keys() != whole.keys():
        raise SystemExit("the two reports have other rows")
    return {"rows": rows, "cells": len(parts), "apart": max(apart(parts[at], whole[at]) for at in parts)}


def measured(folder: Path, prompts: int) -> dict[str, float]:
    """Return rows, peak memory (GB) and seconds of a report in a process of its own."""
    rows, start = write_synthetic_run(folder / "run", prompts), time.perf_counter()
    command = [sys.executable, "-m", "seesaw_cf", "report", folder / "run", "--out", folder / "report"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    used, seconds = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - start
    processor = used.ru_utime + used.ru_stime
    return {"rows": rows, "peak_GB": used.ru_maxrss / 1e6, "cpu_seconds": processor, "seconds": seconds}


def main() -> None:
    """Print and write both measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", type=int, default=2_500_000)
    parser.add_argument("--compare", type=int, default=30_000)
    given = parser.parse_args()
    record = {}
    for name, measure, prompts in (("large", measured, given.prompts), ("compared", compared, given.compare)):
        with tempfile.TemporaryDirectory() as folder:
            record[name] = measure(Path(folder), prompts)
        print(name, json.dumps(record[name]), flush=True)
    write_text(RESULT, json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
