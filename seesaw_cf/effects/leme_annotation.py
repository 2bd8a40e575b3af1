"""How many claims passages support or contradict, and how well an annotator agrees with people."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import JsonObject
from seesaw_cf.effects.reader import Id, ids, labels, optional_labels, read_columns
from seesaw_cf.stats import cluster_weights, clustered_share, interval
from seesaw_cf.stats.agreement import cohen_kappa, krippendorff_alpha
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.clustered import MIN_EFFECTIVE
from seesaw_cf.stats.simple import share_estimate

NAN = float("nan")
LABELS = ("supports", "neutral", "contradicts")
CLAIM_KINDS = ("new_fact", "old_fact", "ground_truth")
_KINDS = {"case_id": ids, "group": labels, "passage": labels, "claim_kind": labels}
_KINDS |= {"label": optional_labels, "reference": optional_labels}
_END = re.compile(r"(?:(?<=[.!?])|(?<=[.!?][\"')\]]))\s+(?=[\"'(]?[A-Z0-9])|\s*\n\s*")


def sentences(text: str) -> list[str]:
    """Split a text into sentences at ". ", "! ", "? " before a capital, digit or quotation mark, and at line ends."""
    return [part.strip() for part in _END.split(text) if part.strip()]


def leme_annotation(
    case_id: Sequence[Id],
    group: Sequence[str],
    passage: Sequence[str],
    claim_kind: Sequence[str],
    label: Sequence[str | None],
    *,
    reference: Sequence[str | None] | None = None,
    draws: int = 2000,
    seed: int = 0,
) -> JsonObject:
    """Return the shares of labels per group, passage and kind of claim.

    Args:
        case_id: The edit; claims of one edit are one cluster.
        group: What is compared, such as the editor.
        passage: "subject" or "related".
        claim_kind: One of `CLAIM_KINDS`.
        label: One of `LABELS`; None or "" = not annotated, counted and left out.
        reference: Labels of people for the same rows, None or "" where there are none.
        draws, seed: Bootstrap over edits of the agreement.

    Returns:
        `shares` per group, passage and kind of claim: label -> mean over edits of the share within the edit, clustered
        by edit, and `pooled` over all claims, the papers' value; `n_rows`, `n_missing`. With `reference` `agreement` on
        the `n` claims that have both: `accuracy` with the interval of a share, `macro_f1` with a bootstrap over edits
        (none below five), Cohen's kappa, Krippendorff's alpha, the accuracy of the commonest label, and `confusion`,
        people in rows.

    Raises:
        RecordError: Unequal lengths, an unknown kind of claim or label.

    Source: LEME, Figures 4 and 5.
    Deviates: the value is the mean over edits, with an interval that clusters by edit; the papers pool.
    """
    columns = {"case_id": case_id, "group": group, "passage": passage, "claim_kind": claim_kind, "label": label}
    frame = read_columns(_KINDS, columns if reference is None else columns | {"reference": reference})
    _check("claim_kind", frame["claim_kind"], CLAIM_KINDS)
    _check("label", frame["label"].dropna(), LABELS)
    shares: dict[str, dict[str, dict[str, JsonObject]]] = {}
    for key, rows in frame.groupby(["group", "passage", "claim_kind"], sort=True):
        name, text, kind = map(str, key)
        shares.setdefault(name, {}).setdefault(text, {})[kind] = _shares(rows)
    out: JsonObject = {"shares": shares, "n_rows": len(frame), "n_missing": int(frame["label"].isna().sum())}
    if reference is not None:
        _check("reference", frame["reference"].dropna(), LABELS)
        out["agreement"] = _agreement(frame.dropna(subset=["label", "reference"]), draws, seed)
    return out


def _check(name: str, column: pd.Series, names: Sequence[str]) -> None:
    unknown = sorted(set(map(str, column)) - set(names))
    if unknown:
        raise RecordError(f"{name}: {unknown[:5]} in {len(column)} rows, expected {', '.join(names)}. Rename them.")


def _shares(rows: pd.DataFrame) -> JsonObject:
    there = rows.dropna(subset=["label"])
    out: JsonObject = {"n": len(there), "n_cases": int(there["case_id"].nunique()), "n_missing": len(rows) - len(there)}
    for label in LABELS if len(there) else ():
        hit = (there["label"] == label).astype(np.float64)
        share = share_estimate(hit, there["case_id"])
        out[label] = share.columns("value", "low", "high") | {"pooled": float(hit.mean()), "note": share.note}
    return out


def _agreement(rows: pd.DataFrame, draws: int, seed: int) -> JsonObject:
    if rows.empty:
        return {"n": 0}
    truth, answers = (rows[name].map(LABELS.index).to_numpy(np.intp) for name in ("reference", "label"))
    code = pd.factorize(rows["case_id"])[0]
    each = np.zeros((int(code.max()) + 1, len(LABELS), len(LABELS)))
    np.add.at(each, (code, truth, answers), 1.0)
    drawn = np.tensordot(cluster_weights(len(each), draws, seed), each, axes=1)
    low, high, _ = interval(macro_f1(drawn)) if len(each) >= MIN_EFFECTIVE else (NAN, NAN, NAN)
    total, labels = each.sum(axis=0), np.stack([truth, answers], axis=1).astype(np.float64)
    right = clustered_share((truth == answers).astype(np.float64), np.full(len(rows), 1 / len(rows)), code)
    return {
        "accuracy": right.columns("value", "low", "high"),
        "macro_f1": {"value": float(macro_f1(total)), "low": low, "high": high},
        "cohen_kappa": cohen_kappa(labels),
        "krippendorff_alpha": krippendorff_alpha(labels),
        "constant": float(total.sum(axis=1).max() / total.sum()),
        "confusion": total.astype(int).tolist(),
        "n": len(rows),
        "n_cases": len(each),
    }


def macro_f1(confusion: Floats) -> Floats:
    """Return the mean F1 over the classes that occur in the truth.

    Args:
        confusion: (..., classes, classes) counts, truth in rows and answers in columns.

    Returns:
        (...), NaN without a row.

    Raises:
        RecordError: The last two axes differ.
    """
    if confusion.ndim < 2 or confusion.shape[-1] != confusion.shape[-2]:
        raise RecordError(f"confusion has shape {confusion.shape}, expected (..., classes, classes).")
    right = np.diagonal(confusion, axis1=-2, axis2=-1)
    truth, answered = confusion.sum(axis=-1), confusion.sum(axis=-2)
    f1 = 2 * right / np.maximum(truth + answered, 1)
    present = (truth > 0).sum(axis=-1)
    total = f1.sum(axis=-1, where=truth > 0)
    return np.asarray(np.divide(total, present, out=np.full(present.shape, np.nan), where=present > 0))
