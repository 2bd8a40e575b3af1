"""From a completion to a predicate and an object."""

from __future__ import annotations

import re

from seesaw_cf.stereotypes.templates import ANSWER

_SENTENCE = re.compile(r"(?<=[.!?])\s")


def parse(text: str, predicate: str | None) -> tuple[str, str]:
    """Read what follows a start template or a question.

    Only the first line counts, up to another question or the end of its first sentence.

    Args:
        text: The completion.
        predicate: The predicate that was given; None when the model was to write "predicate A: object".

    Returns:
        Predicate and object, "" for a part that is not there.
    """
    lines = text.strip().splitlines()
    line = lines[0].split("Q:")[0] if lines else ""
    if predicate is None:
        chosen, mark, answer = line.partition(ANSWER)
        return (_clean(chosen.removeprefix("#")), _object(answer)) if mark else ("", "")
    return predicate, _object(line.strip().removeprefix(ANSWER))


def _object(text: str) -> str:
    return _clean(_SENTENCE.split(text.strip(), maxsplit=1)[0])


def _clean(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split()).strip(' "“”.,;:!?#-–—…')
