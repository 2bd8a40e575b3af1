"""Pairs of texts, one written before and one after an edit: which is which is hidden, and one flaw is asked of both."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from seesaw_cf.base import checks
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.text import chance_of, seed_of
from seesaw_cf.base.types import TableRow
from seesaw_cf.effects.instruments import DEFAULT, Instruments
from seesaw_cf.texts.judge import Instrument, Parsed, TextQuestion, is_refusal
from seesaw_cf.texts.tables import FLAWS

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


def passage_pairs(passages: pa.Table) -> tuple[list[PassagePair], Counter[str]]:
    """Pair every passage written after an edit with the one written before it.

    A passage before the edit serves every editor with rows of the same case, passage, prompt, entity and sample.

    Args:
        passages: Rows of `PASSAGES`; only descriptions, free and guided, are paired.

    Returns:
        The pairs in the table's order, and reason -> passages left out ("empty text", "no text before the edit", or a
        status other than "ok").

    Raises:
        RecordError: A passage is there twice.
    """
    before: dict[tuple[object, ...], str] = {}
    after: dict[tuple[str, tuple[object, ...]], dict[str, Any]] = {}
    left_out: Counter[str] = Counter()
    names = ("case_id", "relation", "sample", "passage", "prompt_id", "entity_id")
    for row in passages.to_pylist():
        text, place = row["text"] or "", tuple(row[name] for name in names)
        if row["passage"] not in ("free", "guided"):
            continue
        if row["status"] != "ok" or not text.strip():
            left_out["empty text" if row["status"] == "ok" else row["status"]] += 1
        elif text != before.setdefault(place, text) if row["phase"] == "pre" else (row["editor"], place) in after:
            where = ", ".join(f"{name} {value!r}" for name, value in zip(names, place))
            raise RecordError(f"passages: {row['editor']!r} has two texts for {where}. Keep one run's passages.")
        elif row["phase"] != "pre":
            after[row["editor"], place] = row
    left_out.update("no text before the edit" for _, place in after if place not in before)
    pairs = []
    for (editor, place), row in after.items():
        pair_id = f"{editor}-{row['case_id']}-{row['passage']}-{row['prompt_id']}-{row['sample']}"
        about = (editor, row["case_id"], row["relation"], row["entity_id"] or "", row["entity"])
        pairs += [PassagePair(pair_id, *about, before[place], row["text"])] if place in before else []
    return pairs, left_out


def sample_evenly(relations: Mapping[str, str], number: int | None, seed: int = 0) -> set[str]:
    """Draw texts evenly over edited relations while they last; with one seed people and judges get the same.

    Args:
        relations: Name of a text -> the edited relation.
        number: How many; None, or more than there are: all.
        seed: Of the draw.

    Source: SEESAW-CF section 5 (252 pairs of three relations).
    """
    if number is None:
        return set(relations)
    left, drawn, groups = checks.whole("sample", number, 1), set[str](), dict[str, list[str]]()
    for name, group in relations.items():
        groups.setdefault(group, []).append(name)
    for rank, group in enumerate(sorted(groups, key=lambda name: (len(groups[name]), name))):
        count = min(len(groups[group]), -(-left // (len(groups) - rank)))
        drawn.update(random.Random(seed_of(seed, "sample", group)).sample(groups[group], count))
        left -= count
    return drawn


def sample_pairs(pairs: Sequence[PassagePair], number: int | None, seed: int = 0) -> list[PassagePair]:
    """Draw pairs for raters, evenly over the edited relations, in the order given; see `sample_evenly`."""
    drawn = sample_evenly({pair.pair_id: pair.relation for pair in pairs}, number, seed)
    return [pair for pair in pairs if pair.pair_id in drawn]


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

    def chance(draw: str, id: str) -> float:  # depends on seed and words alone, so any part of a job draws the same
        return chance_of(seed, draw, id, bits=56, joined="\0")

    number = round(checks.number(f"share of pairs that come again ({draw})", share, 0, 1) * len(ids))
    again = sorted(ids, key=lambda id: chance(draw, id))[:number]
    first = {id: PHASES[protocol == "blind" and chance("order", id) < 0.5] for id in ids}
    second = {id: PHASES[protocol == "blind" and first[id] == "pre"] for id in again}
    return [*((id, 1, first[id]) for id in ids), *((id, 2, second[id]) for id in again)]


def unblinded(answer: int, first: str) -> int:
    """Turn 1 (more in the second text shown), -1 (in the first) or 0 into 1 (more after the edit), -1 (before) or 0."""
    return answer if first == "pre" else -answer


def flaw_row(
    pair: PassagePair, flaw: str, rater: str, first: str, change: int | None, reply: str = "", status: str = "ok"
) -> TableRow:
    """Return a row of `FLAWS` that quotes nothing; `change`: 1 = more after the edit, None = no answer."""
    answer = {"change": change, "quote": "", "reply": reply, "status": status}
    return asdict(pair) | {"flaw": flaw, "rater": rater, "first": first} | answer


def flaw_questions(
    pairs: Sequence[PassagePair],
    words: Instruments = DEFAULT,
    seed: int = 0,
    swap: float = 0.0,
    protocol: str = "blind",
) -> tuple[list[TextQuestion], list[TextQuestion]]:
    """Return every flaw of every pair, and those of the share `swap` of the pairs once more in the other order."""
    by_id = {pair.pair_id: pair for pair in pairs}
    task = words.instructions["flaws_judge" if protocol == "blind" else "flaws_judge_published"]
    questions: tuple[list[TextQuestion], list[TextQuestion]] = [], []
    for id, copy, first in showings(list(by_id), seed, swap if protocol == "blind" else 0.0, protocol, "swap"):
        pair = by_id[id]
        one, two = shown = pair.shown(first)
        for flaw in words.flaws.values():
            marks = "\n".join(f"- {line}" for line in flaw.model)
            text = task.format(entity=pair.entity, title=flaw.title, definition=marks, one=one, two=two).rstrip()
            row = flaw_row(pair, flaw.name, "", first, None)
            asked = TextQuestion((id, flaw.name, first), row, shown, "", text + _FORMS[protocol][0], shown)
            questions[copy - 1].append(asked)
    return questions


def flaws(protocol: str = "blind") -> Instrument:
    """Return flaws as an instrument.

    Source: SEESAW-CF, appendices I and F.
    Deviates: one flaw per question. Blind by default: texts in random order, "A" and "B" rather than -1 and 1, because
        the released labels look as if the sign was misread.

    Args:
        protocol: Name out of `PROTOCOLS`.
    """
    return Instrument("flaws", FLAWS, partial(_parse, protocol))


def _parse(protocol: str, question: TextQuestion, reply: str) -> Parsed:
    """Read the change, from before to after, and the words quoted for it where a text has them."""
    _, answer, bare = _FORMS[protocol]
    alone = bare.fullmatch(reply.strip())
    values = {_MEANINGS.get(word, 0) for word in ([alone[1]] if alone else answer.findall(reply))}
    if len(values) != 1:
        return {}, "two answers" if values else "refusal" if is_refusal(reply) else "no answer"
    quoted = _QUOTE.search(reply)
    words = quoted[1].strip().strip("\"'\u201c\u201d") if quoted else ""
    present = bool(words) and any(words in text for text in question.texts)
    change = unblinded(values.pop(), str(question.row["first"]))
    return {"change": change, "quote": words if present else ""}, "ok"
