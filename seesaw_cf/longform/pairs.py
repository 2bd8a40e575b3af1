"""Pairs of texts, one written before and one after an edit, and the blinding of which is which."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from seesaw_cf.errors import RecordError
from seesaw_cf.longform.tables import FLAWS, PASSAGES

__all__ = [
    "PHASES",
    "Pair",
    "coin",
    "first_shown",
    "flaw_row",
    "flaw_table",
    "joined_ratings",
    "make_pairs",
    "unblinded",
]

PHASES = ("pre", "post")
_PLACE = ("case_id", "relation", "sample", "passage", "prompt_id", "entity_id")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts about one person.

    Attributes:
        pair_id: The same for the same passages in every run: editor, case, passage, prompt and sample.
        editor: What edited the model.
        case_id: The edit.
        relation: relation_id of the edit.
        entity_id, entity: Whom the texts are about.
        pre, post: The texts before and after the edit.
    """

    pair_id: str
    editor: str
    case_id: int
    relation: str
    entity_id: str
    entity: str
    pre: str
    post: str

    def shown(self, first: str) -> tuple[str, str]:
        """The texts in the order shown, "pre" or "post" first."""
        return (self.pre, self.post) if first == "pre" else (self.post, self.pre)


def make_pairs(passages: pa.Table, kinds: Sequence[str] = ("free", "guided")) -> tuple[list[Pair], Counter[str]]:
    """Pairs every passage written after an edit with the one written before it.

    A passage before the edit serves every editor whose rows have the same case, passage, prompt, entity and sample.

    Args:
        passages: Rows of `PASSAGES`.
        kinds: Which values of `passage` to pair.

    Returns:
        The pairs in the table's order, and reason -> passages left out ("empty text", "no text before the edit", or a
        status other than "ok").

    Raises:
        RecordError: Columns are missing, or a passage is there twice.
    """
    missing = [name for name in PASSAGES.names if name not in passages.column_names]
    if missing:
        raise RecordError(
            f"passages: columns {missing} are missing. Expected the table that `seesaw-cf leme run` writes."
        )
    before: dict[tuple[Any, ...], str] = {}
    after: dict[tuple[str, tuple[Any, ...]], dict[str, Any]] = {}
    left_out: Counter[str] = Counter()
    for row in passages.to_pylist():
        if row["passage"] not in kinds:
            continue
        if row["status"] != "ok" or not (row["text"] or "").strip():
            left_out["empty text" if row["status"] == "ok" else row["status"]] += 1
            continue
        place = tuple(row[name] for name in _PLACE)
        if row["phase"] == "pre":
            if before.setdefault(place, row["text"]) != row["text"]:
                raise RecordError(f"passages: two texts before the edit for {_named(place)}. Keep one run's passages.")
        elif after.setdefault((row["editor"], place), row) is not row:
            raise RecordError(
                f"passages: {row['editor']!r} has two texts for {_named(place)}. Keep one run's passages."
            )
    pairs = []
    for (editor, place), row in after.items():
        if place not in before:
            left_out["no text before the edit"] += 1
            continue
        pair_id = f"{editor}-{row['case_id']}-{row['passage']}-{row['prompt_id']}-{row['sample']}"
        about = (editor, row["case_id"], row["relation"], row["entity_id"], row["entity"])
        pairs.append(Pair(pair_id, *about, before[place], row["text"]))
    return pairs, left_out


def _named(place: tuple[Any, ...]) -> str:
    return ", ".join(f"{name} {value!r}" for name, value in zip(_PLACE, place, strict=True))


def coin(seed: int, *words: str) -> float:
    """A number in 0..1 that depends on seed and words alone, so that any part of a job draws the same."""
    digest = hashlib.sha256("\0".join((str(seed), *words)).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:7], "big") / 2**56


def first_shown(seed: int, pair_id: str) -> str:
    """Which text a rater sees first, "pre" or "post", by a coin of its own for each pair.

    Copies of a pair (what follows "@" in the id tells them apart) are shown in the order of the pair.
    """
    return PHASES[coin(seed, "order", pair_id.split("@")[0]) < 0.5]


def unblinded(answer: int, first: str) -> int:
    """From the order shown to before and after.

    Args:
        answer: 1 = more in the second text shown, -1 = more in the first, 0 = equal.
        first: Which text was shown first, "pre" or "post".

    Returns:
        1 = more after the edit, -1 = more before, 0 = equal.
    """
    return answer if first == "pre" else -answer


def flaw_row(pair: Pair, flaw: str, rater: str, first: str, **more: Any) -> dict[str, Any]:
    """One row of `FLAWS`; what is not given is empty."""
    about = {name: getattr(pair, name) for name in Pair.__slots__}
    blank = {"change": None, "quote": "", "reply": "", "status": "ok"}
    return {**about, "flaw": flaw, "rater": rater, "first": first, **blank, **more}


def flaw_table(rows: Sequence[dict[str, Any]]) -> pa.Table:
    """Rows of `FLAWS` as a table."""
    return pa.Table.from_pylist(list(rows), schema=FLAWS)


def joined_ratings(tables: Mapping[Any, pa.Table]) -> pa.Table:
    """Tables of `FLAWS` as one; the same rating twice counts once.

    Args:
        tables: Where each is from -> rows.

    Raises:
        RecordError: The same rater says two things about the same flaw of the same pair; both places are named.
    """
    seen: dict[tuple[str, ...], tuple[int | None, str]] = {}
    rows = []
    for source, table in tables.items():
        for number, row in enumerate(table.to_pylist(), 1):
            key, where = tuple(row[name] for name in ("pair_id", "flaw", "rater")), f"{source}, row {number}"
            if key not in seen:
                seen[key] = row["change"], where
                rows.append(row)
            elif seen[key][0] != row["change"]:
                before, place = seen[key]
                raise RecordError(
                    f"{where}: {row['rater']!r} has {row['change']} for {row['flaw']} of pair {row['pair_id']!r}, but "
                    f"{place} has {before} (1 = more after the edit, -1 = more before). Keep one of the two."
                )
    return flaw_table(rows)
