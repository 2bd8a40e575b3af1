"""The whole build: a source and rules in, a dataset folder out.

Edits first, then everything about the people they need in a bounded number of queries, then cases, written as they are
made. The folder appears under its name only when it is complete.
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
from seesaw_cf.builder_scripts.dataset.card import METADATA, card_body, drawn_section, given_rule, size_category
from seesaw_cf.builder_scripts.dataset.columns import columns_section
from seesaw_cf.builder_scripts.dataset.statistics import Statistics, markdown
from seesaw_cf.builder_scripts.make.cases import candidates, cross_subject, demographics
from seesaw_cf.builder_scripts.make.coupled import COUPLED_SCHEMAS, Coupled, couple, coupled_table
from seesaw_cf.builder_scripts.make.cross_property import cross_property
from seesaw_cf.builder_scripts.make.edits import Edit, generate, listed_values
from seesaw_cf.builder_scripts.make.seeds import seed_edits
from seesaw_cf.builder_scripts.make.zsre import asked_relation
from seesaw_cf.builder_scripts.options import BuildOptions
from seesaw_cf.builder_scripts.source.claims import Claims
from seesaw_cf.builder_scripts.source.draws import VALUES
from seesaw_cf.builder_scripts.source.people import FEMALE, MALE, MARGIN, Facts, Holder
from seesaw_cf.builder_scripts.source.sources import BATCH
from seesaw_cf.records.arrow import CASES, cases_to_table
from seesaw_cf.records.card import write_card
from seesaw_cf.records.open_ended import open_ended
from seesaw_cf.records.relations import RELATIONS

# Cases to Parquet as they come: a few are held at a time.

CASES_PER_SHARD = 500
CASES_PER_GROUP = 20  # about 80,000 prompts at most


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
    """Write tables of one schema into one file, each a row group.

    Args:
        folder, config: Where to.
        tables: Made while they are written.
        schema: Of all of them.
        place: Number of the file, and how many there are.

    Returns:
        The number of rows.

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


# Writes LEME's Coupled Entity Prompts as a data set folder.


def about_coupled(rows: int) -> str:
    """Return the card's line about a config of coupled edits."""
    return f"{rows:,} edits, each with a related entity, what is true of both, and prompts about both"


def couples_of(facts: Facts, claims: Claims, cases: Sequence[Case]) -> tuple[dict[str, list[Coupled]], Counter[str]]:
    """Couple the records of each config.

    Args:
        facts, claims: Where names, claims and links come from.
        cases: CounterFact (or SEESAW-CF) and zsRE records.

    Returns:
        Config -> its coupled edits, where there are any, and "config: reason" -> number of edits without couple.

    Raises:
        RecordError: No edit has a couple.
        SourceError: The source does not answer.
    """
    couples: dict[str, list[Coupled]] = {}
    counts: Counter[str] = Counter()
    for config, zsre in (("coupled_counterfact", False), ("coupled_zsre", True)):
        rows, skipped = couple(facts, claims, [case for case in cases if (case.record_format == "zsre") == zsre])
        counts.update({f"{config}: {reason}": number for reason, number in skipped.items()})
        couples |= {config: rows} if rows else {}
    if not couples:
        raise RecordError(
            f"no coupled edits: of {len(cases)} records none has a related entity in the source ({dict(counts)}). "
            "Check that the source holds the subjects and their links, and its language."
        )
    return couples, counts


def build_coupled(
    out: str | os.PathLike[str],
    facts: Facts,
    claims: Claims,
    cases: Sequence[Case],
    source: str,
    version: str = "1.0.0",
) -> Counter[str]:
    """Write the configs `coupled_counterfact` and `coupled_zsre` and their card into a folder.

    Args:
        out: The folder; make it under a temporary name when other programs read it.
        facts, claims: Where names, claims and links come from.
        cases: CounterFact (or SEESAW-CF) and zsRE records.
        source: Identity of the source of the facts, for the card.
        version: "major.minor.patch".

    Returns:
        What was counted: rows per config, and edits without couple per reason.

    Raises:
        RecordError: No edit has a couple.
        SourceError: The source does not answer.
        StorageError: The disk is full.
    """
    couples, counts = couples_of(facts, claims, cases)
    configs = {}
    for config, rows in couples.items():
        write_rows(out, config, [coupled_table(facts, rows, config)], COUPLED_SCHEMAS[config])
        counts[config] = len(rows)
        configs[config] = about_coupled(len(rows))
    body = _BODY.format(
        source=source,
        columns=columns_section({name: COUPLED_SCHEMAS[name] for name in configs}),
        counts=markdown(["Rows", "Number"], counts.items()),
    )
    write_card(out, configs, body=body, metadata=_METADATA | _languages(facts), version=version)
    return counts


def _languages(facts: Facts) -> dict[str, list[str]]:
    """Return the card's languages: that of the prompts, and that of the names."""
    return {"language": list(dict.fromkeys(["en", facts.options.language.partition("-")[0]]))}


_METADATA = {"license": "mit", "language": ["en"], "pretty_name": "Coupled Entity Prompts", "tags": ["model-editing"]}
_BODY = """# Coupled Entity Prompts

For every edit an entity that is closely related to its subject and to what was true before, the facts that a source
records about both, and two prompts. Made by `seesaw-cf build --coupled-only`, after the paper on long-form evaluation
of model editing (LEME, section 3.1 and Appendix A). The source is `{source}`; `build.json` has the digests of the files
of edits.

{columns}

`coupled` is *other* (a value is the other entity), *target* (a value is the old target), *shared* (both entities have
the value) or empty. The prompts `essay` and `article` name properties without their values. The paper takes the related
entity with the most links; here it is, of the ten most linked, the one that shares most facts with the subject.

{counts}

Properties about the item or Wikimedia pages instead of the thing are left out by identifier
(`seesaw_cf/data/tables/excluded_properties.csv`). What an edit makes a model say may be false on purpose.
"""


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
            self.people.update(filter(None, [case.extra["subject_id"], *(row.subject.id for row in rows)]))
            self.prompts.append(open_ended(config, [case]))
            yield case


def build(
    out: str | os.PathLike[str], facts: Facts, edits: Edits, about: About, couples: Mapping[str, Sequence[Coupled]] = {}
) -> Statistics:
    """Write the configs and the card into a folder; the same bytes for the same answers of the source.

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
    configs = dict(CONFIGS)
    if pairs:
        write_cases(out, "cross_property", pairs, len(pairs))
    else:
        del configs["cross_property"]  # `datasets` opens no config without rows
    tables = {
        "open_ended": pa.concat_tables(counted.prompts),
        "candidates": candidates(facts),
        "demographics": demographics(facts, facts.people(sorted(counted.people)), references=about.references),
    }
    for name, rows in couples.items():
        tables[name] = coupled_table(facts, rows, name)
        configs[name] = about_coupled(len(rows))
    for name, table in tables.items():
        write_rows(out, name, [table], table.schema)
    drawn = given_rule({edit.relation_id for edit in edits.seeds}) + drawn_section(facts.draws)
    body = card_body(counted.statistics, tables, facts.options, about.words, edits.skipped, drawn)
    metadata = METADATA | {"size_categories": [size_category(len(chosen) + len(pairs))]} | _languages(facts)
    write_card(out, configs, body=body, metadata=metadata, version=about.version)
    return counted.statistics
