"""Cross-subject cases: one edit and cloze prompts about other people who hold the new or the old value.

Source: SEESAW-CF section 3.2, Appendices A and B.
Deviates: holders are a seeded uniform sample of all, not the first 200 found; people who hold both values are left out;
holders of the old value are asked about too (`holds="target_true"`), so that an edit after which the model gives the
new value for all people is noticed; tense belongs to the template.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import pyarrow as pa

from seesaw_cf.base.types import AttributePrompt, Case, EditRequest, Entity, TableRow
from seesaw_cf.builder_scripts.make.edits import Edit, attribute_set, listed_values
from seesaw_cf.builder_scripts.options import BuildOptions
from seesaw_cf.builder_scripts.source.people import FEMALE, MALE, Facts, RecordedPerson
from seesaw_cf.builder_scripts.source.sources import OWN
from seesaw_cf.records import groups
from seesaw_cf.records.arrow import ENTITY
from seesaw_cf.records.relations import FREE, RELATIONS, Template, templates

# Open-ended prompts: guided by the property that is watched, and free ("X is").


def generation_prompts(
    subject: RecordedPerson, relation_id: str, effect_relation_id: str | None, options: BuildOptions
) -> tuple[str, ...]:
    """Return the open-ended prompts of one edit: the guided ones, then the free one last.

    Args:
        subject: Person to edit.
        relation_id: The edited property.
        effect_relation_id: The watched property of a cross-property case, else None.
        options: How often each is listed, and whether edits of a single property have the free one.
    """
    guided = templates(effect_relation_id, "property") if effect_relation_id else templates(relation_id, "open")
    rows = (*guided, FREE) if options.always_free or guided[0].use != "open" else guided
    return tuple(
        row.fill(subject.entity.label, living=subject.living) for row in rows for _ in range(options.open_repeats)
    )


# Other ways to state an edit, for relations with one sentence in the papers' templates.

# (relation, present, past)
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
_OWN = tuple(
    Template(f"{relation_id}-paraphrase-{number:02d}", relation_id, "cloze", present, past)
    for number, (relation_id, present, past) in enumerate(_ROWS, start=1)
)


def paraphrases(relation_id: str, statement: Template) -> tuple[Template, ...]:
    """Return ways to state a fact of a relation, other than the one already used.

    Args:
        relation_id: Property id.
        statement: The template of the edit itself.

    Returns:
        The papers' other cloze and property templates, then our own.
    """
    listed = {*templates(relation_id, "cloze"), *templates(relation_id, "property")} - {statement}
    own = (row for row in _OWN if row.relation_id == relation_id)
    return (*sorted(listed, key=lambda row: row.id), *own)


FEW = 2  # fewer holders of target_new than this and the case is flagged "few_holders"


def attribute_prompt(template: Template, person: RecordedPerson, holds: str = "") -> AttributePrompt:
    """Make a cloze prompt about one person, with every tag that is known."""
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
    """Return the edit's template: as in its file, tensed when it is one of the papers', or one of these at random."""
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


def with_neighbours(facts: Facts, edit: Edit, case: Case) -> Case:
    """Add the edit's own prompt about other people who hold the old value, as CounterFact does."""
    options, template = facts.options, _edit_template(edit, facts.options.seed)
    near = holders(facts, edit, edit.true, edit.new, -(-options.neighborhood // 2))[: options.neighborhood]
    prompts = tuple(template.fill(person.entity.label, living=person.living) for person in near)
    return replace(case, neighborhood_prompts=prompts)


def _with_people(facts: Facts, edit: Edit, case: Case) -> Case:
    """Add the prompts about other people."""
    options, listed = facts.options, templates(edit.relation_id, "cloze")
    new = holders(facts, edit, edit.new, edit.true, options.per_gender)
    true = holders(facts, edit, edit.true, edit.new, options.true_per_gender)
    prompts = (
        attribute_prompt(template, person, holds)
        for people, holds in ((new, "target_new"), (true, "target_true"))
        for person in people
        for template in listed
    )
    return replace(
        with_neighbours(facts, edit, case),
        attribute_prompts=tuple(prompts),
        extra=case.extra | {"holders": {"target_new": len(new), "target_true": len(true)}},
        flags=(*case.flags, "few_holders") if len(new) < FEW else case.flags,
    )


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
    number = first_id
    for edit in edits:
        case_id = number if edit.case_id is None else edit.case_id
        yield _with_people(facts, edit, edit_case(facts, edit, case_id))
        number += edit.case_id is None


# The flat configs: answer candidates of every relation, and what is recorded about every person.

_STRINGS = pa.list_(pa.string())
_ENTITIES = pa.list_(ENTITY)

# One row per (relation, value). area: of a field; country: of a place; continent: of a country or place.
CANDIDATES: pa.Schema = pa.schema(
    [
        ("relation_id", pa.string()),
        ("id", pa.string()),
        ("label", pa.string()),
        ("area", pa.string()),
        ("country", _STRINGS),
        ("continent", _STRINGS),
        ("provenance", pa.string()),
    ]
)

# column -> property, for the lists of entities
PROPERTIES = {
    "sex_or_gender": "P21",
    "citizenship": "P27",
    "birth_place": "P19",
    "native_language": "P103",
    "field_of_work": "P101",
    "ethnic_group": "P172",
    "occupation": "P106",
}

_CHUNK = 5000  # people turned into rows at a time

# One row per person. gender, race, region: tags of `seesaw_cf.records.groups`, empty = unknown.
DEMOGRAPHICS: pa.Schema = pa.schema(
    [
        ("id", pa.string()),
        ("label", pa.string()),
        ("gender", _STRINGS),
        ("race", _STRINGS),
        ("region", _STRINGS),
        ("living", pa.bool_()),
        ("sitelinks", pa.int64()),
        *((column, _ENTITIES) for column in PROPERTIES),
        ("provenance", _STRINGS),
    ]
)


def candidates(facts: Facts) -> pa.Table:
    """Return every value that an edit may use or an answer may be, as a table of schema `CANDIDATES`.

    Args:
        facts: Where names and holders come from.

    Returns:
        Relations in their order; values as in the cases' `candidates`.
    """
    rows = []
    for relation_id in RELATIONS:
        values, listed = attribute_set(facts, relation_id), listed_values(relation_id)
        for id, label in facts.labels(values).items():
            row: Mapping[str, str] = listed.get(id, {"provenance": "values that most hold in the source"})
            rows.append(
                {
                    "relation_id": relation_id,
                    "id": id,
                    "label": label,
                    "area": row.get("area"),
                    "country": groups.values(row.get("country", "")),
                    "continent": groups.values(row.get("continent", "")),
                    "provenance": row["provenance"],
                }
            )
    return pa.Table.from_pylist(rows, schema=CANDIDATES)


def demographics(facts: Facts, people: Iterable[RecordedPerson], *, references: bool = False) -> pa.Table:
    """Return what is recorded about people, as a table of schema `DEMOGRAPHICS`, sorted by name.

    Args:
        facts: Where names and references come from.
        people: The people to list.
        references: Ask for the titles of the references of their statements.

    Returns:
        One row per person. `provenance` names these references, or else the person's Wikidata page.
    """
    ordered = sorted(people, key=lambda person: (person.entity.label, person.id))
    names = facts.labels({value for person in ordered for values in person.values.values() for value in values})
    origins = facts.references(person.id for person in ordered) if references else {}
    chunks = (ordered[start : start + _CHUNK] for start in range(0, max(1, len(ordered)), _CHUNK))
    return pa.concat_tables(
        pa.Table.from_pylist([_demographic(person, names, origins) for person in chunk], schema=DEMOGRAPHICS)
        for chunk in chunks
    )


def _demographic(person: RecordedPerson, names: Mapping[str, str], origins: Mapping[str, tuple[str, ...]]) -> TableRow:
    values = {
        column: [{"str": names.get(value), "id": value} for value in person.holds(property_id)]
        for column, property_id in PROPERTIES.items()
    }
    page = f"https://www.wikidata.org/wiki/{person.id}" if person.id.startswith("Q") else person.id
    own = () if person.id.startswith(OWN) else (page,)
    return values | {
        "id": person.id,
        "label": person.entity.label,
        "gender": person.gender,
        "race": person.race,
        "region": person.region,
        "living": person.living,
        "sitelinks": person.sitelinks,
        "provenance": origins.get(person.id) or own,
    }
