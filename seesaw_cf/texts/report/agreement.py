"""What raters agree on, alone and compared with judges, and how many raters and edits a study needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import Estimate, TableRow
from seesaw_cf.effects.leme_annotation import LABELS
from seesaw_cf.report.table import Table, table_of
from seesaw_cf.stats import Design, plan, variance_components
from seesaw_cf.stats.agreement import Agreement, annotator_agreement
from seesaw_cf.stats.case_means import share_estimate
from seesaw_cf.texts.annotate.learned import LEFT_OUT
from seesaw_cf.texts.report.collected import Collected
from seesaw_cf.texts.train.scores import rating_scores


@dataclass(frozen=True, slots=True)
class Agreeing:
    """What an agreement is about.

    Attributes:
        by: Column that splits the ratings, such as "flaw"; also that of the sections.
        level: Level of measurement of Krippendorff's alpha.
        unit: What raters rated, for headings.
        prefix: Of the sections' names.
        title: What the headings begin with.
        percent, beyond: What the first two headings end with: the paper's table.
        draws: See `seesaw_cf.stats.agreement.annotator_agreement`.
    """

    by: str
    level: str
    unit: str
    prefix: str
    title: str
    percent: str = ""
    beyond: str = ""
    draws: int = 1000


def agreement_sections(rated: pd.DataFrame, how: Agreeing) -> list[Table]:
    """Return the sections about one set of ratings.

    Args:
        rated: item, rater, value (NaN = none), group (items of one edit; intervals resample whole groups), and the
            column `how.by`.
        how: What they are about.

    Returns:
        PREFIX_percent, PREFIX (alpha, Fleiss) and PREFIX_pairs (Cohen); without rows where there is one rater.
    """
    agreements: dict[str, Agreement] = {}
    paired: dict[str, int] = {}
    for name, rows in rated.groupby(how.by, sort=False, observed=True):
        wide = rows.pivot(index="item", columns="rater", values="value")
        groups = rows.groupby("item")["group"].first().loc[wide.index].tolist()
        if wide.shape[1] > 1 and wide.notna().any(axis=None):
            table = wide.to_numpy(float).tolist()
            paired[str(name)] = int((wide.notna().sum(axis=1) > 1).sum())
            agreements[str(name)] = annotator_agreement(
                table, names=[str(name) for name in wide], groups=groups, draws=how.draws
            )
    percent, kappas = (_pairs(agreements, how.by, figure) for figure in ("percent", "cohen"))
    beyond = pd.DataFrame([{how.by: name, **_beyond(one, how.level, paired[name])} for name, one in agreements.items()])
    return [
        table_of(
            f"{how.prefix}_percent",
            f"{how.title}, per cent{how.percent}",
            f"Pairs of raters, and all of them (`all`), on {how.unit} that each of them rated. Where one rating is "
            "common much of it is chance: see the next table.",
            percent,
            how.by,
            1,
            how.unit,
        ),
        table_of(
            how.prefix,
            f"{how.title}, beyond chance{how.beyond}",
            f"Krippendorff's alpha ({how.level}) and Fleiss' kappa, of all raters; `constant` is how common the "
            "commonest rating is. `n`: items that two or more raters rated, which alpha is of; `fleiss_n`: items "
            "that all of them rated; `n_items`: items given.",
            beyond,
            digits=3,
        ),
        table_of(f"{how.prefix}_pairs", f"{how.title}, two by two", "Cohen's kappa.", kappas, how.by, 2, how.unit),
    ]


def _pairs(agreements: Mapping[str, Agreement], by: str, figure: str) -> pd.DataFrame:
    rows = [
        {"raters": raters, by: name, **_numbers(figure_estimate, agreement.n_items)}
        for name, agreement in agreements.items()
        for raters, figure_estimate in getattr(agreement, figure).items()
    ]
    return pd.DataFrame(rows)


def _numbers(estimate: Estimate, n_items: int) -> TableRow:
    note = estimate.note if estimate.n else "nothing rated by both"
    return estimate.columns("value", "low", "high", "n") | {"n_cases": n_items, "note": note}


def _beyond(agreement: Agreement, level: str, paired: int) -> TableRow:
    alpha, fleiss = agreement.krippendorff[level], agreement.fleiss
    about: TableRow = {"alpha": alpha.value, "low": alpha.low, "high": alpha.high, "n": paired}
    about |= fleiss.limits("fleiss") | {"fleiss_n": fleiss.n}
    reasons = {"alpha": _why(alpha, paired, "two raters"), "Fleiss": _why(fleiss, fleiss.n, "all raters")}
    counts = {"n_items": agreement.n_items, "n_missing": agreement.n_missing}
    note = "; ".join(f"{name}: {why}" for name, why in reasons.items() if why)
    return about | {"constant": agreement.majority_share} | counts | {"note": note}


def _why(estimate: Estimate, n: int, whose: str) -> str:
    """Return why a number or its interval is missing; "" where there are both."""
    return estimate.note if n else f"nothing rated by {whose}"


# How many edits and raters it takes to find an effect, from how much raters of a finished study differ.

PER_EDIT = (1, 2, 3, 5)
"""Raters per edit that are planned for."""


def plan_section(
    rated: pd.DataFrame,
    by: str,
    effects: Sequence[float],
    per_rater: int | None = None,
    name: str = "plan",
    title: str = "How many edits and raters",
) -> Table:
    """Return `rater_plan` as a section of a report."""
    about = (
        "The smallest study with raters like these that finds a mean of `effect` (two-sided, level 0.05, power 0.8), "
        "from how far ratings here differ between edits, between raters, and otherwise (`sd_...`), when `per_edit` "
        "raters rate each edit and a rater takes `per_rater` edits. What a rater says about an edit is averaged, over "
        "as many texts and statements as here, and counts once in `ratings`. An interval for raters like these takes "
        "five."
    )
    return table_of(name, title, about, rater_plan(rated, by, effects, per_rater), digits=3)


def rater_plan(rated: pd.DataFrame, by: str, effects: Sequence[float], per_rater: int | None = None) -> pd.DataFrame:
    """Return the smallest study that finds an effect with raters like those who rated.

    Edits and raters are both taken for samples: the variance of a mean is that between edits over their number, that
    between raters over their number, and the rest over the number of ratings. Ratings by one rater of several texts or
    statements of an edit are averaged first: they share what the edit did, so they are not independent items.

    Args:
        rated: group (the edit), rater, value and the column `by`; no value is missing.
        by: What is planned for, such as the flaw.
        effects: Means to tell from 0 (two-sided, level 0.05, power 0.8).
        per_rater: How many edits one rater takes; None = the mean of those who rated.

    Returns:
        `by`, effect, raters per edit, edits per rater, edits, raters, ratings (an edit by a rater is one), detectable,
        sd_edit, sd_rater, sd_rest, n ratings and n_cases edits behind them, note.
    """
    rows: list[Mapping[str, object]] = []
    for name, part in rated.groupby(by, sort=False, observed=True):
        means = part.groupby(["group", "rater"], sort=False, observed=True)["value"].mean().reset_index()
        edit, rater = (pd.factorize(means[column])[0] for column in ("group", "rater"))
        workload = per_rater or max(1, round(len(means) / max(1, means["rater"].nunique())))
        counts = {"n": len(part), "n_cases": means["group"].nunique()}
        try:
            spread = variance_components(means["value"].to_numpy(float), edit, rater)
        except RecordError:
            rows.append({by: name} | counts | {"note": "one rater or one edit: how raters differ is not known"})
            continue
        sds = {"sd_edit": spread.edit, "sd_rater": spread.person, "sd_rest": spread.rest} | counts
        for effect in effects:
            for each in PER_EDIT:
                design = plan(effect, spread, Design(each, workload))
                size = {"edits": design.edits, "raters": design.people, "ratings": design.prompts}
                note = "" if design.reachable else "not reached by any number of edits"
                about = {by: name, "effect": effect, "per_edit": each, "per_rater": workload}
                rows.append(about | size | {"detectable": design.detectable} | sds | {"note": note})
    return pd.DataFrame(rows)


# Raters and annotators of a run beside people who answered the same questions: LEME Table 9.

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
    """Return how far each rater and annotator of a run is from people.

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
    """Yield who is compared, the rows with people's `value` and their `other`, and the number of questions left out."""
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


