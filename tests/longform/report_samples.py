"""Small tables of every kind that a report of texts reads, drawn once: their numbers are in `report_golden.csv`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from seesaw_cf.texts.pairs import flaw_row
from seesaw_cf.texts.tables import ANNOTATIONS, EDITS, FAILURES, RATINGS, REFLECTED

from .analysis_samples import method, scores, table
from .flaw_samples import flaw_table, pair, passages, reflected_row

CASES = range(12)
ITEMS = ("new_fact_main_passage", "main_passage_old_facts", "fluency")
LABELS = ("supports", "neutral", "contradicts")
MODES = ("topic_drift", "spaces")


def _rated(rng: np.random.Generator, raters: tuple[str, ...]) -> pa.Table:
    rows = [
        {**method(name), "case_id": case, "item": item, "rater": rater, "rating": value}
        | {"status": "ok" if value else "no rating"}
        for name in ("none", "memit")
        for case in CASES
        for item in ITEMS
        for rater in raters
        for value in [float(rng.integers(1, 8)) if rng.random() > 0.05 else None]
    ]
    return table(RATINGS, rows, reply="", tries=1)


def _marked(rng: np.random.Generator, annotators: tuple[str, ...]) -> pa.Table:
    rows = [
        {**method(name), "case_id": case, "passage": passage, "claim_kind": kind, "claim_id": kind, "claim": kind}
        | {"annotator": annotator, "label": str(rng.choice(LABELS)), "evidence": []}
        for name in ("none", "memit", "ft")
        for case in CASES
        for passage, kind in (("subject", "new_fact"), ("subject", "ground_truth"), ("related", "ground_truth"))
        for annotator in annotators
    ]
    return table(ANNOTATIONS, rows, reply="")


def leme_run() -> dict[str, Any]:
    """Texts, ratings by one judge, claims by one annotator, the short form, and edits of two data sets."""
    rng = np.random.default_rng(0)
    datasets = {case: ("zsre factual", "zsre counterfactual")[case > 5] for case in CASES}
    edits = [
        {"editor": "memit", "case_id": case, "dataset": name, "subject": f"Ada {case}"}
        | {"target_true": "Paris", "target_new": "Rome"}
        for case, name in datasets.items()
    ]
    asked = [
        ("efficacy", "target_new"), ("efficacy", "target_true"), ("paraphrase", "target_new"),
        ("neighborhood", "target_true"),
    ]  # fmt: skip
    scored = [
        ("memit", case, kind, role, phase, bool(rng.random() < 0.5))
        for case in CASES
        for kind, role in asked
        for phase in ("pre", "post")
    ]
    texts: list[dict[str, Any]] = [
        {**method(name), "case_id": case, "passage": passage, "text": f"{name} {case}.", "finish": "stop"}
        for name in ("none", "memit")
        for case in CASES
        for passage in ("subject", "related")
    ]
    texts[3] = {**texts[3], "text": None, "status": "too long"}
    simple = [
        {"editor": name, "case_id": case, "asked": "rouge1_topicality", "value": rng.random()}
        for name in ("none", "memit")
        for case in CASES
    ]
    return {
        "passages": passages(*texts),
        "ratings": _rated(rng, ("judge",)),
        "annotations": _marked(rng, ("nli",)),
        "scores": scores(scored),
        "edits": table(EDITS, edits),
        "simple": pd.DataFrame(simple),
        "factual": range(6),
    }


def flaw_ratings() -> dict[str, pa.Table]:
    """Three people and a judge on 16 pairs of 12 edits; one person rates some pairs a second time."""
    rng = np.random.default_rng(1)
    pairs = [
        replace(pair(number % 12, relation=("P21", "P27")[number % 2]), pair_id=f"{number:02}") for number in range(16)
    ]

    def answers(raters: tuple[str, ...], own: list[Any], first: str) -> list[Any]:
        return [
            flaw_row(one, flaw, rater, first, change, status="ok" if change is not None else "not rated")
            for one in own
            for flaw in ("sexism", "religion")
            for rater in raters
            for change in [int(rng.choice((-1, 0, 1), p=(0.1, 0.5, 0.4))) if rng.random() > 0.04 else None]
        ]

    reflected = [reflected_row(one, "A1", str(rng.choice(("yes", "no", "unsure")))) for one in pairs]
    return {
        "flaws": flaw_table(answers(("A1", "A2", "A3", "judge"), pairs, "pre")),
        "swapped": flaw_table(answers(("A1", "judge"), pairs[:8], "post")),
        "reflected": pa.Table.from_pylist(reflected, schema=REFLECTED),
    }


def people() -> dict[str, pa.Table]:
    """Ratings by three people, claims and failure modes by two."""
    rng = np.random.default_rng(2)
    failures = [
        {**method("memit"), "case_id": case, "mode": mode, "rater": rater, "present": bool(rng.random() < 0.3)}
        for case in CASES
        for mode in MODES
        for rater in ("A1", "A2")
    ]
    return {
        "ratings": _rated(rng, ("A1", "A2", "A3")),
        "annotations": _marked(rng, ("A1", "A2")),
        "failures": table(FAILURES, failures, comment="so"),
    }
