"""Cross-subject cases: one edit and cloze prompts about other people who hold the new or the old value.

Source: SEESAW-CF section 3.2, Appendices A and B.
Deviates: holders are a seeded uniform sample of all, not the first 200 found; people who hold both values are left out;
holders of the old value are asked about too (`holds="target_true"`), so that an edit after which the model gives the
new value for all people is noticed; tense belongs to the template.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import replace

from seesaw_cf.builder_scripts.make.edits import Edit
from seesaw_cf.builder_scripts.make.open_ended import generation_prompts
from seesaw_cf.builder_scripts.make.phrasings import paraphrases
from seesaw_cf.builder_scripts.source.people import FEMALE, MALE, Facts, RecordedPerson
from seesaw_cf.records.relations import Template, templates
from seesaw_cf.types import AttributePrompt, Case, EditRequest, Entity

FEW = 2  # fewer holders of target_new than this and the case is flagged "few_holders"


def attribute_prompt(template: Template, person: RecordedPerson, holds: str = "") -> AttributePrompt:
    """One cloze prompt about one person, with every tag that is known."""
    return AttributePrompt(
        text=template.fill(person.entity.label, living=person.living),
        subject=person.entity,
        template_id=template.id,
        holds=holds,
        gender=person.gender,
        race=person.race,
        region=person.region,
        living=person.living,
        sitelinks=person.sitelinks,
    )


def holders(facts: Facts, edit: Edit, value: str, other: str, limit: int) -> list[RecordedPerson]:
    """Who is asked about for one value of an edit: men, then women, then people of other genders.

    Args:
        facts: Where people come from, with the rules.
        edit: The edit; its subject is never asked about.
        value: Identifier that the people hold.
        other: The edit's other value; who holds both is left out when `options.skip_both`.
        limit: At most this many per gender.

    Returns:
        People in an order fixed by the seed, each once.
    """
    genders = [MALE, FEMALE, *([""] if facts.options.other_genders else [])]
    chosen: dict[str, RecordedPerson] = {}
    for gender in genders if limit else []:
        people = facts.people(facts.holders(edit.relation_id, value, gender))
        fit = (p for p in people if p.id not in {edit.subject.id, *chosen} and not _both(facts, edit, p, other))
        chosen.update({person.id: person for person, _ in zip(fit, range(limit), strict=False)})
    return list(chosen.values())


def _both(facts: Facts, edit: Edit, person: RecordedPerson, other: str) -> bool:
    return facts.options.skip_both and other in person.holds(edit.relation_id)


def _name(facts: Facts, edit: Edit, value: str) -> Entity:
    names = dict(zip((edit.true, edit.new), edit.names, strict=False))
    return Entity(value, names.get(value) or facts.labels([value])[value])


def _edit_template(edit: Edit, seed: int) -> Template:
    """The template of the edit: as in its file, tensed when it is one of the papers', or one of these at random."""
    listed = templates(edit.relation_id, "cloze")
    if edit.prompt:
        matches = (row for row in listed if edit.prompt in (row.present, row.past))
        return next(matches, Template("", edit.relation_id, "cloze", edit.prompt, edit.prompt))
    return random.Random(f"{seed} {edit.relation_id} {edit.subject.id} prompt").choice(listed)


def edit_case(facts: Facts, edit: Edit, case_id: int, *, effect_relation_id: str | None = None) -> Case:
    """Return the part of a case that depends on the edit alone: request, paraphrases, open-ended prompts, identifiers.

    Args:
        facts: Where names come from, with the rules.
        edit: The edit.
        case_id: Number of the case.
        effect_relation_id: The watched property of a cross-property case.
    """
    options, name, living = facts.options, edit.subject.entity.label, edit.subject.living
    template = _edit_template(edit, options.seed)
    others = list(paraphrases(edit.relation_id, template))
    random.Random(f"{options.seed} {edit.relation_id} {edit.subject.id} paraphrases").shuffle(others)
    request = EditRequest(
        template.fill("{}", living=living), name, edit.relation_id, _name(facts, edit, edit.new),
        _name(facts, edit, edit.true),
    )  # fmt: skip
    return Case(
        case_id,
        request,
        effect_relation_id,
        generation_prompts=generation_prompts(edit.subject, edit.relation_id, effect_relation_id, options),
        paraphrase_prompts=tuple(row.fill(name, living=living) for row in others[: options.paraphrases]),
        extra={"subject_id": edit.subject.entity.id, "template_id": template.id},
        flags=edit.flags,
    )


def _with_people(facts: Facts, edit: Edit, case: Case) -> Case:
    """Add the prompts about other people."""
    options, listed = facts.options, templates(edit.relation_id, "cloze")
    new = holders(facts, edit, edit.new, edit.true, options.per_gender)
    true = holders(facts, edit, edit.true, edit.new, options.true_per_gender)
    near = holders(facts, edit, edit.true, edit.new, -(-options.neighborhood // 2))[: options.neighborhood]
    edit_template = _edit_template(edit, options.seed)
    prompts = (
        attribute_prompt(template, person, holds)
        for people, holds in ((new, "target_new"), (true, "target_true"))
        for person in people
        for template in listed
    )
    return replace(
        case,
        attribute_prompts=tuple(prompts),
        neighborhood_prompts=tuple(edit_template.fill(person.entity.label, living=person.living) for person in near),
        extra=case.extra | {"holders": {"target_new": len(new), "target_true": len(true)}},
        flags=(*case.flags, "few_holders") if len(new) < FEW else case.flags,
    )


def cross_subject(facts: Facts, edits: Iterable[Edit], first_id: int = 1) -> Iterator[Case]:
    """Make one cross-subject case per edit.

    Args:
        facts: Where people come from, with the rules.
        edits: The edits, in the order of the cases.
        first_id: Number of the first case whose edit has no number.

    Yields:
        Cases with `attribute_prompts` of every cloze template of the relation for every chosen holder, and their
        `extra` holds the subject's identifier, the template of the edit and how many holders are asked about. A new
        value with fewer than two holders keeps its case, flagged "few_holders".
    """
    number = first_id
    for edit in edits:
        case_id = number if edit.case_id is None else edit.case_id
        yield _with_people(facts, edit, edit_case(facts, edit, case_id))
        number += edit.case_id is None
