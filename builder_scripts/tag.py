"""The whole of `tag`: read records, ask one source about their people, attach tags and answers, write the dataset.

Source: SEESAW-CF section 3.2 and Appendix A: an answer is ranked among all values of the paper's table of the watched
property; gold are those recorded for the edited person; a record without gold has no candidates.
Deviates: an edited person that a record only names is a person who holds the edited fact, never just the first of that
name.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from seesaw_cf import __version__
from seesaw_cf.base.errors import RecordError, hide_secrets
from seesaw_cf.base.files import atomic_folder, dump_json
from seesaw_cf.base.terminal import markdown_for_terminal
from seesaw_cf.base.types import Case, Entity, TableRow
from seesaw_cf.builder_scripts import Asking, BuildOptions, TagJob
from seesaw_cf.builder_scripts.build import endpoint_url, open_source
from seesaw_cf.builder_scripts.card import TAG_CARD, coverage_of, coverage_text
from seesaw_cf.builder_scripts.cases import asked_about, gold_answers, tested
from seesaw_cf.builder_scripts.edits import likeliest, listed_values
from seesaw_cf.builder_scripts.facts import Facts
from seesaw_cf.builder_scripts.sparql import (
    FEMALE,
    MALE,
    SITELINKS,
    RecordedPerson,
    by_person,
    entity_id,
    is_identifier,
    known_tags,
    person_of,
    tags_of,
)
from seesaw_cf.records import groups
from seesaw_cf.records.arrow import TEXT, cases_to_table, read_cases
from seesaw_cf.records.card import write_card, write_config, write_rows
from seesaw_cf.records.coupled import coupled_part, edited_id
from seesaw_cf.records.importing import config_files, digest, write_open_ended
from seesaw_cf.records.relations import RELATIONS

LISTED = tuple(groups.AXES)
# What the tags are made of; P31, which every item has, tells who is there at all.
_TAGGED = ("P21", "P31", "P172", "P569", "P570", SITELINKS)
BY_NAME, NAMESAKES = "edited people found by name", "of them with namesakes who hold the edited fact too"
FACTS_CONFIG = "tag_facts"  # beside the configs of cases
FACTS: pa.Schema = pa.schema(dict.fromkeys(("person", "entity", "property", "value", "source", "time"), TEXT))
SUMMARY = "tags.json"
_ROWS_PER_GROUP = 50_000  # of the facts
# How the provenance of the papers' values begins, in the table of each property that pairs watch.
_PAPER_VALUES = {"P101": "SEESAW-CF field table", "P27": "SEESAW-CF citizenship table", "P19": "SEESAW-CF city table"}


@dataclass(slots=True)
class People:
    """What a source says about the people of records.

    Attributes:
        persons: Identifier -> values and tags; that of a merged one has another identifier.
        facts: Identifier -> rows of `FACTS` that they rest on.
        names: Name of an edited person without identifier -> identifiers of the people of that name.
    """

    persons: dict[str, RecordedPerson] = field(default_factory=dict)
    facts: dict[str, list[TableRow]] = field(default_factory=dict)
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)


def run_tag(job: TagJob, out: Path, asking: Asking | None = None) -> str:
    """Write tagged records, the facts behind the tags, a card and the counts into a folder; return what to print.

    Args:
        job: The records and the source.
        out: The folder; it appears under its name only when it is complete.
        asking: How the source is asked.

    Raises:
        RecordError: No record identifies a person, the source knows none of them, or a config is named like the facts.
        SourceError: The source does not answer.
        StorageError: A file is missing, or the disk is full.
    """
    files = config_files(job.records)
    records = {config: read_cases(path) for config, path in files.items()}
    if FACTS_CONFIG in records:
        raise RecordError(f"{files[FACTS_CONFIG]}: config {FACTS_CONFIG!r} is taken by the facts. Rename it.")
    name = hide_secrets(endpoint_url(job.source) or Path(job.source).name)
    facts = Facts(open_source(job.source, asking or Asking()), BuildOptions(language=job.language))
    everything = [case for cases in records.values() for case in cases]
    with atomic_folder(out) as folder:
        people = ask(facts, name, everything)
        cases, outcomes = attach(everything, people)
        coverage = coverage_of(people.persons, everything, cases, outcomes)
        text, rest = coverage_text(name, coverage), iter(cases)
        tagged = {config: [next(rest) for _ in rows] for config, rows in records.items()}
        for config, rows in tagged.items():
            write_config(folder, config, cases_to_table(rows))
        about = {config: f"{len(rows)} cases of {files[config].name}, tagged" for config, rows in records.items()}
        about |= write_open_ended(folder, tagged)
        about[FACTS_CONFIG] = "what the source says about the people of the records"
        rows_of_facts = (row for id in sorted(people.facts) for row in people.facts[id])
        parts = iter(lambda: list(islice(rows_of_facts, _ROWS_PER_GROUP)), [])
        write_rows(folder, FACTS_CONFIG, (pa.Table.from_pylist(part, FACTS) for part in parts), FACTS)
        metadata = {"pretty_name": "Tagged edit cases", "language": ["en"]}
        write_card(folder, about, template=TAG_CARD, metadata=metadata, source=name, coverage=text)
        digests = {c: {"source": p.name, "sha256": digest(p), "cases": len(records[c])} for c, p in files.items()}
        source = {"name": name, "identity": hide_secrets(facts.source.identity)}
        made = {"made_by": f"seesaw_cf {__version__}", "source": source, "records": digests, "coverage": coverage}
        dump_json(folder / SUMMARY, made, ensure_ascii=False)
    configs = " ".join(f"--config {config}" for config in records)
    written = f"Written to {out}: the facts in config {FACTS_CONFIG}, these counts in {SUMMARY}."
    return f"{markdown_for_terminal(text)}\n\n{written}\nUse it with --data {out} {configs}."


def is_pair(case: Case) -> bool:
    """Return whether a record watches another property of its subject than the edited one."""
    return case.effect_relation_id not in (None, case.request.relation_id)


def is_person_id(id: str) -> bool:
    """Return whether a text of a record identifies a person: a QID or an IRI, no property."""
    return not id.startswith("P") and is_identifier(id)


def subject_id(case: Case) -> str:
    """Return the identifier of the edited person where the record has one, else ""."""
    id = edited_id(case)
    return id if is_person_id(id) else ""


def look_up(people: People, facts: Facts, source: str, ids: Collection[str], properties: Iterable[str] = ()) -> None:
    """Add what is recorded about people; merged identifiers are followed, those without any record are left out.

    Args:
        people: Gets it.
        facts: Who is asked.
        source: As it is called in the rows.
        ids: Of the people.
        properties: Relations with values that are needed in addition to the tags.

    Raises:
        SourceError: The source refuses, or does not finish even a query about one person in time.
    """
    listed = list(dict.fromkeys((*_TAGGED, *properties)))

    def recorded(ids: Collection[str]) -> People:
        answers = list(facts.source.gather("facts", "people", ids, listed=listed))
        rows: dict[str, list[TableRow]] = defaultdict(list)
        for answer in answers:
            id, name, value = (entity_id(answer[key]) for key in ("person", "property", "value"))
            about = {"source": source, "time": answer["time"], "property": "sitelinks" if name == SITELINKS else name}
            rows[id].append({"person": id, "entity": id, "value": value, **about})
        return People({id: person_of(Entity(id, ""), values) for id, values in by_person(answers).items()}, rows)

    own = recorded(ids)
    redirects = facts.source.gather("redirects", "people", [id for id in ids if id not in own.persons])
    targets = {entity_id(row["person"]): entity_id(row["target"]) for row in redirects}
    others = recorded(set(targets.values()))
    merged = {id: target for id, target in targets.items() if target in others.persons}
    people.persons |= own.persons | {id: others.persons[target] for id, target in merged.items()}
    people.facts |= own.facts
    people.facts |= {id: [row | {"person": id} for row in others.facts[target]] for id, target in merged.items()}


def ask(facts: Facts, source: str, cases: Sequence[Case]) -> People:
    """Ask about all people: what the tags need, and of edited people the values of the relations too.

    Names lead to identifiers for the edited people of pair records only, which have none in the released files; who is
    meant is decided later, by the edited fact.

    Raises:
        RecordError: No record identifies a person, or the source knows none of them.
        SourceError: The source does not answer.
    """
    ids = {str(row.subject.id) for case in cases for row in tested(case) if is_person_id(row.subject.id or "")}
    pairs = [case for case in cases if is_pair(case)]
    edited = {id for case in cases if (is_pair(case) or coupled_part(case)) and (id := subject_id(case))}
    labels = sorted({case.request.subject for case in pairs if not subject_id(case)})
    if not ids | edited and not labels:
        remedy = "Give records with attribute_aux_info, or make prompts with `seesaw-cf build --edits FILE`."
        raise RecordError(f"none of the {len(cases)} records identifies anybody by a QID. {remedy}")
    people = People(names=facts.named(labels))
    edited |= {id for named in people.names.values() for id in named}
    look_up(people, facts, source, sorted(ids - edited))
    look_up(people, facts, source, sorted(edited), RELATIONS)
    if not people.persons:
        some = ", ".join([*sorted(ids | edited), *labels][:3])
        raise RecordError(
            f"{source} knows nobody: it was asked about {len(ids | edited):,} people ({some}, ...). Check that it is "
            "the right source, in Wikidata's shape (direct properties such as wdt:P21 of wd:Q42)."
        )
    return people


@cache
def paper_candidates(relation_id: str) -> Mapping[str, str]:
    """Return identifier -> name of the papers' 219 fields, 90 countries, 232 places or 2 genders, else {}.

    Two countries share a name, as do two places, so that there are 89 and 231 candidates.
    """
    rows = listed_values(relation_id)
    if relation_id == "P21":
        return {id: rows[id]["label"] for id in (MALE, FEMALE)}
    begin = _PAPER_VALUES.get(relation_id)
    return {id: row["label"] for id, row in rows.items() if begin and row["provenance"].startswith(begin)}


def attach(cases: Sequence[Case], people: People) -> tuple[list[Case], Counter[str]]:
    """Tag every prompt about a person that the source knows, and answer every pair with an identified person.

    Args:
        cases: Records.
        people: What the source says.

    Returns:
        The same cases in the same order; tags that they had are kept in addition to the new ones. And what became of
        pairs: "gold", "had gold" or why there is no gold answer -> records; `BY_NAME`, `NAMESAKES` -> edited people.
    """
    tags: dict[str, dict[str, Any]] = {}
    for row in (row for case in cases for row in tested(case)):
        id = row.subject.id or ""
        if id not in tags:
            tags[id] = tags_of(people.persons[id]) if id in people.persons else {}
        if id and known_tags(row):
            tags[id] = _united(tags[id], tags_of(row)) if tags[id] else tags_of(row)
    outcomes: Counter[str] = Counter()
    tagged = []
    for case in cases:
        attribute, effect = (
            tuple(replace(row, **tags[row.subject.id or ""]) for row in rows)
            for rows in (case.attribute_prompts, case.effect_prompts)
        )
        case = replace(case, attribute_prompts=attribute, effect_prompts=effect)
        if is_pair(case):
            case, reason = _answered(case, str(case.effect_relation_id), people, outcomes)
            outcomes[reason] += 1
        tagged.append(case)
    return tagged, outcomes


def _united(known: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return tags with those of a record in addition; who is recorded as dead in one of them is not living."""
    living = [tags["living"] for tags in (own, known) if tags["living"] is not None]
    return {
        **{tag: tuple(sorted({*known[tag], *own[tag]})) for tag in LISTED},
        "living": all(living) if living else None,
        "sitelinks": known["sitelinks"] if own["sitelinks"] is None else own["sitelinks"],
    }


