"""The card of a trained annotator: what it was trained on, its held-out figures by sample, and what it misses."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from seesaw_cf.longform.annotate import LABELS
from seesaw_cf.longform.annotators_words import labelled_parts
from seesaw_cf.longform.training_data import AnnotationData
from seesaw_cf.report.text import escape, markdown_table
from seesaw_cf.stats.bootstrap import Floats

__all__ = ["annotator_card", "by_sample", "held_out_lines", "shown"]

_UNITS = {"paragraph": "whole passages", "sentence": "single sentences"}


def by_sample(data: AnnotationData, answers: Mapping[str, Floats]) -> list[dict[str, Any]]:
    """Accuracy sample by sample.

    Args:
        data: All rows.
        answers: Classifier -> (n, 3) probabilities for rows that it was not fitted on.

    Returns:
        One row per sample and kind of premise: `sample` (the subject of most of its claims), `unit`, `n`, `accuracy` of
        each classifier, `low` and `high` (Wilson, 95 %) of the last one.
    """
    labels, groups, units = (np.array(column) for column in (data.labels, data.groups, data.units))
    hits = {name: given.argmax(axis=1) == labels for name, given in answers.items()}
    out = []
    for group in dict.fromkeys(data.groups):
        subjects = Counter(labelled_parts(data.pairs[i][1]).subject for i in np.flatnonzero(groups == group))
        for unit in _UNITS:
            own = (groups == group) & (units == unit)
            if own.any():
                shares = {name: float(hit[own].mean()) for name, hit in hits.items()}
                low, high = _wilson(list(shares.values())[-1], int(own.sum()))
                row = {"sample": subjects.most_common(1)[0][0], "unit": unit, "n": int(own.sum())}
                out.append(row | {"accuracy": shares, "low": low, "high": high})
    return out


def _wilson(share: float, n: int, z: float = 1.959964) -> tuple[float, float]:
    """Source: Wilson (1927)."""
    middle, width = share + z * z / (2 * n), z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return (middle - width) / (1 + z * z / n), (middle + width) / (1 + z * z / n)


def shown(found: Mapping[str, float | None], digits: int = 2) -> str:
    """`0.64 [0.57, 0.71]`; without an end, the value alone."""
    value, low, high = (found[name] for name in ("value", "low", "high"))
    if value is None:
        return "-"
    if low is None or high is None:
        return f"{value:.{digits}f}"
    return f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def held_out_lines(report: Mapping[str, Any]) -> list[str]:
    """What a reader of its labels must know, one sentence per line.

    Args:
        report: Of `train_annotator`, with `figures`.
    """
    lines = []
    for unit, words in _UNITS.items():
        own = report["figures"][report["recipe"]].get(unit)
        if own is None:
            continue
        others = ", ".join(
            f"{name} {shown(parts[unit]['accuracy'])}" for name, parts in report["figures"].items()
            if name in ("majority", "lexical") and unit in parts
        )  # fmt: skip
        lines.append(
            f"Held-out accuracy on {words}: {shown(own['accuracy'])} (n = {own['n']}, {own['n_groups']} samples; "
            f"{others})."
        )
        recall = dict(zip(LABELS, zip(own["recall"], map(sum, own["confusion"])), strict=True))
        finds = [f"{shown(share)} of {n} {label}" for label, (share, n) in recall.items() if n]
        lines.append(f"Recall on {words}: {', '.join(finds)}.")
    return lines


def annotator_card(report: Mapping[str, Any], source: str) -> str:
    """The card as Markdown.

    Args:
        report: Of `train_annotator`.
        source: Where the data come from, and their licence; "" = not said.
    """
    facts = [
        f"Recipe {report['recipe']}, seed {report['seed']}, {report['n']} rows of {report['n_groups']} samples.",
        source or "Where the data come from was not said (`--source`).",
        *(f"Note on the data: {note}." for note in report["notes"]),
    ]
    parts = ["# An annotator: does a passage support a claim?", "\n".join(f"- {escape(fact)}" for fact in facts)]
    if "figures" in report:
        parts += [
            "## Held out",
            f"{report['folds']} folds of whole samples: nothing about the people and things of a sample is seen while "
            "the classifier that reads it is trained. Intervals: 95 %, bootstrap over samples.",
            "\n".join(f"- {line}" for line in held_out_lines(report)),
            _figures(report["figures"]),
            "Sample by sample (accuracy; intervals: Wilson, 95 %, as if rows were independent):",
            _samples(report["samples"], report["recipe"]),
            _weakness(report),
        ]
    return "\n\n".join(parts) + "\n"


def _figures(figures: Mapping[str, Any]) -> str:
    rows = [
        [name, _UNITS[unit], str(found["n"]), shown(found["accuracy"]), shown(found["macro_f1"]),
         *(shown(one) for one in found["recall"]), f"{found['ece']:.2f}"]
        for unit in _UNITS
        for name, parts in figures.items()
        if (found := parts.get(unit))
    ]  # fmt: skip
    heads = ["Classifier", "Premises", "n", "accuracy", "macro-F1", *(f"recall: {label}" for label in LABELS), "ECE"]
    return markdown_table(heads, rows, left=2)


def _samples(samples: Sequence[Mapping[str, Any]], recipe: str) -> str:
    others = [name for name in samples[0]["accuracy"] if name != recipe]
    rows = [
        [escape(row["sample"]), _UNITS[row["unit"]], str(row["n"]),
         shown({"value": row["accuracy"][recipe], "low": row["low"], "high": row["high"]}),
         *(f"{row['accuracy'][name]:.2f}" for name in others)]
        for row in samples
    ]  # fmt: skip
    return markdown_table(["Sample", "Premises", "n", recipe, *others], rows, left=2)


def _weakness(report: Mapping[str, Any]) -> str:
    own = report["figures"][report["recipe"]]
    found = own.get("paragraph") or own["sentence"]
    recall = shown(found["recall"][LABELS.index("contradicts")])
    return (
        "## Weakness\n\n"
        f"Contradictions: of those that people marked, on samples it has not seen, it finds a share of {recall}. The "
        "share of contradicted claims that it reports is too low; compare editors by it, and read passages before you "
        "publish one. "
        "The samples are few, and so are their topics."
    )