def _survey_row(name: str, rows: pd.DataFrame, left_out: int, draws: int) -> TableRow:
    about: TableRow = {"judge": name, "n": len(rows), "cases": rows["case_id"].nunique(), "left_out": left_out}
    if rows.empty:
        return about
    scores = rating_scores(rows["value"].tolist(), rows["other"].tolist(), rows["case_id"].tolist(), draws=draws)
    about |= _alpha(rows, "ordinal", draws)
    for figure in ("spearman", "exact", "within_one"):
        score = scores[figure]
        about |= {figure: score["value"], f"{figure}_low": score["low"], f"{figure}_high": score["high"]}
    return about


def _claim_row(name: str, rows: pd.DataFrame, left_out: int, draws: int) -> TableRow:
    about: TableRow = {"annotator": name, "n": len(rows), "cases": rows["case_id"].nunique(), "left_out": left_out}
    if rows.empty:
        return about
    about |= share_estimate(rows["value"] == rows["other"], rows["case_id"]).limits("accuracy")
    return about | _alpha(rows, "nominal", draws)


def _alpha(rows: pd.DataFrame, level: str, draws: int) -> TableRow:
    table = np.column_stack([rows["value"], np.round(rows["other"])])
    agreement = annotator_agreement(table.tolist(), groups=rows["case_id"].tolist(), draws=draws).krippendorff[level]
    return {**agreement.limits("alpha")}
