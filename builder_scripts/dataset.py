"""A dataset folder: Parquet shards of every config, and the card.

Edits first, then everything about the people they need in a bounded number of queries, then cases, written as they are
made. The same answers of the source give the same bytes.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from seesaw_cf.base.errors import RecordError, SeesawError, StorageError
from seesaw_cf.base.types import Case
from seesaw_cf.builder_scripts.card import CARD, COUPLED_CARD, METADATA, card_texts, columns_section
from seesaw_cf.builder_scripts.cases import cross_property, cross_subject
from seesaw_cf.builder_scripts.coupled import Coupled
from seesaw_cf.builder_scripts.edits import Edit, generate
from seesaw_cf.builder_scripts.jobs import BuildOptions
from seesaw_cf.builder_scripts.people import FEMALE, MALE, Facts, Holder
from seesaw_cf.builder_scripts.seeds import seed_edits
from seesaw_cf.builder_scripts.statistics import Statistics, markdown
from seesaw_cf.builder_scripts.tables import COUPLED_SCHEMAS, candidates, coupled_table, demographics
from seesaw_cf.records.arrow import CASES, cases_to_table
from seesaw_cf.records.card import write_card
from seesaw_cf.records.open_ended import open_ended
from seesaw_cf.records.relations import RELATIONS, relation

CASES_PER_SHARD = 500
CASES_PER_GROUP = 20  # about 80,000 prompts at most; so many cases are held at a time
FIRST_ID = 100_001  # of generated cross-subject edits beside those of a file; CounterFact's numbers end before
FIRST_PAIR_ID = 200_001

# config -> one line for the card; the first is the default
CONFIGS = {
    "cross_subject": "edits of five relations, and cloze prompts about other people who hold the new or the old value",
    "cross_property": "edits, and whether another property of the same person keeps its answer, for eight pairs",
    "open_ended": "guided and free descriptions of edited people",
    "candidates": "answers of every relation, with area, country and continent",
    "demographics": "what is recorded about every person, with group tags and provenance",
}


def _chunks(cases: Iterator[Case], size: int, total: int) -> Iterator[pa.Table]:
    """Yield tables of at most `size` cases, at most `total` cases in all."""
    while total > 0 and (chunk := list(islice(cases, min(size, total)))):
        yield cases_to_table(chunk)
        total -= len(chunk)


def write_cases(folder: str | os.PathLike[str], config: str, cases: Iterable[Case], count: int) -> None:
    """Write cases as `folder/data/CONFIG/test-00000-of-0000N.parquet`, 500 in each file, the same bytes each time.

    Args:
        folder: A folder that becomes visible only when it is complete; files are written directly.
        config: Name of the config.
        cases: The cases, made while they are written.
        count: How many there are.

    Raises:
        RecordError: There are more or fewer.
        StorageError: The disk is full.
    """
    shards = max(1, -(-count // CASES_PER_SHARD))
    rest = iter(cases)
    total = sum(
        write_rows(folder, config, _chunks(rest, CASES_PER_GROUP, CASES_PER_SHARD), CASES, (number, shards))
        for number in range(shards)
    ) + sum(1 for _ in rest)
    if total != count:
        raise RecordError(
            f"config {config!r}: {total} cases were made, expected {count}. Give the number of the cases: the names of "
            "the files depend on it."
        )


def write_rows(
    folder: str | os.PathLike[str],
    config: str,
    tables: Iterable[pa.Table],
    schema: pa.Schema,
    place: tuple[int, int] = (0, 1),
) -> int:
    """Write tables of one schema into one file, each a row group, and return the number of rows.

    Args:
        folder, config: Where to.
        tables: Made while they are written.
        schema: Of all of them.
        place: Number of the file, and how many there are.

    Raises:
        StorageError: The disk is full.
    """
    path = Path(folder) / "data" / config / f"test-{place[0]:05d}-of-{place[1]:05d}.parquet"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = 0
        with pq.ParquetWriter(path, schema, compression="zstd") as writer:
            for table in tables:
                writer.write_table(table)
                rows += table.num_rows
    except OSError as error:
        if isinstance(error, SeesawError):
            raise
        raise StorageError(
            f"could not write {path}: {error}. Free some space, then run the same command again."
        ) from error
    return rows


@dataclass(frozen=True, slots=True)
class About:
    """Texts of one dataset's card.

    Attributes:
        words: "intro", "making" and "limits": paragraphs in which "{people}" stands for the number of people.
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
    """Draw the edits of every relation, and identify the subjects of those out of files.

    Raises:
        UnknownNameError: Edits of an unknown relation are asked for.
    """
    for name in facts.options.edits:
        relation(name)
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
            self.people.update(filter(None, [case.extra["subject_id"], *(row.subject.id for row in rows)]))
            self.prompts.append(open_ended(config, [case]))
            yield case


