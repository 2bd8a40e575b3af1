"""LEME's numbers of a run: ratings, claims, what changed about untouched facts, the short form, kinds of edits."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import numpy as np
import pandas as pd
import pyarrow as pa

from seesaw_cf.base.errors import RecordError, unknown_name
from seesaw_cf.base.types import Estimate
from seesaw_cf.effects.instruments import ITEMS, SCALE, TYPES
from seesaw_cf.effects.texts import LABELS
from seesaw_cf.report.frame import Row
from seesaw_cf.stats import proportion
from seesaw_cf.stats.simple import case_estimate, share_estimate
from seesaw_cf.texts.report.comparisons import correlations, label_tests, lower_tests
from seesaw_cf.texts.report.rows import (
    BASELINE,
    BLOCKS,
    adjusted,
    as_frame,
    blocks,
    frame_of,
    text_row,
    with_datasets,
)

TYPE_OF = {item.name: item.type for item in ITEMS}
_ENDS = (min(SCALE), max(SCALE))
# Contrast -> what the cases of its first side are; the second side is all other cases that it is about.
CONTRASTS = ("already_true", "updating", "correction")


def leme_frame(
    passages: pa.Table,
    ratings: pa.Table | None = None,
    annotations: pa.Table | None = None,
    *,
    scores: pa.Table | None = None,
    simple: pd.DataFrame | None = None,
    factual: Collection[int] = (),
    edits: pa.Table | None = None,
) -> pd.DataFrame:
    """Return every number that the tables of a run allow.

    Args:
        passages, ratings, annotations: Tables of `seesaw_cf.texts.tables`; what is None or empty has no row.
        scores: Score table of the same edits: the short form, and kinds of edits.
        simple: Measures of texts: editor, case_id, asked, value.
        factual: case_ids of edits with a true new fact.
        edits: `edits.parquet`; several data sets in it are kept apart.
    """
    datasets = _datasets(edits)
    rows = [] if edits is None else list(_edit_counts(edits, datasets))
    rows += _text_counts(as_frame(passages, datasets))
    scores = scores if scores is not None and scores.num_rows else None
    rated = as_frame(ratings, datasets) if ratings is not None and ratings.num_rows else None
    marked = labelled(annotations, datasets) if annotations is not None and annotations.num_rows else None
    try:
        kinds = with_datasets(edit_kinds(scores, marked, factual), datasets)
    except RecordError:  # nothing is known of the unedited model
        kinds = None
    if rated is not None:
        rows += _survey(rated, kinds, scores)
    if marked is not None:
        rows += [*claim_rows(marked), *drift_rows(marked), *label_tests(marked)]
    if kinds is not None:
        rows += _kind_shares(kinds)
    if scores is not None:
        short = with_datasets(short_values(scores), datasets)
        rows += mean_rows("short_form", short, (0, 1))
        rows += kind_differences("short_by_kind", short, kinds) if kinds is not None else []
    if simple is not None and len(simple):
        rows += mean_rows("measure", with_datasets(simple, datasets))
    return frame_of(rows)


def _datasets(edits: pa.Table | None) -> dict[int, str]:
    rows = [] if edits is None else zip(edits["case_id"].to_pylist(), edits["dataset"].to_pylist())
    datasets = {case: name for case, name in rows if name}
    return datasets if len(set(datasets.values())) > 1 else {}


def _edit_counts(edits: pa.Table, datasets: Mapping[int, str]) -> Iterator[Row]:
    """Yield how many edits ended how, and how many demonstrations in-context edits were shown."""
    frame = with_datasets(edits.to_pandas(), datasets).assign(
        demonstrations=lambda own: pd.to_numeric(own["demonstrations"])
    )
    by = [*(["dataset"] if datasets else []), "editor", "status"]
    for key, own in frame.groupby(by, sort=False):
        shown = own["demonstrations"]
        more = {"n_demonstrated": int(shown.count()), "fewest": shown.min(), "most": shown.max()}
        names = dict(zip(by, key, strict=True))
        yield text_row("edits", Estimate(len(own)), scale="count", answer=names.pop("status"), **names, **more)


def _text_counts(passages: pd.DataFrame) -> Iterator[Row]:
    """Yield how many texts there are, are empty, end at the length limit, or are missing and why."""
    for key, own in blocks(passages, "editor", "about", "status"):
        empty = (own["status"] == "ok") & (own["text"].str.strip() == "")
        more = {"n_empty": int(empty.sum()), "n_cut": int((own["finish"] == "length").sum())}
        yield text_row("texts", Estimate(len(own)), scale="count", answer=key.pop("status"), **key, **more)


def mean_rows(what: str, values: pd.DataFrame, within: tuple[float, float] = (-np.inf, np.inf)) -> Iterator[Row]:
    """Yield means of case means, with the standard deviation over rows (the papers' plus or minus).

    Args:
        what: Of which number.
        values: editor, case_id, asked, value, and columns of blocks; NaN is missing.
        within: Ends of the values' scale, where intervals are cut.
    """
    for key, rows in blocks(values, "editor", "asked"):
        there = rows[rows["value"].notna()]
        found = case_estimate(there["value"], there["case_id"], within=within)
        more = {"sd": there["value"].std(ddof=1), "n_missing": len(rows) - len(there)}
        yield text_row(what, found, **key, **more, p=float("nan"))


# Ratings: Tables 1 and 10 to 13, Figure 3.


def survey_values(rated: pd.DataFrame) -> pd.DataFrame:
    """Return ratings as values of items, in the papers' order; a rating that is missing is NaN.

    Raises:
        UnknownNameError: An item that is not in the survey.
    """
    for name in set(rated["item"]) - set(TYPE_OF):
        raise unknown_name("survey item", str(name), TYPE_OF)
    columns = [name for name in BLOCKS if name in rated] + ["editor", "case_id", "sample"]
    asked = pd.Categorical(rated["item"], list(TYPE_OF))
    return rated[columns].assign(asked=asked, value=rated["rating"].astype(np.float64))


def by_type(values: pd.DataFrame) -> pd.DataFrame:
    """Return values of items as values of their types of question."""
    return values.assign(asked=pd.Categorical(values["asked"].astype(str).map(TYPE_OF), TYPES))


def survey_rows(values: pd.DataFrame) -> Iterator[Row]:
    """Yield the means of every item and type of question."""
    yield from mean_rows("rating", values, _ENDS)
    yield from mean_rows("rating_by_type", by_type(values), _ENDS)


def _survey(rated: pd.DataFrame, kinds: pd.DataFrame | None, scores: pa.Table | None) -> Iterator[Row]:
    values = survey_values(rated)
    yield from survey_rows(values)
    yield from lower_tests("lower", values)
    yield from lower_tests("lower_by_type", by_type(values))
    if "dataset" in values:
        yield from mean_rows("rating_together", values.drop(columns="dataset"), _ENDS)
    for key, own in blocks(rated[rated["status"] != "ok"], "status"):
        yield text_row("unrated", Estimate(len(own)), scale="count", answer=key.pop("status"), **key)
    types = by_type(values)
    texts = (
        types.groupby([name for name in types if name != "value"], sort=False, observed=True)["value"]
        .mean()
        .reset_index()
    )
    if kinds is not None:
        yield from kind_differences("by_kind", texts[texts["asked"].isin(["edit", "factual"])], kinds)
    if scores is not None:
        yield from correlations(texts, short_values(scores))


# Claims: Figures 4 and 5, and factual drift.


def labelled(annotations: pa.Table | pd.DataFrame, datasets: Mapping[int, str] | None = None) -> pd.DataFrame:
    """Return `as_frame` of annotations, with their labels checked.

    Raises:
        RecordError: As `as_frame`, or a label other than `LABELS`.
    """
    frame = as_frame(annotations, datasets)
    if unknown := set(frame["label"].dropna()) - set(LABELS):
        raise RecordError(f"annotations: labels {sorted(unknown)}, expected {', '.join(LABELS)} or none.")
    return frame


def claim_rows(marked: pd.DataFrame) -> Iterator[Row]:
    """Yield the shares of claims that texts support, leave open and contradict; the three add up to 1."""
    for key, rows in blocks(marked, "editor", "about", "asked"):
        there = rows[rows["label"].notna()]
        for label in LABELS:
            share = share_estimate(there["label"] == label, there["case_id"])
            yield text_row("claims", share, answer=label, scale="share", n_missing=len(rows) - len(there), **key)


def drift_rows(marked: pd.DataFrame) -> Iterator[Row]:
    """Yield how much more facts that no edit touches are contradicted after edits, and how many lost their support.

    "contradicted_more" is the share contradicted after minus before, within cases, corrected over the editors.
    "support_lost" is the share of facts supported before that are contradicted after, in the same sample, and with a
    column `person` in the answers of the same person.

    Source: LEME section 5.3, Figure 5 ("factual drift").
    Deviates: paired by case, with an interval; the paper compares two percentages by eye.
    """
    for key, rows in blocks(marked[marked["asked"] == "ground_truth"], "about"):
        before = rows[rows["editor"] == BASELINE]
        names = sorted(set(rows["editor"]) - {BASELINE})
        pairs = {name: (before, rows[rows["editor"] == name]) for name in names}
        yield from adjusted(_more(*both, editor=name, **key) for name, both in pairs.items())
        yield from (_lost(*both, editor=name, **key) for name, both in pairs.items())


def _more(before: pd.DataFrame, after: pd.DataFrame, **names: object) -> Row:
    missing = int(before["label"].isna().sum() + after["label"].isna().sum())
    before, after = (side[side["label"].notna()] for side in (before, after))
    common = set(before["case_id"]) & set(after["case_id"])
    sides = pd.concat([after, before], keys=["after", "before"], names=["side", None])
    sides = sides[sides["case_id"].isin(common)]
    side = sides.index.get_level_values("side").to_numpy()
    contradicts = (sides["label"] == "contradicts").astype(float)
    found = case_estimate(contradicts, sides["case_id"], side == "after", side == "before")
    return text_row("contradicted_more", found, control=BASELINE, scale="share", n_missing=missing, **names)


def _lost(before: pd.DataFrame, after: pd.DataFrame, **names: object) -> Row:
    key = [name for name in ("case_id", "claim_id", "sample", "person") if name in after]
    pairs = after.dropna(subset="label").merge(before.dropna(subset="label"), on=key, suffixes=("", "_before"))
    supported = pairs[pairs["label_before"] == "supports"]
    found = share_estimate(supported["label"] == "contradicts", supported["case_id"])
    return text_row("support_lost", found, control=BASELINE, scale="share", **names)


# The short form: Tables 16 to 18.


def short_values(scores: pa.Table) -> pd.DataFrame:
    """Return short-form measures of every edit from a score table: editor, case_id, asked, value in 0..1.

    "edit_success", "generalization" and "portability" are the share of the new target's (of the consequence's) tokens
    that are the model's first choice after the edit's own, after paraphrased and after consequences' prompts;
    "ground_truth" is that share for the old target; "locality" is the share of the tokens of neighborhood prompts' true
    answers at which the first choice, right or wrong, is that from before the edit.

    Source: LEME appendix H, in the setting of Yao et al. (2023).
    """
    frame: pd.DataFrame = scores.to_pandas()
    after = frame[(frame["status"] == "ok") & (frame["phase"] == "post")].astype({"n_greedy": float, "n_kept": float})
    after = after.assign(value=after["n_greedy"] / after["n_tokens"], asked=[
        _SHORT.get((kind, role), "") for kind, role in zip(after["kind"], after["role"])
    ])  # fmt: skip
    kept = after["asked"] == "locality"
    after.loc[kept, "value"] = after["n_kept"] / after["n_tokens"]
    return after[after["asked"] != ""].groupby(["editor", "case_id", "asked"], sort=True)["value"].mean().reset_index()


_SHORT = {
    ("efficacy", "target_new"): "edit_success",
    ("paraphrase", "target_new"): "generalization",
    ("efficacy", "target_true"): "ground_truth",
    ("portability", "target_new"): "portability",
    ("neighborhood", "target_true"): "locality",
}


# Kinds of edits: Table 14, Figures 6 and 7.


def edit_kinds(scores: pa.Table | None, marked: pd.DataFrame | None, factual: Collection[int] = ()) -> pd.DataFrame:
    """Return what each edit is to the unedited model.

    By scores: its first choice after the edit's own prompt is the old target (it held the old fact) or the new one (the
    edit was already true). By claims: more than half of the subject's texts before the edit support the old fact, or
    the new one. Scores are taken where both are given.

    Args:
        scores: A score table with rows of kind "efficacy" and phase "pre".
        marked: See `labelled`.
        factual: case_ids of edits with a true new fact; the rest are counterfactual.

    Returns:
        One row per case: case_id, `knew_old`, `already_true` (True, False, or None when unknown), `factual`,
        `kind` ("injection", "updating", "correction", or "" when unknown).

    Raises:
        RecordError: Nothing in them is of the unedited model.

    Source: LEME section 5.5 and appendix H (the pre-edit statement under the short evaluation).
    """
    held = _held_by_scores(scores) if scores is not None else pd.DataFrame()
    held = _held_by_claims(marked) if held.empty and marked is not None else held
    if held.empty:
        raise RecordError(
            "kinds of edits: no scores of kind 'efficacy' and no claims about the subject's texts before the edit. "
            "Give a table that has the unedited model in it."
        )
    out = held.reindex(columns=["knew_old", "already_true"]).astype(object)
    out = out.where(out.notna(), None).reset_index()
    out["factual"] = out["case_id"].isin(list(factual))
    update = np.where(out["factual"], "correction", "updating")
    unknown, old = out["knew_old"].isna(), out["knew_old"].eq(True)
    return out.assign(kind=np.where(unknown, "", np.where(old, update, "injection")))


def _held_by_scores(scores: pa.Table) -> pd.DataFrame:
    frame = scores.to_pandas()
    before = (frame["kind"] == "efficacy") & (frame["phase"] == "pre") & (frame["status"] == "ok")
    rows = frame[before & frame["role"].isin(["target_new", "target_true"])]
    rows = rows.assign(greedy=rows["greedy"].astype(bool))
    wide: pd.DataFrame = rows.pivot_table(index="case_id", columns="role", values="greedy", aggfunc="max")
    return wide.rename(columns={"target_true": "knew_old", "target_new": "already_true"})


def _held_by_claims(marked: pd.DataFrame) -> pd.DataFrame:
    own = marked[(marked["editor"] == BASELINE) & (marked["about"] == "subject") & marked["label"].notna()]
    rows = own[own["asked"].isin(["new_fact", "old_fact"])]
    shares = (rows["label"] == "supports").groupby([rows["case_id"], rows["asked"]]).mean().unstack("asked")
    return (shares > 0.5).where(shares.notna()).rename(columns={"old_fact": "knew_old", "new_fact": "already_true"})


def _kind_shares(kinds: pd.DataFrame) -> Iterator[Row]:
    for key, rows in blocks(kinds, "factual"):
        setting = "factual" if key.pop("factual") else "counterfactual"
        for asked, column in (("fact update", "knew_old"), ("already true", "already_true")):
            known = rows[column].dropna()
            share = proportion(int(known.astype(bool).sum()), len(known))
            more = {"n_missing": len(rows) - len(known), "n_edits": len(known)}
            yield text_row("edit_kind", share, asked=asked, answer=setting, scale="share", **key, **more)


def kind_differences(what: str, values: pd.DataFrame, kinds: pd.DataFrame) -> Iterator[Row]:
    """Yield how much a measure differs with the kind of edit (Figure 6: long form, Figure 7: short form).

    `reference` is the contrast: "already_true" against not; "updating" against injection among counterfactual edits;
    "correction" against injection among factual ones. Corrected within block and contrast; what has no case on one side
    has no row.

    Args:
        what: Of which number.
        values: editor, case_id, asked, value, and columns of blocks.
        kinds: Rows of `edit_kinds`.
    """
    on = ["case_id", *(name for name in BLOCKS if name in values and name in kinds)]
    joined = values[values["value"].notna()].merge(kinds, on=on, how="inner")
    for key, block in blocks(joined):
        for contrast in CONTRASTS:
            rows = [
                _difference(what, part, contrast, {**key, "asked": asked, "editor": editor})
                for (asked, editor), part in block.groupby(["asked", "editor"], observed=True)
            ]
            yield from adjusted(one for one in rows if one["n_first"] and one["n_second"])


def _difference(what: str, part: pd.DataFrame, contrast: str, names: Row) -> Row:
    if contrast == "already_true":
        cases = part[part["already_true"].notna()]
        first = cases["already_true"].astype(bool).to_numpy()
    else:
        cases = part[(part["factual"] == (contrast == "correction")) & (part["kind"] != "")]
        first = (cases["kind"] == contrast).to_numpy()
    sides = {"n_first": cases["case_id"][first].nunique(), "n_second": cases["case_id"][~first].nunique()}
    found = case_estimate(cases["value"], cases["case_id"], first, ~first)
    return text_row(what, found, reference=contrast, **names, **sides)
