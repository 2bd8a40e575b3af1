"""What the tables of long form say: survey means, labels, factual drift, short-form metrics, kinds of edits.

Every function takes tables and gives a long-format data frame: one row per number, with its interval and its counts.
Tables of several models or data sets may be put together with columns `model` and `dataset`; both then split results.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa

from seesaw_cf.base.errors import RecordError, unknown_name
from seesaw_cf.effects.leme_annotation import LABELS
from seesaw_cf.effects.survey_items import ITEMS, TYPES
from seesaw_cf.stats import proportion
from seesaw_cf.stats.case_means import case_difference, case_mean, case_share, with_adjusted
from seesaw_cf.texts.tables import FrameRow

BASELINE = "none"  # the unedited model
HUMAN = "human"  # passages that people wrote
# Metrics of the survey in the papers' order of columns: items, and the question types they belong to.
METRICS = {item.name: item.type for item in ITEMS}
_BLOCKS = ("dataset", "model", "rater", "annotator")
_Rows = TypeVar("_Rows", pa.Table, pd.DataFrame)


def as_frame(table: pa.Table | pd.DataFrame) -> pd.DataFrame:
    """A table with the column `method`: the editor of texts after an edit, `BASELINE` or `HUMAN`.

    Raises:
        RecordError: It has no column `editor`, `case_id` or `phase`, or other phases than "pre" and "post".
    """
    frame = table.to_pandas() if isinstance(table, pa.Table) else table.copy()
    missing = [name for name in ("editor", "case_id", "phase") if name not in frame]
    if missing:
        raise RecordError(f"long-form table: columns {missing} are missing; it has {list(frame)}.")
    phases = set(frame["phase"])
    if not phases <= {"pre", "post"}:
        raise RecordError(f"long-form table: phases {sorted(map(str, phases))}, expected 'pre' and 'post'.")
    unedited = (frame["phase"] == "pre") & (frame["editor"] != HUMAN)
    frame["method"] = np.where(unedited, BASELINE, frame["editor"])
    return frame


def blocks(frame: pd.DataFrame, *more: str) -> Iterator[tuple[FrameRow, pd.DataFrame]]:
    """Splits by data set, model, rater and annotator, as far as there are such columns, and by `more`."""
    by = [name for name in _BLOCKS if name in frame] + list(more)
    if by:
        for key, rows in frame.groupby(by, sort=True, observed=True):
            yield dict(zip(by, key, strict=True)), rows
    elif len(frame):
        yield {}, frame


def apart(table: _Rows, datasets: Mapping[int, str]) -> _Rows:
    """Return rows of texts or edits with the column `dataset`, which keeps data sets and settings apart.

    Args:
        table: With `case_id`.
        datasets: case_id -> its data set; empty = all are one, and no column is added.
    """
    if not datasets:
        return table
    names = [datasets.get(case) or "open-ended" for case in table["case_id"].to_numpy().tolist()]
    if isinstance(table, pd.DataFrame):
        return table.assign(dataset=names)
    return table.append_column("dataset", pa.array(names, pa.string()))


def survey_values(ratings: pa.Table | pd.DataFrame, *, by_type: bool = False) -> pd.DataFrame:
    """Ratings as values: method, case_id, sample, metric, value and the block columns.

    Args:
        ratings: Rows of `RATINGS`.
        by_type: Metrics are question types ("edit", "factual", ...), the mean over a type's items, instead of items.

    Returns:
        Rows with a rating; rows without one have the value NaN, to be counted.

    Raises:
        UnknownNameError: An item that is not in the survey.
    """
    frame = as_frame(ratings)
    for name in set(frame["item"]) - set(METRICS):
        raise unknown_name("survey item", str(name), METRICS)
    metric, order = (frame["item"].map(METRICS), TYPES) if by_type else (frame["item"], list(METRICS))
    frame["metric"] = pd.Categorical(metric, order)
    frame["value"] = frame["rating"].astype(np.float64)
    keep = [name for name in _BLOCKS if name in frame] + ["method", "case_id", "sample", "metric"]
    if not by_type:
        return frame[[*keep, "value"]]
    return frame.groupby(keep, sort=False, observed=True)["value"].mean().reset_index()


def short_values(scores: pa.Table) -> pd.DataFrame:
    """Short-form metrics of every edit from a score table: method, case_id, metric, value in 0..1.

    Metrics: "edit_success", "generalization" and "portability", the share of the new target's (of the consequence's)
    tokens that are the model's first choice after the edit's own, after paraphrased and after consequences' prompts;
    "ground_truth", the same of the old target; "locality", the share of the tokens of neighbourhood prompts' true
    answers at which the first choice, right or wrong, is that from before the edit. Tables of older versions
    do not say that: there a prompt is local when as many tokens as before are right, or all where no more is known.

    Source: LEME appendix H, in the setting of Yao et al. (2023).
    """
    frame: pd.DataFrame = scores.to_pandas()
    frame = frame[frame["status"] == "ok"]
    whole = frame["greedy"].astype(float)
    shares = frame["n_greedy"].astype(float) / frame["n_tokens"].astype(float) if "n_greedy" in frame else whole
    frame = frame.assign(value=shares.fillna(whole))
    after = frame[frame["phase"] == "post"]
    parts = [
        after[(after["kind"] == kind) & (after["role"] == role)].assign(metric=metric)
        for metric, kind, role in (
            ("edit_success", "efficacy", "target_new"),
            ("generalization", "paraphrase", "target_new"),
            ("ground_truth", "efficacy", "target_true"),
            ("portability", "portability", "target_new"),
        )
    ]
    near = frame[(frame["kind"] == "neighborhood") & (frame["role"] == "target_true")]
    key = ["editor", "case_id", "prompt_id", "target"]
    near_pairs = near[near["phase"] == "post"].merge(
        near[near["phase"] == "pre"][[*key, "value"]], on=key, suffixes=("", "_before")
    )
    share_equal = (
        near_pairs["n_kept"].astype(float) / near_pairs["n_tokens"].astype(float)
        if "n_kept" in near_pairs
        else float("nan")
    )
    near_pairs["value"] = pd.Series(share_equal, near_pairs.index).fillna(
        (near_pairs["value"] == near_pairs["value_before"]).astype(float)
    )
    rows = pd.concat([*parts, near_pairs.assign(metric="locality")], ignore_index=True)
    values = rows.groupby(["editor", "case_id", "metric"], sort=True)["value"].mean().reset_index()
    return values.rename(columns={"editor": "method"})


def means(values: pd.DataFrame, within: tuple[float, float] = (-np.inf, np.inf)) -> pd.DataFrame:
    """The mean of every (method, metric): Tables 1, 10-13 (survey), 16-18 (short form), 19 (simple metrics).

    Args:
        values: method, case_id, metric, value, and block columns; NaN is missing.
        within: Ends of the values' scale, where intervals are cut.

    Returns:
        Block columns, `method`, `metric`, `value`, `low`, `high`, `sd` over rows (the papers' +-), `n`, `n_cases`,
        `n_missing`, `note`.
    """
    means_of_blocks = []
    for key, rows in blocks(values, "method", "metric"):
        there = rows[rows["value"].notna()]
        about = {"sd": there["value"].std(ddof=1), "n_missing": len(rows) - len(there)}
        means_of_blocks.append({**key, **case_mean(there["value"], there["case_id"], within), **about})
    return pd.DataFrame(means_of_blocks).drop(columns="p", errors="ignore")


def label_shares(annotations: pa.Table | pd.DataFrame) -> pd.DataFrame:
    """Which share of claims of a kind each method's passages support, leave open and contradict (Figures 4 and 5).

    Args:
        annotations: Rows of `ANNOTATIONS`.

    Returns:
        Block columns, `method`, `passage`, `claim_kind`, `label`, `value` in 0..1, `low`, `high`, `n` claims,
        `n_cases`, `n_missing` (claims without a label), `note`. The three shares of a kind add up to 1;
        intervals are cut at 0 and 1.
    """
    shares = []
    for key, rows in blocks(labelled(annotations), "method", "passage", "claim_kind"):
        there = rows[rows["label"].notna()]
        for label in LABELS:
            share = case_share(there["label"] == label, there["case_id"])
            shares.append({**key, "label": label, **share, "n_missing": len(rows) - len(there)})
    return pd.DataFrame(shares).drop(columns="p", errors="ignore")


def labelled(annotations: pa.Table | pd.DataFrame) -> pd.DataFrame:
    """`as_frame` of annotations.

    Raises:
        RecordError: As `as_frame`, or a label other than `LABELS`.
    """
    frame = as_frame(annotations)
    unknown = set(frame["label"].dropna()) - set(LABELS)
    if unknown:
        raise RecordError(f"annotations: labels {sorted(unknown)}, expected {', '.join(LABELS)} or none.")
    return frame


def factual_drift(annotations: pa.Table | pd.DataFrame) -> pd.DataFrame:
    """How many more facts that the edit does not touch are contradicted after it than before, within the same cases.

    Args:
        annotations: Rows of `ANNOTATIONS`, of the unedited model too.

    Returns:
        Block columns, `method`, `passage`, `value` (share contradicted after minus before), `low`, `high`, `p`,
        `p_adjusted` (Holm over the methods), `n`, `n_cases`, `n_missing` labels, `note`; `lost`: the share of
        facts supported before that are contradicted after, in the same sample, with `n_supported`.

    Source: LEME section 5.3, Figure 5 ("factual drift").
    Deviates: paired by case, with an interval; the paper compares two percentages by eye.
    """
    frame = labelled(annotations)
    facts = frame[frame["claim_kind"] == "ground_truth"]
    drifts = []
    for key, rows in blocks(facts, "passage"):
        before = rows[rows["method"] == BASELINE]
        block = [
            key | {"method": method} | _drift(before, rows[rows["method"] == method])
            for method in sorted(set(rows["method"]) - {BASELINE})
        ]
        drifts += with_adjusted(block)
    return pd.DataFrame(drifts)


def _drift(before: pd.DataFrame, after: pd.DataFrame) -> FrameRow:
    missing = int(before["label"].isna().sum() + after["label"].isna().sum())
    before, after = (side[side["label"].notna()] for side in (before, after))
    common = set(before["case_id"]) & set(after["case_id"])
    sides = pd.concat([after, before], keys=["after", "before"], names=["side", None])
    sides = sides[sides["case_id"].isin(common)]
    side = sides.index.get_level_values("side").to_numpy()
    share = (sides["label"] == "contradicts").astype(float)
    change = {**case_difference(share, sides["case_id"], side == "after", side == "before")}
    key = ["case_id", "claim_id", "sample"]
    pairs = after.merge(before, on=key, suffixes=("", "_before"))
    supported = pairs[pairs["label_before"] == "supports"]
    lost = case_share(supported["label"] == "contradicts", supported["case_id"])
    more = {"lost": lost["value"], "lost_low": lost["low"], "lost_high": lost["high"], "n_supported": lost["n"]}
    more["n_missing"] = missing
    return {name: change[name] for name in ("value", "low", "high", "p", "n", "n_cases", "note")} | more


# Is an edit an injection or an update? Derived from what the unedited model holds, and what it changes.

# Contrast -> what the cases of its first side are; the second side is all other cases that it is about.
CONTRASTS = {
    "already_true": "edit was already true",
    "updating": "counterfactual update",
    "correction": "factual correction",
}


def edit_kinds(
    *, scores: pa.Table | None = None, annotations: pa.Table | None = None, factual: Collection[int] = ()
) -> pd.DataFrame:
    """What each edit is to the unedited model.

    Criterion by scores: greedy writing after the edit's own prompt gives the old target (it held the old fact) or the
    new one (the edit was already true). By annotations: more than half of the subject passages written before the edit
    support the old fact, or the new one. Scores are taken where both are given.

    Args:
        scores: A score table with rows of kind "efficacy" and phase "pre".
        annotations: Rows of `ANNOTATIONS` of phase "pre".
        factual: case_ids of edits with a true new fact; the rest are counterfactual.

    Returns:
        One row per case: case_id, `knew_old`, `already_true` (True, False, or None when unknown), `factual`,
        `kind` ("injection", "updating", "correction", or "" when unknown), `criterion`.

    Raises:
        RecordError: Neither is given, or nothing in them is of the unedited model.

    Source: LEME sections 5.5 and appendix H (the pre-edit statement under the short evaluation).
    """
    held = _by_scores(scores) if scores is not None else None
    criterion = "scores"
    if held is None or held.empty:
        held, criterion = (_by_passages(annotations) if annotations is not None else None), "annotations"
    if held is None or held.empty:
        raise RecordError(
            "kinds of edits: no scores of kind 'efficacy' and no annotations of subject passages before the edit. "
            "Give a table that has the unedited model in it."
        )
    out = held.reindex(columns=["knew_old", "already_true"]).astype(object)
    out = out.where(out.notna(), None).reset_index()
    out["factual"] = out["case_id"].isin(list(factual))
    out["kind"] = [
        "" if row.knew_old is None else "injection" if not row.knew_old else "correction" if row.factual else "updating"
        for row in out.itertuples()
    ]
    return out.assign(criterion=criterion)


def _by_scores(scores: pa.Table) -> pd.DataFrame:
    frame = scores.to_pandas()
    mask = (frame["kind"] == "efficacy") & (frame["phase"] == "pre") & (frame["status"] == "ok")
    rows = frame[mask & frame["role"].isin(["target_new", "target_true"])]
    rows = rows.assign(greedy=rows["greedy"].astype(bool))
    wide: pd.DataFrame = rows.pivot_table(index="case_id", columns="role", values="greedy", aggfunc="max")
    return wide.rename(columns={"target_true": "knew_old", "target_new": "already_true"})


def _by_passages(annotations: pa.Table) -> pd.DataFrame:
    frame = as_frame(annotations)
    mask = (frame["method"] == BASELINE) & (frame["passage"] == "subject") & frame["label"].notna()
    rows = frame[mask & frame["claim_kind"].isin(["new_fact", "old_fact"])]
    shares = (rows["label"] == "supports").groupby([rows["case_id"], rows["claim_kind"]]).mean().unstack("claim_kind")
    return (shares > 0.5).where(shares.notna()).rename(columns={"old_fact": "knew_old", "new_fact": "already_true"})


def kind_shares(kinds: pd.DataFrame) -> pd.DataFrame:
    """Which share of edits is an update, and true already (Table 14).

    Args:
        kinds: Rows of `edit_kinds`, with block columns where several models or data sets are put together.

    Returns:
        Block columns, `factual`, `what` ("fact update" or "already true"), `value`, `low`, `high`, `n`, `n_unknown`.
    """
    shares = []
    for key, rows in blocks(kinds, "factual"):
        for what, column in (("fact update", "knew_old"), ("already true", "already_true")):
            answers = rows[column].dropna()
            share = proportion(int(answers.astype(bool).sum()), len(answers))
            about = share.columns("value", "low", "high", "n") | {"n_unknown": len(rows) - len(answers)}
            shares.append(key | {"what": what} | about)
    return pd.DataFrame(shares)


def kind_differences(values: pd.DataFrame, kinds: pd.DataFrame) -> pd.DataFrame:
    """How much a metric differs with the kind of edit (Figure 6 for long-form, Figure 7 for short-form metrics).

    Args:
        values: method, case_id, metric, value, and block columns.
        kinds: Rows of `edit_kinds`.

    Returns:
        Block columns, `metric`, `method`, `contrast` (of `CONTRASTS`: already true against not; update against
        injection among counterfactual edits; correction against injection among factual ones), `value` (difference of
        means of case means), `low`, `high`, `p`, `p_adjusted` (Holm within block and contrast), `n_first`, `n_second`
        cases, `note`. What has no case on one side has no row.
    """
    on = ["case_id", *(name for name in _BLOCKS if name in values and name in kinds)]
    joined = values[values["value"].notna()].merge(kinds, on=on, how="inner")
    differences: list[FrameRow] = []
    for key, block in blocks(joined):
        for contrast in CONTRASTS:
            rows = [
                key | {"metric": metric, "method": method, "contrast": contrast} | _difference(part, contrast)
                for (metric, method), part in block.groupby(["metric", "method"], observed=True)
            ]
            rows = [row for row in rows if row["n_first"] and row["n_second"]]
            differences += with_adjusted(rows)
    return pd.DataFrame(differences)


def _difference(part: pd.DataFrame, contrast: str) -> FrameRow:
    if contrast == "already_true":
        cases = part[part["already_true"].notna()]
        first = cases["already_true"].astype(bool).to_numpy()
    else:
        cases = part[(part["factual"] == (contrast == "correction")) & (part["kind"] != "")]
        first = (cases["kind"] == contrast).to_numpy()
    change = {**case_difference(cases["value"], cases["case_id"], first, ~first)}
    return {name: change[name] for name in ("value", "low", "high", "p", "n_first", "n_second", "note")}
