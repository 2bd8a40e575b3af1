"""Words of a report about changed models of which no edited fact is named: facts were asked about, none was edited."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache

# Words of a report about edits -> words where nothing was edited; of several that fit the longest is taken.
_PHRASES = {
    "Audit of edits to": "Audit of changes to",
    "Side effects of editing": "Side effects of changing",
    "edits are local": "the change is local",
    "share of edits after which half of the others are still right": "share of people with half of their facts right",
    "edits are made one at a time, so that cases are independent edits": "facts are asked about one by one",
    "Other facts about the edited person": "Other facts about the same people",
    "other facts about the edited person": "other facts about the same people",
    "change of confidence in it, the papers' D_d": "change of confidence, the papers' D_d",
    "edited/asked": "fact/asked",
    "Of each editor": "Of each changed model",
    "An edit": "A fact",
    "an edit": "a fact",
    "a fact that was edited": "a fact that was asked about",
    "the fact that was edited": "the fact that was asked about",
    "after control edits": "of controls",
    "control edits": "controls",
    "control edit": "control",
    "contrasts of edits": "contrasts",
    "After edits by": "Of",
    "after edits by": "of",
    "edited models": "changed models",
    "edited person": "person asked about",
    "edited people": "people asked about",
    "edited properties": "properties asked about",
    "edited property": "property asked about",
    "edited fact known": "the record's own fact known",
    "edited facts": "facts asked about",
    "edited fact": "fact asked about",
    "edited with": "changed models",
    "edited:": "asked about:",
    "who edited the model": "the changed model",
    "any other edit of that size": "any other change of that size",
    "before the edits": "before the change",
    "before any edit": "before the change",
    "before the edit": "before the change",
    "after the edits": "after the change",
    "after the edit": "after the change",
    "effect of the edit": "effect of the change",
    "the edit is": "the change is",
    "the edit left": "the change left",
    "the edit moved": "the change moved",
    "D_d of the edit": "D_d of the change",
    "What edits did": "What the change did",
    "Worst edits": "Facts that moved most",
    "The edits that did the largest damage": "The facts with the largest damage",
    "Some edit is always the worst": "Some fact is always the worst",
    "Every edit": "Every fact asked about",
    "Editors": "Changed models",
    "editors": "changed models",
    "editor": "changed model",
    "edits": "facts",
    "edit": "fact",
    # Levels: a record has two answers, each of them right about some of the people asked about.
    "Old answer": "Right against wrong",
    "New answer": "Right answer",
    "People who hold the old answer": "Right answers against wrong ones",
    "people who hold the old answer": "right answers against wrong ones",
    "People who hold the new answer": "Confidence in right answers",
    "people who hold the new answer": "confidence in right answers",
    "what the new answer, false about them, gained on the right one": "what a wrong answer gained on the right one",
    "also gives the new answer for people who hold the old one": "gives a wrong answer for people it was right about",
    "loses much of its confidence about people who hold the old answer": "loses much of the lead of right answers",
    "is less sure about people who hold the old answer": "is less sure of right answers against wrong ones",
    "loses much of its confidence about people who hold the new answer": "loses much confidence in right answers",
    "is less sure about people who hold the new answer": "is less sure of right answers",
    "of confidence about people who hold the old answer": "of the lead of right answers over wrong ones",
    "of its confidence about people who hold the old answer": "of the lead of right answers over wrong ones",
    "of confidence about people who hold the new answer": "of confidence in right answers",
    "of its confidence about people who hold the new answer": "of its confidence in right answers",
    "holders of the old answer turned": "right answers turned wrong",
    "change for holders of the new answer": "change of confidence",
    "holders of the old answer": "people for whom the first answer is right",
    "holders of the true target": "people for whom the first answer is right",
    "holders of the new target": "people for whom the second answer is right",
    "who hold the old answer": "for whom the first answer is right",
    "who hold the new answer": "for whom the second answer is right",
    "that hold the new target": "for whom the second answer is right",
    "who hold the new target": "for whom the second answer is right",
    "who hold the true (old) target": "for whom the first answer is right",
    "hold the new target": "the second answer is right",
    "hold the true target": "the first answer is right",
    "new target": "second answer",
    "true target": "first answer",
    "new answer": "second answer",
    "old answer": "first answer",
}


def about_changes(text: str, names: Collection[str] = ()) -> str:
    """Return a sentence about edits in the words for a change without edited facts.

    Args:
        text: A sentence of the package.
        names: Names of the user's that stay as they are.
    """
    known = {name: name for name in names}
    return _pattern(frozenset(names)).sub(lambda found: known.get(found[0], _PHRASES.get(found[0], "")), text)


@cache
def _pattern(names: Collection[str]) -> re.Pattern[str]:
    words = sorted({*names, *_PHRASES}, key=len, reverse=True)
    return re.compile("|".join(rf"(?<!\w){re.escape(word)}(?!\w)" for word in words))
