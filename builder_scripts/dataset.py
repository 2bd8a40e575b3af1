"""A dataset folder: Parquet shards of every config, and the card.

Edits first, then everything about the people they need in a bounded number of queries, then cases, written as they are
made. The same answers of the source give the same bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.text import bibtex
from seesaw_cf.base.types import Case
from seesaw_cf.builder_scripts.card import (
    CARD,
    COUPLED_CARD,
    METADATA,
    Statistics,
    attributes,
    columns_section,
    drawn_table,
    examples,
    markdown,
    people_by_group,
)
from seesaw_cf.builder_scripts.cases import cross_property, cross_subject
from seesaw_cf.builder_scripts.coupled import COUPLED_SCHEMAS, CoupledRow
from seesaw_cf.builder_scripts.edits import Edit, generate, seed_edits
from seesaw_cf.builder_scripts.facts import Facts
from seesaw_cf.builder_scripts.sources import bar
from seesaw_cf.builder_scripts.tables import candidates, demographics, write_cases
from seesaw_cf.records import groups
from seesaw_cf.records.arrow import CASES, open_ended
from seesaw_cf.records.card import write_card, write_rows
from seesaw_cf.records.relations import RELATIONS

FIRST_ID = 100_001  # of generated cross-subject edits beside those of a file; CounterFact's numbers end before
FIRST_PAIR_ID = 200_001

Couples = Mapping[str, Sequence[CoupledRow]]

# config -> one line for the card; the first is the default
CONFIGS = {
    "cross_subject": "edits of five relations, and cloze prompts about other people who hold the new or the old value",
    "cross_property": "edits, and whether another property of the same person keeps its answer, for eight pairs",
    "open_ended": "guided and free descriptions of edited people",
    "candidates": "answers of every relation, with area, country and continent",
    "demographics": "what is recorded about every person, with group tags and provenance",
}
_SIZES = {1_000: "n<1K", 10_000: "1K<n<10K", 100_000: "10K<n<100K", 1_000_000: "100K<n<1M", 10_000_000: "1M<n<10M"}


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
    def given(self) -> set[str]:
        """The relations whose cross-subject edits are those of files."""
        return {edit.relation_id for edit in self.seeds}

    @property
    def cross_subject(self) -> list[Edit]:
        """Given edits, then generated ones of the other relations."""
        return [*self.seeds, *(edit for id, edits in self.generated.items() if id not in self.given for edit in edits)]


def choose_edits(facts: Facts, seeds: Sequence[Case] = ()) -> Edits:
    """Draw the edits of every relation, and identify the subjects of those out of files."""
    edits, skipped = seed_edits(facts, seeds) if seeds else ([], Counter())
    return Edits({id: generate(facts, id) for id in RELATIONS}, edits, skipped)


def build(out: Path, facts: Facts, edits: Edits, couples: Couples, *, sample: bool = False, **about: str) -> Statistics:
    """Write the configs and the card into a folder.

    Args:
        out: The folder; make it with `seesaw_cf.base.files.atomic_folder` when other programs read it.
        facts: Where people come from, with the rules.
        edits: See `choose_edits`.
        couples: Config -> edits with a related entity: `coupled_counterfact`, `coupled_zsre`.
        sample: The facts are those of the package, which has references for every statement.
        **about: Of the card: "version", "major.minor.patch", and "source", the identity of the source of the facts; ""
            for the packaged sample itself.

    Returns:
        The counts that the card shows.

    Raises:
        RecordError: There is no edit.
        SourceError: The source does not answer.
        StorageError: The disk is full.
    """
    chosen, statistics = edits.cross_subject, Statistics()
    if not chosen:
        raise RecordError("build: there is no edit to make. Check --edits, --number and the names in the source.")
    people: set[str] = set()
    prompts: list[pa.Table] = []

    def counted(config: str, cases: Iterable[Case]) -> Iterator[Case]:
        for case in cases:
            statistics.add(case)
            asked = (row.subject.id for row in (*case.attribute_prompts, *case.effect_prompts))
            people.update(filter(None, [case.extra["subject_id"], *asked]))
            prompts.append(open_ended(config, [case]))
            yield case

    ask_true = facts.options.true_per_gender or facts.options.neighborhood
    values = ((edit.relation_id, value) for edit in chosen for value in (edit.new, edit.true)[: 2 if ask_true else 1])
    facts.prefetch((*pair, gender) for pair in values for gender in facts.genders)
    first = max(FIRST_ID if edits.seeds else 1, *(1 + (edit.case_id or 0) for edit in chosen))
    cases = counted("cross_subject", cross_subject(facts, bar(chosen, "cases"), first))
    write_cases(out, "cross_subject", cases, len(chosen))
    first_pair = max(FIRST_PAIR_ID, first + len(chosen))
    pairs = list(counted("cross_property", cross_property(facts, edits.generated, first_pair)))
    write_cases(out, "cross_property", pairs, len(pairs))
    tables = {
        "open_ended": pa.concat_tables(prompts),
        "candidates": candidates(facts),
        "demographics": demographics(facts, facts.people(sorted(people)), references=sample),
        **{name: pa.Table.from_pylist(rows, COUPLED_SCHEMAS[name]) for name, rows in couples.items()},
    }
    for name, table in tables.items():
        write_rows(out, name, [table], table.schema)
    # `datasets` opens no config without rows
    configs = {name: text for name, text in CONFIGS.items() if pairs or name != "cross_property"} | _about(couples)
    schemas = {name: tables[name].schema if name in tables else CASES for name in configs}
    size = next((name for bound, name in _SIZES.items() if len(chosen) + len(pairs) < bound), "10M<n<100M")
    skipped = sorted(edits.skipped.items())
    columns = {"P101": "area", "P27": "continent", "P19": "continent"}
    write_card(
        out,
        configs,
        template=CARD,
        metadata=METADATA | {"size_categories": [size]} | _languages(facts),
        sample=sample,
        options=facts.options,
        statistics=statistics,
        citation=bibtex("seesaw_cf", "leme", "rome"),
        people=f"{tables['demographics'].num_rows:,}",
        columns=columns_section(schemas),
        coupled=" and ".join(f"`{name}`" for name in couples),
        examples=examples(tables["candidates"]),
        attributes="\n\n".join(attributes(tables["candidates"], id, column) for id, column in columns.items()),
        people_tables="\n\n".join(people_by_group(tables["demographics"], axis) for axis in ("race", "region")),
        prompts="\n\n".join(map(statistics.groups_of, groups.AXES)),
        skipped=markdown(["Records of edit files that make no edit", "Number"], skipped) if skipped else "",
        given=", ".join(row.name for row in RELATIONS.values() if row.id in edits.given),
        drawn=drawn_table(facts),
        **about,
    )
    return statistics


def build_coupled(out: Path, facts: Facts, couples: Couples, counts: Mapping[str, int], **about: str) -> None:
    """Write nothing but the configs of coupled edits, and their card.

    Args:
        out, facts, couples, about: As of `build`.
        counts: Rows, and edits without couple -> number.

    Raises:
        SourceError: The source does not answer.
        StorageError: The disk is full.
    """
    schemas = {name: COUPLED_SCHEMAS[name] for name in couples}
    for name, schema in schemas.items():
        write_rows(out, name, [pa.Table.from_pylist(couples[name], schema)], schema)
    metadata = {"license": "mit", "pretty_name": "Coupled Entity Prompts", "tags": ["model-editing"]}
    metadata |= _languages(facts)
    texts = {"columns": columns_section(schemas), "counts": markdown(["Rows", "Number"], counts.items())}
    write_card(out, _about(couples), template=COUPLED_CARD, metadata=metadata, **texts, **about)


def _about(couples: Couples) -> dict[str, str]:
    words = "edits, each with a related entity, what is true of both, and prompts about both"
    return {name: f"{len(rows):,} {words}" for name, rows in couples.items()}


def _languages(facts: Facts) -> dict[str, list[str]]:
    """Return the card's languages: that of the prompts, and that of the names."""
    names = facts.options.language.partition("-")[0]
    return {"language": [names] if facts.options.templates else list(dict.fromkeys(["en", names]))}
