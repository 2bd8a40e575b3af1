"""Coupled Entity Prompts: for an edit, the subject and a related entity, what is true of both, and prompts about both.

Source: LEME, section 3.1 and Appendix A. The related entity has links to the subject and to the edit's old target.
Deviates: entities are linked by identifier, or by name and number of sitelinks (the released code sorted by IRI);
of the ten most linked entities the one with most shared (property, value) pairs is taken, ties in a fixed order;
targets are compared by identifier (the released code compared labels with identifiers and never matched); properties
are left out by exact identifier; the same facts give the same bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from seesaw_cf.base.types import Case, EditRequest, Entity
from seesaw_cf.builder_scripts.facts import Facts, Held
from seesaw_cf.builder_scripts.sources import bar
from seesaw_cf.builder_scripts.sparql import Parameter, entity_id
from seesaw_cf.records.arrow import ENTITY, REQUEST, TEXT, TEXTS
from seesaw_cf.records.formats import entity_row, request_row
from seesaw_cf.records.load import locality, portability

RELATED = 10  # related entities compared for each edit
MAX_PROPERTIES = 10  # properties named in a prompt
NAMES = 50  # labels in one query: some have a hundred namesakes

CoupledRow = dict[str, Any]
"""A row of a config `coupled_*`, with the columns of `COUPLED_SCHEMAS`."""

# Source: LEME, Figure 2 (article) and Appendix A.1 (essay).
WORDINGS = {
    "essay": "Write an essay about {name}\nInclude the following information:",
    "article": "Write an article about {name}. You must work the following information into the article:",
}
_ORDER = ("other", "target", "shared", "")
_KEPT = ("case_id", "record_format", "paraphrase_prompts", "neighborhood_prompts")
_FOLLOWS = ("portability", "portability_prompt", "portability_ground_truth")

_TRUTH = pa.struct({"property_id": TEXT, "property": TEXT, "coupled": TEXT, "values": pa.list_(ENTITY)})
_ANSWERED = pa.list_(pa.struct({"prompt": TEXT, "ground_truth": TEXT}))
_SIDE = pa.struct(
    {"entity": ENTITY, "ground_truth": pa.list_(_TRUTH), "properties": TEXTS, **dict.fromkeys(WORDINGS, TEXT)}
)
# One row per edit. kind: "counterfactual" (the new target is false) or "factual" (it is the true answer). truth: what
# is true before the edit. links: pairs of links of the related entity, as the paper's query counts. shared: (property,
# value) pairs that both entities have. namesakes: entities of the subject's name. A fact couples as "other" (a value is
# the other entity), "target" (a value is the old target) or "shared" (the other entity has the same value).
COUPLED: pa.Schema = pa.schema(
    {
        "case_id": pa.int64(),
        **dict.fromkeys(("record_format", "kind"), TEXT),
        "requested_rewrite": REQUEST,
        "truth": ENTITY,
        **dict.fromkeys(("subject_entity", "related_entity"), _SIDE),
        **dict.fromkeys(("links", "shared", "namesakes"), pa.int32()),
        **dict.fromkeys(("paraphrase_prompts", "neighborhood_prompts"), TEXTS),
        **dict.fromkeys(("locality", "portability"), _ANSWERED),
    }
)
# Config -> schema; loc_ans is the answer of zsRE's neighborhood prompt, which is about something else.
COUPLED_SCHEMAS = {"coupled_counterfact": COUPLED, "coupled_zsre": COUPLED.append(pa.field("loc_ans", TEXT))}


def edits_of(cases: Iterable[Case]) -> list[tuple[Case, str, Entity]]:
    """Return the edits that records ask for: (record, kind, truth).

    A CounterFact record is one counterfactual edit. A zsRE record is two: its answer as the new target and what a model
    predicted, `pred`, as the old one (factual), and its alternative answer `alt` with the answer as the old target
    (counterfactual).

    Source: LEME section 4 (a factual edit changes a false fact to a true one).
    """
    edits = []
    for case in cases:
        request, answer = case.request, case.request.target_new
        if case.record_format != "zsre":
            edits.append((case, "counterfactual", request.target_true))
            continue
        # Every row has a number of its own: a record's place twice, and one more for its second edit.
        others = (str(case.extra.get(name) or "").strip() for name in ("pred", "alt"))
        predicted, alternative = (Entity(None, "" if text == answer.label else text) for text in others)
        believed = replace(request, target_true=predicted)
        edits.append((_edit_of(case, 2 * case.case_id, believed, "answer"), "factual", answer))
        if alternative.label:
            changed = replace(request, target_new=alternative, target_true=answer)
            edits.append((_edit_of(case, 2 * case.case_id + 1, changed, "alt"), "counterfactual", answer))
    return edits


def _edit_of(case: Case, case_id: int, request: EditRequest, new: str) -> Case:
    """Return one of the two edits of a zsRE record, with what follows from its new target.

    A record may say what follows from its `answer` and from its `alt`. Where it does not tell them apart, as in
    EasyEdit's files, it speaks of `alt`.
    """
    follows = {name: case.extra[name] for name in _FOLLOWS if name in case.extra}
    by_answer = follows.get("portability")
    if isinstance(by_answer, Mapping) and by_answer.keys() <= {"answer", "alt"}:
        follows = {"portability": by_answer.get(new)}
    elif new == "answer":
        follows = {}
    rest = {name: value for name, value in case.extra.items() if name not in _FOLLOWS}
    return replace(case, case_id=case_id, request=request, extra=rest | follows)


def _identify(
    facts: Facts, edits: Sequence[tuple[Case, str, Entity]], skipped: Counter[str]
) -> list[tuple[Case, str, Entity, Entity, int]]:
    """Link subjects and truths: (record, kind, subject, truth, namesakes); count edits that cannot be linked."""
    subjects = (case.request.subject for case, _, _ in edits if not case.extra.get("subject_id"))
    labels = [*subjects, *(truth.label for _, _, truth in edits if not truth.id)]
    # The best known (most sitelinks) first.
    found = facts.linked("named", labels, NAMES, "entity")
    names = {label: list(dict.fromkeys(ids)) for label, ids in found.items()}
    facts.claims(id for ids in names.values() for id in ids[:RELATED])
    linked = []
    for case, kind, truth in edits:
        given, relation_id = case.extra.get("subject_id"), case.request.relation_id
        ids = [str(given)] if given else names[case.request.subject]
        truths = [truth.id] if truth.id else names[truth.label]
        if not ids or not truths:
            skipped["subject not found" if not ids else "old target not found"] += 1
            continue
        # Of several entities of one name the best known one that holds the truth, else the best known one.
        held = facts.claims(ids[:RELATED])
        values = {id: {value for name, value in _pairs(row) if relation_id in ("", name)} for id, row in held.items()}
        subject = next((id for id in held if values[id] & set(truths)), ids[0])
        named = {value for _, value in _pairs(held[subject])}
        answer = Entity(next((id for id in truths if id in named), truths[0]), truth.label)
        linked.append((case, kind, Entity(subject, case.request.subject), answer, len(ids)))
    return linked


def _closest(facts: Facts, subject: str, related: Iterable[str]) -> tuple[str, int]:
    """Return the first entity that shares most (property, value) pairs with the subject, and how many it shares."""
    own = _pairs(facts.claims([subject])[subject])
    shares = [(id, len(own & _pairs(held))) for id, held in facts.claims(related).items()]
    return max(shares, key=lambda share: share[1])


def _pairs(held: Held) -> set[tuple[str, str]]:
    return {(name, value) for name, values in held.items() for value in values}


def prompt_properties(truths: Sequence[CoupledRow], *, whole: bool) -> list[str]:
    """Return the names of the properties that a prompt names, at most ten.

    First those that lead to the other entity, then to the old target, then the shared ones, then (only when `whole`)
    the rest; by name within each.

    Args:
        truths: The ground truth of the entity that the prompt is about.
        whole: True for the subject: its whole ground truth may be asked for.
    """
    keys = [(_ORDER.index(row["coupled"]), row["property"], row["property_id"]) for row in truths]
    return [name for order, name, _ in sorted(keys) if whole or _ORDER[order]][:MAX_PROPERTIES]


def prompt(wording: str, name: str, properties: Iterable[str]) -> str:
    """Return a prompt in one of the two wordings: the names of properties without their values, one per line."""
    return "\n- ".join([WORDINGS[wording].replace("{name}", name), *properties])


def _side(
    entity: Entity, held: Held, others: Held, other: str, truth: str, labels: Mapping[str, str], *, whole: bool
) -> CoupledRow:
    """Return what is true of an entity, how it couples with the other one, and its prompts.

    Args:
        entity: Which.
        held: Its claims; what has no name is left out.
        others: Those of the other entity.
        other: Identifier of the other entity.
        truth: Identifier of the old target.
        labels: Identifier -> name.
        whole: See `prompt_properties`.
    """
    truths = []
    for name, values in sorted(held.items()):
        named = [value for value in values if value in labels]
        if named and name in labels:
            shared = "shared" if set(named) & set(others.get(name, ())) else ""
            how = "other" if other in named else "target" if truth in named else shared
            cells = [{"str": labels[value], "id": value} for value in named]
            truths.append({"property_id": name, "property": labels[name], "coupled": how, "values": cells})
    properties = prompt_properties(truths, whole=whole)
    prompts = {wording: prompt(wording, entity.label, properties) for wording in WORDINGS}
    return {"entity": entity_row(entity), "ground_truth": truths, "properties": properties, **prompts}


def couple(facts: Facts, cases: Iterable[Case]) -> tuple[list[CoupledRow], Counter[str]]:
    """Find the related entity of every edit and what is true of both.

    Args:
        facts: Knows names, claims and links.
        cases: CounterFact or zsRE records.

    Returns:
        The coupled edits, in the order of the records, and reason -> number of edits that have no couple: the subject
        or the old target is not found by its name, or nothing named has links to both.

    Raises:
        SourceError: The source does not answer.
    """
    skipped = Counter[str]()
    edits = _identify(facts, edits_of(cases), skipped)
    pairs = [(str(subject.id), str(truth.id)) for _, _, subject, truth, _ in edits]
    related: dict[tuple[str, str], dict[str, int]] = {}  # entity linked with both -> pairs of links, most links first
    for one, target in bar(sorted(set(pairs)), "related entities"):
        places: Mapping[str, Parameter] = {"subject": one, "target": target, "language": facts.options.language}
        linked = facts.source.select("coupled", limit=RELATED, **places)
        related[one, target] = {entity_id(row["item"]): int(row["links"]) for row in linked}
    facts.claims([*(subject for subject, _ in pairs), *(id for ids in related.values() for id in ids)])
    chosen = {pair: _closest(facts, pair[0], ids) for pair, ids in related.items() if ids}
    everything = facts.claims({id for (subject, _), (other, _) in chosen.items() for id in (subject, other)})
    words = (word for held in everything.values() for pair in _pairs(held) for word in pair)
    labels = facts.labels(sorted({*everything, *words}))
    rows = []
    for (case, kind, subject, truth, namesakes), pair in zip(edits, pairs, strict=True):
        if pair not in chosen:
            skipped["no related entity"] += 1
            continue
        other, shared = chosen[pair]
        own, others, related_entity = everything[pair[0]], everything[other], Entity(other, labels[other])
        known_truth = truth if truth.label == case.request.target_true.label else case.request.target_true
        new = truth if kind == "factual" else case.request.target_new
        rows.append(
            {
                **{name: getattr(case, name) for name in _KEPT},
                "kind": kind,
                "requested_rewrite": request_row(replace(case.request, target_new=new, target_true=known_truth)),
                "truth": entity_row(truth),
                "subject_entity": _side(subject, own, others, other, pair[1], labels, whole=True),
                "related_entity": _side(related_entity, others, own, pair[0], pair[1], labels, whole=False),
                "links": related[pair][other],
                "shared": shared,
                "namesakes": namesakes,
                "locality": _answered(locality(case)),
                "portability": _answered(portability(case)),
                "loc_ans": case.extra.get("loc_ans"),
            }
        )
    return rows, skipped


def _answered(prompts: Iterable[tuple[str, Sequence[str]]]) -> list[dict[str, str]]:
    return [{"prompt": prompt, "ground_truth": answers[0]} for prompt, answers in prompts]
