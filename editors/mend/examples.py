"""What a MEND network is trained on: an edit, the same thing asked otherwise, and a text that must not change."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from seesaw_cf.base.errors import EditError
from seesaw_cf.base.types import Cloze


@dataclass(frozen=True, slots=True)
class TrainingEdit:
    """One training edit.

    Attributes:
        edit: What is edited in.
        outer: What the edited model must then answer: another phrasing, or the same one after another sentence.
        unrelated: A text on which next-token distributions must not move.
    """

    edit: Cloze
    outer: Cloze
    unrelated: str


def examples_from_texts(texts: Sequence[str], *, seed: int = 0) -> list[TrainingEdit]:
    """Make up edits: the end of a sentence is exchanged for the end of another one that follows the same word.

    "Ada was born in London." and "Lima lies in Peru." give "Ada was born in" -> "Peru". A sentence has two such ends at
    most. The outer prompt is the same after another sentence. What must not change is, every other time, a sentence
    that ends like the edited one (the same question about someone else, which an edit spoils most easily), else any
    sentence.

    Args:
        texts: Documents of one or more sentences.
        seed: For drawing ends and sentences.

    Raises:
        EditError: Fewer than two sentences share the word before their end.

    Deviates: Mitchell et al. sample the new ends from a language model (10 tokens); here they come from the texts.
    """
    rng = np.random.default_rng(seed)
    sentences = sorted({part.strip() for text in texts for part in re.split(r"(?<=[.!?])\s+", text) if part.strip()})
    ends = [cloze for sentence in sentences for cloze in _cut(sentence)]
    by_word: dict[str, list[str]] = {}
    for cloze in ends:
        by_word.setdefault(cloze.context.split()[-1], []).append(cloze.target)
    examples = []
    alike: dict[str, list[str]] = {}
    for cloze in ends:
        alike.setdefault(" ".join(cloze.context.split()[-2:]), []).append(f"{cloze.context} {cloze.target}.")
    for number, cloze in enumerate(ends):
        near = [text for text in alike[" ".join(cloze.context.split()[-2:])] if not text.startswith(cloze.context)]
        others = sorted({end for end in by_word[cloze.context.split()[-1]] if end != cloze.target})
        for turn, index in enumerate(rng.permutation(len(others))[:2].tolist()):
            pool = near if near and (number + turn) % 2 else sentences
            before = sentences[int(rng.integers(len(sentences)))]
            outer = Cloze(f"{before} {cloze.context}", others[index])
            examples.append(
                TrainingEdit(replace(cloze, target=others[index]), outer, pool[int(rng.integers(len(pool)))])
            )
    if not examples:
        raise EditError(
            f"{len(texts)} texts with {len(sentences)} sentences give no made-up edit: no two share the word before "
            "their end. Give more texts, or examples of your own."
        )
    return examples


def _cut(sentence: str) -> list[Cloze]:
    """Cut a sentence before its last one to three words, after a short word in lower case ("in", "of").

    Return [] where no such word is.
    """
    words = sentence.rstrip(".!?").split()
    places = range(max(3, len(words) - 3), len(words))
    cuts = [at for at in places if words[at - 1].islower() and len(words[at - 1]) <= 3]
    return [Cloze(" ".join(words[:at]), " ".join(words[at:])) for at in cuts[:1]]
