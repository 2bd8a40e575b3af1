"""Answers that models wrote in an audit: does a text give a right answer, in any wording? A judge says."""

from __future__ import annotations

import pyarrow as pa

from seesaw_cf.effects.free_answers import JUDGED
from seesaw_cf.effects.instruments import DEFAULT, Instruments
from seesaw_cf.texts.judge import WORD, Instrument, Parsed, TextQuestion

_SAID = {"yes": True, "no": False}


def answer_questions(written: pa.Table, words: Instruments = DEFAULT) -> list[TextQuestion]:
    """Return a question about each text of a question once; not whether it was written before or after an edit.

    Args:
        written: Rows of `seesaw_cf.effects.free_answers.ANSWERS`; those without a text are left out.
        words: What judges read.
    """
    asked: dict[tuple[str, tuple[str, ...], str], str] = {}
    for row in written.select(["prompt", "right", "text", "status"]).to_pylist():
        if row["status"] == "ok" and row["text"].strip():
            key = row["prompt"], tuple(row["right"]), row["text"]
            names = {"prompt": row["prompt"], "answers": "; ".join(row["right"]), "reply": row["text"].strip()}
            asked.setdefault(key, words.instructions["answers_judge"].format(**names))
    return [
        TextQuestion(key, dict(zip(("prompt", "right", "text"), key)), (key[0], key[2]), "", question, (key[2],))
        for key, question in asked.items()
    ]


def _parse(_: TextQuestion, reply: str) -> Parsed:
    """Read the first word of a reply."""
    word = next(iter(WORD.findall(reply.casefold())), "")
    return ({"gives_it": _SAID[word]}, "ok") if word in _SAID else ({}, "neither yes nor no")


ANSWERS = Instrument("answers", JUDGED, _parse, max_new_tokens=8)
"""Answers as an instrument."""
