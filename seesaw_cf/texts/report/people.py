"""People's answers about long texts as rows: ratings, claims, failure modes, and judges beside people."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import pandas as pd

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError
from seesaw_cf.effects.instruments import FAILURE_MODES, TYPES
from seesaw_cf.effects.texts import LABELS
from seesaw_cf.report.frame import Row
from seesaw_cf.stats import case_weights, clustered_mean
from seesaw_cf.stats.simple import share_estimate
from seesaw_cf.texts.report.collected import KINDS, Answers, rows_of_kind
from seesaw_cf.texts.report.comparisons import lower_tests
from seesaw_cf.texts.report.flaws import flaw_frame, flaw_rows, reflected_rows, repeat_rows, share_of_rows
from seesaw_cf.texts.report.leme import TYPE_OF, claim_rows, drift_rows, labelled, survey_rows, survey_values
from seesaw_cf.texts.report.rows import (
    PEOPLE,
    PLACE,
    agreement_rows,
    as_frame,
    beside_people,
    frame_of,
    text_row,
)


def people_frame(
    people: Answers, judged: Answers | None = None, judges: Collection[str] = (), draws: int = 1000
) -> pd.DataFrame:
    """Return every number that people's answers allow.

    Args:
        people: Answers of people, and of judges of flaws.
        judged: Those of a run: its raters and annotators are compared with people.
        judges: Which raters of flaws are models.
        draws: Bootstrap samples behind the intervals of agreement.

    Raises:
        RecordError: Ratings outside 1 to 7, or labels of claims that are none.
        UnknownNameError: An item, failure mode or judge that does not exist.
    """
    rows: list[Row] = []
    given = {kind: rows_of_kind(people, kind) for kind in KINDS}
    if len(given["flaws"]):
        frame = flaw_frame(given["flaws"])
        rows += [*flaw_rows(frame, judges, draws), *repeat_rows(frame, flaw_frame(given["again"]))]
    rows += reflected_rows(given["reflected"])
    for kind, rows_about in (("ratings", _survey), ("annotations", _claims), ("failures", _failures)):
        rows += rows_about(given[kind], draws) if len(given[kind]) else []
    for kind in ("ratings", "annotations") if judged else ():
        rows += beside_people(kind, given[kind], rows_of_kind(judged or {}, kind), draws)
    return frame_of(rows)


def _survey(frame: pd.DataFrame, draws: int) -> Iterator[Row]:
    outside = frame[frame["rating"].notna() & ~frame["rating"].between(1, 7)]
    if len(outside):
        first = outside.iloc[0]
        raise RecordError(
            f"ratings: {len(outside)} outside 1 to 7, first {first['rating']:g} by {first['rater']!r} for "
            f"{first['item']!r} of case {first['case_id']}. Recode them, or leave them empty."
        )
    values = survey_values(as_frame(frame.assign(rater=PEOPLE)))
    yield from survey_rows(values)
    yield from lower_tests("lower", values)
    yield from _other_raters(as_frame(frame))
    rated = _items(frame, [*PLACE, "item"], "rater", frame["rating"], frame["item"].map(TYPE_OF))
    items = pd.Categorical(frame["item"], list(TYPE_OF))
    yield from agreement_rows(pd.concat([rated.assign(asked="all"), rated]), "survey", "ordinal", draws)
    yield from agreement_rows(rated.assign(asked=items).sort_values("asked"), "survey", "ordinal", draws)


def _items(frame: pd.DataFrame, key: Sequence[str], rater: str, value: pd.Series, asked: pd.Series) -> pd.DataFrame:
    """Return item, rater, value, group, asked: what agreement is computed from."""
    item = frame[list(key)].astype(str).agg("|".join, axis=1)
    columns = {"item": item, "rater": frame[rater], "value": value.astype(float), "group": frame["case_id"]}
    return pd.DataFrame({**columns, "asked": asked})


def _other_raters(frame: pd.DataFrame) -> Iterator[Row]:
    """Yield means with an interval for raters like these: clustered by case and rater, none below five raters."""
    frame = frame.dropna(subset="rating").assign(asked=lambda own: pd.Categorical(own["item"].map(TYPE_OF), TYPES))
    for (editor, asked), part in frame.groupby(["editor", "asked"], sort=True, observed=True):
        case, rater = (pd.factorize(part[column])[0] for column in ("case_id", "rater"))
        weights = case_weights(case, case >= 0)
        found = clustered_mean(part["rating"].to_numpy(float), [weights], {"case": case, "rater": rater})
        yield text_row("rating_other_raters", found, editor=editor, asked=asked, n_people=part["rater"].nunique())


def _claims(frame: pd.DataFrame, draws: int) -> Iterator[Row]:
    marked = labelled(frame.assign(person=frame["annotator"], annotator=PEOPLE))
    yield from claim_rows(marked)
    yield from drift_rows(marked)
    given = frame.dropna(subset="label")
    columns = {"label": given["label"], "kind": given["claim_kind"] + ", " + given["passage"] + " passage"}
    for by, column in columns.items():  # LEME Tables 2 and 3: of all labels
        for name in sorted(set(column)):
            count = int((column == name).sum())
            found = share_of_rows(column == name, given["case_id"])
            yield text_row("claim_share", found, asked=by, answer=name, scale="share", count=count)
    value = frame["label"].map({label: at for at, label in enumerate(LABELS)})
    rated = _items(frame, [*PLACE, "passage", "claim_kind", "claim_id"], "annotator", value, frame["claim_kind"])
    yield from agreement_rows(pd.concat([rated.assign(asked="all"), rated]), "claims", "nominal", draws)


def _failures(table: pd.DataFrame, draws: int) -> Iterator[Row]:
    frame = failures_of(table)
    for (name, editor), part in frame.groupby(["asked", "editor"], sort=True, observed=True):
        answered = part.dropna(subset="present")
        found = share_estimate(answered["present"], answered["case_id"])
        missing = len(part) - len(answered)
        yield text_row("failure", found, asked=name, editor=editor, scale="share", n_missing=missing)
    present = frame["present"].map({True: 1.0, False: 0.0})
    yield from agreement_rows(
        _items(frame, PLACE, "rater", present, frame["asked"].astype(str)), "failures", "nominal", draws
    )


def failures_of(table: pd.DataFrame) -> pd.DataFrame:
    """Return rows of `seesaw_cf.texts.tables.FAILURES`, `asked` being the title of the failure mode."""
    frame = as_frame(table)
    for name in set(frame["mode"]):
        one_of("failure mode", name, FAILURE_MODES)
    titles = {name: title for name, (title, _) in FAILURE_MODES.items()}
    return frame.assign(asked=pd.Categorical(frame["mode"].map(titles), list(titles.values())))


def failure_examples(people: Answers) -> pd.DataFrame:
    """Return one text of each failure mode, the first by name of editor and case: LEME Table 20."""
    frame, passages = failures_of(rows_of_kind(people, "failures")), as_frame(rows_of_kind(people, "passages"))
    firsts = frame[frame["present"].eq(True)].sort_values([*PLACE, "rater"]).drop_duplicates("asked")
    texts = passages[passages["about"].isin(["subject", "related"])].sort_values("about", ascending=False)
    texts = texts.assign(texts=texts["about"] + ": " + texts["text"].fillna(""))
    words = texts.groupby(PLACE, sort=False)["texts"].agg(" / ".join).reset_index()
    return firsts.merge(words, "left", PLACE)[["asked", "editor", "case_id", "comment", "texts"]].fillna({"texts": ""})
