"""How often does a model that did not change seem to have changed, in a comparison of two logs?

    python -m benchmarks.compare_level BASE CHANGED [--draws 1000]

takes two real logs of the same items and makes pairs in which nothing changed. "clusters": before and after of every
cluster are exchanged as a coin falls. "items": those of every item. "re-seeded": the answers of both sides are drawn
anew from the base's log-probabilities, as two runs with two seeds are. What is counted is any p below .05 in a family
after correction, whatever the margin; and, of single tests, how often p alone is below .05 and the interval misses 0.
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
from seesaw_cf.logs import CompareSettings
from seesaw_cf.logs.differences import FAMILIES, differences
from seesaw_cf.logs.fields import cluster_codes, wanted_fields
from seesaw_cf.logs.log import MARGIN, Reader
from seesaw_cf.logs.pairing import BASE, CHANGED, PairedItems, pair_logs
from seesaw_cf.logs.read import read_log

__all__ = ["SCHEMES", "any_rejection", "exchanged", "reseeded"]

RESULTS = Path(__file__).parent / "results"
SCHEMES = ("clusters", "items", "re-seeded")
SETTINGS = CompareSettings(permutations=499)


def exchanged(pairs: PairedItems, rng: np.random.Generator, by: str) -> PairedItems:
    """Return pairs in which both sides of a cluster, or of an item, are exchanged as a coin falls."""
    frame = pairs.frame
    codes = cluster_codes(frame, ())[0]["cluster"] if by == "clusters" else np.arange(len(frame))
    turned = rng.random(int(codes.max()) + 1)[codes] < 0.5
    columns = {}
    for name in (str(column).removesuffix(f"/{BASE}") for column in frame if str(column).endswith(f"/{BASE}")):
        before, after = (frame[f"{name}/{side}"].astype(object).to_numpy() for side in (BASE, CHANGED))
        columns[f"{name}/{BASE}"] = np.where(turned, after, before)
        columns[f"{name}/{CHANGED}"] = np.where(turned, before, after)
    return replace(pairs, frame=frame.assign(**columns))


def reseeded(pairs: PairedItems, rng: np.random.Generator) -> PairedItems:
    """Return pairs with answers drawn twice: right with the base's probability, from its margin."""
    frame = pairs.frame[pairs.frame[f"metric:{MARGIN}/{BASE}"].notna()].reset_index(drop=True)
    right = 1 / (1 + np.exp(-frame[f"metric:{MARGIN}/{BASE}"].to_numpy(float)))
    scores = {f"metric:acc/{side}": (rng.random(len(frame)) < right).astype(float) for side in (BASE, CHANGED)}
    return replace(pairs, frame=frame.assign(**scores), metrics=("acc",))


def any_rejection(pairs: PairedItems, settings: CompareSettings = SETTINGS) -> dict[str, float]:
    """Return whether a family has a corrected p below .05; of single tests the shares of p alone and intervals."""
    table, _ = differences(pairs, settings)
    tested = table[table["p_adjusted"].notna()]
    rejected = {name: float((tested.loc[tested["family"] == name, "p_adjusted"] < 0.05).any()) for name in FAMILIES}
    missed = (tested["low"] > 0) | (tested["high"] < 0)
    return rejected | {"single p": float((tested["p"] < 0.05).mean()), "single interval": float(missed.mean())}


def measured(pairs: PairedItems, scheme: str, draws: int, seed: int) -> Mapping[str, object]:
    """Return the share of draws with a rejection in each family, with intervals."""
    rng = np.random.default_rng(seed)
    made = (reseeded(pairs, rng) if scheme == "re-seeded" else exchanged(pairs, rng, scheme) for _ in range(draws))
    settings = (replace(SETTINGS, seed=at) for at in range(draws))
    table = pd.DataFrame([any_rejection(own, declared) for own, declared in zip(made, settings)])
    single = {name: float(table[name].mean()) for name in ("single p", "single interval")}
    return {name: share_of((table[name] > 0).tolist()) for name in FAMILIES} | single


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", type=Path)
    parser.add_argument("changed", type=Path)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--scheme", choices=SCHEMES, action="append")
    args = parser.parse_args()
    logs = [read_log(place, Reader(wanted_fields((), ()))) for place in (args.base, args.changed)]
    pairs = pair_logs(*logs)
    file = RESULTS / "compare_level.json"
    record = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    for scheme in args.scheme or SCHEMES:
        record[scheme] = {"draws": args.draws, **measured(pairs, scheme, args.draws, seed=1)}
        write_text(file, json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
