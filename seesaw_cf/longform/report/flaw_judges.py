"""Judges of flaws beside people who rated the same pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from seesaw_cf.effects.flaws import middle_rating
from seesaw_cf.longform.flaws.validity import validate_judge
from seesaw_cf.report.table import Table, table_of
from seesaw_cf.stats.case_means import row_share

_ABOUT = (
    "Share of all pairs where the answer is that of at least one person (`any`, the published rule) or of people's "
    '`median`. "equal" is a judge that always answers so: no better than it is no evidence of skill. Pairs on which an '
    "even number of people are split have no median; they count under `any` alone."
)


def judge_sections(table: pa.Table, judges: Sequence[str], draws: int = 1000) -> list[Table]:
    """Table 20, and what it hides: each judge beside one that says "equal" to everything.

    Args:
        table: Rows of `FLAWS` of people and judges.
        judges: Which raters are judges.
        draws: Bootstrap samples behind the intervals of kappa.
    """
    frame = table.to_pandas()
    people = [name for name in dict.fromkeys(frame["rater"]) if name not in judges]
    if not judges or not people:
        return []
    accuracy = [row for name in judges for row in _accuracy(frame, people, name)]
    beyond = []
    for name in judges:
        own = table.filter(pc.is_in(table["rater"], pa.array([name, *people])))
        for flaw, validity in validate_judge(own, name, draws=draws).items():
            kappa = validity["agreement"]["cohen"]["people/judge"] if validity["agreement"] else {}
            numbers = {"kappa": kappa.get("value"), "low": kappa.get("low"), "high": kappa.get("high")}
            more = {"n_split": validity["n_split"], "flipped": validity["flipped"], "verdict": validity["verdict"]}
            beyond.append({"judge": name, "flaw": flaw, "n": validity["n"]} | numbers | more)
    sign = (
        "Cohen's kappa with people's median; `flipped`: the share that agrees when the judge's sign is turned round; "
        "`n_split`: pairs left out since people are split evenly."
    )
    return [
        table_of("judges", "Judges against people (SEESAW-CF Table 20)", _ABOUT, pd.DataFrame(accuracy), "flaw", 3),
        table_of("judges_beyond_chance", "Judges beyond chance", sign, pd.DataFrame(beyond), digits=3),
    ]


def _accuracy(frame: pd.DataFrame, people: Sequence[str], judge: str) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for flaw, part in frame.groupby("flaw", sort=True, observed=True):
        wide = part.pivot(index="pair_id", columns="rater", values="change")
        raters = [name for name in people if name in wide]
        common = wide[wide[raters].notna().any(axis=1) & wide[judge].notna()] if judge in wide else wide[:0]
        if common.empty:
            continue
        cases = part.groupby("pair_id")["case_id"].first().loc[common.index].reset_index(drop=True)
        answers = common[raters].to_numpy(float)
        middle = middle_rating(answers)
        clear = ~np.isnan(middle)
        for name, answer in ((judge, common[judge].to_numpy(float)), ("equal", np.zeros(len(common)))):
            hits = {
                "any": pd.Series((answers == answer[:, None]).any(axis=1)),
                "median": pd.Series(middle == answer)[clear],
            }
            for rule, hit in hits.items():
                about = {"judge": judge, "answer": name, "rule": rule, "flaw": flaw}
                rows.append({**about, **row_share(hit, cases[hit.index])})
    return rows
