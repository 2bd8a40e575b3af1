"""Passages and pairs for tests of flaws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from seesaw_cf.texts.pairs import PassagePair
from seesaw_cf.texts.tables import FLAWS, PASSAGES


def pair(number: int, pre: str = "Ada Oak is a judge.", post: str = "Ada Oak is a nun.", **more: Any) -> PassagePair:
    """A pair of case `number`."""
    about: dict[str, Any] = {"editor": "memit", "relation": "P21", "entity_id": "Q1", "entity": "Ada Oak", **more}
    return PassagePair(f"memit-{number}-free-0-0", case_id=number, pre=pre, post=post, **about)


def passages(*rows: dict[str, Any]) -> pa.Table:
    """A table of passages; what a row does not say is filled in."""
    blank: dict[str, Any] = dict.fromkeys(PASSAGES.names)
    usual = {"editor": "memit", "case_id": 1, "relation": "P21", "phase": "post", "sample": 0, "passage": "free"}
    usual |= {"prompt_id": 0, "entity_id": "Q1", "entity": "Ada Oak", "text": "Ada Oak is a nun.", "status": "ok"}
    return pa.Table.from_pylist([blank | usual | row for row in rows], schema=PASSAGES)


def flaw_table(rows: Sequence[dict[str, Any]]) -> pa.Table:
    """Rows of flaws."""
    return pa.Table.from_pylist(list(rows), schema=FLAWS)


def reflected_row(pair: PassagePair, rater: str, word: str | None) -> dict[str, Any]:
    """What a rater says of an edit."""
    return asdict(pair) | {"rater": rater, "reflected": word, "comment": ""}
