"""The flat configs beside the cases: candidates, demographics, and coupled edits with their prompts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from seesaw_cf.base.types import TableRow
from seesaw_cf.builder_scripts.coupled import Coupled, Profile
from seesaw_cf.builder_scripts.edits import attribute_set, listed_values
from seesaw_cf.builder_scripts.people import Facts, RecordedPerson
from seesaw_cf.builder_scripts.sparql import OWN
from seesaw_cf.records import groups
from seesaw_cf.records.arrow import ENTITY, REQUEST
from seesaw_cf.records.formats import entity_row, request_row
from seesaw_cf.records.load import locality, portability
from seesaw_cf.records.relations import RELATIONS

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


# Coupled Entity Prompts as rows: prompts in two wordings, ground truth, one config per kind of records.

MAX_PROPERTIES = 10  # properties named in a prompt

# Source: LEME, Figure 2 (article) and Appendix A.1 (essay).
WORDINGS = {
    "essay": "Write an essay about {name}\nInclude the following information:",
    "article": "Write an article about {name}. You must work the following information into the article:",
}
_ORDER = ("other", "target", "shared", "")

_TRUTH = pa.struct(
    [("property_id", pa.string()), ("property", pa.string()), ("coupled", pa.string()), ("values", pa.list_(ENTITY))]
)
_ANSWERED = pa.list_(pa.struct([("prompt", pa.string()), ("ground_truth", pa.string())]))
_SIDE = [
    ("entity", ENTITY),
    ("ground_truth", pa.list_(_TRUTH)),
    ("properties", pa.list_(pa.string())),
    *((name, pa.string()) for name in WORDINGS),
]
# One row per edit. kind: "counterfactual" or "factual". truth: what is true before the edit. links, shared: how
# strongly the related entity is coupled; see `make.coupled`. namesakes: entities of that name.
COUPLED: pa.Schema = pa.schema(
    [
        ("case_id", pa.int64()),
        ("record_format", pa.string()),
        ("kind", pa.string()),
        ("requested_rewrite", REQUEST),
        ("truth", ENTITY),
        ("subject_entity", pa.struct(_SIDE)),
        ("related_entity", pa.struct(_SIDE)),
        ("links", pa.int32()),
        ("shared", pa.int32()),
        ("namesakes", pa.int32()),
        ("paraphrase_prompts", pa.list_(pa.string())),
        ("neighborhood_prompts", pa.list_(pa.string())),
        ("locality", _ANSWERED),
        ("portability", _ANSWERED),
    ]
)
# Config -> schema; loc_ans is the answer of zsRE's neighborhood prompt, which is about something else.
COUPLED_SCHEMAS = {"coupled_counterfact": COUPLED, "coupled_zsre": COUPLED.append(pa.field("loc_ans", pa.string()))}


def prompt_properties(profile: Profile, labels: Mapping[str, str], *, whole: bool) -> list[str]:
    """Return the properties that a prompt names, at most ten.

    First those that lead to the other entity, then to the old target, then the shared ones, then (only when `whole`)
    the rest; by name within each.

    Args:
        profile: Of the entity that the prompt is about.
        labels: Names of properties.
        whole: True for the subject: its whole ground truth may be asked for.
    """
    listed = [name for name in profile.truths if whole or name in profile.coupled]
    listed.sort(key=lambda name: (_ORDER.index(profile.coupled.get(name, "")), labels[name], name))
    return listed[:MAX_PROPERTIES]


def prompt(wording: str, name: str, properties: Iterable[str]) -> str:
    """Return a prompt in one of the two wordings: the names of properties without their values, one per line."""
    return "\n- ".join([WORDINGS[wording].replace("{name}", name), *properties])


def _side(profile: Profile, labels: Mapping[str, str], *, whole: bool) -> TableRow:
    properties = [labels[name] for name in prompt_properties(profile, labels, whole=whole)]
    return {
        "entity": entity_row(profile.entity),
        "ground_truth": [
            {
                "property_id": name,
                "property": labels[name],
                "coupled": profile.coupled.get(name, ""),
                "values": [{"str": labels[value], "id": value} for value in values],
            }
            for name, values in profile.truths.items()
        ],
        "properties": properties,
        **{wording: prompt(wording, profile.entity.label, properties) for wording in WORDINGS},
    }


def _row(couple: Coupled, labels: Mapping[str, str]) -> TableRow:
    case, request = couple.edit.case, couple.edit.case.request
    truth = couple.edit.truth
    true = truth if truth.label == request.target_true.label else request.target_true
    new = truth if couple.edit.kind == "factual" else request.target_new
    return {
        "case_id": case.case_id,
        "record_format": case.record_format,
        "kind": couple.edit.kind,
        "requested_rewrite": request_row(replace(request, target_new=new, target_true=true)),
        "truth": entity_row(truth),
        "subject_entity": _side(couple.subject, labels, whole=True),
        "related_entity": _side(couple.related, labels, whole=False),
        "links": couple.links,
        "shared": couple.shared,
        "namesakes": couple.edit.namesakes,
        "paraphrase_prompts": case.paraphrase_prompts,
        "neighborhood_prompts": case.neighborhood_prompts,
        "locality": _answered(locality(case)),
        "portability": _answered(portability(case)),
        "loc_ans": case.extra.get("loc_ans"),
    }


def _answered(prompts: Iterable[tuple[str, Sequence[str]]]) -> list[dict[str, str]]:
    return [{"prompt": prompt, "ground_truth": answers[0]} for prompt, answers in prompts]


def coupled_table(facts: Facts, couples: Sequence[Coupled], config: str) -> pa.Table:
    """Return coupled edits as a table of the config's schema, in their order; `facts` knows the names."""
    words = {word for row in couples for side in (row.subject, row.related) for word in side.truths}
    words |= {v for row in couples for side in (row.subject, row.related) for vs in side.truths.values() for v in vs}
    labels = facts.labels(sorted(words))
    return pa.Table.from_pylist([_row(row, labels) for row in couples], schema=COUPLED_SCHEMAS[config])
