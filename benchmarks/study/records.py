"""The edits of the study in stages: as many of each relation, in an order drawn once, each stage in a file.

    python -m benchmarks.study.records

writes `edits1.parquet`, `edits2.parquet` and `edits3.parquet` beside this file. No edit is in two of them. Cases about
another property of an edited person go with the edit that they repeat.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path

from seesaw_cf.base.seeds import seed_of
from seesaw_cf.base.tables import write_table
from seesaw_cf.records import cases_to_table
from seesaw_cf.records.load import load_cases
from seesaw_cf.types import Case

SAMPLE = "sample"
SIZES = (8, 8, 64)
# One answer out of 1,082 candidates costs more than everything else that is asked about its edit.
LEFT_OUT = {("P27", "P19")}
FOLDER = Path(__file__).parent


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


def main() -> None:
    """Write the files."""
    for number, cases in enumerate(stages(), 1):
        write_table(FOLDER / f"edits{number}.parquet", cases_to_table(cases))


if __name__ == "__main__":
    main()
