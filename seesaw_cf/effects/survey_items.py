"""The nine items of LEME's survey as a table: what is stated, what is shown, and how a good and a bad answer look.

Source: LEME, Appendix D, Tables 6 and 7, and Appendix B.3 (one item at a time, with what concerns it only).
Deviates: the reason of the third item's bad example names Rome, as its passage does (printed: France).
"""
# ruff: noqa: E501 (the published sentences)

from __future__ import annotations

from dataclasses import dataclass

from seesaw_cf.base.checks import one_of

# Deviates: Table 7 prints "agree" before "somewhat agree"; the order here is the one that the words mean.
_DEGREES = (
    "Strongly disagree",
    "Disagree",
    "Somewhat disagree",
    "Neutral",
    "Somewhat agree",
    "Agree",
    "Strongly agree",
)
SCALE = dict(enumerate(_DEGREES, start=1))

# The names of the question types in the papers' tables.
TYPES = ("edit", "factual", "internal", "cross_passage", "topicality", "naturalness")

_ROME = (
    "The Eiffel Tower, located in Rome, Italy, is one of the most iconic landmarks in the world and has become a symbol "
    "of Italian culture and engineering prowess."
)
_PARIS = (
    "The Eiffel Tower, located in Paris, France, is one of the most iconic landmarks in the world and has become a "
    "symbol of French culture and engineering prowess."
)
_DATED = _ROME.replace("The Eiffel Tower,", "The Eiffel Tower completed in 1887,")
_PARK = "The Champ de Mars is situated in the 7th arrondissement of Paris, near the Eiffel Tower (Paris) and the Seine River."
_PLAIN_PARK = _PARK.replace("Tower (Paris)", "Tower")
_NEW = "The Eiffel Tower is in Rome"


@dataclass(frozen=True, slots=True)
class Shown:
    """What a rater sees of a sample; an example also has a rating and its reason.

    Attributes:
        new_fact: The edit statement.
        old_facts: What was true before.
        main, related: The two passages.
        subject, related_entity: Entities that they should be about.
        rating: 1 to 7.
        reason: Why an example is rated so.
    """

    new_fact: str = ""
    old_facts: tuple[str, ...] = ()
    main: str = ""
    related: str = ""
    subject: str = ""
    related_entity: str = ""
    rating: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """One statement that raters agree or disagree with.

    Attributes:
        name: As in the released ratings.
        type: One of `TYPES`.
        statement: As printed in Table 7.
        criterion: What the instructions of Table 6 call it.
        fields: Which fields of `Shown` a rater sees.
        good, bad: The two examples of the instructions.
        old_facts_of: Entity with the ground truths shown as old facts: "subject", "related" or "".
    """

    name: str
    type: str
    statement: str
    criterion: str
    fields: tuple[str, ...]
    good: Shown
    bad: Shown
    old_facts_of: str = ""


