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
from dataclasses import dataclass, replace

from seesaw_cf.base.types import Case, EditRequest, Entity
from seesaw_cf.builder_scripts.people import Facts
from seesaw_cf.builder_scripts.sources import Source
from seesaw_cf.builder_scripts.sparql import entity_id, is_identifier
from seesaw_cf.records import groups

RELATED = 10  # related entities compared for each edit
NAMES = 50  # labels in one query: some have a hundred namesakes
ENTITIES = 50  # entities in one query: some have hundreds of claims


@dataclass(frozen=True, slots=True)
class Coupling:
    """A related entity.

    Attributes:
        id: Its identifier.
        links: Number of pairs (link to the subject, link to the target), as the paper's query counts.
    """

    id: str
    links: int


class RecordedClaims:
    """Claims, names and couplings of entities, each asked once."""

    def __init__(self, source: Source, facts: Facts):
        """Remember who is asked.

        Args:
            source: The source behind `facts`.
            facts: Knows labels, and the rules (language).
        """
        self._source, self._facts = source, facts
        self._claims: dict[str, dict[str, list[str]]] = {}

    def named(self, labels: Iterable[str]) -> dict[str, list[str]]:
        """Return label -> identifiers of the entities of that name, the best known (most sitelinks) first."""
        entities = self._facts.linked("named", labels, NAMES, "entity")
        return {label: list(dict.fromkeys(ids)) for label, ids in entities.items()}

    def couplings(self, pairs: Sequence[tuple[str, str]], limit: int) -> dict[tuple[str, str], list[Coupling]]:
        """Return (subject, target) -> entities linked with both, most links first.

        Args:
            pairs: Identifiers.
            limit: At most this many for each pair.
        """
        couplings = {}
        for subject, target in self._facts.progress(sorted(set(pairs)), "related entities"):
            rows = self._source.select(
                "coupled", subject=subject, target=target, language=self._facts.options.language, limit=limit
            )
            couplings[subject, target] = [Coupling(entity_id(row["item"]), int(row["links"])) for row in rows]
        return couplings

    def of(self, ids: Iterable[str]) -> dict[str, Mapping[str, Sequence[str]]]:
        """Return entity -> property -> entities that it names; excluded properties are left out.

        Which properties say something about the item or Wikimedia pages instead of the thing is decided by identifier
        (`data/tables/excluded_properties.csv`), not by words in their labels.
        """
        ids = list(ids)
        excluded = groups.table("excluded_properties")
        unknown = sorted({id for id in ids if id not in self._claims})
        progress = self._facts.progress
        rows = self._source.gather("claims", "entities", unknown, size=ENTITIES, progress=progress, label="claims")
        claims: dict[str, dict[str, list[str]]] = {id: {} for id in unknown}
        for row, _ in rows:
            name, value = entity_id(row["property"]), entity_id(row["value"])
            if name not in excluded and is_identifier(value):
                claims[entity_id(row["entity"])].setdefault(name, []).append(value)
        self._claims |= claims
        return {id: self._claims[id] for id in ids}


@dataclass(frozen=True, slots=True)
class CoupledEdit:
    """An edit with its entities identified.

    Attributes:
        case: The record, its targets with identifiers where they are known.
        kind: "counterfactual" (the new target is false) or "factual" (the new target is the true answer).
        subject: The edit's subject.
        truth: What is true before the edit: CounterFact's old target, zsRE's answer.
        namesakes: How many entities have the subject's name.
    """

    case: Case
    kind: str
    subject: Entity
    truth: Entity
    namesakes: int


@dataclass(frozen=True, slots=True)
class Profile:
    """One of the two entities of an edit.

    Attributes:
        entity: Which.
        truths: Property -> its values, as identifiers; the ground truth.
        coupled: Property -> how it couples: "other" (a value is the other entity), "target" (a value is the old
            target) or "shared" (the other entity has the same value).
    """

    entity: Entity
    truths: Mapping[str, Sequence[str]]
    coupled: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Coupled:
    """An edit and its couple.

    Attributes:
        edit: The edit.
        subject, related: What is true of both entities.
        links: Pairs of links of the related entity, as the paper's query counts.
        shared: (property, value) pairs that both entities have.
    """

    edit: CoupledEdit
    subject: Profile
    related: Profile
    links: int
    shared: int


def edits_of(cases: Sequence[Case]) -> list[tuple[Case, str, Entity]]:
    """Return the edits that records ask for: (record, kind, truth).

    A CounterFact record is one counterfactual edit. A zsRE record is two: its answer as the new target and what a model
    predicted, `pred`, as the old one (factual), and its alternative answer `alt` with the answer as the old target
    (counterfactual).

    Source: LEME section 4 (a factual edit changes a false fact to a true one).
    """
    edits = []
    for case in cases:
        request = case.request
        if case.record_format != "zsre":
            edits.append((case, "counterfactual", request.target_true))
            continue
        # Every row has a number of its own: a record's place twice, and one more for its second edit.
        answer, (predicted, alternative) = request.target_new, (_other_answer(case, name) for name in ("pred", "alt"))
        believed = replace(request, target_true=Entity(None, predicted))
        edits.append((_edit_of(case, 2 * case.case_id, believed, "answer"), "factual", answer))
        if alternative:
            changed = replace(request, target_new=Entity(None, alternative), target_true=answer)
            edits.append((_edit_of(case, 2 * case.case_id + 1, changed, "alt"), "counterfactual", answer))
    return edits


