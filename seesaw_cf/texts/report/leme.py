"""LEME's numbers of a run: ratings, claims, what changed about untouched facts, the short form, kinds of edits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import numpy as np
import pandas as pd
import pyarrow as pa

from seesaw_cf.base.types import Estimate
from seesaw_cf.effects.instruments import ITEMS, SCALE, TYPES
from seesaw_cf.effects.texts import LABELS
from seesaw_cf.report.frame import Row
from seesaw_cf.stats.simple import case_estimate, proportion
from seesaw_cf.texts.report.rows import (
    BLOCKS,
    adjusted,
    beside_baseline,
    blocks,
    case_share,
    cells,
    correlations,
    frame_of,
    label_tests,
    lower_tests,
    mean_rows,
    paired,
    share_rows,
    text_row,
)
from seesaw_cf.texts.tables import BASELINE, as_frame, coded

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
    columns = [edits[name].to_pylist() for name in ("case_id", "dataset")] if edits is not None else [[], []]
    named = {case: name for case, name in zip(*columns) if name}
    datasets = named if len(set(named.values())) > 1 else {}
    texts = as_frame(passages, datasets)
    rows = [*_counts("texts", texts, "editor", "about", more=_empty)]
    if edits is not None:
        rows += _counts("edits", as_frame(edits.drop_columns("dataset"), datasets), "editor")
    rated = coded("ratings", ratings, datasets) if ratings is not None and ratings.num_rows else None
    if rated is not None:
        rows += [*survey_rows(rated), *_counts("unrated", rated[rated["status"] != "ok"])]
        if datasets:
            rows += mean_rows("rating_together", rated.drop(columns="dataset"), _ENDS)
    if annotations is not None and annotations.num_rows:
        rows += claim_rows(coded("annotations", annotations, datasets))
    if scores is not None and scores.num_rows:
        short, kinds = (as_frame(own, datasets) for own in (short_values(scores), edit_kinds(scores, factual)))
        rows += [*kind_shares(kinds), *mean_rows("short_form", short, (0, 1))]
        rows += kind_differences("short_by_kind", short, kinds)
        if rated is not None:
            key = blocks(rated, "editor", "case_id", "sample", "asked")
            long = by_type(rated).groupby(key, observed=True)["value"].mean().reset_index()
            rows += kind_differences("by_kind", long[long["asked"].isin(["edit", "factual"])], kinds)
            rows += correlations(long, short)
    if simple is not None:
        rows += mean_rows("measure", as_frame(simple, datasets))
    return frame_of(rows)


def _counts(
    what: str, frame: pd.DataFrame, *by: str, more: Callable[[pd.DataFrame], Row] = lambda rows: {}
) -> Iterator[Row]:
    """Yield how many edits, texts or ratings ended how; `answer` is their status."""
    own = frame.rename(columns={"status": "answer"}).assign(value=0)
    yield from cells(what, own, blocks(own, *by, "answer"), lambda rows: Estimate(len(rows)), more, scale="count")


def _empty(texts: pd.DataFrame) -> Row:
    empty = (texts["answer"] == "ok") & (texts["text"].str.strip() == "")
    return {"n_empty": int(empty.sum()), "n_cut": int((texts["finish"] == "length").sum())}


# Ratings: Tables 1 and 10 to 13, Figure 3.


def by_type(values: pd.DataFrame) -> pd.DataFrame:
    """Return values of items as values of their types of question."""
    return values.assign(asked=pd.Categorical(values["asked"].astype(str).map(TYPE_OF), TYPES))


def survey_rows(values: pd.DataFrame) -> Iterator[Row]:
    """Yield the means of every item and type of question, and whether they are lower than before the edit."""
    for suffix, own in (("", values), ("_by_type", by_type(values))):
        yield from mean_rows(f"rating{suffix}", own, _ENDS)
        yield from lower_tests(f"lower{suffix}", own)


# Claims: Figures 4 and 5, and factual drift.


def claim_rows(marked: pd.DataFrame) -> Iterator[Row]:
    """Yield the shares of claims that texts support, leave open and contradict, which add up to 1, and their tests."""
    by = blocks(marked, "editor", "about", "asked")
    for code, label in enumerate(LABELS):
        yield from share_rows("claims", marked, by, marked["value"] == code, answer=label)
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
    against = (facts["label"] == "contradicts").astype(float).where(facts["value"].notna())
    more, lost = list[Row](), list[Row]()
    for names, own in beside_baseline(facts.assign(value=against), "about"):
        names |= {"scale": "share", "n_missing": int(own["value"].isna().sum())}
        more.append(text_row("contradicted_more", paired(own, names["editor"], (-1, 1))[0], **names))
        lost.append(text_row("support_lost", _lost(own.dropna(subset="value")), **names))
    yield from adjusted(more, *BLOCKS, "about")
    yield from lost


def _lost(rows: pd.DataFrame) -> Estimate:
    key = [name for name in ("case_id", "claim_id", "sample", "person") if name in rows]
    edited = rows["editor"] != BASELINE
    pairs = rows[edited].merge(rows[~edited], on=key, suffixes=("", "_before"))
    return case_share(pairs[pairs["label_before"] == "supports"])


# The short form: Tables 16 to 18.

_SHORT = {
    ("efficacy", "target_new"): "edit_success",
    ("paraphrase", "target_new"): "generalization",
    ("efficacy", "target_true"): "ground_truth",
    ("portability", "target_new"): "portability",
    ("neighborhood", "target_true"): "locality",
}


def short_values(scores: pa.Table) -> pd.DataFrame:
    """Return short-form measures of every edit from a score table: editor, case_id, asked, value in 0..1.

    "edit_success", "generalization" and "portability" are the share of the new target's (of the consequence's) tokens
    that are the model's first choice after the edit's own, after paraphrased and after consequences' prompts;
    "ground_truth" is that share for the old target; "locality" is the share of the tokens of neighborhood prompts' true
    answers at which the first choice, right or wrong, is that from before the edit.

    Source: LEME appendix H, in the setting of Yao et al. (2023).
    """
    frame: pd.DataFrame = scores.to_pandas()
    after = frame[(frame["status"] == "ok") & (frame["phase"] == "post")]
    after = after.assign(asked=pd.Series(zip(after["kind"], after["role"]), after.index).map(_SHORT))
    tokens = after["n_kept"].where(after["asked"] == "locality", after["n_greedy"]).astype(float)
    values = after.assign(value=tokens / after["n_tokens"])
    return values.groupby(["editor", "case_id", "asked"])["value"].mean().reset_index()


# Kinds of edits: Table 14, Figures 6 and 7.


def edit_kinds(scores: pa.Table, factual: Collection[int] = ()) -> pd.DataFrame:
    """Return what each edit is to the unedited model, by its first choice after the edit's own prompt.

    The old target: it held the old fact; the new one: the edit was already true.

    Args:
        scores: A score table; rows of kind "efficacy" and phase "pre" are used.
        factual: case_ids of edits with a true new fact; the rest are counterfactual.

    Returns:
        One row per case: case_id, `knew_old`, `already_true` (1, 0, or NaN when unknown), `factual`, `kind`
        ("injection", "updating", "correction", or "" when unknown).

    Source: LEME section 5.5 and appendix H (the pre-edit statement under the short evaluation).
    """
    frame: pd.DataFrame = scores.to_pandas()
    before = (frame["kind"] == "efficacy") & (frame["phase"] == "pre") & (frame["status"] == "ok")
    held = frame[before].astype({"greedy": float}).groupby(["case_id", "role"])["greedy"].max().unstack()
    held = held.reindex(columns=["target_true", "target_new"]).set_axis(["knew_old", "already_true"], axis=1)
    out = held.reset_index().assign(factual=lambda own: own["case_id"].isin(list(factual)))
    update = np.where(out["factual"], "correction", "updating")
    kind = np.where(out["knew_old"] == 1, update, "injection")
    return out.assign(kind=np.where(out["knew_old"].isna(), "", kind))


def kind_shares(kinds: pd.DataFrame) -> Iterator[Row]:
    """Yield how many edits update a fact that the model held, and how many were already true: Table 14."""
    setting = np.where(kinds["factual"], "factual", "counterfactual")
    for asked, column in (("fact update", "knew_old"), ("already true", "already_true")):
        own = kinds.assign(value=kinds[column], answer=setting)
        yield from cells("edit_kind", own, blocks(own, "answer"), independent_share, asked=asked, scale="share")


def independent_share(rows: pd.DataFrame) -> Estimate:
    """Return the share of values that are 1, of rows that do not depend on each other."""
    return proportion(int(rows["value"].sum()), len(rows))


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
    joined = values.dropna(subset="value").merge(kinds, on=on)
    return adjusted(_differences(what, joined), *BLOCKS, "reference")


def _differences(what: str, joined: pd.DataFrame) -> Iterator[Row]:
    known, factual = joined["kind"] != "", joined["factual"]
    contrasts = {
        "already_true": (joined["already_true"].notna(), joined["already_true"] == 1),
        "updating": (known & ~factual, joined["kind"] == "updating"),
        "correction": (known & factual, joined["kind"] == "correction"),
    }
    by = blocks(joined, "asked", "editor")
    for reference, (among, first) in contrasts.items():
        for key, part in joined.assign(first=first)[among].groupby(by, observed=True):
            sides = [part["first"].to_numpy(), ~part["first"].to_numpy()]
            n_first, n_second = (part["case_id"][side].nunique() for side in sides)
            if n_first and n_second:
                names = dict(zip(by, key, strict=True)) | {"n_first": n_first, "n_second": n_second}
                found = case_estimate(part["value"], part["case_id"], *sides)
                yield text_row(what, found, reference=reference, **names)
