"""Is an edit an injection or an update? Derived from what the unedited model holds, and what it changes."""

from __future__ import annotations

from collections.abc import Collection

import pandas as pd
import pyarrow as pa

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import TableRow
from seesaw_cf.stats import proportion
from seesaw_cf.stats.case_means import case_difference, with_adjusted
from seesaw_cf.texts.report.values import BASELINE, BLOCKS, as_frame, blocks

# Contrast -> what the cases of its first side are; the second side is all other cases that it is about.
CONTRASTS = {
    "already_true": "edit was already true",
    "updating": "counterfactual update",
    "correction": "factual correction",
}


def edit_kinds(
    *, scores: pa.Table | None = None, annotations: pa.Table | None = None, factual: Collection[int] = ()
) -> pd.DataFrame:
    """Return what each edit is to the unedited model.

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
    """Return which share of edits is an update, and which is true already (Table 14).

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
    """Return how much a metric differs with the kind of edit (Figure 6: long-form metrics, Figure 7: short-form).

    Args:
        values: method, case_id, metric, value, and block columns.
        kinds: Rows of `edit_kinds`.

    Returns:
        Block columns, `metric`, `method`, `contrast` (of `CONTRASTS`: already true against not; update against
        injection among counterfactual edits; correction against injection among factual ones), `value` (difference of
        means of case means), `low`, `high`, `p`, `p_adjusted` (Holm within block and contrast), `n_first`, `n_second`
        cases, `note`. What has no case on one side has no row.
    """
    on = ["case_id", *(name for name in BLOCKS if name in values and name in kinds)]
    joined = values[values["value"].notna()].merge(kinds, on=on, how="inner")
    differences: list[TableRow] = []
    for key, block in blocks(joined):
        for contrast in CONTRASTS:
            rows = [
                key | {"metric": metric, "method": method, "contrast": contrast} | _difference(part, contrast)
                for (metric, method), part in block.groupby(["metric", "method"], observed=True)
            ]
            rows = [row for row in rows if row["n_first"] and row["n_second"]]
            differences += with_adjusted(rows)
    return pd.DataFrame(differences)


def _difference(part: pd.DataFrame, contrast: str) -> TableRow:
    if contrast == "already_true":
        cases = part[part["already_true"].notna()]
        first = cases["already_true"].astype(bool).to_numpy()
    else:
        cases = part[(part["factual"] == (contrast == "correction")) & (part["kind"] != "")]
        first = (cases["kind"] == contrast).to_numpy()
    change = {**case_difference(cases["value"], cases["case_id"], first, ~first)}
    return {name: change[name] for name in ("value", "low", "high", "p", "n_first", "n_second", "note")}