def _other_answer(case: Case, name: str) -> str:
    """Return an answer of a zsRE record that is not its true one; "" where there is none."""
    answer = str(case.extra.get(name) or "").strip()
    return "" if answer == case.request.target_new.label else answer


_FOLLOWS = ("portability", "portability_prompt", "portability_ground_truth")


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


def _identify(claims: RecordedClaims, cases: Sequence[Case]) -> tuple[list[CoupledEdit], Counter[str]]:
    """Link subjects and truths; reason -> number of edits that cannot be linked."""
    edits = edits_of(cases)
    subjects = [str(case.extra.get("subject_id") or "") for case, _, _ in edits]
    unknown = [case.request.subject for (case, _, _), id in zip(edits, subjects, strict=True) if not id]
    names = claims.named([*unknown, *(truth.label for _, _, truth in edits if not truth.id)])
    claims.of(id for ids in names.values() for id in ids[:RELATED])
    linked, skipped = [], Counter[str]()
    for (case, kind, truth), subject_id in zip(edits, subjects, strict=True):
        subjects_found = [subject_id] if subject_id else names[case.request.subject]
        truths_found = [truth.id] if truth.id else names[truth.label]
        if not subjects_found or not truths_found:
            skipped["subject not found" if not subjects_found else "old target not found"] += 1
            continue
        id = _likeliest(claims, subjects_found[:RELATED], case.request.relation_id, truths_found)
        subject = Entity(id, case.request.subject)
        answer = Entity(_answer(claims, id, truths_found), truth.label)
        linked.append(CoupledEdit(case, kind, subject, answer, len(subjects_found)))
    return linked, skipped


def _likeliest(claims: RecordedClaims, ids: Sequence[str], relation_id: str, truths: Sequence[str]) -> str:
    """Return the first of several entities of one name, the best known first, that holds the truth; else the first."""
    for id, held in claims.of(ids).items():
        values = held.get(relation_id, ()) if relation_id else [value for row in held.values() for value in row]
        if set(values) & set(truths):
            return id
    return ids[0]


def _answer(claims: RecordedClaims, subject: str, truths: Sequence[str]) -> str:
    """Return the first entity of the answer's name that the subject names, else the first."""
    values = {value for row in claims.of([subject])[subject].values() for value in row}
    return next((id for id in truths if id in values), truths[0])


def _pairs(held: Mapping[str, Sequence[str]]) -> set[tuple[str, str]]:
    return {(name, value) for name, values in held.items() for value in values}


def _closest(claims: RecordedClaims, subject: str, related: Sequence[Coupling]) -> tuple[Coupling, int]:
    """Return the first entity that shares most (property, value) pairs with the subject, and how many it shares."""
    own = _pairs(claims.of([subject])[subject])
    held = claims.of(coupling.id for coupling in related)
    counted = [(coupling, len(own & _pairs(held[coupling.id]))) for coupling in related]
    return max(counted, key=lambda pair: pair[1])


def _profile(
    entity: Entity, held: Mapping[str, Sequence[str]], other: str, truth: str, others: Mapping[str, Sequence[str]],
    labels: Mapping[str, str],
) -> Profile:  # fmt: skip
    """Return what is true of an entity, and how it couples with the other one; what has no name is left out."""
    named = {
        name: [value for value in values if value in labels] for name, values in sorted(held.items()) if name in labels
    }
    truths = {name: values for name, values in named.items() if values}
    coupled: dict[str, str] = {}
    for name, values in truths.items():
        same = not set(values).isdisjoint(others.get(name, ()))
        how = "other" if other in values else "target" if truth in values else "shared" if same else ""
        coupled |= {name: how} if how else {}
    return Profile(entity, truths, coupled)


def couple(facts: Facts, claims: RecordedClaims, cases: Sequence[Case]) -> tuple[list[Coupled], Counter[str]]:
    """Find the related entity of every edit and what is true of both.

    Args:
        facts: Knows names.
        claims: Knows claims and links.
        cases: CounterFact or zsRE records.

    Returns:
        The coupled edits, in the order of the records, and reason -> number of edits that have no couple: the subject
        or the old target is not found by its name, or nothing named has links to both.

    Raises:
        SourceError: The source does not answer.
    """
    edits, skipped = _identify(claims, cases)
    pairs = [(str(edit.subject.id), str(edit.truth.id)) for edit in edits]
    related = claims.couplings(pairs, RELATED)
    claims.of([*(subject for subject, _ in pairs), *(row.id for rows in related.values() for row in rows)])
    chosen = {pair: _closest(claims, pair[0], rows) for pair, rows in related.items() if rows}
    held = claims.of({id for (subject, _), (row, _) in chosen.items() for id in (subject, row.id)})
    labels = facts.labels(sorted({*held, *(word for row in held.values() for pair in _pairs(row) for word in pair)}))
    couples = []
    for edit, pair in zip(edits, pairs, strict=True):
        if pair not in chosen:
            skipped["no related entity"] += 1
            continue
        coupling, shared = chosen[pair]
        (subject, truth), other = pair, coupling.id
        profiles = (
            _profile(edit.subject, held[subject], other, truth, held[other], labels),
            _profile(Entity(other, labels[other]), held[other], subject, truth, held[subject], labels),
        )
        couples.append(Coupled(edit, *profiles, coupling.links, shared))
    return couples, skipped