def _answered(case: Case, effect: str, people: People, outcomes: Counter[str]) -> tuple[Case, str]:
    """Return a record of a pair with candidates and gold, and "gold" or why it has none."""
    if case.effect_prompts and case.candidates and case.gold:
        return case, "had gold"
    names = paper_candidates(effect)
    if not names:
        return case, f"the papers list no answers for {effect}"
    subject = _subject(case, people, outcomes)
    if isinstance(subject, str):
        return case, f"edited person: {subject}"
    case = replace(case, extra=case.extra | {"subject_id": subject.id})
    if not gold_answers(subject, effect, names):
        return case, f"no value of {effect} recorded that is one of the papers' answers"
    return asked_about(case, effect, subject, names), "gold"


def _subject(case: Case, people: People, outcomes: Counter[str]) -> RecordedPerson | str:
    """Return who is edited, under the record's own name, or the reason when nobody can be identified."""
    given, request = subject_id(case), case.request
    ids = [given] if given else sorted(people.names.get(request.subject, ()))
    humans = [replace(people.persons[id], entity=Entity(id, request.subject)) for id in ids if id in people.persons]
    if given:
        return humans[0] if humans else "nothing recorded"
    holders = [person for person in humans if request.target_true.id in person.holds(request.relation_id)]
    if not holders:
        return "nobody of that name holds the edited fact" if humans else "no human found"
    person, tied = likeliest(case, holders)
    if tied:
        return "several of that name hold the edited fact and are as well known"
    outcomes[BY_NAME] += 1
    outcomes[NAMESAKES] += len(holders) > 1
    return person
