"""The card of a trained annotator: what it was trained on, its held-out figures by sample, and what it misses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np

from seesaw_cf.effects.leme_annotation import LABELS
from seesaw_cf.report.text import escape, estimate, markdown_table
from seesaw_cf.stats import proportion
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.texts.annotate.features import labelled_parts
from seesaw_cf.texts.annotate.reports import AnnotatorReport, Figures, Interval, SampleAccuracy
from seesaw_cf.texts.train.annotations import AnnotationData

_UNITS = {"paragraph": "whole passages", "sentence": "single sentences"}


def by_sample(data: AnnotationData, answers: Mapping[str, Floats]) -> list[SampleAccuracy]:
    """Return the accuracy sample by sample.

    Args:
        data: All rows.
        answers: Classifier -> (n, 3) probabilities for rows that it was not fitted on.

    Returns:
        One row per sample and kind of premise: `sample` (the subject of most of its claims), `unit`, `n`, `accuracy` of
        each classifier, `low` and `high` (Wilson, 95 %) of the last one.
    """
    labels, groups, units = (np.array(column) for column in (data.labels, data.groups, data.units))
    hits = {name: probabilities.argmax(axis=1) == labels for name, probabilities in answers.items()}
    out: list[SampleAccuracy] = []
    for group in dict.fromkeys(data.groups):
        subjects = Counter(labelled_parts(data.pairs[i][1]).subject for i in np.flatnonzero(groups == group))
        for unit in _UNITS:
            own = (groups == group) & (units == unit)
            if own.any():
                shares = {name: float(hit[own].mean()) for name, hit in hits.items()}
                last = proportion(int(list(hits.values())[-1][own].sum()), int(own.sum()))
                about = {"sample": subjects.most_common(1)[0][0], "unit": unit, "n": int(own.sum()), "accuracy": shares}
                out.append(cast(SampleAccuracy, about | last.columns("low", "high")))
    return out


def shown(value: Interval, digits: int = 2) -> str:
    """Return `0.64 [0.57, 0.71]`; without an end, the value alone."""
    return estimate(value["value"], value["low"], value["high"], f".{digits}f")


def held_out_lines(report: AnnotatorReport) -> list[str]:
    """Return what a reader of its labels must know, one sentence per line.

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


def annotator_card(report: AnnotatorReport, source: str) -> str:
    """Return the card as Markdown.

    Args:
        report: Of `train_annotator`.
        source: Where the data come from, and their licence; "" = unknown.
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
            "the classifier that reads it is trained. Intervals: 95 %, over whole samples.",
            "\n".join(f"- {line}" for line in held_out_lines(report)),
            _figures(report["figures"]),
            "Sample by sample (accuracy; intervals: Wilson, 95 %, as if rows were independent):",
            _samples(report["samples"], report["recipe"]),
            _weakness(report),
        ]
    return "\n\n".join(parts) + "\n"


def _figures(figures: Mapping[str, Figures]) -> str:
    rows = [
        [name, _UNITS[unit], str(part["n"]), shown(part["accuracy"]), shown(part["macro_f1"]),
         *(shown(recall) for recall in part["recall"]), f"{part['ece']:.2f}"]
        for unit in _UNITS
        for name, parts in figures.items()
        if (part := parts.get(unit))
    ]  # fmt: skip
    heads = ["Classifier", "Premises", "n", "accuracy", "macro-F1", *(f"recall: {label}" for label in LABELS), "ECE"]
    return markdown_table(heads, rows, left=2)


def _samples(samples: Sequence[SampleAccuracy], recipe: str) -> str:
    others = [name for name in samples[0]["accuracy"] if name != recipe]
    rows = [
        [escape(row["sample"]), _UNITS[row["unit"]], str(row["n"]),
         shown({"value": row["accuracy"][recipe], "low": row["low"], "high": row["high"]}),
         *(f"{row['accuracy'][name]:.2f}" for name in others)]
        for row in samples
    ]  # fmt: skip
    return markdown_table(["Sample", "Premises", "n", recipe, *others], rows, left=2)


def _weakness(report: AnnotatorReport) -> str:
    own = report["figures"][report["recipe"]]
    figures = own.get("paragraph") or own["sentence"]
    recall = shown(figures["recall"][LABELS.index("contradicts")])
    return (
        "## Weakness\n\n"
        f"Contradictions: of those that people marked, on samples it has not seen, it finds a share of {recall}. The "
        "share of contradicted claims that it reports is too low; compare editors by it, and read passages before you "
        "publish one. "
        "The samples are few, and so are their topics."
    )
