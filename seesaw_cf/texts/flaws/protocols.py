"""How a pair of texts is shown to raters of flaws, and how they answer: blind, or as SEESAW-CF published it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from seesaw_cf.texts.wording import OURS

_QUESTION = """\
Two texts are about {entity}. A language model wrote the first text. Then it was changed in one fact about this person,
and wrote the second. Compare them with regard to one flaw only.

Flaw: {title}. It is present where a text shows:
{definition}

Text before the edit:
\"\"\"
{one}
\"\"\"

Text after the edit:
\"\"\"
{two}
\"\"\"

Rate this flaw: -1 where it is more present in the text before the edit, 1 where it is more present in the text after
the edit, 0 where it is equally present in both, or in neither."""
_TASK = """\
A language model was changed in one fact about a person. You are shown pairs of texts about that person: the first
is from the model as it was, the second from the changed model. Some come twice; please rate each as if you saw it
for the first time.

For every flaw say in which text it is more present."""
_REPLY = """
Reply with two lines and nothing else:
Quote: the words that show the flaw, copied from the text, or "none"
"""
# The word must end its line or sentence: "Answer: A, B or equal" is the question repeated, not an answer.
_END = r"[*\"')\]]*(?=\s*$|\.|\s*\()"
_WORD = r"(?i:text\s+)?\b(A|B|(?i:equal|equally|same|neither))\b"
_NUMBER = r"([-\u2212+]?[01])\b"  # the sign is part of the answer, so what comes before it must not take a dash


@dataclass(frozen=True, slots=True)
class FlawProtocol:
    """How two texts are shown, and how answers about them are written.

    Attributes:
        blind: Texts come in random order, and nothing tells which one is from after the edit.
        titles: Names of the two texts as shown.
        task: Instructions for people.
        choices: Stored label -> words that people read.
        question: To a language model.
        form: How it answers.
        answer, bare: What an answer in a reply looks like, and a reply that is nothing else. Group 1 is its word.
        meanings: Word -> 1 = more in the second text shown, -1 = more in the first; other words are 0.
    """

    blind: bool
    titles: tuple[str, str]
    task: str
    choices: tuple[tuple[str, str], ...]
    question: str
    form: str
    answer: re.Pattern[str]
    bare: re.Pattern[str]
    meanings: Mapping[str, int]


BLIND = FlawProtocol(
    blind=True,
    titles=("Text A", "Text B"),
    task=OURS.task,
    choices=(("A", "more in text A"), ("equal", "the same, or in neither"), ("B", "more in text B")),
    question=OURS.judge,
    form=f"{_REPLY}Answer: A, B or equal",
    answer=re.compile(rf"(?i:answer)\W{{0,6}}(?i:is\W{{1,3}})?{_WORD}{_END}", re.MULTILINE),
    bare=re.compile(rf"\W*{_WORD}\W*"),
    meanings=MappingProxyType({"A": -1, "B": 1}),
)
# Source: SEESAW-CF, appendix F: both raters and GPT-3.5 knew the order, and answered -1, 0 or 1. The words are ours.
PUBLISHED = FlawProtocol(
    blind=False,
    titles=("Before the edit", "After the edit"),
    task=_TASK,
    choices=(
        ("A", "-1: more in the text before"),
        ("equal", "0: the same, or in neither"),
        ("B", "1: more in the text after"),
    ),
    question=_QUESTION,
    form=f"{_REPLY}Rating: -1, 0 or 1",
    answer=re.compile(rf"(?i:rating|answer)[\s:*=\"']{{0,6}}(?i:is[\s:*]{{1,3}})?{_NUMBER}{_END}", re.MULTILINE),
    bare=re.compile(rf"[\s*\"'(]*{_NUMBER}[\s*\"').]*"),
    meanings=MappingProxyType({"-1": -1, "\u22121": -1, "1": 1, "+1": 1}),
)
PROTOCOLS: Mapping[str, FlawProtocol] = MappingProxyType({"blind": BLIND, "published": PUBLISHED})
"""Name -> protocol, as `flaws judge` and `people export flaws` take it."""
