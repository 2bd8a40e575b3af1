"""Which wrong implementations the tests catch: every one of `benchmarks.mutants` must be.

python -m benchmarks.mutations [--only NAME] [--jobs 2]

Copies the tree to a temporary folder, without what lies beside it, runs the named tests there once as they are (they
must pass), then once for each mutant (they must fail). Writes benchmarks/results/mutations.json and .md.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch  # noqa: F401
import transformers  # noqa: F401
from tqdm import tqdm

from benchmarks.mutants import MUTANTS, Mutant
from seesaw_cf.base.errors import RecordError, unknown_name
from seesaw_cf.base.files import write_text

__all__ = ["apply", "main"]

os.environ.setdefault("OMP_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
_TOP = ("benchmarks", "builder_scripts", "editors", "metrics", "seesaw_cf", "tests")
_PASSED, _FAILED = 0, 1
"""Exit statuses of pytest; all others mean that the tests could not be run."""


def apply(mutant: Mutant, root: Path) -> None:
    """Writes a mutant into a copy of the tree.

    Raises:
        RecordError: The text to replace does not stand there exactly once: the source has changed, the table has not.
    """
    path = root / mutant.file
    source = path.read_text(encoding="utf-8")
    count = source.count(mutant.right)
    if count != 1:
        raise RecordError(
            f"mutant {mutant.name}: {mutant.right!r} occurs {count} times in {mutant.file}, expected once. "
            "Change its line in benchmarks/mutants.toml to what the source says now."
        )
    path.write_text(source.replace(mutant.right, mutant.wrong), encoding="utf-8")


def _copy(folder: str) -> Path:
    """A copy of the tracked folders, in which a test may fail."""
    root = Path(folder) / "tree"
    skip = shutil.ignore_patterns("__pycache__", "results")
    for name in _TOP:
        shutil.copytree(ROOT / name, root / name, symlinks=True, ignore=skip)
    for name in ("setup.cfg", "pyproject.toml"):
        shutil.copy(ROOT / name, root / name)
    return root


def _pytest(root: Path, tests: Sequence[str]) -> tuple[int, str]:
    """Exit status of pytest on a copy, and what it printed; ends what this process can be used for."""
    shown = root / "shown.txt"
    with shown.open("w", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        for name in [name for name in sys.modules if name.split(".")[0] in _TOP]:
            del sys.modules[name]  # of the tree as it is
        sys.path.insert(0, str(root))
        os.chdir(root)
        status = pytest.main(
            ["-x", "-q", "--no-header", "--assert=plain", "-p", "no:xdist", "-m", "not exhaustive", *tests]
        )
    return int(status), shown.read_text(encoding="utf-8")[-3000:]


def _try(task: tuple[Mutant | None, tuple[str, ...]]) -> tuple[int, str, float]:
    """Runs tests in a copy of the tree with a mutant, or with none; in a process of its own."""
    mutant, tests = task
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        root = _copy(folder)
        if mutant is not None:
            apply(mutant, root)
        return *_pytest(root, tests), round(time.monotonic() - started, 1)


def _run(mutants: Sequence[Mutant], jobs: int) -> list[dict[str, Any]]:
    """Forks with torch and transformers imported, which takes longer than most tests."""
    rows = []
    right = sorted({test for mutant in mutants for test in mutant.tests})
    tasks = [*((None, (test,)) for test in right), *((mutant, mutant.tests) for mutant in mutants)]
    with multiprocessing.get_context("fork").Pool(jobs, maxtasksperchild=1) as pool:
        done = pool.imap(_try, tasks, chunksize=1)
        for (mutant, tests), (status, shown, seconds) in zip(tasks, tqdm(done, total=len(tasks), desc="mutants")):
            if mutant is None and status != _PASSED:
                raise RecordError(f"{tests[0]} fails on the tree as it is, so it cannot judge a mutant:\n{shown}")
            if mutant is None:
                continue
            if status not in (_PASSED, _FAILED):
                raise RecordError(f"mutant {mutant.name}: pytest ended with status {status}:\n{shown}")
            first = next((line.split()[1] for line in shown.splitlines() if line.startswith("FAILED ")), "")
            own = {name: getattr(mutant, name) for name in ("name", "file", "what")}
            rows.append(own | {"caught": status == _FAILED, "by": first, "seconds": seconds})
    return rows


def _markdown(rows: Sequence[dict[str, Any]]) -> str:
    caught = sum(row["caught"] for row in rows)
    lines = [f"{caught} of {len(rows)} wrong implementations are caught by the tests, without reference data.", ""]
    lines += ["| mutant | what is wrong | caught by |", "|---|---|---|"]
    lines += [f"| `{row['name']}` | {row['what']} | {row['by'] if row['caught'] else '**survived**'} |" for row in rows]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Runs the benchmark; 1 when a mutant survived. With `--only` nothing is written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="NAME", help="try this mutant alone")
    parser.add_argument("--jobs", type=int, default=1, help="mutants tried side by side")
    given = parser.parse_args()
    chosen = [mutant for mutant in MUTANTS if given.only in (None, mutant.name)]
    if not chosen:
        raise unknown_name("mutant", given.only, [mutant.name for mutant in MUTANTS])
    rows = _run(chosen, max(1, given.jobs))
    text = _markdown(rows)
    if given.only is None:
        write_text(RESULTS / "mutations.json", json.dumps(rows, indent=1) + "\n")
        write_text(RESULTS / "mutations.md", text)
    print(text)
    return 0 if all(row["caught"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
