"""Pairs of texts, one written before and one after an edit, and the blinding of which is which."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple, TypeVar, cast

import pyarrow as pa

from seesaw_cf.base import checks
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.seeds import chance_of, seed_of
from seesaw_cf.texts.tables import FLAWS, PASSAGES, FlawRow, PassageRow

PHASES = ("pre", "post")
T = TypeVar("T")


class _TextOrigin(NamedTuple):
    """What a text before an edit and those after it have in common."""

    case_id: int
    relation: str
    sample: int
    passage: str
    prompt_id: int
    entity_id: str | None


@dataclass(frozen=True, slots=True)
class PassagePair:
    """Two texts about one person.

    Attributes:
        pair_id: The same for the same passages in every run: editor, case, passage, prompt and sample.
        editor: What edited the model.
        case_id: The edit.
        relation: relation_id of the edit.
        entity_id, entity: Person of the texts; the id is "" when it is not known.
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
        """Return the texts in the order shown, "pre" or "post" first."""
        return (self.pre, self.post) if first == "pre" else (self.post, self.pre)


@dataclass(frozen=True, slots=True)
class FlawAnswer:
    """A rater's answer about one flaw in one pair.

    Attributes:
        change: 1 = more after the edit, -1 = more before, 0 = equal; None = no answer.
        quote: Words of the texts that show it.
        reply: The rater's own words.
        status: "ok", or the reason for no answer.
    """

    change: int | None
    quote: str = ""
    reply: str = ""
    status: str = "ok"


def passage_pairs(
    passages: pa.Table, kinds: Sequence[str] = ("free", "guided")
) -> tuple[list[PassagePair], Counter[str]]:
    """Pair every passage written after an edit with the one written before it.

    A passage before the edit serves every editor with rows of the same case, passage, prompt, entity and sample.

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
    before: dict[_TextOrigin, str] = {}
    after: dict[tuple[str, _TextOrigin], PassageRow] = {}
    left_out: Counter[str] = Counter()
    rows: list[PassageRow] = passages.to_pylist()
    for row in rows:
        if row["passage"] not in kinds:
            continue
        text = row["text"] or ""
        if row["status"] != "ok" or not text.strip():
            left_out["empty text" if row["status"] == "ok" else row["status"]] += 1
            continue
        place = _TextOrigin(
            row["case_id"], row["relation"], row["sample"], row["passage"], row["prompt_id"], row["entity_id"]
        )
        if row["phase"] == "pre":
            if before.setdefault(place, text) != text:
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
        about = (editor, row["case_id"], row["relation"], row["entity_id"] or "", row["entity"])
        pairs.append(PassagePair(pair_id, *about, before[place], row["text"] or ""))
    return pairs, left_out


def sample_pairs(pairs: Sequence[PassagePair], number: int | None, seed: int = 0) -> list[PassagePair]:
    """Draw pairs for raters, as many of each edited relation as of any other while it has some.

    With one seed people (`seesaw-cf people export`) and judges get the same pairs.

    Args:
        pairs: The texts.
        number: How many; None, or more than there are: all.
        seed: Of the draw.

    Returns:
        The drawn pairs in the order given.

    Raises:
        RecordError: `number` is below 1.

    Source: SEESAW-CF section 5 (252 pairs of three relations).
    """
    if number is None:
        return list(pairs)
    checks.whole("sample of pairs", number, 1)
    groups: dict[str, list[PassagePair]] = {}
    for pair in pairs:
        groups.setdefault(pair.relation, []).append(pair)
    counts = even_counts({name: len(own) for name, own in groups.items()}, number)
    ids = {pair.pair_id for pair in draw_groups(groups, counts, seed)}
    return [pair for pair in pairs if pair.pair_id in ids]


def even_counts(sizes: Mapping[str, int], total: int) -> dict[str, int]:
    """Return as many of each group as it has, up to a level that makes the total."""
    counts, left = dict.fromkeys(sizes, 0), min(total, sum(sizes.values()))
    for rank, name in enumerate(sorted(sizes, key=lambda name: (sizes[name], name))):
        counts[name] = min(sizes[name], -(-left // (len(sizes) - rank)))
        left -= counts[name]
    return counts


def draw_groups(groups: Mapping[str, Sequence[T]], counts: Mapping[str, int], seed: int) -> list[T]:
    """Return `counts[name]` members of each group, the groups in the order of their names."""
    return [
        member
        for name in sorted(counts)
        for member in random.Random(seed_of(seed, "sample", name)).sample(groups.get(name, []), counts[name])
    ]


def _named(place: _TextOrigin) -> str:
    return ", ".join(f"{name} {value!r}" for name, value in place._asdict().items())


def seeded_uniform(seed: int, *words: str) -> float:
    """Return a number in 0..1 that depends on seed and words alone, so that any part of a job draws the same."""
    return chance_of(seed, *words, bits=56, joined="\0")


def first_shown(seed: int, pair_id: str) -> str:
    """Return which text a rater sees first, "pre" or "post", by a separate draw for each pair.

    Copies of a pair, which differ in what follows "@" in the id, are shown in the order of the pair.
    """
    return PHASES[seeded_uniform(seed, "order", pair_id.split("@")[0]) < 0.5]


def turned(first: str) -> str:
    """Return the other text of a pair; "" of "", where texts have no order."""
    return {"pre": "post", "post": "pre"}.get(first, "")


def showings(ids: Sequence[str], seed: int, duplicates: float) -> list[tuple[str, int, str]]:
    """Return id, copy and the text that is shown first: every pair once, and some again in the other order.

    Args:
        ids: Of the pairs.
        seed: Of the orders, and of which pairs come again.
        duplicates: Share of the pairs that do.

    Raises:
        RecordError: A share outside 0..1.
    """
    n = round(checks.number("duplicates", duplicates, 0, 1) * len(ids))
    again = sorted(ids, key=lambda id: seeded_uniform(seed, "duplicate", id))[:n]
    first = {id: first_shown(seed, id) for id in ids}
    return [*((id, 1, first[id]) for id in ids), *((id, 2, turned(first[id])) for id in again)]


def unblinded(answer: int, first: str) -> int:
    """Turn an answer from the order shown to before and after.

    Args:
        answer: 1 = more in the second text shown, -1 = more in the first, 0 = equal.
        first: Which text was shown first, "pre" or "post".

    Returns:
        1 = more after the edit, -1 = more before, 0 = equal.
    """
    return answer if first == "pre" else -answer


def flaw_row(pair: PassagePair, flaw: str, rater: str, first: str, answer: FlawAnswer) -> FlawRow:
    """Return one row of `FLAWS`."""
    return cast(FlawRow, asdict(pair) | {"flaw": flaw, "rater": rater, "first": first} | asdict(answer))


def flaw_table(rows: Sequence[FlawRow]) -> pa.Table:
    """Return rows of `FLAWS` as a table."""
    return pa.Table.from_pylist(list(rows), schema=FLAWS)
