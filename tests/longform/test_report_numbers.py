"""Numbers of small invented studies, drawn once, stay what they were: `report_golden.csv`."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from seesaw_cf.effects.texts import LABELS
from seesaw_cf.texts.pairs import PassagePair, flaw_row
from seesaw_cf.texts.report.leme import leme_frame
from seesaw_cf.texts.report.people import people_frame
from seesaw_cf.texts.tables import ANNOTATIONS, EDITS, FAILURES, RATINGS, REFLECTED

from .analysis_samples import flaw_table, frames, method, pair, passages, reflected_row, scores, table

CASES = range(12)
KEYS = ["editor", "relation", "asked", "about", "reference", "answer", "dataset", "rater"]
ASKED = [
    ("efficacy", "target_new"), ("efficacy", "target_true"),
    ("paraphrase", "target_new"), ("neighborhood", "target_true"),
]  # fmt: skip


def rated(rng: np.random.Generator, *raters: str) -> pa.Table:
    items = ("new_fact_main_passage", "main_passage_old_facts", "fluency")
    rows = [
        {**method(name), "case_id": case, "item": item, "rater": rater, "rating": value}
        | {"status": "ok" if value else "no rating"}
        for name, case, item, rater in product(("none", "memit"), CASES, items, raters)
        for value in [float(rng.integers(1, 8)) if rng.random() > 0.05 else None]
    ]
    return table(RATINGS, rows, reply="", tries=1)


def marked(rng: np.random.Generator, *annotators: str) -> pa.Table:
    claims = (("subject", "new_fact"), ("subject", "ground_truth"), ("related", "ground_truth"))
    rows = [
        {**method(name), "case_id": case, "passage": passage, "claim_kind": kind, "claim_id": kind, "claim": kind}
        | {"annotator": annotator, "label": str(rng.choice(LABELS)), "evidence": []}
        for name, case, (passage, kind), annotator in product(("none", "memit", "ft"), CASES, claims, annotators)
    ]
    return table(ANNOTATIONS, rows, reply="")


def leme_run() -> dict[str, Any]:
    """Texts, ratings by a judge, claims by an annotator, the short form, and edits of two data sets."""
    rng = np.random.default_rng(0)
    scored = [
        ("memit", case, kind, role, phase, bool(rng.random() < 0.5))
        for case, (kind, role), phase in product(CASES, ASKED, ("pre", "post"))
    ]
    texts: list[dict[str, Any]] = [
        {**method(name), "case_id": case, "passage": passage, "text": f"{name} {case}.", "finish": "stop"}
        for name, case, passage in product(("none", "memit"), CASES, ("subject", "related"))
    ]
    texts[3] |= {"text": None, "status": "too long"}
    simple = [
        {"editor": name, "case_id": case, "asked": "rouge1_topicality", "value": rng.random()}
        for name, case in product(("none", "memit"), CASES)
    ]
    edits = [
        {"editor": "memit", "case_id": case, "dataset": ("zsre factual", "zsre counterfactual")[case > 5]}
        | {"subject": f"Ada {case}", "target_true": "Paris", "target_new": "Rome"}
        for case in CASES
    ]
    return {
        "passages": passages(*texts), "ratings": rated(rng, "judge"), "annotations": marked(rng, "nli"),
        "scores": scores(scored), "edits": table(EDITS, edits), "simple": pd.DataFrame(simple), "factual": range(6),
    }  # fmt: skip


def flaw_ratings() -> dict[str, pa.Table]:
    """Three people and a judge on 16 pairs of 12 edits; one person and the judge rate some pairs a second time."""
    rng = np.random.default_rng(1)
    pairs = [
        replace(pair(number % 12, relation=("P21", "P27")[number % 2]), pair_id=f"{number:02}") for number in range(16)
    ]

    def answers(raters: tuple[str, ...], own: Sequence[PassagePair], first: str) -> pa.Table:
        rows = [
            flaw_row(one, flaw, rater, first, change, status="ok" if change is not None else "not rated")
            for one, flaw, rater in product(own, ("sexism", "religion"), raters)
            for change in [int(rng.choice((-1, 0, 1), p=(0.1, 0.5, 0.4))) if rng.random() > 0.04 else None]
        ]
        return flaw_table(rows)

    reflected = [reflected_row(one, "A1", str(rng.choice(("yes", "no", "unsure")))) for one in pairs]
    return {
        "flaws": answers(("A1", "A2", "A3", "judge"), pairs, "pre"),
        "swapped": answers(("A1", "judge"), pairs[:8], "post"),
        "reflected": pa.Table.from_pylist(reflected, schema=REFLECTED),
    }


def people() -> dict[str, pa.Table]:
    """Ratings by three people, claims and failure modes by two."""
    rng = np.random.default_rng(2)
    failures = [
        {**method("memit"), "case_id": case, "mode": mode, "rater": rater, "present": bool(rng.random() < 0.3)}
        for case, mode, rater in product(CASES, ("topic_drift", "spaces"), ("A1", "A2"))
    ]
    return {
        "ratings": rated(rng, "A1", "A2", "A3"), "annotations": marked(rng, "A1", "A2"),
        "failures": table(FAILURES, failures, comment="so"),
    }  # fmt: skip


@pytest.mark.parametrize("source", ["leme", "flaws", "people"])
def test_numbers_are_those_of_the_first_version(source: str) -> None:
    run = leme_run()
    if source == "leme":
        frame = leme_frame(run.pop("passages"), **run)
    elif source == "flaws":
        frame = people_frame(frames(flaw_ratings()), judges=["judge"], draws=50)
    else:
        judged = frames({name: run[name] for name in ("ratings", "annotations")})
        frame = people_frame(frames(people()), judged, draws=50)
    names = frame.reindex(columns=KEYS).assign(control=frame["control"].where(frame["what"] == "labels_differ"))
    key = [
        "|".join(sorted({str(name) for name in row if pd.notna(name)} - {"", "all"})) for row in names.to_numpy()
    ]  # what and whom a number is about, by its names in any order
    found = frame.assign(key=key).set_index(["what", "key"])
    golden = pd.read_csv(Path(__file__).with_name("report_golden.csv")).query("source == @source")
    more = golden["what"] == "contradicted_more"  # two shares differ by at most 1: ends beyond it were a fault
    golden.loc[more, ["low", "high"]] = golden.loc[more, ["low", "high"]].clip(-1, 1)
    golden = golden.drop(columns="source").set_index(["what", "key"]).astype(float)
    found = found.reindex(columns=golden.columns).loc[golden.index].astype(float)
    others = golden.columns.difference(["value", "low", "high", "p", "p_adjusted"])
    found[others] = found[others].where(golden[others].notna())
    pd.testing.assert_frame_equal(found, golden, rtol=1e-6, atol=1e-9)
