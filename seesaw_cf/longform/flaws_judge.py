"""A language model as judge of flaws in pairs of texts: blind, in an order drawn by lot, replies kept as they came."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from seesaw_cf.generation.types import Ask, Completion, Generator, Sampling
from seesaw_cf.longform.flaws import Flaw, chosen_flaws
from seesaw_cf.longform.pairs import Pair, coin, first_shown, flaw_row, flaw_table, unblinded
from seesaw_cf.longform.wording import OURS, Wording

__all__ = ["CALLS", "JUDGE_SAMPLING", "Judged", "judge_pairs", "judge_prompt", "parse_reply"]

# temperature 0: a judge that answers differently each time measures nothing by it.
JUDGE_SAMPLING = Sampling(max_new_tokens=160, temperature=0.0)

# One row per request to the model, in the order made.
CALLS: pa.Schema = pa.schema(
    [
        ("pair_id", pa.string()),
        ("flaw", pa.string()),
        ("first", pa.string()),
        ("attempt", pa.int32()),
        ("rater", pa.string()),
        ("prompt", pa.string()),
        ("temperature", pa.float64()),
        ("seed", pa.int64()),
        ("reply", pa.string()),
        ("status", pa.string()),
        ("prompt_tokens", pa.int32()),
        ("new_tokens", pa.int32()),
    ]
)
_BLOCK = 64
"""Questions handed over at once."""
# How to answer: read by `parse_reply`, so the same whatever the wording of the question.
_FORM = """
Reply with two lines and nothing else:
Quote: the words that show the flaw, copied from the text, or "none"
Answer: A, B or equal"""
# The word must end its line or sentence: "Answer: A, B or equal" is the question repeated, not an answer.
_WORD = r"(?i:text\s+)?\b(A|B|(?i:equal|equally|same|neither))\b"
_ANSWER = re.compile(rf"(?i:answer)\W{{0,6}}(?i:is\W{{1,3}})?{_WORD}[*\"')\]]*(?=\s*$|\.|\s*\()", re.MULTILINE)
_BARE = re.compile(rf"\W*{_WORD}\W*")
_QUOTE = re.compile(r"^\W*quote\W*?:\s*(.+)$", re.IGNORECASE | re.MULTILINE)
_MEANS = {"A": -1, "B": 1}
_REFUSAL = re.compile(r"\b(?:i(?:'m| am) sorry|i (?:can(?:no|')t|am (?:un|not )able)|as an ai)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Judged:
    """What a judge said.

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


def judge_prompt(pair: Pair, flaw: Flaw, first: str, wording: Wording = OURS) -> str:
    """The question about one flaw; nothing in it tells which text is from the edited model."""
    one, two = pair.shown(first)
    definition = "\n".join(f"- {line}" for line in flaw.model)
    asked = wording.judge.format(entity=pair.entity, title=flaw.title, definition=definition, one=one, two=two)
    return asked.rstrip() + _FORM


