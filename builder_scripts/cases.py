"""Cases: one edit, and prompts about other people or about another property of the edited person.

Source: SEESAW-CF section 3.2, Appendices A and B.
Deviates: holders are a seeded uniform sample of all, not the first 200 found; people who hold both values are left out;
holders of the old value are asked about too (`holds="target_true"`), so that an edit after which the model gives the
new value for all people is noticed; tense belongs to the template. Cross-property (Table 7, Appendix A): candidates and
gold answers are in the data; both prompts have names (template ids), where the reference scored whichever came first
out of a set.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from seesaw_cf.base.types import AttributePrompt, Case, EditRequest, Entity
from seesaw_cf.builder_scripts import BuildOptions
from seesaw_cf.builder_scripts.edits import Edit, attribute_set
from seesaw_cf.builder_scripts.facts import Facts
from seesaw_cf.builder_scripts.sparql import RecordedPerson, tags_of
from seesaw_cf.records.relations import FREE, PAIRS, Template, templates

FEW = 2  # fewer holders of target_new than this and the case is flagged "few_holders"
# Other ways to state an edit, for relations with one sentence in the papers' templates: (relation, present, past).
_ROWS = (
    ("P21", "The gender of {} is", "The gender of {} was"),
    ("P21", "{}'s registered gender is", "{}'s registered gender was"),
    ("P21", "{} is recorded as", "{} was recorded as"),
    ("P27", "The country of citizenship of {} is", "The country of citizenship of {} was"),
    ("P27", "{}'s country of citizenship is", "{}'s country of citizenship was"),
    ("P27", "{} holds citizenship of", "{} held citizenship of"),
    ("P19", "The birthplace of {} is", "The birthplace of {} was"),
    ("P19", "{}'s place of birth is", "{}'s place of birth was"),
    ("P19", "{} came into the world in", "{} came into the world in"),
    ("P103", "{}'s mother tongue is", "{}'s mother tongue was"),
    ("P103", "{}'s native language is", "{}'s native language was"),
)
_OWN = [Template(f"{row[0]}-paraphrase-{n:02d}", row[0], "cloze", *row[1:]) for n, row in enumerate(_ROWS, start=1)]


def generation_prompts(
    subject: RecordedPerson, relation_id: str, effect_relation_id: str | None, options: BuildOptions
) -> tuple[str, ...]:
    """Return the open-ended prompts of one edit: the guided ones, then the free one ("X is") last.

    Args:
        subject: Person to edit.
        relation_id: The edited property.
        effect_relation_id: The watched property of a cross-property case, else None.
        options: How often each is listed, and whether edits of a single property have the free one.
    """
    own, name = options.templates, subject.entity.label
    rows = templates(effect_relation_id or relation_id, "property" if effect_relation_id else "open", own)
    if options.always_free or not any(row.use == "open" for row in rows):
        rows = (*rows, *_free(own))
    return tuple(row.fill(name, living=subject.living) for row in rows for _ in range(options.open_repeats))


def _free(own: Sequence[Template]) -> tuple[Template, ...]:
    """Return the free description ("X is") of a list of templates, if it has one; of an empty list the papers'."""
    return tuple(row for row in own or (FREE,) if not row.relation_id)


def paraphrases(relation_id: str, statement: Template, listed: Sequence[Template] = ()) -> tuple[Template, ...]:
    """Return ways to state a fact of a relation, other than `statement`, the template of the edit itself.

    The other cloze and property templates of `listed`; after the papers', which are English, our own.
    """
    others = {*templates(relation_id, "cloze", listed), *templates(relation_id, "property", listed)} - {statement}
    own = (row for row in _OWN if row.relation_id == relation_id and not listed)
    return (*sorted(others, key=lambda row: row.id), *own)


def attribute_prompt(template: Template, person: RecordedPerson, holds: str = "") -> AttributePrompt:
    """Make a cloze prompt about one person, with every tag that is known."""
    text = template.fill(person.entity.label, living=person.living)
    return AttributePrompt(text, person.entity, template.id, holds, **tags_of(person))


def tested(case: Case) -> Iterator[AttributePrompt]:
    """Yield the prompts of a case that are about people and carry tags."""
    yield from (*case.attribute_prompts, *case.effect_prompts)


def holders(facts: Facts, edit: Edit, value: str, other: str, limit: int) -> list[RecordedPerson]:
    """Return who is asked about for one value of an edit: men, then women, then people of other genders.

    Args:
        facts: Where people come from, with the rules.
        edit: The edit; its subject is never asked about.
        value: Identifier that the people hold.
        other: The edit's other value; who holds both is left out when `options.skip_both`.
        limit: At most this many per gender.

    Returns:
        People in an order fixed by the seed, each once.
    """
    options, relation_id = facts.options, edit.relation_id
    chosen: dict[str, RecordedPerson] = {}
    for gender in facts.genders if limit else ():
        people = facts.people(facts.holders(relation_id, value, gender))
        left_out = {edit.subject.id, *chosen}
        fit = [p for p in people if p.id not in left_out and not (options.skip_both and other in p.holds(relation_id))]
        chosen |= {person.id: person for person in fit[:limit]}
    return list(chosen.values())


