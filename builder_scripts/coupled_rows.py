"""Coupled Entity Prompts as rows: prompts in two wordings, ground truth, one config per kind of records."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from seesaw_cf.builder_scripts.claims import Claims
from seesaw_cf.builder_scripts.columns import columns_section
from seesaw_cf.builder_scripts.coupled import Coupled, Profile, couple
from seesaw_cf.builder_scripts.people import Facts
from seesaw_cf.builder_scripts.shards import write_rows
from seesaw_cf.builder_scripts.statistics import markdown
from seesaw_cf.errors import RecordError
from seesaw_cf.records.card import write_card
from seesaw_cf.types import Case, Entity

__all__ = ["COUPLED", "WORDINGS", "about_coupled", "build_coupled", "coupled_table", "prompt", "prompt_properties"]

PROPERTIES = 10  # properties named in a prompt

# Source: LEME, Figure 2 (article) and Appendix A.1 (essay).
WORDINGS = {
    "essay": "Write an essay about {name}\nInclude the following information:",
    "article": "Write an article about {name}. You must work the following information into the article:",
}
_ORDER = ("other", "target", "shared", "")

_ENTITY = pa.struct([("str", pa.string()), ("id", pa.string())])
_TRUTH = pa.struct(
    [("property_id", pa.string()), ("property", pa.string()), ("coupled", pa.string()), ("values", pa.list_(_ENTITY))]
)
_SIDE = [
    ("entity", _ENTITY),
    ("ground_truth", pa.list_(_TRUTH)),
    ("properties", pa.list_(pa.string())),
    *((name, pa.string()) for name in WORDINGS),
]
_REQUEST = pa.struct(
    [
        ("prompt", pa.string()), ("relation_id", pa.string()), ("target_new", _ENTITY), ("target_true", _ENTITY),
        ("subject", pa.string()),
    ]
)  # fmt: skip

# One row per edit. kind: "counterfactual" or "factual". truth: what is true before the edit. links, shared: how
# strongly the related entity is coupled; see `seesaw_cf.builder_scripts.coupled`. namesakes: entities of that name.
COUPLED: pa.Schema = pa.schema(
    [
        ("case_id", pa.int64()),
        ("record_format", pa.string()),
        ("kind", pa.string()),
        ("requested_rewrite", _REQUEST),
        ("truth", _ENTITY),
        ("subject_entity", pa.struct(_SIDE)),
        ("related_entity", pa.struct(_SIDE)),
        ("links", pa.int32()),
        ("shared", pa.int32()),
        ("namesakes", pa.int32()),
        ("paraphrase_prompts", pa.list_(pa.string())),
        ("neighborhood_prompts", pa.list_(pa.string())),
    ]
)


def prompt_properties(profile: Profile, labels: Mapping[str, str], *, whole: bool) -> list[str]:
    """The properties that a prompt names: first those that lead to the other entity, then to the old target, then the
    shared ones, then (only when `whole`) the others; by name within each; at most ten.

    Args:
        profile: Of the entity that the prompt is about.
        labels: Names of properties.
        whole: True for the subject: its whole ground truth may be asked for.
    """
    listed = [name for name in profile.truths if whole or name in profile.coupled]
    listed.sort(key=lambda name: (_ORDER.index(profile.coupled.get(name, "")), labels[name], name))
    return listed[:PROPERTIES]


def prompt(wording: str, name: str, properties: Iterable[str]) -> str:
    """A prompt in one of the two wordings: the names of properties without their values, one per line."""
    return "\n- ".join([WORDINGS[wording].replace("{name}", name), *properties])


def _side(profile: Profile, labels: Mapping[str, str], *, whole: bool) -> dict[str, Any]:
    properties = [labels[name] for name in prompt_properties(profile, labels, whole=whole)]
    return {
        "entity": _entity(profile.entity),
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


def _entity(entity: Entity) -> dict[str, str | None]:
    return {"str": entity.label, "id": entity.id}


def _row(found: Coupled, labels: Mapping[str, str]) -> dict[str, Any]:
    case, request = found.edit.case, found.edit.case.request
    known = found.edit.truth
    true = known if known.label == request.target_true.label else request.target_true
    return {
        "case_id": case.case_id,
        "record_format": case.record_format,
        "kind": found.edit.kind,
        "requested_rewrite": {
            "prompt": request.prompt,
            "relation_id": request.relation_id,
            "target_new": _entity(known if found.edit.kind == "factual" else request.target_new),
            "target_true": _entity(true),
            "subject": request.subject,
        },
        "truth": _entity(known),
        "subject_entity": _side(found.subject, labels, whole=True),
        "related_entity": _side(found.related, labels, whole=False),
        "links": found.links,
        "shared": found.shared,
        "namesakes": found.edit.namesakes,
        "paraphrase_prompts": case.paraphrase_prompts,
        "neighborhood_prompts": case.neighborhood_prompts,
    }


def coupled_table(facts: Facts, found: Sequence[Coupled]) -> pa.Table:
    """Coupled edits as a table of schema `COUPLED`, in their order; `facts` knows the names."""
    words = {word for row in found for side in (row.subject, row.related) for word in side.truths}
    words |= {v for row in found for side in (row.subject, row.related) for vs in side.truths.values() for v in vs}
    labels = facts.labels(sorted(words))
    return pa.Table.from_pylist([_row(row, labels) for row in found], schema=COUPLED)


def about_coupled(rows: int) -> str:
    """One line for the card."""
    return f"{rows:,} edits, each with a related entity, what is true of both, and prompts about both"


def build_coupled(out: str | os.PathLike[str], facts: Facts, claims: Claims, cases: Sequence[Case]) -> Counter[str]:
    """Writes the configs `coupled_counterfact` and `coupled_zsre` and their card into a folder.

    Args:
        out: The folder; make it under a temporary name when others may look at it.
        facts, claims: Where names, claims and links come from.
        cases: CounterFact (or SEESAW-CF) and zsRE records.

    Returns:
        What was counted: rows per config, and edits without couple per reason.

    Raises:
        RecordError: No edit has a couple.
        SourceError: The source does not answer.
        StorageError: The disk is full.
    """
    counts: Counter[str] = Counter()
    configs = {}
    for config, zsre in (("coupled_counterfact", False), ("coupled_zsre", True)):
        found, skipped = couple(facts, claims, [case for case in cases if (case.record_format == "zsre") == zsre])
        counts.update({f"{config}: {reason}": number for reason, number in skipped.items()})
        if found:
            table = coupled_table(facts, found)
            write_rows(out, config, [table], COUPLED)
            counts[config] = table.num_rows
            configs[config] = about_coupled(table.num_rows)
    if not configs:
        raise RecordError(
            f"no coupled edits: of {len(cases)} records none has a related entity in the source ({dict(counts)}). "
            "Check that the source holds the subjects and their links, and its language."
        )
    body = _BODY.format(
        columns=columns_section(dict.fromkeys(configs, COUPLED)), counts=markdown(["Rows", "Number"], counts.items())
    )
    write_card(out, configs, body=body, metadata=_METADATA)
    return counts


_METADATA = {"license": "mit", "language": ["en"], "pretty_name": "Coupled Entity Prompts", "tags": ["model-editing"]}
_BODY = """# Coupled Entity Prompts

For every edit an entity that is closely related to its subject and to what was true before, the facts that a source
records about both, and two prompts. Made by `seesaw-cf build --coupled`, after the paper on long-form evaluation of
model editing (LEME, section 3.1 and Appendix A).

{columns}

`coupled` is *other* (a value is the other entity), *target* (a value is the old target), *shared* (both entities have
the value) or empty. The prompts `essay` and `article` name properties without their values.

{counts}

Properties about the item or Wikimedia pages instead of the thing are left out by identifier
(`seesaw_cf/data/tables/excluded_properties.csv`). What an edit makes a model say may be false on purpose.
"""
