"""The edits of the study in stages: as many of each relation, in an order drawn once, each stage in a file.

    python -m benchmarks.study.records [--released TAGGED]

writes `edits1.parquet`, `edits2.parquet` and `edits3.parquet` beside this file. No edit is in two of them.
`edits4.parquet` has the first four of each relation of `edits3.parquet`, for models that are not asked about all of it.
Cases about another property of an edited person go with the edit that they repeat. With the folder of a `seesaw-cf tag`
of the papers' released records it writes 40 of them, `released.parquet`, instead.
"""

from __future__ import annotations

import argparse
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path

from seesaw_cf.base.tables import write_table
from seesaw_cf.base.text import seed_of
from seesaw_cf.records import cases_to_table
from seesaw_cf.records.load import load_cases
from seesaw_cf.types import Case

SAMPLE = "sample"
SIZES = (8, 8, 64)
FOURTH = 4  # of each relation of the third file
# One answer out of 1,082 candidates costs more than everything else that is asked about its edit.
LEFT_OUT = {("P27", "P19")}
FOLDER = Path(__file__).parent
# Config of released records -> how many are drawn among those with a known right answer about the watched property.
RELEASED = {"P19_P101": 14, "P21_P101": 13, "P27_P101": 13}


def stages(sizes: Sequence[int] = SIZES, sample: str = SAMPLE, seed: int = 0) -> list[list[Case]]:
    """Return the cases of each stage.

    Args:
        sizes: Edits of each relation, stage by stage.
        sample: Data with the configs `cross_subject` and `cross_property`.
        seed: Of the order of the edits of a relation.
    """
    edits, others = defaultdict[str, list[Case]](list), defaultdict[str, list[Case]](list)
    for case in load_cases(sample, "cross_subject"):
        edits[case.request.relation_id].append(case)
    for case in load_cases(sample, "cross_property"):
        if (case.request.relation_id, case.effect_relation_id) not in LEFT_OUT:
            others[_edit(case)].append(case)
    orders = [
        random.Random(seed_of("study", seed, relation)).sample(own, len(own)) for relation, own in sorted(edits.items())
    ]
    bounds = pairwise([0, *accumulate(sizes)])
    return [
        [each for own in orders for case in own[first:last] for each in (case, *others[_edit(case)])]
        for first, last in bounds
    ]


def _edit(case: Case) -> str:
    return "|".join((case.request.relation_id, case.request.text, case.request.target_new.label))


def released(tagged: str, sizes: Mapping[str, int] = RELEASED, seed: int = 0) -> list[Case]:
    """Return released records in an order drawn once, those of each config together."""
    chosen: list[Case] = []
    for config, size in sizes.items():
        known = [case for case in load_cases(tagged, config) if case.gold]
        chosen += random.Random(seed_of("study", seed, config)).sample(known, len(known))[:size]
    return chosen


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--released", metavar="TAGGED", help="folder of tagged released records")
    given = parser.parse_args()
    if given.released:
        write_table(FOLDER / "released.parquet", cases_to_table(released(given.released)))
        return
    for number, cases in enumerate([*stages(), stages((*SIZES[:2], FOURTH))[2]], 1):
        write_table(FOLDER / f"edits{number}.parquet", cases_to_table(cases))


if __name__ == "__main__":
    main()