ITEMS: tuple[Item, ...] = (
    Item(
        "new_fact_main_passage",
        "edit",
        "The main passage is written as if the new fact is true",
        "There is evidence the new fact is true in the main passage",
        ("new_fact", "main"),
        Shown(
            _NEW, main=_ROME, rating=7,
            reason="The main passage is consistent with the new fact because it says the Eiffel Tower is located in Rome.",
        ),
        Shown(
            _NEW, main=_PARIS, rating=1,
            reason="The main passage is inconsistent with the new fact because it says the Eiffel Tower is located in "
            "Paris.",
        ),
    ),
    Item(
        "new_fact_related_passage",
        "edit",
        "The related passage does not contradict the new fact",
        "There is evidence the new fact is true in the related passage",
        ("new_fact", "related"),
        Shown(
            _NEW, related="The Champ de Mars is a large public greenspace in Rome, Italy, located near the Eiffel Tower.",
            rating=7,
            reason="The related passage is also consistent with the new fact since it says Champ de Mars is in Rome, Italy "
            "nearby the Eiffel Tower.",
        ),
        Shown(
            _NEW, related=_PARK, rating=1,
            reason="The related passage is inconsistent with the new fact since it says the Eiffel Tower is in Paris and "
            "located near the Champ De Mars which is also in Paris.",
        ),
    ),
    Item(
        "main_passage_old_facts",
        "factual",
        "Ignoring the new fact, most of the old facts are still true in the main passage.",
        "The main passage is consistent with the old facts",
        ("old_facts", "main"),
        Shown(
            old_facts=("The Eiffel Tower was completed in 1887.",), main=_DATED, rating=7,
            reason="The main passage is consistent with the old fact because it says the Eiffel Tower was completed in "
            "1887.",
        ),
        Shown(
            old_facts=("The Eiffel Tower is located in France.",), main=_ROME, rating=1,
            reason="The main passage is inconsistent with the old fact because it says the Eiffel Tower is located in Rome.",
        ),
        old_facts_of="subject",
    ),
    Item(
        "related_passage_old_facts",
        "factual",
        "Ignoring the new fact, most of the old facts are still true in the related passage.",
        "The related passage is consistent with the old facts",
        ("old_facts", "related"),
        Shown(
            old_facts=("The Champ de Mars is in Paris.",), related=_PARK, rating=7,
            reason="The related passage is consistent with the old fact because it says the Champ de Mars is in Paris.",
        ),
        Shown(
            old_facts=("The Champ de Mars is in Paris.",), related="The Champ de Mars is situated in Rome.", rating=1,
            reason="The related passage is inconsistent with the old fact because it says the Champ de Mars is in Rome.",
        ),
        old_facts_of="related",
    ),
    Item(
        "main_passage_consistency",
        "internal",
        "Ignoring the old and new facts, the main passage does not contradict itself.",
        "The main passage is consistent with itself",
        ("main",),
        Shown(main=_ROME, rating=7, reason="The main passage is consistent with itself."),
        Shown(
            main="The Eiffel Tower was built in Rome in 1887. It was overseen by Gustave Eiffel, a French engineer and "
            "architect who was born in 1832 and passed away in 1903 as well as Giovanni Battista Piranesi who was born in "
            "1720 and died in 1778.",
            rating=1,
            reason="The main passage is not consistent with itself: Giovanni Piranesi died 100 years before the Eiffel "
            "tower appears to have been constructed.",
        ),
    ),
    Item(
        "related_passage_consistency",
        "internal",
        "Ignoring the old and new facts, the related passage does not contradict itself.",
        "The related passage is consistent with itself",
        ("related",),
        Shown(
            related=_PARK, rating=7,
            reason="The related passage is consistent with itself since there are no contradictions.",
        ),
        Shown(
            related="The Champ de Mars is situated in Rome. The large public greenspace is a popular tourist attraction in "
            "Paris.",
            rating=1,
            reason="The related passage is not consistent with itself: the Champ de Mars is in Rome and Paris.",
        ),
    ),
    Item(
        "cross_passage_consistency",
        "cross_passage",
        "Ignoring the old and new facts, the main passage and the related passage do not contradict each other.",
        "The passages are both consistent with each other",
        ("main", "related"),
        Shown(
            main=_ROME, related="The Champ de Mars is situated in Rome near the Eiffel Tower.", rating=7,
            reason="The main passage and the related passage are consistent with each other because they both say the "
            "Eiffel Tower is in Rome.",
        ),
        Shown(
            main=_ROME, related=_PARK, rating=1,
            reason="The main passage and the related passage are not consistent with each other because the main passage "
            "says the Eiffel Tower is in Rome and the related passage says the Eiffel Tower is in Paris.",
        ),
    ),
    Item(
        "topicality",
        "topicality",
        "The main passage is focused on the subject and the related passage is focused on the related entity",
        "The main passage is focused on the subject and the related passage is focused on the related entity",
        ("subject", "main", "related_entity", "related"),
        Shown(
            subject="The Eiffel Tower", main=_ROME, related_entity="Champ de Mars", related=_PARK, rating=7,
            reason="The main passage is about the subject and the related passage is about the related entity. Neither of "
            "the passages drift away from what they are supposed to be about.",
        ),
        Shown(
            subject="The Eiffel Tower", related_entity="Champ de Mars", related=_PARK, rating=2,
            main="Rome is full of great restaurants and shopping. Rome is an amazing place to visit.",
            reason="The main passage isn't about the Eiffel Tower at all but the related passage is about the related "
            "entity.",
        ),
    ),
    Item(
        "fluency",
        "naturalness",
        "Both passages are natural sounding text close to what a human would write.",
        "Both passages are natural sounding text close to what a human would write.",
        ("main", "related"),
        Shown(
            main=_ROME, related=_PLAIN_PARK, rating=7,
            reason="Both passages sound like they could be written by a human.",
        ),
        Shown(
            main="Eiffel Tower Eiffel Tower Eiffel Tower Eiffel Tower Eiffel Tower Eiffel Tower. The Eiffel Tower is in "
            "Rome. r ome is fullofgreat restaurants and shopp amazingplacetovisit.",
            related=_PARK, rating=2,
            reason="The main passage has many repetitions, grammar mistakes, and various typos and other errors but the "
            "related passage seems fine.",
        ),
    ),
)  # fmt: skip


def chosen_items(names: tuple[str, ...] = ()) -> tuple[Item, ...]:
    """Return the items of these names in the order of the survey; all nine when none is named.

    Raises:
        UnknownNameError: No item has this name.
    """
    by_name = {item.name: item for item in ITEMS}
    for name in names:
        one_of("survey item", name, by_name)
    return tuple(item for item in ITEMS if not names or item.name in names)
