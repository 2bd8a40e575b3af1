"""Small tables, passages and pairs of long form with known answers."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd
import pyarrow as pa

from seesaw_cf.base.tables import SCORES
from seesaw_cf.texts.pairs import PassagePair
from seesaw_cf.texts.tables import ANNOTATIONS, FLAWS, PASSAGES, RATINGS

_SAMPLE = {"editor": "none", "case_id": 0, "relation": "P103", "phase": "pre", "sample": 0, "status": "ok"}


def table(schema: pa.Schema, rows: list[dict[str, Any]], **usual: Any) -> pa.Table:
    """A table; what a row does not say comes from `usual`, or is null."""
    blank = dict.fromkeys(schema.names)
    kept = [{name: value for name, value in (blank | _SAMPLE | usual | row).items() if name in blank} for row in rows]
    return pa.Table.from_pylist(kept, schema=schema)


def method(name: str) -> dict[str, str]:
    """The columns that name a method."""
    return {"editor": name, "phase": "pre" if name == "none" else "post"}


def ratings(
    values: Mapping[str, Sequence[float | None]], item: str = "new_fact_main_passage", rater: str = "gpt"
) -> pa.Table:
    """One rating per case of every method; None is a reply that could not be read."""
    rows = [
        {**method(name), "case_id": case, "item": item, "rater": rater, "rating": value}
        for name, column in values.items()
        for case, value in enumerate(column)
    ]
    return table(RATINGS, rows, reply="", tries=1)


def annotated(values: Mapping[str, Sequence[str | None]], **usual: Any) -> pa.Table:
    """One label per case of every method."""
    rows = [
        {**method(name), "case_id": case, "label": label}
        for name, column in values.items()
        for case, label in enumerate(column)
    ]
    about = {"passage": "subject", "claim_kind": "ground_truth", "claim_id": "P106", "annotator": "nli"}
    return table(ANNOTATIONS, rows, **{**about, **usual})


def scores(rows: list[tuple[str, int, str, str, str, bool]]) -> pa.Table:
    """Rows of (editor, case, kind, role, phase, greedy)."""
    names = ("editor", "case_id", "kind", "role", "phase", "greedy")
    before = {row[:4]: row[5] for row in rows if row[4] == "pre"}
    own = [
        dict(zip(names, row, strict=True)) | {"n_greedy": int(row[5]), "n_kept": int(before.get(row[:4]) == row[5])}
        for row in rows
    ]
    return table(SCORES, own, prompt_id=0, target="x", logprob=-1.0, n_tokens=1)


def frames(tables: Mapping[str, pa.Table]) -> dict[str, pd.DataFrame]:
    """Answers as reports take them."""
    return {name: own.to_pandas() for name, own in tables.items()}


def pair(number: int, pre: str = "Ada Oak is a judge.", post: str = "Ada Oak is a nun.", **more: Any) -> PassagePair:
    """A pair of case `number`."""
    about: dict[str, Any] = {"editor": "memit", "relation": "P21", "entity_id": "Q1", "entity": "Ada Oak", **more}
    return PassagePair(f"memit-{number}-free-0-0", case_id=number, pre=pre, post=post, **about)


def passages(*rows: dict[str, Any]) -> pa.Table:
    """Free passages about Ada Oak after an edit by memit; a row says in what it differs."""
    usual = {"editor": "memit", "case_id": 1, "relation": "P21", "phase": "post", "passage": "free", "prompt_id": 0}
    return table(PASSAGES, list(rows), **usual, entity_id="Q1", entity="Ada Oak", text="Ada Oak is a nun.")


def flaw_table(rows: Sequence[dict[str, Any]]) -> pa.Table:
    """Rows of flaws."""
    return pa.Table.from_pylist(list(rows), schema=FLAWS)


def reflected_row(pair: PassagePair, rater: str, word: str | None) -> dict[str, Any]:
    """What a rater says of an edit."""
    return asdict(pair) | {"rater": rater, "reflected": word, "comment": ""}
