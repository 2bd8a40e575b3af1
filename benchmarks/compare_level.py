"""How often does a model that did not change seem to have changed, in a comparison of two logs?

    python -m benchmarks.compare_level BASE CHANGED [--draws 1000]

takes two real logs of the same items and makes pairs in which nothing changed. "clusters": before and after of every
cluster are exchanged as a coin falls. "items": those of every item. "re-seeded": the answers of both sides are drawn
anew from the base's log-probabilities, as two runs with two seeds are. What is counted is any p below .05 in a family
after correction, whatever the margin; and "single", how often p alone of a test is below .05.
Writes benchmarks/results/compare_level.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.report_level import share_of
from seesaw_cf.base.files import write_text
from seesaw_cf.logs import MARGIN, CompareSettings, read_log
from seesaw_cf.logs.differences import GROUPS, PairedQuestion, metric_values, questions
from seesaw_cf.logs.log import Reader
from seesaw_cf.logs.pairing import SIDES, PairedItems, cluster_codes, pair_logs, wanted_fields
from seesaw_cf.stats.clustered import MIN_EFFECTIVE
from seesaw_cf.stats.crossing import Codes, Crossing
from seesaw_cf.stats.multiple import ClusterFlips, permutation_p, step_down

__all__ = ["SCHEMES", "NullTests", "exchanged", "measured", "reseeded"]

RESULTS = Path(__file__).parent / "results"
SCHEMES = ("clusters", "items", "re-seeded")
SETTINGS = CompareSettings()
FLIPS = 499


def exchanged(pairs: PairedItems, rng: np.random.Generator, by: str) -> PairedItems:
    """Return pairs in which both sides of a cluster, or of an item, are exchanged as a coin falls."""
    frame = pairs.frame
    codes = cluster_codes(frame, ())[0]["cluster"] if by == "clusters" else np.arange(len(frame))
    turned = rng.random(int(codes.max()) + 1)[codes] < 0.5
    columns = {}
    for name in pairs.metrics:
        before, after = (frame[f"metric:{name}_{side}"].to_numpy(float) for side in SIDES)
        columns[f"metric:{name}_before"] = np.where(turned, after, before)
        columns[f"metric:{name}_after"] = np.where(turned, before, after)
    return replace(pairs, frame=frame.assign(**columns))


def reseeded(pairs: PairedItems, rng: np.random.Generator) -> PairedItems:
    """Return pairs with answers drawn twice: right with the base's probability, from its margin."""
    frame = pairs.frame[pairs.frame[f"metric:{MARGIN}_before"].notna()].reset_index(drop=True)
    right = 1 / (1 + np.exp(-frame[f"metric:{MARGIN}_before"].to_numpy(float)))
    scores = {f"metric:acc_{side}": (rng.random(len(frame)) < right).astype(float) for side in SIDES}
    return replace(pairs, frame=frame.assign(**scores), metrics=("acc",))


class NullTests:
    """The tests of a comparison, whose weights and clusters are prepared once for any number of values."""

    def __init__(self, pairs: PairedItems, metrics: tuple[str, ...]) -> None:
        """Prepare the tests that have five effective clusters.

        Args:
            pairs: With scores in every row that a draw has them in.
            metrics: Those that are tested.
        """
        codes = cluster_codes(pairs.frame, ())[0]["cluster"]
        self.flips = ClusterFlips(int(codes.max()) + 1)
        self.tests: list[tuple[PairedQuestion, Codes, Crossing, Codes]] = []
        values = {metric: metric_values(pairs.frame, metric) for metric in metrics}
        for question in questions(replace(pairs, metrics=metrics), values, SETTINGS):
            used = np.flatnonzero(np.any(question.members, axis=0) & values[question.metric].there)
            parts = [part[used] for part in question.parts(values[question.metric].there.astype(float))]
            if question.family and all(part.any() for part in parts):
                crossing = Crossing(parts, {"cluster": codes[used]})
                kept = codes[used][crossing.used]
                names = kept[np.sort(np.unique(kept, return_index=True)[1])]
                if min(crossing.effective["cluster"], *crossing.sides["cluster"]) >= MIN_EFFECTIVE - 1e-6:
                    self.tests.append((question, used, crossing, names))

    def rejections(self, pairs: PairedItems, draws: int, seed: int) -> dict[str, float]:
        """Return whether a family has a corrected p below .05; of all tests the share with p alone below it."""
        sums = []
        for question, used, crossing, names in self.tests:
            before, after = (pairs.frame[f"metric:{question.metric}_{side}"].to_numpy(float)[used] for side in SIDES)
            change = after - before
            sums.append((names, crossing.cluster_sums(change - (change.mean() if question.family == GROUPS else 0.0))))
        observed, drawn = self.flips.flipped_p(sums, draws, seed)
        families = np.array([question.family for question, *_ in self.tests])
        rejected = {
            name: float((step_down(observed[families == name], drawn[:, families == name]) < 0.05).any())
            for name in dict.fromkeys(families)
        }
        return rejected | {"single": float((permutation_p(observed, drawn) < 0.05).mean())}


def measured(pairs: PairedItems, scheme: str, draws: int, seed: int) -> Mapping[str, object]:
    """Return the share of draws with a rejection in each family, with intervals."""
    rng = np.random.default_rng(seed)
    first = reseeded(pairs, rng) if scheme == "re-seeded" else pairs
    tests = NullTests(first, first.metrics)
    made = (reseeded(pairs, rng) if scheme == "re-seeded" else exchanged(pairs, rng, scheme) for _ in range(draws))
    table = pd.DataFrame([tests.rejections(own, FLIPS, at) for at, own in enumerate(made)])
    shares = {str(name): share_of((table[name] > 0).tolist()) for name in table if name != "single"}
    return shares | {"single": float(table["single"].mean()), "tests": len(tests.tests)}


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", type=Path)
    parser.add_argument("changed", type=Path)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--scheme", choices=SCHEMES, action="append")
    args = parser.parse_args()
    base, changed = (read_log(place, Reader(wanted_fields(SETTINGS))) for place in (args.base, args.changed))
    pairs = pair_logs(base, changed)
    file = RESULTS / "compare_level.json"
    record = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    for scheme in args.scheme or SCHEMES:
        record[scheme] = {"draws": args.draws, **measured(pairs, scheme, args.draws, seed=1)}
        write_text(file, json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