def build(
    out: str | os.PathLike[str], facts: Facts, edits: Edits, about: About, couples: Mapping[str, Sequence[Coupled]] = {}
) -> Statistics:
    """Write the configs and the card into a folder.

    Args:
        out: The folder; make it with `seesaw_cf.base.files.atomic_folder` when other programs read it.
        facts: Where people come from, with the rules.
        edits: See `choose_edits`.
        about: The card's words.
        couples: Config -> edits with a related entity: `coupled_counterfact`, `coupled_zsre`.

    Returns:
        The counts that the card shows.

    Raises:
        RecordError: There is no edit.
        SourceError: The source does not answer.
        StorageError: The disk is full.
    """
    chosen, counted = edits.cross_subject, _Counted()
    if not chosen:
        raise RecordError(
            "build: there is no edit to make: no record of an edit file makes one, and no person to edit was drawn. "
            "Check --edits, --number, and that the source holds people with names in the language."
        )
    facts.prefetch(_holders(facts.options, chosen))
    first = max(FIRST_ID if edits.seeds else 1, *(1 + (edit.case_id or 0) for edit in chosen))
    subject_cases = cross_subject(facts, facts.progress(chosen, "cases"), first)
    write_cases(out, "cross_subject", counted.count("cross_subject", subject_cases), len(chosen))
    first_pair = max(FIRST_PAIR_ID, first + len(chosen))
    pairs = list(counted.count("cross_property", cross_property(facts, edits.generated, first_pair)))
    configs = {name: text for name, text in CONFIGS.items() if pairs or name != "cross_property"}
    if pairs:  # `datasets` opens no config without rows
        write_cases(out, "cross_property", pairs, len(pairs))
    tables = {
        "open_ended": pa.concat_tables(counted.prompts),
        "candidates": candidates(facts),
        "demographics": demographics(facts, facts.people(sorted(counted.people)), references=about.references),
    }
    tables |= {name: coupled_table(facts, rows, name) for name, rows in couples.items()}
    configs |= {name: _about_coupled(len(rows)) for name, rows in couples.items()}
    for name, table in tables.items():
        write_rows(out, name, [table], table.schema)
    given = {edit.relation_id for edit in edits.seeds}
    texts = card_texts(counted.statistics, tables, facts, about.words, edits.skipped, given)
    metadata = METADATA | {"size_categories": [size_category(len(chosen) + len(pairs))]} | _languages(facts)
    write_card(out, configs, template=CARD, metadata=metadata, version=about.version, **texts)
    return counted.statistics


def build_coupled(
    out: str | os.PathLike[str],
    facts: Facts,
    couples: Mapping[str, Sequence[Coupled]],
    counts: Mapping[str, int],
    source: str,
    version: str = "1.0.0",
) -> None:
    """Write nothing but the configs of coupled edits, and their card.

    Args:
        out: The folder; make it under a temporary name when other programs read it.
        facts: Where names come from.
        couples: Config -> edits with a related entity.
        counts: Rows, and edits without couple -> number.
        source: Identity of the source of the facts, for the card.
        version: "major.minor.patch".

    Raises:
        SourceError: The source does not answer.
        StorageError: The disk is full.
    """
    for name, rows in couples.items():
        write_rows(out, name, [coupled_table(facts, rows, name)], COUPLED_SCHEMAS[name])
    configs = {name: _about_coupled(len(rows)) for name, rows in couples.items()}
    metadata = {"license": "mit", "pretty_name": "Coupled Entity Prompts", "tags": ["model-editing"]}
    write_card(
        out,
        configs,
        template=COUPLED_CARD,
        metadata=metadata | _languages(facts),
        version=version,
        source=source,
        columns=columns_section({name: COUPLED_SCHEMAS[name] for name in configs}),
        counts=markdown(["Rows", "Number"], counts.items()),
    )


def _about_coupled(rows: int) -> str:
    return f"{rows:,} edits, each with a related entity, what is true of both, and prompts about both"


def _languages(facts: Facts) -> dict[str, list[str]]:
    """Return the card's languages: that of the prompts, and that of the names."""
    names = facts.options.language.partition("-")[0]
    return {"language": [names] if facts.options.templates else list(dict.fromkeys(["en", names]))}


def size_category(rows: int) -> str:
    """Return the Hub's word for a number of rows."""
    bounds = {1_000: "n<1K", 10_000: "1K<n<10K", 100_000: "10K<n<100K", 1_000_000: "100K<n<1M", 10_000_000: "1M<n<10M"}
    return next((name for bound, name in bounds.items() if rows < bound), "10M<n<100M")
