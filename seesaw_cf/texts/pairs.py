"""Pairs of texts, one written before and one after an edit: which is which is hidden, and one flaw is asked of both."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

import pyarrow as pa

from seesaw_cf.base import checks
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.text import chance_of, seed_of
from seesaw_cf.base.types import TableRow
from seesaw_cf.effects.instruments import DEFAULT, Flaw, Instruments
from seesaw_cf.texts.judge import Answer, Instrument, Prompt, is_refusal
from seesaw_cf.texts.tables import FLAWS, PASSAGES, REFLECTED, FlawRow, PassageRow, ReflectedRow

PHASES = ("pre", "post")
PROTOCOLS = ("blind", "published")
"""blind: nothing tells which text is from after the edit. published: raters know, as in SEESAW-CF, appendix F."""
_QUOTE = re.compile(r"^\W*quote\W*?:\s*(.+)$", re.IGNORECASE | re.MULTILINE)
# The word must end its line or sentence: "Answer: A, B or equal" is the question repeated, not an answer.
_END = r"[*\"')\]]*(?=\s*$|\.|\s*\()"
_WORD = r"(?i:text\s+)?\b(A|B|(?i:equal|equally|same|neither))\b"
_NUMBER = r"([-\u2212+]?[01])\b"  # the sign is part of the answer, so what comes before it must not take a dash
_REPLY = (
    '\nReply with two lines and nothing else:\nQuote: the words that show the flaw, copied from the text, or "none"\n'
)
# Protocol -> how a judge answers, what an answer in a reply looks like, and a reply that is nothing else.
_FORMS = {
    "blind": (
        f"{_REPLY}Answer: A, B or equal",
        re.compile(rf"(?i:answer)\W{{0,6}}(?i:is\W{{1,3}})?{_WORD}{_END}", re.MULTILINE),
        re.compile(rf"\W*{_WORD}\W*"),
    ),
    "published": (
        f"{_REPLY}Rating: -1, 0 or 1",
        re.compile(rf"(?i:rating|answer)[\s:*=\"']{{0,6}}(?i:is[\s:*]{{1,3}})?{_NUMBER}{_END}", re.MULTILINE),
        re.compile(rf"[\s*\"'(]*{_NUMBER}[\s*\"').]*"),
    ),
}
# Word -> 1 = more in the second text shown, -1 = more in the first; other words are 0.
_MEANINGS = {"A": -1, "-1": -1, "\u22121": -1, "B": 1, "1": 1, "+1": 1}


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
    if missing := [name for name in PASSAGES.names if name not in passages.column_names]:
        raise RecordError(f"passages: columns {missing} are missing. Expected the table that `texts write` writes.")
    before: dict[tuple[object, ...], str] = {}
    after: dict[tuple[str, tuple[object, ...]], PassageRow] = {}
    left_out: Counter[str] = Counter()
    rows: list[PassageRow] = passages.to_pylist()
    for row in rows:
        text = row["text"] or ""
        if row["passage"] not in kinds:
            continue
        if row["status"] != "ok" or not text.strip():
            left_out["empty text" if row["status"] == "ok" else row["status"]] += 1
            continue
        names = ("case_id", "relation", "sample", "passage", "prompt_id", "entity_id")
        place = tuple(row[name] for name in names)  # type: ignore[literal-required]
        again = before.setdefault(place, text) != text if row["phase"] == "pre" else (row["editor"], place) in after
        if again:
            where = ", ".join(f"{name} {value!r}" for name, value in zip(names, place))
            raise RecordError(f"passages: {row['editor']!r} has two texts for {where}. Keep one run's passages.")
        if row["phase"] != "pre":
            after[row["editor"], place] = row
    pairs = []
    for (editor, place), row in after.items():
        if place not in before:
            left_out["no text before the edit"] += 1
            continue
        pair_id = f"{editor}-{row['case_id']}-{row['passage']}-{row['prompt_id']}-{row['sample']}"
        about = (editor, row["case_id"], row["relation"], row["entity_id"] or "", row["entity"])
        pairs.append(PassagePair(pair_id, *about, before[place], row["text"] or ""))
    return pairs, left_out


def sample_evenly(groups: Mapping[str, Sequence[str]], number: int | None, seed: int = 0) -> set[str]:
    """Draw names evenly over groups while they last; with one seed people and judges get the same.

    Args:
        groups: Edited relation -> names of texts.
        number: How many; None, or more than there are: all.
        seed: Of the draw.

    Source: SEESAW-CF section 5 (252 pairs of three relations).
    """
    if number is None:
        return {name for own in groups.values() for name in own}
    left, drawn = checks.whole("sample", number, 1), set()
    for rank, group in enumerate(sorted(groups, key=lambda name: (len(groups[name]), name))):
        count = min(len(groups[group]), -(-left // (len(groups) - rank)))
        drawn.update(random.Random(seed_of(seed, "sample", group)).sample(groups[group], count))
        left -= count
    return drawn


def sample_pairs(pairs: Sequence[PassagePair], number: int | None, seed: int = 0) -> list[PassagePair]:
    """Draw pairs for raters, evenly over the edited relations, in the order given; see `sample_evenly`."""
    groups: dict[str, list[str]] = {}
    for pair in pairs:
        groups.setdefault(pair.relation, []).append(pair.pair_id)
    drawn = sample_evenly(groups, number, seed)
    return [pair for pair in pairs if pair.pair_id in drawn]


def _uniform(seed: int, *words: str) -> float:
    """Return a number in 0..1 that depends on seed and words alone, so that any part of a job draws the same."""
    return chance_of(seed, *words, bits=56, joined="\0")


def showings(
    ids: Sequence[str], seed: int, share: float, protocol: str = "blind", draw: str = "duplicate"
) -> list[tuple[str, int, str]]:
    """Return id, copy and the text that is shown first: every pair once, and some again in the other order.

    Args:
        ids: Of the pairs.
        seed: Of the orders, and of which pairs come again.
        share: Share of the pairs that do.
        protocol: "published": the text before the edit is first, always.
        draw: Names the draw of those that come again.

    Raises:
        RecordError: A share outside 0..1.
    """
    number = round(checks.number(f"share of pairs that come again ({draw})", share, 0, 1) * len(ids))
    again = sorted(ids, key=lambda id: _uniform(seed, draw, id))[:number]
    first = {id: PHASES[protocol == "blind" and _uniform(seed, "order", id) < 0.5] for id in ids}
    second = {id: PHASES[protocol == "blind" and first[id] == "pre"] for id in again}
    return [*((id, 1, first[id]) for id in ids), *((id, 2, second[id]) for id in again)]


def unblinded(answer: int, first: str) -> int:
    """Turn 1 (more in the second text shown), -1 (in the first) or 0 into 1 (more after the edit), -1 (before) or 0."""
    return answer if first == "pre" else -answer


def flaw_row(pair: PassagePair, flaw: str, rater: str, first: str, answer: FlawAnswer) -> FlawRow:
    """Return one row of `FLAWS`."""
    return cast(FlawRow, asdict(pair) | {"flaw": flaw, "rater": rater, "first": first} | asdict(answer))


def flaw_table(rows: Sequence[FlawRow]) -> pa.Table:
    """Return rows of `FLAWS` as a table."""
    return pa.Table.from_pylist(list(rows), schema=FLAWS)


def reflected_row(pair: PassagePair, rater: str, answer: str | None = None) -> ReflectedRow:
    """Return one row of `REFLECTED`, without a comment."""
    about = {name: getattr(pair, name) for name in REFLECTED.names if hasattr(pair, name)}
    return cast(ReflectedRow, about | {"rater": rater, "reflected": answer, "comment": ""})


@dataclass(frozen=True, slots=True)
class FlawQuestion:
    """A pair, one flaw, and which text is shown first."""

    pair: PassagePair
    flaw: Flaw
    first: str


def flaw_questions(
    pairs: Sequence[PassagePair],
    words: Instruments = DEFAULT,
    seed: int = 0,
    swap: float = 0.0,
    protocol: str = "blind",
) -> tuple[list[FlawQuestion], list[FlawQuestion]]:
    """Return every flaw of every pair, and those of the share `swap` of the pairs once more in the other order."""
    by_id = {pair.pair_id: pair for pair in pairs}
    orders = showings(list(by_id), seed, swap if protocol == "blind" else 0.0, protocol, "swap")
    questions = [
        (copy, FlawQuestion(by_id[id], flaw, first)) for id, copy, first in orders for flaw in words.flaws.values()
    ]
    return [question for copy, question in questions if copy == 1], [q for copy, q in questions if copy == 2]


@dataclass(frozen=True)
class Flaws(Instrument[FlawQuestion]):
    """Flaws as an instrument.

    Source: SEESAW-CF, appendices I and F.
    Deviates: one flaw per question. Blind by default: texts in random order, "A" and "B" rather than -1 and 1, because
        the released labels look as if the sign was misread.

    Attributes:
        protocol: Name out of `PROTOCOLS`.
    """

    protocol: str = "blind"
    name = "flaws"
    schema = FLAWS

    def prompt(self, question: FlawQuestion, examples: Sequence[tuple[FlawQuestion, Any]]) -> Prompt:
        """Return the question; of the blind protocol nothing in it tells which text is from after the edit."""
        task = self.words.instructions["flaws_judge" if self.protocol == "blind" else "flaws_judge_published"]
        (one, two), flaw = question.pair.shown(question.first), question.flaw
        definition = "\n".join(f"- {line}" for line in flaw.model)
        text = task.format(entity=question.pair.entity, title=flaw.title, definition=definition, one=one, two=two)
        return text.rstrip() + _FORMS[self.protocol][0]

    def parse(self, question: FlawQuestion, reply: str) -> tuple[tuple[int, str] | None, str]:
        """Read the change, from before to after, and the words quoted for it where a text has them."""
        _, answer, bare = _FORMS[self.protocol]
        alone = bare.fullmatch(reply.strip())
        values = {_MEANINGS.get(word, 0) for word in ([alone[1]] if alone else answer.findall(reply))}
        if len(values) != 1:
            return None, "two answers" if values else "refusal" if is_refusal(reply) else "no answer"
        quoted = _QUOTE.search(reply)
        words = quoted[1].strip().strip("\"'\u201c\u201d") if quoted else ""
        present = bool(words) and any(words in text for text in question.pair.shown(question.first))
        return (unblinded(values.pop(), question.first), words if present else ""), "ok"

    def row(self, question: FlawQuestion, rater: str, answer: Answer) -> TableRow:
        """Return a row of `FLAWS`."""
        change, quote = answer.value or (None, "")
        own = FlawAnswer(change, quote, answer.reply, answer.status)
        return dict(flaw_row(question.pair, question.flaw.name, rater, question.first, own))

    def key(self, question: FlawQuestion) -> tuple[object, ...]:
        """Return pair, flaw and order."""
        return (question.pair.pair_id, question.flaw.name, question.first)

    def seed(self, seed: int, question: FlawQuestion, attempt: int) -> int:
        """Return 48 bits of a hash."""
        return seed_of(seed, *self.key(question), attempt)

    def texts(self, question: FlawQuestion) -> Sequence[str]:
        """Return both texts."""
        return [question.pair.pre, question.pair.post]
