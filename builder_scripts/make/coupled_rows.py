"""Coupled Entity Prompts as rows: prompts in two wordings, ground truth, one config per kind of records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from seesaw_cf.builder_scripts.make.coupled import Coupled, Profile
from seesaw_cf.builder_scripts.source.people import Facts
from seesaw_cf.records.arrow import ENTITY, REQUEST, entity_row, request_row

PROPERTIES = 10  # properties named in a prompt

# Source: LEME, Figure 2 (article) and Appendix A.1 (essay).
WORDINGS = {
    "essay": "Write an essay about {name}\nInclude the following information:",
    "article": "Write an article about {name}. You must work the following information into the article:",
}
_ORDER = ("other", "target", "shared", "")

_TRUTH = pa.struct(
    [("property_id", pa.string()), ("property", pa.string()), ("coupled", pa.string()), ("values", pa.list_(ENTITY))]
)
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
    ]
)
# Config -> schema; loc_ans is the answer of zsRE's neighborhood prompt, which is about something else.
COUPLED_SCHEMAS = {"coupled_counterfact": COUPLED, "coupled_zsre": COUPLED.append(pa.field("loc_ans", pa.string()))}


def prompt_properties(profile: Profile, labels: Mapping[str, str], *, whole: bool) -> list[str]:
    """The properties that a prompt names: first those that lead to the other entity, then to the old target, then the
    shared ones, then (only when `whole`) the rest; by name within each; at most ten.

    Args:
        profile: Of the entity that the prompt is about.
        labels: Names of properties.
        whole: True for the subject: its whole ground truth may be asked for.
    """
    listed = [name for name in profile.truths if whole or name in profile.coupled]
    listed.sort(key=lambda name: (_ORDER.index(profile.coupled.get(name, "")), labels[name], name))
    return listed[:PROPERTIES]


def prompt(wording: str, name: str, properties: Iterable[str]) -> str:
    """Return a prompt in one of the two wordings: the names of properties without their values, one per line."""
    return "\n- ".join([WORDINGS[wording].replace("{name}", name), *properties])


def _side(profile: Profile, labels: Mapping[str, str], *, whole: bool) -> dict[str, object]:
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


def _row(couple: Coupled, labels: Mapping[str, str]) -> dict[str, object]:
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
        "loc_ans": case.extra.get("loc_ans"),
    }


def coupled_table(facts: Facts, couples: Sequence[Coupled], config: str) -> pa.Table:
    """Coupled edits as a table of the config's schema, in their order; `facts` knows the names."""
    words = {word for row in couples for side in (row.subject, row.related) for word in side.truths}
    words |= {v for row in couples for side in (row.subject, row.related) for vs in side.truths.values() for v in vs}
    labels = facts.labels(sorted(words))
    return pa.Table.from_pylist([_row(row, labels) for row in couples], schema=COUPLED_SCHEMAS[config])