def _name(facts: Facts, edit: Edit, value: str) -> Entity:
    names = dict(zip((edit.true, edit.new), edit.names, strict=False))
    return Entity(value, names.get(value) or facts.labels([value])[value])


def _edit_template(edit: Edit, options: BuildOptions) -> Template:
    """Return the edit's template: as in its file, tensed when it is one of the papers', or one of these at random."""
    listed = templates(edit.relation_id, "cloze", options.templates)
    if edit.prompt:
        matches = (row for row in listed if edit.prompt in (row.present, row.past))
        return next(matches, Template("", edit.relation_id, "cloze", edit.prompt, edit.prompt))
    return random.Random(f"{options.seed} {edit.relation_id} {edit.subject.id} prompt").choice(listed)


def edit_case(facts: Facts, edit: Edit, case_id: int, *, effect_relation_id: str | None = None) -> Case:
    """Return the part of a case that depends on the edit alone: request, paraphrases, open-ended prompts, identifiers.

    Args:
        facts: Where names come from, with the rules.
        edit: The edit.
        case_id: Number of the case.
        effect_relation_id: The watched property of a cross-property case.
    """
    options, name, living = facts.options, edit.subject.entity.label, edit.subject.living
    template = _edit_template(edit, options)
    others = list(paraphrases(edit.relation_id, template, options.templates))
    random.Random(f"{options.seed} {edit.relation_id} {edit.subject.id} paraphrases").shuffle(others)
    new, true = (_name(facts, edit, value) for value in (edit.new, edit.true))
    return Case(
        case_id,
        EditRequest(template.fill("{}", living=living), name, edit.relation_id, new, true),
        effect_relation_id,
        generation_prompts=generation_prompts(edit.subject, edit.relation_id, effect_relation_id, options),
        paraphrase_prompts=tuple(row.fill(name, living=living) for row in others[: options.paraphrases]),
        extra={"subject_id": edit.subject.entity.id, "template_id": template.id},
        flags=edit.flags,
    )


def with_neighbours(facts: Facts, edit: Edit, case: Case) -> Case:
    """Add the edit's own prompt about other people who hold the old value, as CounterFact does."""
    number, template = facts.options.neighborhood, _edit_template(edit, facts.options)
    near = holders(facts, edit, edit.true, edit.new, -(-number // 2))[:number]
    prompts = tuple(template.fill(person.entity.label, living=person.living) for person in near)
    return replace(case, neighborhood_prompts=prompts)


def cross_subject(facts: Facts, edits: Iterable[Edit], first_id: int = 1) -> Iterator[Case]:
    """Make one cross-subject case per edit.

    Args:
        facts: Where people come from, with the rules.
        edits: The edits, in the order of the cases.
        first_id: Number of the first case with an edit that has no number.

    Yields:
        Cases with `attribute_prompts` of every cloze template of the relation for every chosen holder, and their
        `extra` holds the subject's identifier, the template of the edit and how many holders are asked about. A new
        value with fewer than two holders keeps its case, flagged "few_holders".
    """
    options, number = facts.options, first_id
    for edit in edits:
        case = with_neighbours(facts, edit, edit_case(facts, edit, number if edit.case_id is None else edit.case_id))
        people = {
            "target_new": holders(facts, edit, edit.new, edit.true, options.per_gender),
            "target_true": holders(facts, edit, edit.true, edit.new, options.true_per_gender),
        }
        listed = templates(edit.relation_id, "cloze", options.templates)
        prompts = (attribute_prompt(row, p, holds) for holds, asked in people.items() for p in asked for row in listed)
        yield replace(
            case,
            attribute_prompts=tuple(prompts),
            extra=case.extra | {"holders": {holds: len(asked) for holds, asked in people.items()}},
            flags=(*case.flags, "few_holders") if len(people["target_new"]) < FEW else case.flags,
        )
        number += edit.case_id is None


def gold_answers(subject: RecordedPerson, effect: str, names: Mapping[str, str]) -> tuple[str, ...]:
    """Return the candidates that are recorded for a person; `names`: identifier of every candidate -> its name."""
    return tuple(dict.fromkeys(names[value] for value in subject.holds(effect) if value in names))


def asked_about(
    case: Case, effect: str, subject: RecordedPerson, names: Mapping[str, str], listed: Sequence[Template] = ()
) -> Case:
    """Return a case with both prompts about another property of its subject, the candidates and those that are true.

    Args:
        case: The edit.
        effect: The property that is watched.
        subject: Person to edit.
        names: Identifier of every candidate -> its name.
        listed: Templates of the prompts.
    """
    rows = (*templates(effect, "property", listed), *_free(listed))
    return replace(
        case,
        effect_prompts=tuple(attribute_prompt(row, subject) for row in rows),
        candidates=tuple(dict.fromkeys(names.values())),
        gold=gold_answers(subject, effect, names),
    )


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
    own = facts.options.templates
    for edited, effect in PAIRS:
        names = facts.labels(attribute_set(facts, effect)) if templates(effect, "property", own) else {}
        answered = [edit for edit in edits[edited] if gold_answers(edit.subject, effect, names)]
        for edit in answered[: facts.options.per_pair]:
            case = edit_case(facts, edit, first_id, effect_relation_id=effect)
            yield asked_about(case, effect, edit.subject, names, own)
            first_id += 1
