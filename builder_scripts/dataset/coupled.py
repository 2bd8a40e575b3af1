"""Writes LEME's Coupled Entity Prompts as a data set folder."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence

from seesaw_cf.builder_scripts.dataset.columns import columns_section
from seesaw_cf.builder_scripts.dataset.shards import write_rows
from seesaw_cf.builder_scripts.dataset.statistics import markdown
from seesaw_cf.builder_scripts.make.coupled import Coupled, couple
from seesaw_cf.builder_scripts.make.coupled_rows import COUPLED_SCHEMAS, coupled_table
from seesaw_cf.builder_scripts.source.claims import Claims
from seesaw_cf.builder_scripts.source.people import Facts
from seesaw_cf.errors import RecordError
from seesaw_cf.records.card import write_card
from seesaw_cf.types import Case


def about_coupled(rows: int) -> str:
    """One line for the card."""
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


def build_coupled(out: str | os.PathLike[str], facts: Facts, claims: Claims, cases: Sequence[Case]) -> Counter[str]:
    """Write the configs `coupled_counterfact` and `coupled_zsre` and their card into a folder.

    Args:
        out: The folder; make it under a temporary name when other programs read it.
        facts, claims: Where names, claims and links come from.
        cases: CounterFact (or SEESAW-CF) and zsRE records.

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
        columns=columns_section({name: COUPLED_SCHEMAS[name] for name in configs}),
        counts=markdown(["Rows", "Number"], counts.items()),
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
