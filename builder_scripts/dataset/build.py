"""The whole build: a source and rules in, a dataset folder out.

Edits first, then everything about the people they need in a bounded number of queries, then cases, written as they are
made. The folder appears under its name only when it is complete.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from seesaw_cf.builder_scripts.dataset.card import METADATA, card_body, drawn_section, size_category
from seesaw_cf.builder_scripts.dataset.coupled import about_coupled
from seesaw_cf.builder_scripts.dataset.shards import write_cases, write_rows
from seesaw_cf.builder_scripts.dataset.statistics import Statistics
from seesaw_cf.builder_scripts.make.cases import cross_subject
from seesaw_cf.builder_scripts.make.coupled import Coupled
from seesaw_cf.builder_scripts.make.coupled_rows import coupled_table
from seesaw_cf.builder_scripts.make.cross_property import cross_property
from seesaw_cf.builder_scripts.make.edits import Edit, generate, listed_values
from seesaw_cf.builder_scripts.make.open_ended import open_ended
from seesaw_cf.builder_scripts.make.rows import candidates, demographics
from seesaw_cf.builder_scripts.make.seeds import seed_edits
from seesaw_cf.builder_scripts.make.zsre import asked_relation
from seesaw_cf.builder_scripts.options import BuildOptions
from seesaw_cf.builder_scripts.source.draws import BATCH, VALUES
from seesaw_cf.builder_scripts.source.people import FEMALE, MALE, MARGIN, Facts, Holder
from seesaw_cf.records.card import write_card
from seesaw_cf.records.relations import RELATIONS
from seesaw_cf.types import Case

FIRST_ID = 100_001  # of generated cross-subject edits beside those of a file; CounterFact's numbers end before
FIRST_PAIR_ID = 200_001

NO_COUPLES: Mapping[str, Sequence[Coupled]] = {}

# config -> one line for the card; the first is the default
CONFIGS = {
    "cross_subject": "edits of five relations, and cloze prompts about other people who hold the new or the old value",
    "cross_property": "edits, and whether another property of the same person keeps its answer, for eight pairs",
    "open_ended": "guided and free descriptions of edited people",
    "candidates": "answers of every relation, with area, country and continent",
    "demographics": "what is recorded about every person, with group tags and provenance",
}


@dataclass(frozen=True, slots=True)
class About:
    """Texts of one dataset's card.

    Attributes:
        words: "intro", "making" and "limits": paragraphs in which "{people}" stands for the number of people; "folder"
            where the card is not in the package folder itself.
        version: "major.minor.patch".
        references: The source has titles of references for every statement.
        date: Day on which the source had these facts, YYYY-MM-DD; "" where only its replies tell.
    """

    words: Mapping[str, str]
    version: str = "1.0.0"
    references: bool = False
    date: str = ""


@dataclass(frozen=True, slots=True)
class Edits:
    """The edits of a build.

    Attributes:
        generated: Relation -> edits drawn from the source.
        seeds: Edits out of files; they replace the generated ones of their relations in cross-subject cases.
        skipped: Why records of the files made no edit -> how many.
    """

    generated: Mapping[str, Sequence[Edit]]
    seeds: Sequence[Edit] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)

    @property
    def cross_subject(self) -> list[Edit]:
        """Given edits, then generated ones of the other relations."""
        covered = {edit.relation_id for edit in self.seeds}
        drawn = (edit for id, edits in self.generated.items() if id not in covered for edit in edits)
        return [*self.seeds, *drawn]


def choose_edits(facts: Facts, seeds: Sequence[Case] = ()) -> Edits:
    """Draw the edits of every relation, and identify the subjects of those out of files."""
    edits, skipped = seed_edits(facts, seeds) if seeds else ([], Counter())
    generated = {id: generate(facts, id) for id in RELATIONS}
    return Edits(generated, edits, skipped)


def _holders(options: BuildOptions, edits: Iterable[Edit]) -> Iterator[Holder]:
    """Return the values that cases need holders of."""
    genders = (MALE, FEMALE, *([""] if options.other_genders else []))
    for edit in edits:
        values = [edit.new] if options.per_gender else []
        values += [edit.true] if options.true_per_gender or options.neighborhood else []
        yield from ((edit.relation_id, value, gender) for value in values for gender in genders)


def query_bounds(options: BuildOptions, seeds: Sequence[Case] = ()) -> dict[str, int]:
    """Return how many queries a build asks at most, without asking any.

    Args:
        options: The rules.
        seeds: Records out of files.

    Returns:
        What for -> number. People can be fewer: many hold several values.
    """
    genders = 3 if options.other_genders else 2
    usable = {id: [case for case in seeds if _relation(case) == id] for id in RELATIONS}
    holders = 0
    for id, cases in usable.items():
        targets = {name for case in cases for name in _targets(case)}
        drawn = min(2 * options.edits.get(id, 0), len(listed_values(id)) or VALUES)
        holders += genders * (len(targets) + drawn)
    people = holders * (max(options.per_gender, options.true_per_gender) + MARGIN)
    names = len({case.request.subject for cases in usable.values() for case in cases})
    return {
        "names of edited people": -(-names // (BATCH // 2)),
        "values that are held, and their labels": 2 * sum(
            -(-(len(listed_values(id)) or VALUES) // BATCH) for id in RELATIONS
        ),
        "people to edit": 2 * len(RELATIONS),
        "holders of a value": holders,
        "people and their labels": 2 * -(-(people + 4 * sum(options.edits.values())) // BATCH),
    }  # fmt: skip


def _relation(case: Case) -> str:
    return asked_relation(case) if case.record_format == "zsre" else case.request.relation_id


def _targets(case: Case) -> tuple[object, object]:
    """Return a key of the two targets of a record."""
    if case.record_format == "zsre":
        return case.request.target_new.label, case.extra.get("alt")
    return case.request.target_new.id, case.request.target_true.id


@dataclass(slots=True)
class _Counted:
    """What the later configs need of the cases that were written."""

    statistics: Statistics = field(default_factory=Statistics)
    people: set[str] = field(default_factory=set)
    prompts: list[pa.Table] = field(default_factory=list)

    def count(self, config: str, cases: Iterable[Case]) -> Iterator[Case]:
        """Pass cases through and count them."""
        for case in cases:
            self.statistics.add(case)
            rows = (*case.attribute_prompts, *case.effect_prompts)
            self.people.update(row.subject.id for row in rows if row.subject.id)
            self.people.update(filter(None, [case.extra["subject_id"]]))
            self.prompts.append(open_ended(config, [case]))
            yield case


def build(
    out: str | os.PathLike[str],
    facts: Facts,
    edits: Edits,
    about: About,
    couples: Mapping[str, Sequence[Coupled]] = NO_COUPLES,
) -> Statistics:
    """Write the configs and the card into a folder; the same bytes for the same answers of the source.

    Args:
        out: The folder; make it with `seesaw_cf.io.files.atomic_folder` when other programs read it.
        facts: Where people come from, with the rules.
        edits: See `choose_edits`.
        about: The card's words.
        couples: Config -> edits with a related entity: `coupled_counterfact`, `coupled_zsre`.

    Returns:
        The counts that the card shows.

    Raises:
        SourceError: The source does not answer.
        StorageError: The disk is full.
    """
    chosen, counted = edits.cross_subject, _Counted()
    facts.prefetch(_holders(facts.options, chosen))
    subject_cases = cross_subject(facts, facts.progress(chosen, "cases"), FIRST_ID if edits.seeds else 1)
    write_cases(out, "cross_subject", counted.count("cross_subject", subject_cases), len(chosen))
    pairs = list(counted.count("cross_property", cross_property(facts, edits.generated, FIRST_PAIR_ID)))
    write_cases(out, "cross_property", pairs, len(pairs))
    tables = {
        "open_ended": pa.concat_tables(counted.prompts),
        "candidates": candidates(facts),
        "demographics": demographics(facts, facts.people(sorted(counted.people)), references=about.references),
    }
    configs = dict(CONFIGS)
    for name, rows in couples.items():
        tables[name] = coupled_table(facts, rows, name)
        configs[name] = about_coupled(len(rows))
    for name, table in tables.items():
        write_rows(out, name, [table], table.schema)
    drawn = drawn_section(facts.draws)
    body = card_body(counted.statistics, tables, facts.options, about.words, edits.skipped, drawn)
    metadata = METADATA | {"size_categories": [size_category(len(chosen) + len(pairs))]}
    write_card(out, configs, body=body, metadata=metadata, version=about.version)
    return counted.statistics
