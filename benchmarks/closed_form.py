"""MEMIT's closed form for many single edits: one Cholesky factor with Woodbury against a dense solve for each edit.

    OMP_NUM_THREADS=1 python benchmarks/closed_form.py [--size 1536] [--edits 32] [--rounds 3]

The factor is made anew in every round, so its cost is in the time.
"""

from __future__ import annotations

import argparse

import torch
from torch import Tensor

from benchmarks.editors_common import interleaved, relative, report
from seesaw_cf.editors.locate.solve import factorise


def main() -> None:
    """Times both and writes benchmarks/results/closed_form.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1536)
    parser.add_argument("--edits", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    generator = torch.Generator().manual_seed(0)
    keys = torch.randn(given.size, 4 * given.size, generator=generator)
    moment = keys @ keys.T / keys.shape[1]
    columns = torch.randn(given.edits, given.size, 1, generator=generator)
    weight = 15_000.0

    def dense() -> list[Tensor]:
        wide = [column.double() for column in columns]
        return [torch.linalg.solve(weight * moment.double() + column @ column.T, column) for column in wide]

    def factored() -> list[Tensor]:
        return factorise(moment, "benchmark").regularised(list(columns), weight)

    errors = relative(factored(), dense())
    times = interleaved({"dense": dense, "factored": factored}, given.rounds)
    report("closed_form", vars(given), times, "dense", "factored", relative_difference_max=max(errors))


if __name__ == "__main__":
    main()
