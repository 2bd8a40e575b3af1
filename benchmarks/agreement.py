"""Do intervals of Krippendorff's alpha hold the alpha that items were made with? The bootstrap's percentiles beside.

    python -m benchmarks.agreement [--draws 100] [--raters]

Two ways to make items: "copy", where a rater gives an item's own label with probability sqrt(alpha) and else one by
chance, and "mixed", where each item has chances of its own (Dirichlet), which are not what the interval assumes.
--raters: raters are a sample too (their probabilities to copy vary), which no interval here claims to speak of.
Writes benchmarks/results/agreement.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from seesaw_cf.base.files import write_text
from seesaw_cf.stats import agreement_sums as sums
from seesaw_cf.stats import cluster_weights, interval
from seesaw_cf.stats.agreement_interval import Coefficient, agreement_interval

__all__ = ["LABELS", "coverage", "percentiles"]

RESULTS = Path(__file__).parent / "results"
Floats = NDArray[np.float64]
# Name -> how common each label is, and the level of measurement.
LABELS: dict[str, tuple[tuple[float, ...], str]] = {
    "two, balanced": ((0.5, 0.5), "nominal"),
    "two, one of 10 %": ((0.9, 0.1), "nominal"),
    "five, ordinal": ((0.1, 0.2, 0.4, 0.2, 0.1), "ordinal"),
    "five, ordinal, uneven": ((0.6, 0.2, 0.1, 0.05, 0.05), "ordinal"),
}
ITEMS, RATERS, ALPHAS = (12, 30, 100), (2, 5), (0.2, 0.5, 0.8)
Make = Callable[[np.random.Generator, Floats, float, tuple[int, int]], Floats]


def _copy(rng: np.random.Generator, common: Floats, alpha: float, shape: tuple[int, int]) -> Floats:
    own, by_chance = rng.choice(common.size, (shape[0], 1), p=common), rng.choice(common.size, shape, p=common)
    return np.where(rng.random(shape) < alpha**0.5, own, by_chance).astype(np.float64)


def _mixed(rng: np.random.Generator, common: Floats, alpha: float, shape: tuple[int, int]) -> Floats:
    upto = rng.dirichlet(common * (1 - alpha) / alpha, shape[0]).cumsum(axis=1)
    above = (rng.random(shape)[:, :, None] > upto[:, None]).sum(axis=2)
    return np.asarray(np.minimum(above, common.size - 1), np.float64)


def _of_raters(rng: np.random.Generator, common: Floats, alpha: float, shape: tuple[int, int]) -> Floats:
    own, by_chance = rng.choice(common.size, (shape[0], 1), p=common), rng.choice(common.size, shape, p=common)
    care = rng.beta(4 * alpha**0.5, 4 * (1 - alpha**0.5), shape[1])
    return np.where(rng.random(shape) < care, own, by_chance).astype(np.float64)


MADE: dict[str, Make] = {"copy": _copy, "mixed": _mixed}


def percentiles(table: Floats, coefficient: Coefficient, weights: Floats) -> tuple[float, float]:
    """Return the percentile interval of a bootstrap over items, which reports had before.

    Args:
        table: (items, raters).
        coefficient: What is measured.
        weights: (samples, items) how often each is drawn.
    """
    parts = coefficient.parts(table, np.unique(table))
    return interval(coefficient.figure(np.asarray(weights @ parts)))[:2]


def coverage(name: str, make: Make, shape: tuple[int, int], alpha: float, draws: int, seed: int) -> dict[str, float]:
    """Return how often the interval, and the bootstrap's, hold alpha, of tables that have one.

    Args:
        name: Of `LABELS`.
        make: How labels come about.
        shape: Items and raters.
        alpha: What they are made with.
        draws, seed: Tables, and of which generator.
    """
    common, level = np.array(LABELS[name][0]), LABELS[name][1]
    rng = np.random.default_rng([seed, list(LABELS).index(name), *shape, round(100 * alpha)])
    weights = cluster_weights(shape[0], 1000, 0)
    hit, before, widths = [], [], []
    for _ in range(draws):
        table = make(rng, common, alpha, shape)
        coefficient = Coefficient(sums.coincidences, sums.alpha_of(level, np.unique(table)))
        _, low, high, reason = agreement_interval(table, np.arange(len(table)), coefficient, 1000, 0)
        ends = percentiles(table, coefficient, weights)
        before += [ends[0] <= alpha <= ends[1]] * (ends[0] == ends[0])
        if not reason:
            hit.append(low <= alpha <= high)
            widths.append(high - low)
    return {
        "coverage": float(np.mean(hit)) if hit else np.nan,
        "width": float(np.median(widths)) if hit else np.nan,
        "claimed": len(hit) / draws,
        "bootstrap": float(np.mean(before)) if before else np.nan,
        "bootstrap_claimed": len(before) / draws,
    }


def rows(draws: int, made: dict[str, Make], seed: int = 0) -> Iterator[dict[str, object]]:
    """One row for each of labels, way to make them, items, raters and alpha."""
    for name in LABELS:
        for way, make in made.items():
            for shape in ((items, raters) for items in ITEMS for raters in RATERS):
                for alpha in ALPHAS:
                    about = {"labels": name, "made": way, "items": shape[0], "raters": shape[1], "alpha": alpha}
                    yield about | coverage(name, make, shape, alpha, draws, seed)


def main() -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--raters", action="store_true")
    given = parser.parse_args()
    table = pd.DataFrame(rows(given.draws, {"raters": _of_raters} if given.raters else MADE)).round(3)
    print(table.to_string(index=False))
    if not given.raters:
        made = {"draws": given.draws, "rows": table.to_dict("records")}
        write_text(RESULTS / "agreement.json", json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    main()
