"""What the tables of long form say: survey means, labels, factual drift, short-form metrics, kinds of edits.

Every function takes tables and gives a long-format data frame: one row per number, with its interval and its counts.
Tables of several models or data sets may be put together with columns `model` and `dataset`; both then split results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa

from seesaw_cf.base.errors import RecordError, unknown_name
from seesaw_cf.base.types import TableRow
from seesaw_cf.effects.leme_annotation import LABELS
from seesaw_cf.effects.survey_items import ITEMS, TYPES
from seesaw_cf.stats.case_means import case_difference, case_mean, case_share, share_estimate, with_adjusted

BASELINE = "none"  # the unedited model
HUMAN = "human"  # passages that people wrote
# Metrics of the survey in the papers' order of columns: items, and the question types they belong to.
METRICS = {item.name: item.type for item in ITEMS}
BLOCKS = ("dataset", "model", "rater", "annotator")
_Rows = TypeVar("_Rows", pa.Table, pd.DataFrame)


def as_frame(table: pa.Table | pd.DataFrame) -> pd.DataFrame:
    """Return a table with the column `method`: the editor of texts after an edit, `BASELINE` or `HUMAN`.

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


def blocks(frame: pd.DataFrame, *more: str) -> Iterator[tuple[TableRow, pd.DataFrame]]:
    """Yield the rows of each data set, model, rater and annotator, as far as there are such columns, and of `more`."""
    by = [name for name in BLOCKS if name in frame] + list(more)
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
    """Return ratings as values: method, case_id, sample, metric, value and the block columns.

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
    keep = [name for name in BLOCKS if name in frame] + ["method", "case_id", "sample", "metric"]
    if not by_type:
        return frame[[*keep, "value"]]
    return frame.groupby(keep, sort=False, observed=True)["value"].mean().reset_index()


def short_values(scores: pa.Table) -> pd.DataFrame:
    """Return short-form metrics of every edit from a score table: method, case_id, metric, value in 0..1.

    Metrics: "edit_success", "generalization" and "portability", the share of the new target's (of the consequence's)
    tokens that are the model's first choice after the edit's own, after paraphrased and after consequences' prompts;
    "ground_truth", that share for the old target; "locality", the share of the tokens of neighbourhood prompts' true
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
    """Return the mean of every (method, metric): Tables 1, 10-13 (survey), 16-18 (short form), 19 (simple metrics).

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
    """Return the shares of claims that each method's passages support, leave open and contradict (Figures 4 and 5).

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
    """Return `as_frame` of annotations, with their labels checked.

    Raises:
        RecordError: As `as_frame`, or a label other than `LABELS`.
    """
    frame = as_frame(annotations)
    unknown = set(frame["label"].dropna()) - set(LABELS)
    if unknown:
        raise RecordError(f"annotations: labels {sorted(unknown)}, expected {', '.join(LABELS)} or none.")
    return frame


def factual_drift(annotations: pa.Table | pd.DataFrame) -> pd.DataFrame:
    """Compare, within cases, how many facts that the edit does not touch are contradicted before and after it.

    Args:
        annotations: Rows of `ANNOTATIONS`, of the unedited model too; with a column `person`, answers of one person are
            compared.

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


def _drift(before: pd.DataFrame, after: pd.DataFrame) -> TableRow:
    missing = int(before["label"].isna().sum() + after["label"].isna().sum())
    before, after = (side[side["label"].notna()] for side in (before, after))
    common = set(before["case_id"]) & set(after["case_id"])
    sides = pd.concat([after, before], keys=["after", "before"], names=["side", None])
    sides = sides[sides["case_id"].isin(common)]
    side = sides.index.get_level_values("side").to_numpy()
    share = (sides["label"] == "contradicts").astype(float)
    change = {**case_difference(share, sides["case_id"], side == "after", side == "before")}
    key = [name for name in ("case_id", "claim_id", "sample", "person") if name in after]
    pairs = after.merge(before, on=key, suffixes=("", "_before"))
    supported = pairs[pairs["label_before"] == "supports"]
    lost = share_estimate(supported["label"] == "contradicts", supported["case_id"])
    more = lost.limits("lost") | {"n_supported": lost.n, "n_missing": missing}
    return {name: change[name] for name in ("value", "low", "high", "p", "n", "n_cases", "note")} | more
