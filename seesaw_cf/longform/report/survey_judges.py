"""Raters and annotators of a run beside people who answered the same questions: LEME Table 9."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from seesaw_cf.effects.leme_annotation import LABELS
from seesaw_cf.longform.annotate.learned import LEFT_OUT
from seesaw_cf.longform.report.collected import Collected
from seesaw_cf.longform.train.ratings import rating_scores
from seesaw_cf.report.table import Table, table_of
from seesaw_cf.stats.agreement import annotator_agreement
from seesaw_cf.stats.case_means import case_share

_SURVEY = (
    "On questions that both answered, each person's rating beside the judge's: Krippendorff's alpha (ordinal), "
    "Spearman's rho, how often both are equal (`exact`) and at most one apart (`within_one`, on either side). "
    "`commonest rating` always says what people say most; `another person` is how people do among themselves. "
    "`left_out`: questions that the judge did not answer because it had learned from that text."
)
_CLAIMS = "On claims that both labelled; `commonest label` always says what people say most."
_LEFT_OUT = LEFT_OUT.split(":")[0]
_QUESTION = ["editor", "case_id", "phase", "sample", "item"]
_CLAIM = ["editor", "case_id", "phase", "sample", "passage", "claim_kind", "claim_id"]


def beside_people(people: Collected, judged: Collected, draws: int = 1000) -> list[Table]:
    """How far each rater and annotator of a run is from people.

    Args:
        people: Tables of people.
        judged: Tables of a run.
        draws: Bootstrap samples of cases.
    """
    codes = {label: float(at) for at, label in enumerate(LABELS)}
    own_ratings, judged_ratings = (
        one.get("ratings").to_pandas().assign(value=lambda f: f["rating"]) for one in (people, judged)
    )
    marked, labels = (
        one.get("annotations").to_pandas().assign(value=lambda f: f["label"].map(codes), rater=lambda f: f["annotator"])
        for one in (people, judged)
    )
    survey = [_survey_row(*one, draws) for one in _compared(own_ratings, judged_ratings, _QUESTION, "commonest rating")]
    claims = [_claim_row(*one, draws) for one in _compared(marked, labels, _CLAIM, "commonest label")]
    return [
        table_of("judges", "Judges against people: survey (LEME Table 9)", _SURVEY, pd.DataFrame(survey), digits=3),
        table_of("annotators", "Annotators against people (LEME Table 9)", _CLAIMS, pd.DataFrame(claims), digits=3),
    ]


def _compared(
    people: pd.DataFrame, judged: pd.DataFrame, key: Sequence[str], constant: str
) -> Iterator[tuple[str, pd.DataFrame, int]]:
    """Name of who is compared, rows with people's `value` and their `other`, questions left out."""
    answers = people.dropna(subset="value")[[*key, "rater", "value"]]
    shared = []
    for name, rows in judged.groupby("rater", sort=False):
        own = rows.dropna(subset="value")[[*key, "value"]].rename(columns={"value": "other"})
        shared_rows = answers.merge(own, on=list(key))
        shared.append(shared_rows[[*key]])
        yield str(name), shared_rows, int(rows["status"].str.startswith(_LEFT_OUT).sum())
    if not shared:
        return
    common = answers.merge(pd.concat(shared).drop_duplicates(), on=list(key))
    if len(common):
        yield constant, common.assign(other=common["value"].mode().iloc[0]), 0
        pairs = common.merge(common, on=list(key), suffixes=("", "_other"))
        pairs = pairs[pairs["rater"] < pairs["rater_other"]].rename(columns={"value_other": "other"})
        if len(pairs):
            yield "another person", pairs, 0


def _survey_row(name: str, rows: pd.DataFrame, left_out: int, draws: int) -> dict[str, object]:
    about: dict[str, object] = {"judge": name, "n": len(rows), "cases": rows["case_id"].nunique(), "left_out": left_out}
    if rows.empty:
        return about
    scores = rating_scores(rows["value"].tolist(), rows["other"].tolist(), rows["case_id"].tolist(), draws=draws)
    about |= _alpha(rows, "ordinal", draws)
    for figure in ("spearman", "exact", "within_one"):
        score = scores[figure]
        about |= {figure: score["value"], f"{figure}_low": score["low"], f"{figure}_high": score["high"]}
    return about


def _claim_row(name: str, rows: pd.DataFrame, left_out: int, draws: int) -> dict[str, object]:
    about: dict[str, object] = {"annotator": name, "n": len(rows), "cases": rows["case_id"].nunique()}
    about["left_out"] = left_out
    if rows.empty:
        return about
    right = case_share(rows["value"] == rows["other"], rows["case_id"])
    about |= {"accuracy": right["value"], "accuracy_low": right["low"], "accuracy_high": right["high"]}
    return about | _alpha(rows, "nominal", draws)


def _alpha(rows: pd.DataFrame, level: str, draws: int) -> dict[str, object]:
    table = np.column_stack([rows["value"], np.round(rows["other"])])
    agreement = annotator_agreement(table.tolist(), groups=rows["case_id"].tolist(), draws=draws).krippendorff[level]
    return {"alpha": agreement.value, "alpha_low": agreement.low, "alpha_high": agreement.high}
