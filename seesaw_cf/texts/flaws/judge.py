"""A language model as judge of flaws in pairs of texts, every reply kept."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypedDict

import pyarrow as pa

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.tables import Int32, schema_of
from seesaw_cf.generation.types import Completion, Generator, Sampling
from seesaw_cf.texts.asking import ask_until_read
from seesaw_cf.texts.flaws.protocols import BLIND, PROTOCOLS, FlawProtocol
from seesaw_cf.texts.tables import CallRow
from seesaw_cf.texts.wording import OURS, Flaw, Wording, chosen_flaws, is_refusal
from seesaw_cf.texts.write.pairs import (
    FlawAnswer,
    PassagePair,
    first_shown,
    flaw_row,
    flaw_table,
    seeded_uniform,
    turned,
    unblinded,
)

# temperature 0: a judge that answers differently each time measures nothing by it.
JUDGE_SAMPLING = Sampling(max_new_tokens=160, temperature=0.0)


class _Call(TypedDict):
    """What a row of `CALLS` begins with: which question, and which try."""

    pair_id: str
    flaw: str
    first: str
    attempt: Int32
    rater: str


# One row per request to the model, in the order made.
CALLS = schema_of(_Call, CallRow)
_QUOTE = re.compile(r"^\W*quote\W*?:\s*(.+)$", re.IGNORECASE | re.MULTILINE)
Question = tuple[PassagePair, Flaw, str]  # and which text stands first


@dataclass(frozen=True, slots=True)
class JudgeResult:
    """Results of a judge.

    Attributes:
        table: Rows of `FLAWS`, one per (pair, flaw).
        swapped: The same pairs, as far as they were judged again in the other order.
        calls: Rows of `CALLS`: every prompt and reply, also those that could not be read.
        counts: "judgements", "retries" and reason -> judgements without an answer.
    """

    table: pa.Table
    swapped: pa.Table
    calls: pa.Table
    counts: dict[str, int] = field(default_factory=dict)


def judge_prompt(
    pair: PassagePair, flaw: Flaw, first: str, wording: Wording = OURS, protocol: FlawProtocol = BLIND
) -> str:
    """Return the question about one flaw; of a blind protocol nothing in it tells which text is from after the edit."""
    text_a, text_b = pair.shown(first)
    definition = "\n".join(f"- {line}" for line in flaw.model)
    question = wording.judge if "judge" in wording.replaced else protocol.question
    question = question.format(entity=pair.entity, title=flaw.title, definition=definition, one=text_a, two=text_b)
    return question.rstrip() + protocol.form


def parse_reply(
    completion: Completion, texts: tuple[str, str], protocol: FlawProtocol = BLIND
) -> tuple[int | None, str, str]:
    """Read a judge's reply.

    Args:
        completion: What the model wrote.
        texts: The texts as shown; a quote must be in one of them.
        protocol: How the question asks for an answer.

    Returns:
        The answer in the order shown (-1 first text, 1 second, 0 equal; None when there is none), the quote ("" when
        there is none, or none of it is in the texts), and the status: "ok", "refusal", "no answer", "two answers",
        "empty reply", or the completion's own.
    """
    if completion.status != "ok":
        return None, "", completion.status
    reply = completion.text.strip()
    if not reply:
        return None, "", "empty reply"
    bare = protocol.bare.fullmatch(reply)
    answers = {protocol.meanings.get(word, 0) for word in ([bare[1]] if bare else protocol.answer.findall(reply))}
    if len(answers) > 1:
        return None, "", "two answers"
    if not answers:
        return None, "", "refusal" if is_refusal(reply) else "no answer"
    quoted = _QUOTE.search(reply)
    words = quoted[1].strip().strip("\"'\u201c\u201d") if quoted else ""
    return answers.pop(), words if words and any(words in text for text in texts) else "", "ok"


@dataclass(frozen=True, slots=True)
class JudgeOptions:
    """What a judge is asked, and how.

    Attributes:
        flaws: Names; all seven when empty.
        seed: Of the order of texts and of the model's draws.
        tries: Times a question is asked at the most while its reply cannot be read. At temperature 0 a local model
            repeats itself: then 1 is enough.
        sampling: How the judge writes.
        wording: Wording of the question and the definitions.
        protocol: Name out of `PROTOCOLS`. "published": the judge knows the order, and no pair is judged in both.
    """

    flaws: Sequence[str] = ()
    seed: int = 0
    tries: int = 3
    sampling: Sampling = JUDGE_SAMPLING
    wording: Wording = OURS
    protocol: str = "blind"


def judge_pairs(
    pairs: Sequence[PassagePair],
    generator: Generator,
    options: JudgeOptions | None = None,
    *,
    swap: float = 0.0,
    rater: str = "",
) -> JudgeResult:
    """Ask a language model about every flaw of every pair.

    Put a `CachedGenerator` in front to make a long job resumable: the same question is then asked once. Questions are
    plain prompts: give the generator `chat=True` for models that were trained to answer.

    Args:
        pairs: The texts.
        generator: The judge.
        options: What is asked, and how; the defaults when None.
        swap: Share of pairs, drawn at random, that are judged again with the texts in the other order (`sign_check`).
        rater: Name in the table; that of the generator when empty.

    Returns:
        Tables and counts; a question without an answer is a row with its status.

    Raises:
        UnknownNameError: Unknown flaw or protocol.

    Source: SEESAW-CF appendix I (GPT-3.5 as judge) and F (definitions).
    Deviates: one flaw per question. The default is blind, in random order, "A" and "B" rather than -1 and 1, because
        the released labels look as if the sign was misread.
    """
    how, name = options or JudgeOptions(), rater or generator.name
    protocol = PROTOCOLS[one_of("protocol", how.protocol, PROTOCOLS)]
    questions = judge_questions(pairs, how, swap)
    answers = ask_until_read(
        [judge_prompt(*question, how.wording, protocol) for question in questions],
        lambda n, reply: _read(questions[n], reply, protocol),
        lambda n, attempt: _seed(how.seed, attempt + 1, *questions[n]),
        generator,
        how.sampling,
        tries=how.tries,
    )
    rows = [
        flaw_row(pair, flaw.name, name, first, FlawAnswer(*answer.value, answer.reply, answer.status))
        for (pair, flaw, first), answer in zip(questions, answers, strict=True)
    ]
    calls = [
        {"pair_id": pair.pair_id, "flaw": flaw.name, "first": first, "attempt": attempt + 1, "rater": name}
        | answer.calls[attempt]
        for attempt in range(max(1, how.tries))
        for (pair, flaw, first), answer in zip(questions, answers, strict=True)
        if attempt < len(answer.calls)
    ]
    cut = len(pairs) * len(chosen_flaws(how.flaws))
    counts = Counter(row["status"] for row in rows if row["status"] != "ok")
    counts.update(judgements=len(rows), retries=len(calls) - len(rows))
    return JudgeResult(
        flaw_table(rows[:cut]), flaw_table(rows[cut:]), pa.Table.from_pylist(calls, schema=CALLS), dict(counts)
    )


def judge_questions(pairs: Sequence[PassagePair], how: JudgeOptions, swap: float = 0.0) -> list[Question]:
    """Return what is asked: pair, flaw, and which text stands first; then once more for the pairs that are swapped.

    Args:
        pairs, how, swap: See `judge_pairs`.
    """
    chosen = how.wording.chosen(flaw.name for flaw in chosen_flaws(how.flaws))
    blind = PROTOCOLS[how.protocol].blind
    orders = [(pair, first_shown(how.seed, pair.pair_id) if blind else "pre") for pair in pairs]
    swap = swap if blind else 0.0
    again = [(p, turned(first)) for p, first in orders if seeded_uniform(how.seed, "swap", p.pair_id) < swap]
    return [(pair, flaw, first) for pair, first in [*orders, *again] for flaw in chosen]


def _read(question: Question, reply: Completion, protocol: FlawProtocol) -> tuple[tuple[int | None, str], str]:
    """Read the change, in the order before to after, and the quote."""
    pair, _, first = question
    answer, quote, status = parse_reply(reply, pair.shown(first), protocol)
    return (None if answer is None else unblinded(answer, first), quote), status


def _seed(seed: int, attempt: int, pair: PassagePair, flaw: Flaw, first: str) -> int:
    return int(seeded_uniform(seed, "judge", pair.pair_id, flaw.name, first, str(attempt)) * 2**31)
