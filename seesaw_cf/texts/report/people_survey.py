"""LEME rated by people: survey, claims and failure modes as the paper's tables, with or without judges."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError
from seesaw_cf.effects.leme_annotation import LABELS
from seesaw_cf.effects.survey_items import ITEMS, TYPES
from seesaw_cf.report.table import Table, table_of
from seesaw_cf.stats import case_weights, clustered_mean
from seesaw_cf.stats.case_means import case_share, row_share
from seesaw_cf.texts.report.agreement import Agreeing, agreement_sections, beside_people, plan_section
from seesaw_cf.texts.report.collected import Collected
from seesaw_cf.texts.report.tables import drift_table, share_tables, survey_sections, survey_tests
from seesaw_cf.texts.report.values import METRICS, as_frame, label_shares, survey_values
from seesaw_cf.texts.wording import FAILURE_MODES

PLACE = ["editor", "case_id", "phase", "sample"]
"""Which text of which edit."""
_PEOPLE = "people"
_ALL = "all"
_MIDDLE = 4.0
HEAD = """Means are means of case means with 95 % intervals clustered by case; "none" is the unedited model, "human"
are passages that people wrote. An empty interval has its reason beside it."""
_ABOUT = {
    "survey": "1 (strongly disagree) to 7 (strongly agree), over all people; plus or minus is the standard deviation.",
    "survey_raters": "The same by question type with an interval for raters like these, clustered by case and by "
    "rater. It takes five raters; with fewer, the table above speaks of these raters only.",
    "claims": "Share of claims, over all people.",
    "claim_counts": "Of all labels: how many are of each kind of claim and passage, and how many say what.",
    "failures": "Share of texts in which people find it.",
    "failure_examples": "One text of each kind, the first by name of editor and case.",
}


def people_sections(
    people: Collected,
    judged: Collected | None = None,
    *,
    effects: Sequence[float] = (0.5,),
    per_rater: int | None = None,
    draws: int = 1000,
) -> list[Table]:
    """Return every table that people's answers allow.

    Args:
        people: Tables of people.
        judged: Tables of a run: its raters and annotators are compared with people.
        effects: Distances of a mean rating that a study should find, for the plan.
        per_rater: Edits that one rater answers, for the plan; None = as here.
        draws: Bootstrap samples behind the intervals of agreement.

    Raises:
        RecordError: Ratings outside 1 to 7, or labels of claims that are none.
        UnknownNameError: An item or failure mode that does not exist.
    """
    sections = [
        *_survey(people, effects, per_rater, draws),
        *_claims(people, draws),
        *_failures(people, draws),
        *(beside_people(people, judged, draws) if judged is not None else []),
    ]
    return [section for section in sections if len(section.frame)]


def _survey(people: Collected, effects: Sequence[float], per_rater: int | None, draws: int) -> list[Table]:
    frame = people.get("ratings").to_pandas()
    if frame.empty:
        return []
    outside = frame[frame["rating"].notna() & ~frame["rating"].between(1, 7)]
    if len(outside):
        first = outside.iloc[0]
        raise RecordError(
            f"ratings: {len(outside)} outside 1 to 7, first {first['rating']:g} by {first['rater']!r} for "
            f"{first['item']!r} of case {first['case_id']}. Recode them, or leave them empty."
        )
    values = survey_values(frame.assign(rater=_PEOPLE)).drop(columns="rater")
    rated = _items(frame, [*PLACE, "item"], "rater", frame["rating"])
    rated["type"] = frame["item"].map(METRICS)
    by_type = pd.concat([rated.assign(type=_ALL), rated]).dropna(subset="type")
    how = Agreeing(
        "type", "ordinal", "items", "survey_agreement", "Agreement on the survey", beyond=" (LEME Table 5)", draws=draws
    )
    of_item = rated.assign(statement=pd.Categorical(frame["item"], [item.name for item in ITEMS]))
    each = Agreeing(
        "statement", "ordinal", "items", "survey_item_agreement", "Agreement on each statement", draws=draws
    )
    shifted = by_type.dropna(subset="value").assign(value=lambda f: f["value"] - _MIDDLE)
    title = "How many edits and raters (a rating minus 4)"
    return [
        *survey_sections(values, "Survey (LEME Table 1, Figure 3)", _ABOUT["survey"]),
        survey_tests(values),
        table_of("survey_raters", "With other raters", _ABOUT["survey_raters"], _across_raters(frame)),
        *agreement_sections(by_type, how),
        *agreement_sections(of_item.sort_values("statement"), each),
        plan_section(shifted, "type", effects, per_rater, "survey_plan", title),
    ]


def _items(frame: pd.DataFrame, key: Sequence[str], rater: str, value: pd.Series) -> pd.DataFrame:
    """Return item, rater, value, group: what agreement is computed from."""
    item = frame[list(key)].astype(str).agg("|".join, axis=1)
    return pd.DataFrame({"item": item, "rater": frame[rater], "value": value.astype(float), "group": frame["case_id"]})


def _across_raters(ratings: pd.DataFrame) -> pd.DataFrame:
    frame = as_frame(ratings).dropna(subset="rating")
    frame["type"] = pd.Categorical(frame["item"].map(METRICS), TYPES)
    rows = []
    for (method, name), part in frame.groupby(["method", "type"], sort=True, observed=True):
        case, rater = (pd.factorize(part[column])[0] for column in ("case_id", "rater"))
        weights = case_weights(case, case >= 0)
        estimate = clustered_mean(part["rating"].to_numpy(float), [weights], {"case": case, "rater": rater})
        about = {"method": method, "type": name, "raters": part["rater"].nunique()}
        rows.append(about | estimate.columns("value", "low", "high", "n", "note"))
    return pd.DataFrame(rows)


def _claims(people: Collected, draws: int) -> list[Table]:
    frame = people.get("annotations").to_pandas()
    if frame.empty:
        return []
    value = frame["label"].map({label: at for at, label in enumerate(LABELS)})
    rated = _items(frame, [*PLACE, "passage", "claim_kind", "claim_id"], "annotator", value)
    rated["claim"] = frame["claim_kind"]
    how = Agreeing("claim", "nominal", "claims", "claim_agreement", "Agreement on claims", draws=draws)
    shares = label_shares(frame.assign(annotator=_PEOPLE)).drop(columns="annotator")
    return [
        *share_tables(shares, _ABOUT["claims"], "LEME "),
        drift_table(frame.assign(person=frame["annotator"], annotator=_PEOPLE)),
        table_of("claim_counts", "Annotations (LEME Tables 2 and 3)", _ABOUT["claim_counts"], _counts(frame), digits=3),
        *agreement_sections(pd.concat([rated.assign(claim=_ALL), rated]), how),
    ]


def _counts(frame: pd.DataFrame) -> pd.DataFrame:
    labelled = frame.dropna(subset="label")
    kinds = {"label": labelled["label"], "kind": labelled["claim_kind"] + ", " + labelled["passage"] + " passage"}
    rows = []
    for by, column in kinds.items():
        for name in sorted(set(column)):
            share = row_share(column == name, labelled["case_id"])
            rows.append({"of": by, "name": name, "count": int((column == name).sum()), **share})
    return pd.DataFrame(rows).drop(columns="p", errors="ignore")


def _failures(people: Collected, draws: int) -> list[Table]:
    frame = as_frame(people.get("failures"))
    if frame.empty:
        return []
    for name in set(frame["mode"]):
        one_of("failure mode", name, FAILURE_MODES)
    titles = {name: title for name, (title, _) in FAILURE_MODES.items()}
    frame["failure"] = pd.Categorical(frame["mode"].map(titles), list(titles.values()))
    rows = []
    for (name, method), part in frame.groupby(["failure", "method"], sort=True, observed=True):
        answered = part.dropna(subset="present")
        share = case_share(answered["present"], answered["case_id"])
        rows.append({"failure": name, "method": method, **share, "n_missing": len(part) - len(answered)})
    rated = _items(frame, PLACE, "rater", frame["present"].map({True: 1.0, False: 0.0}))
    how = Agreeing("failure", "nominal", "texts", "failure_agreement", "Agreement on failure modes", draws=draws)
    shares = pd.DataFrame(rows).drop(columns="p")
    return [
        table_of("failures", "Failure modes (LEME section 5.6, Table 20)", _ABOUT["failures"], shares, "method"),
        table_of("failure_examples", "Examples (LEME Table 20)", _ABOUT["failure_examples"], _examples(people, frame)),
        *agreement_sections(rated.assign(failure=frame["failure"].astype(str)), how),
    ]


def _examples(people: Collected, frame: pd.DataFrame) -> pd.DataFrame:
    passages = people.get("passages").to_pandas()
    firsts = frame[frame["present"].eq(True)].sort_values([*PLACE, "rater"]).drop_duplicates("failure")
    rows = []
    for row in firsts.to_dict("records"):
        same = (passages[PLACE] == pd.Series({name: row[name] for name in PLACE})).all(axis=1)
        texts = passages[same & passages["passage"].isin(["subject", "related"])].sort_values(
            "passage", ascending=False
        )
        passage_texts = " / ".join(f"{one['passage']}: {one['text']}" for one in texts.to_dict("records"))
        about = {"failure": row["failure"], "method": row["method"], "case": str(row["case_id"])}
        rows.append(about | {"comment": row["comment"], "passages": passage_texts})
    return pd.DataFrame(rows)
