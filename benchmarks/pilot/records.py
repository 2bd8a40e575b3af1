"""A seeded draw of tagged released records that have a gold answer, as one file for the study.

python -m benchmarks.pilot.records TAGGED released.parquet --each 8
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from seesaw_cf.base.tables import write_table
from seesaw_cf.records import cases_to_table
from seesaw_cf.records.load import load_cases
from seesaw_cf.types import Case

CONFIGS = ("P21_P101", "P27_P101", "P19_P101")


def drawn(folder: Path, each: int, seed: int) -> list[Case]:
    """As many records of each config, in the order of the files."""
    rng, found = np.random.default_rng(seed), list[Case]()
    for config in CONFIGS:
        cases = [case for case in load_cases(str(folder), config) if case.gold]
        found += [cases[i] for i in sorted(rng.permutation(len(cases))[:each])]
    return found


def main() -> None:
    """Writes the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tagged", type=Path, help="what `seesaw-cf tag` wrote")
    parser.add_argument("out", type=Path)
    parser.add_argument("--each", type=int, default=8, help="records of each config")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    write_table(given.out, cases_to_table(drawn(given.tagged, given.each, given.seed)))


if __name__ == "__main__":
    main()