def parse_reply(completion: Completion, texts: tuple[str, str]) -> tuple[int | None, str, str]:
    """Reads a judge's reply.

    Args:
        completion: What the model wrote.
        texts: The texts as shown; a quote must be in one of them.

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
    bare = _BARE.fullmatch(reply)
    found = {_MEANS.get(word, 0) for word in ([bare[1]] if bare else _ANSWER.findall(reply))}
    if len(found) > 1:
        return None, "", "two answers"
    if not found:
        return None, "", "refusal" if _REFUSAL.search(reply) else "no answer"
    quoted = _QUOTE.search(reply)
    words = quoted[1].strip().strip("\"'\u201c\u201d") if quoted else ""
    return found.pop(), words if words and any(words in text for text in texts) else "", "ok"


def judge_pairs(
    pairs: Sequence[Pair],
    generator: Generator,
    *,
    flaws: Sequence[str] = (),
    seed: int = 0,
    tries: int = 3,
    swap: float = 0.0,
    sampling: Sampling = JUDGE_SAMPLING,
    rater: str = "",
    wording: Wording = OURS,
) -> Judged:
    """Asks a language model about every flaw of every pair.

    Put a `CachedGenerator` in front to make a long job resumable: the same question is then asked once. Questions are
    plain prompts: give the generator `chat=True` for models that were trained to answer.

    Args:
        pairs: The texts.
        generator: The judge.
        flaws: Names; all seven when empty.
        seed: Of the order of texts and of the model's draws.
        tries: Times a question is asked at the most while its reply cannot be read. At temperature 0 a local model
            repeats itself: then 1 is enough.
        swap: Share of pairs, drawn by lot, that are judged again with the texts in the other order (`sign_check`).
        sampling: How the judge writes.
        rater: Name in the table; that of the generator when empty.
        wording: Whose words the question and the definitions are.

    Returns:
        Tables and counts; a question without an answer is a row with its status.

    Raises:
        UnknownNameError: Unknown flaw.

    Source: SEESAW-CF appendix I (GPT-3.5 as judge) and F (definitions).
    Deviates: one flaw per question; blind, in random order, "A" and "B" rather than -1 and 1, because the released
        labels look as if the sign was misread.
    """
    chosen, name = wording.chosen(flaw.name for flaw in chosen_flaws(flaws)), rater or generator.name
    orders = [(pair, first_shown(seed, pair.pair_id)) for pair in pairs]
    again = [(p, _other(first)) for p, first in orders if coin(seed, "swap", p.pair_id) < swap]
    questions = [(pair, flaw, first) for pair, first in [*orders, *again] for flaw in chosen]
    rows: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    for start in range(0, len(questions), _BLOCK):
        asked = [(*about, judge_prompt(*about, wording)) for about in questions[start : start + _BLOCK]]
        done, made = _ask(asked, generator, seed, tries, sampling, name)
        rows, calls = rows + done, calls + made
    cut = len(orders) * len(chosen)
    counts = Counter(row["status"] for row in rows if row["status"] != "ok")
    counts.update(judgements=len(rows), retries=sum(call["attempt"] > 1 for call in calls))
    return Judged(
        flaw_table(rows[:cut]), flaw_table(rows[cut:]), pa.Table.from_pylist(calls, schema=CALLS), dict(counts)
    )


def _other(first: str) -> str:
    return "post" if first == "pre" else "pre"


def _ask(
    questions: Sequence[tuple[Pair, Flaw, str, str]],
    generator: Generator,
    seed: int,
    tries: int,
    sampling: Sampling,
    rater: str,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows of one block, and every call made for it."""
    rows: dict[int, dict[str, Any]] = {}
    calls: list[dict[str, Any]] = []
    waiting = list(range(len(questions)))
    for attempt in range(1, max(1, tries) + 1):
        asks = [Ask(questions[n][3], _seed(seed, attempt, *questions[n][:3])) for n in waiting]
        for n, ask, completion in zip(waiting, asks, generator.generate(asks, sampling), strict=True):
            pair, flaw, first, _ = questions[n]
            answer, quote, status = parse_reply(completion, pair.shown(first))
            change = None if answer is None else unblinded(answer, first)
            said = {"change": change, "quote": quote, "reply": completion.text, "status": status}
            rows[n] = flaw_row(pair, flaw.name, rater, first, **said)
            calls.append(_call(rows[n], ask, completion, attempt, sampling))
        waiting = [n for n in waiting if rows[n]["status"] != "ok"]
        if not waiting:
            break
    return [rows[n] for n in range(len(questions))], calls


def _seed(seed: int, attempt: int, pair: Pair, flaw: Flaw, first: str) -> int:
    return int(coin(seed, "judge", pair.pair_id, flaw.name, first, str(attempt)) * 2**31)


def _call(row: dict[str, Any], ask: Ask, completion: Completion, attempt: int, sampling: Sampling) -> dict[str, Any]:
    same = {name: row[name] for name in ("pair_id", "flaw", "first", "rater", "reply", "status")}
    tokens = {"prompt_tokens": completion.prompt_tokens, "new_tokens": completion.new_tokens}
    return {
        **same,
        **tokens,
        "attempt": attempt,
        "prompt": ask.prompt,
        "temperature": sampling.temperature,
        "seed": ask.seed,
    }
