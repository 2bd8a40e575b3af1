"""Cross-property cases: one edit and the question whether another property of the same person still gets its answer.

Source: SEESAW-CF section 3.2, Table 7 (the eight pairs), Appendix A (property templates and "X is").
Deviates: candidates and gold answers are in the data; prompts are tensed; both prompts have names (template ids), where
the reference scored whichever came first out of a set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from seesaw_cf.base.types import Case
from seesaw_cf.builder_scripts.make.cases import attribute_prompt, edit_case
from seesaw_cf.builder_scripts.make.edits import Edit, attribute_set
from seesaw_cf.builder_scripts.source.people import Facts, RecordedPerson
from seesaw_cf.records.relations import FREE, PAIRS, templates


def gold_answers(subject: RecordedPerson, effect: str, names: Mapping[str, str]) -> tuple[str, ...]:
    """Return the candidates that are recorded for a person; `names`: identifier of every candidate -> its name."""
    return tuple(dict.fromkeys(names[value] for value in subject.holds(effect) if value in names))


def asked_about(case: Case, effect: str, subject: RecordedPerson, names: Mapping[str, str]) -> Case:
    """Return a case with both prompts about another property of its subject, the candidates and those that are true.

    Args:
        case: The edit.
        effect: The property that is watched.
        subject: Person to edit.
        names: Identifier of every candidate -> its name.
    """
    rows = (*templates(effect, "property"), FREE)
    return replace(
        case,
        effect_prompts=tuple(attribute_prompt(row, subject) for row in rows),
        candidates=tuple(dict.fromkeys(names.values())),
        gold=gold_answers(subject, effect, names),
    )


def _pair(facts: Facts, edits: Sequence[Edit], effect: str, first_id: int) -> Iterator[Case]:
    candidates = attribute_set(facts, effect)
    names = facts.labels(candidates)
    number = first_id
    for edit in edits:
        if not gold_answers(edit.subject, effect, names) or number - first_id == facts.options.per_pair:
            continue
        case = edit_case(facts, edit, number, effect_relation_id=effect)
        yield asked_about(case, effect, edit.subject, names)
        number += 1


def cross_property(facts: Facts, edits: Mapping[str, Sequence[Edit]], first_id: int = 1) -> Iterator[Case]:
    """Make the cases of the eight pairs out of the edits that cross-subject cases use too.

    Args:
        facts: Where people and names come from, with the rules.
        edits: Relation -> its edits.
        first_id: Number of the first case.

    Yields:
        At most `options.per_pair` cases for each pair of Table 7, in its order. `candidates` are the names of every
        value in the effect property's attribute set that a person in the source holds; `gold` are those that are
        recorded for the edit's subject. Edits of subjects without a gold answer make no case.
    """
    for edited, effect in PAIRS:
        for case in _pair(facts, edits[edited], effect, first_id):
            yield case
            first_id = case.case_id + 1
