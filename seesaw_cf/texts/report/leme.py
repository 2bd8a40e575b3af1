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
from seesaw_cf.stats.simple import case_estimate, share_estimate
from seesaw_cf.texts.report.comparisons import (
    correlations,
    edit_kinds,
    kind_differences,
    kind_shares,
    label_tests,
    lower_tests,
    paired,
)
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
    rows = [*_counts(passages, edits, datasets)]
    rated = as_frame(ratings, datasets) if ratings is not None and ratings.num_rows else None
    short, kinds = None, None
    if scores is not None and scores.num_rows:
        short = with_datasets(short_values(scores), datasets)
        kinds = with_datasets(edit_kinds(scores, factual), datasets)
        rows += [*kind_shares(kinds), *mean_rows("short_form", short, (0, 1))]
        rows += kind_differences("short_by_kind", short, kinds)
    if rated is not None:
        values = survey_values(rated)
        rows += [*survey_rows(values), *_unrated(rated)]
        if datasets:
            rows += mean_rows("rating_together", values.drop(columns="dataset"), _ENDS)
        if short is not None and kinds is not None:
            texts = _means_of_texts(by_type(values))
            rows += kind_differences("by_kind", texts[texts["asked"].isin(["edit", "factual"])], kinds)
            rows += correlations(texts, short)
    if annotations is not None and annotations.num_rows:
        rows += claim_rows(labelled(annotations, datasets))
    if simple is not None:
        rows += mean_rows("measure", with_datasets(simple, datasets))
    return frame_of(rows)


def _datasets(edits: pa.Table | None) -> dict[int, str]:
    rows = [] if edits is None else zip(edits["case_id"].to_pylist(), edits["dataset"].to_pylist())
    datasets = {case: name for case, name in rows if name}
    return datasets if len(set(datasets.values())) > 1 else {}


def _counts(passages: pa.Table, edits: pa.Table | None, datasets: Mapping[int, str]) -> Iterator[Row]:
    """Yield how many edits ended how, with how many demonstrations, and how many texts are empty, cut or missing."""
    tried = with_datasets(edits.drop_columns("dataset").to_pandas(), datasets) if edits is not None else pd.DataFrame()
    for key, own in blocks(tried, "editor", "status") if len(tried) else ():
        shown = pd.to_numeric(own["demonstrations"])
        more = {"n_demonstrated": int(shown.count()), "fewest": shown.min(), "most": shown.max()}
        yield _count("edits", own, key, more)
    for key, own in blocks(as_frame(passages, datasets), "editor", "about", "status"):
        empty = (own["status"] == "ok") & (own["text"].str.strip() == "")
        yield _count("texts", own, key, {"n_empty": int(empty.sum()), "n_cut": int((own["finish"] == "length").sum())})


def _unrated(rated: pd.DataFrame) -> Iterator[Row]:
    for key, own in blocks(rated[rated["status"] != "ok"], "status"):
        yield _count("unrated", own, key)


def _count(what: str, rows: pd.DataFrame, key: Row, more: Row | None = None) -> Row:
    return text_row(what, Estimate(len(rows)), scale="count", answer=key.pop("status"), **key, **(more or {}))


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
    """Yield the means of every item and type of question, and whether they are lower than before the edit."""
    for suffix, own in (("", values), ("_by_type", by_type(values))):
        yield from mean_rows(f"rating{suffix}", own, _ENDS)
        yield from lower_tests(f"lower{suffix}", own)


def _means_of_texts(values: pd.DataFrame) -> pd.DataFrame:
    names = [name for name in values if name != "value"]
    return values.groupby(names, sort=False, observed=True)["value"].mean().reset_index()


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
    """Yield the shares of claims that texts support, leave open and contradict, which add up to 1, and their tests."""
    for key, rows in blocks(marked, "editor", "about", "asked"):
        there = rows[rows["label"].notna()]
        for label in LABELS:
            share = share_estimate(there["label"] == label, there["case_id"])
            yield text_row("claims", share, answer=label, scale="share", n_missing=len(rows) - len(there), **key)
    yield from drift_rows(marked)
    yield from label_tests(marked)


def drift_rows(marked: pd.DataFrame) -> Iterator[Row]:
    """Yield how much more facts that no edit touches are contradicted after edits, and how many lost their support.

    "contradicted_more" is the share contradicted after minus before, within cases, corrected over the editors.
    "support_lost" is the share of facts supported before that are contradicted after, in the same sample, and with a
    column `person` in the answers of the same person.

    Source: LEME section 5.3, Figure 5 ("factual drift").
    Deviates: paired by case, with an interval; the paper compares two percentages by eye.
    """
    facts = marked[marked["asked"] == "ground_truth"]
    facts = facts.assign(value=(facts["label"] == "contradicts").astype(float).where(facts["label"].notna()))
    for key, rows in blocks(facts, "about"):
        names = sorted(set(rows["editor"]) - {BASELINE})
        sides = {name: rows[rows["editor"].isin([name, BASELINE])] for name in names}
        about: Row = {"control": BASELINE, "scale": "share", **key}
        yield from adjusted(
            text_row("contradicted_more", paired(own, name)[0], editor=name, **about)
            | {"n_missing": int(own["label"].isna().sum())}
            for name, own in sides.items()
        )
        for name, own in sides.items():
            yield text_row("support_lost", _lost(own), editor=name, **about)


def _lost(rows: pd.DataFrame) -> Estimate:
    key = [name for name in ("case_id", "claim_id", "sample", "person") if name in rows]
    given = rows.dropna(subset="label")
    edited = given["editor"] != BASELINE
    pairs = given[edited].merge(given[~edited], on=key, suffixes=("", "_before"))
    supported = pairs[pairs["label_before"] == "supports"]
    return share_estimate(supported["label"] == "contradicts", supported["case_id"])


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
