"""How many claims passages support or contradict, and how well an annotator agrees with people."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from seesaw_cf.effects.columns import check_lengths
from seesaw_cf.errors import RecordError
from seesaw_cf.stats import case_weights, cluster_weights, clustered_mean, interval
from seesaw_cf.stats.agreement import cohen_kappa, krippendorff_alpha
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.plain import plain

__all__ = ["CLAIM_KINDS", "LABELS", "accuracy", "leme_annotation", "macro_f1", "sentences"]

LABELS = ("supports", "neutral", "contradicts")
CLAIM_KINDS = ("new_fact", "old_fact", "ground_truth")
_END = re.compile(r"(?:(?<=[.!?])|(?<=[.!?][\"')\]]))\s+(?=[\"'(]?[A-Z0-9])|\s*\n\s*")


def sentences(text: str) -> list[str]:
    """The sentences of a text: at ". ", "! ", "? " before a capital, a digit or a quotation mark, and at line ends."""
    return [part.strip() for part in _END.split(text) if part.strip()]


def leme_annotation(
    case_id: Sequence[Any],
    group: Sequence[str],
    passage: Sequence[str],
    claim_kind: Sequence[str],
    label: Sequence[str | None],
    *,
    reference: Sequence[str | None] | None = None,
    draws: int = 2000,
    seed: int = 0,
) -> dict[str, Any]:
    """Shares of labels per group, passage and kind of claim.

    Args:
        case_id: The edit; claims of one edit are one cluster.
        group: What is compared, such as the editor.
        passage: "subject" or "related".
        claim_kind: One of `CLAIM_KINDS`.
        label: One of `LABELS`; None = not annotated, counted and left out.
        reference: Labels of people for the same rows, None where there are none.
        draws, seed: Bootstrap over edits of the agreement.

    Returns:
        `shares[group][passage][claim_kind][label]`: `value` (mean over edits of the share within the edit), `low`,
        `high`, `pooled` (over all claims, the papers' value), `note`; beside the labels `n`, `n_cases`, `n_missing`.
        With `reference`, `agreement`: `accuracy`, `macro_f1` (each value, low, high), `cohen_kappa`,
        `krippendorff_alpha`, `confusion` (people in rows), `constant` (accuracy of the commonest label), `n`.

    Raises:
        RecordError: Unequal lengths, an unknown kind of claim or label.

    Source: LEME, Figures 4 and 5.
    Deviates: the value is the mean over edits, with an interval that clusters by edit; the papers pool.
    """
    given = {"case_id": case_id, "group": group, "passage": passage, "claim_kind": claim_kind, "label": label}
    check_lengths(given if reference is None else given | {"reference": reference})
    frame = pd.DataFrame({name: list(column) for name, column in given.items()})
    _check("claim_kind", frame["claim_kind"], CLAIM_KINDS)
    _check("label", frame["label"].dropna(), LABELS)
    shares: dict[str, Any] = {}
    for key, rows in frame.groupby(["group", "passage", "claim_kind"], sort=True):
        name, text, kind = map(str, key)
        shares.setdefault(name, {}).setdefault(text, {})[kind] = _shares(rows)
    out: dict[str, Any] = {"shares": shares, "n_rows": len(frame), "n_missing": int(frame["label"].isna().sum())}
    if reference is not None:
        frame["reference"] = list(reference)
        _check("reference", frame["reference"].dropna(), LABELS)
        out["agreement"] = _agreement(frame.dropna(subset=["label", "reference"]), draws, seed)
    return dict(plain(out))


def _check(name: str, column: pd.Series, known: Sequence[str]) -> None:
    unknown = sorted(set(map(str, column)) - set(known))
    if unknown:
        raise RecordError(f"{name}: {unknown[:5]} in {len(column)} rows, expected {', '.join(known)}. Rename them.")


def _shares(rows: pd.DataFrame) -> dict[str, Any]:
    there = rows.dropna(subset=["label"])
    out: dict[str, Any] = {"n": len(there), "n_cases": there["case_id"].nunique(), "n_missing": len(rows) - len(there)}
    if there.empty:
        return out
    code = pd.factorize(there["case_id"])[0]
    weights = case_weights(code, np.ones(len(code), dtype=bool))
    for label in LABELS:
        hits = (there["label"] == label).to_numpy().astype(np.float64)
        found = clustered_mean(hits, [weights], {"case": code})
        out[label] = {"value": found.value, "low": found.low, "high": found.high, "pooled": float(hits.mean())}
        out[label]["note"] = found.note
    return out


def _agreement(rows: pd.DataFrame, draws: int, seed: int) -> dict[str, Any]:
    if rows.empty:
        return {"n": 0}
    truth, given = (rows[name].map(LABELS.index).to_numpy(np.intp) for name in ("reference", "label"))
    code = pd.factorize(rows["case_id"])[0]
    each = np.zeros((int(code.max()) + 1, len(LABELS), len(LABELS)))
    np.add.at(each, (code, truth, given), 1.0)
    drawn = np.tensordot(cluster_weights(len(each), draws, seed), each, axes=1)
    total, both = each.sum(axis=0), np.stack([truth, given], axis=1).astype(np.float64)
    figures = {}
    for name, figure in (("accuracy", accuracy), ("macro_f1", macro_f1)):
        low, high, _ = interval(figure(drawn))
        figures[name] = {"value": float(figure(total)), "low": low, "high": high}
    return figures | {
        "cohen_kappa": cohen_kappa(both),
        "krippendorff_alpha": krippendorff_alpha(both),
        "constant": float(total.sum(axis=1).max() / total.sum()),
        "confusion": total.astype(int).tolist(),
        "n": len(rows),
        "n_cases": len(each),
    }


def accuracy(confusion: Floats) -> Floats:
    """Share of right answers.

    Args:
        confusion: (..., classes, classes) counts, truth in rows and answers in columns.

    Returns:
        (...), NaN where there is no row.
    """
    total, right = confusion.sum(axis=(-1, -2)), np.trace(confusion, axis1=-2, axis2=-1)
    return np.asarray(np.divide(right, total, out=np.full(total.shape, np.nan), where=total > 0))


def macro_f1(confusion: Floats) -> Floats:
    """Mean F1 over the classes that occur in the truth.

    Args:
        confusion: (..., classes, classes) counts, truth in rows and answers in columns.

    Returns:
        (...), NaN where there is no row.
    """
    right = np.diagonal(confusion, axis1=-2, axis2=-1)
    truth, answered = confusion.sum(axis=-1), confusion.sum(axis=-2)
    f1 = 2 * right / np.maximum(truth + answered, 1)
    known = (truth > 0).sum(axis=-1)
    total = f1.sum(axis=-1, where=truth > 0)
    return np.asarray(np.divide(total, known, out=np.full(known.shape, np.nan), where=known > 0))
