"""What every column of every config means, for cards and machine-readable metadata."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from seesaw_cf.builder_scripts.dataset.statistics import markdown

__all__ = ["COLUMNS", "columns_section", "type_name"]

_REQUEST = "the edit: `prompt` with one `{}`, `subject`, `relation_id`, `target_new` and `target_true` (name and id)"
_CASES = {
    "case_id": "number of the case, unique over all configs of cases",
    "requested_rewrite": _REQUEST,
    "effect_relation_id": "property that is watched; empty when it is the edited one",
    "attribute_prompts": "prompts about other people: text, person (name and id), template, which target the person "
    "really `holds`, tags of gender, race and region, living, number of sitelinks, flags",
    "effect_prompts": "prompts about the edited person that are scored against every candidate",
    "candidates": "answers to `effect_prompts`",
    "gold": "the candidates that are true before the edit",
    "generation_prompts": "open-ended prompts about the edited person: guided, then free",
    "paraphrase_prompts": "the edit in other words; the answer should change",
    "neighborhood_prompts": "prompts about holders of the old target; the answer should stay",
    "record_format": "which JSON keys the record is written back with",
    "extra": "JSON object: identifier of the edited person, template of the edit, number of holders asked about",
    "flags": "what is doubtful about the case: few_holders, ambiguous_subject",
}
_SIDE = "entity, `ground_truth` (property, how it couples, values), `properties` that the prompts name, and the prompts"

COLUMNS: Mapping[str, Mapping[str, str]] = {
    "cross_subject": _CASES,
    "cross_property": _CASES,
    "open_ended": {
        "case_id": "number of the case in the config named beside it",
        "config": "the config that has the case",
        "requested_rewrite": _REQUEST,
        "effect_relation_id": "property that the guided prompt asks for; empty when it is the edited one",
        "subject_id": "identifier of the edited person",
        "prompt": "beginning of a description, tensed by date of death",
        "use": "guided (asks for a property) or free (X is)",
    },
    "candidates": {
        "relation_id": "property",
        "id": "identifier of the value",
        "label": "name of the value",
        "area": "area of a field of work: science, social science, humanities or arts",
        "country": "countries of a place",
        "continent": "continents of a country or place",
        "provenance": "where area, country and continent come from",
    },
    "demographics": {
        "id": "identifier of the person",
        "label": "name of the person",
        "gender": "tags of gender; empty = unknown",
        "race": "tags of race, from recorded ethnic groups; empty = unknown",
        "region": "tags of geographic origin, from recorded ethnic groups; empty = unknown",
        "living": "false with a recorded death, true when born in 1915 or later without one, else empty",
        "sitelinks": "number of pages about the person in Wikimedia projects; empty when the source does not say",
        "sex_or_gender": "recorded values (P21)",
        "citizenship": "recorded values (P27)",
        "birth_place": "recorded values (P19)",
        "native_language": "recorded values (P103)",
        "field_of_work": "recorded values (P101)",
        "ethnic_group": "recorded values (P172)",
        "occupation": "recorded values (P106)",
        "provenance": "references of the facts, or the page they are from",
    },
    "coupled_counterfact": {
        "case_id": "number of the record",
        "record_format": "counterfact, eff, seesaw or zsre",
        "kind": "counterfactual (the new target is false) or factual (it is the true answer)",
        "requested_rewrite": _REQUEST,
        "truth": "what is true before the edit",
        "subject_entity": f"the edited entity: {_SIDE}",
        "related_entity": f"an entity with links to the subject and to the truth: {_SIDE}",
        "links": "pairs of links of the related entity with subject and truth",
        "shared": "(property, value) pairs that both entities have",
        "namesakes": "entities of the subject's name; above 1 the best known one that holds the truth was taken",
        "paraphrase_prompts": "the edit in other words",
        "neighborhood_prompts": "prompts whose answer should stay",
    },
}
COLUMNS = {**COLUMNS, "coupled_zsre": COLUMNS["coupled_counterfact"]}


def type_name(kind: pa.DataType) -> str:
    """A short name of a column's type: "text", "number", "list of text", "record", "list of records"."""
    if pa.types.is_list(kind):
        return f"list of {type_name(kind.value_type)}".replace("record", "records")
    names = {pa.types.is_struct: "record", pa.types.is_boolean: "yes or no", pa.types.is_string: "text"}
    return next((name for test, name in names.items() if test(kind)), "number")


def columns_section(schemas: Mapping[str, pa.Schema]) -> str:
    """The columns of configs as Markdown tables (name, type, meaning); configs with the same columns share one.

    Args:
        schemas: Config -> its columns.
    """
    shared: dict[str, list[str]] = {}
    for config, schema in schemas.items():
        rows = [[f"`{field.name}`", type_name(field.type), COLUMNS[config][field.name]] for field in schema]
        shared.setdefault(markdown(["Column", "Type", "Meaning"], rows).replace("---:", "---"), []).append(config)
    return "\n\n".join(f"{', '.join(f'`{name}`' for name in names)}\n\n{table}" for table, names in shared.items())
