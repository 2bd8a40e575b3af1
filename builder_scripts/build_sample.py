"""Builds the embedded sample: `python -m seesaw_cf.builder_scripts.build_sample [--out DIR]`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import pyarrow as pa

from seesaw_cf import sample
from seesaw_cf.builder_scripts.card import METADATA, SAMPLE_INTRO, SAMPLE_LIMITS, SAMPLE_MAKING, card_body
from seesaw_cf.builder_scripts.cases import cross_subject
from seesaw_cf.builder_scripts.cross_property import cross_property
from seesaw_cf.builder_scripts.edits import generate
from seesaw_cf.builder_scripts.facts import SAMPLE
from seesaw_cf.builder_scripts.open_ended import open_ended
from seesaw_cf.builder_scripts.options import SAMPLE_OPTIONS
from seesaw_cf.builder_scripts.people import Facts
from seesaw_cf.builder_scripts.rows import candidates, demographics
from seesaw_cf.builder_scripts.sources import StoreSource
from seesaw_cf.builder_scripts.statistics import Statistics
from seesaw_cf.files import write_text
from seesaw_cf.records.card import write_card, write_config
from seesaw_cf.records.parquet import cases_to_table
from seesaw_cf.relations import RELATIONS

__all__ = ["CONFIGS", "VERSION", "build_sample", "main"]

VERSION = "1.0.0"
FIRST_PAIR_ID = 1001  # cross-property case ids start here, so that the two configs share none

# config -> one line for the card; the first is the default
CONFIGS = {
    "cross_subject": "edits of five relations, and cloze prompts about other people who hold the new or the old value",
    "cross_property": "edits, and whether another property of the same person keeps its answer, for eight pairs",
    "open_ended": "guided and free descriptions of edited people",
    "candidates": "answers of every relation, with area, country and continent",
    "demographics": "what is recorded about every person, with group tags and provenance",
}


def build_sample(out: str | os.PathLike[str]) -> None:
    """Writes the five configs and the card of the embedded sample.

    Args:
        out: A folder; gets README.md and data/<config>/test-00000-of-00001.parquet. The same bytes every time.

    Raises:
        StorageError: A file cannot be read or written.
    """
    facts = Facts(StoreSource([SAMPLE / "sample.nt"]), SAMPLE_OPTIONS)
    statistics = Statistics()
    edits = {relation_id: generate(facts, relation_id) for relation_id in RELATIONS}
    every = [edit for found in edits.values() for edit in found]
    cases = {
        "cross_subject": [statistics.add(case) for case in cross_subject(facts, every)],
        "cross_property": [statistics.add(case) for case in cross_property(facts, edits, FIRST_PAIR_ID)],
    }
    tables: dict[str, pa.Table] = {name: cases_to_table(found) for name, found in cases.items()}
    tables |= {
        "open_ended": open_ended(cases),
        "candidates": candidates(facts),
        "demographics": demographics(facts, facts.everyone()),
    }
    for name in CONFIGS:
        write_config(out, name, {"test": tables[name]})
    body = card_body(statistics, tables, SAMPLE_OPTIONS, intro=SAMPLE_INTRO, making=SAMPLE_MAKING, limits=SAMPLE_LIMITS)
    write_card(out, CONFIGS, body=body, metadata=METADATA, version=VERSION)


def main() -> None:
    """Builds into the package folder and its copy of the card beside it, or into --out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="folder to write instead of the package's own data")
    out: Path | None = parser.parse_args().out
    build_sample(out or sample.path())
    if out is None:
        write_text(sample.path().parent / "dataset_card.md", (sample.path() / "README.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
