"""The dataset card: what the data is, where it is from, what it may be used for. Every number in it is computed."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TypedDict

import pyarrow as pa
import yaml
from jinja2 import StrictUndefined, Template

from seesaw_cf.base.citations import bibtex
from seesaw_cf.builder_scripts.dataset.columns import columns_section
from seesaw_cf.builder_scripts.dataset.statistics import Statistics, attributes, examples, markdown, people_by_group
from seesaw_cf.builder_scripts.options import BuildOptions
from seesaw_cf.builder_scripts.source.draws import WAYS, Draws
from seesaw_cf.records import groups
from seesaw_cf.records.arrow import CASES
from seesaw_cf.records.relations import RELATIONS, TASKS

METADATA = {
    "license": "mit",
    "language": ["en"],
    "pretty_name": "SEESAW-CF",
    "tags": ["model-editing", "bias", "fairness", "knowledge-editing", "wikidata"],
    "annotations_creators": ["expert-generated"],
    "source_datasets": ["original"],
}

_LOCAL = """# In a checkout of seesaw_cf; anywhere else, "{folder}" is the path of this folder.
cases = load_dataset("{folder}", "cross_subject", split="test")"""


_TEMPLATE = Path(__file__).parent / "card.md.jinja"


def published_card(card: str, repo: str, version: str) -> str:
    """Return the card as it is read on the Hub: its snippet names the repository and the version instead of a folder.

    Args:
        card: The whole text of a built folder's README.md.
        repo: "org/name".
        version: "major.minor.patch", tagged "v" + version.
    """
    there = f'cases = load_dataset("{repo}", "cross_subject", split="test", revision="v{version}")'
    return re.sub(re.escape(_LOCAL).replace(re.escape("{folder}"), '[^"]+'), there, card)


def size_category(rows: int) -> str:
    """Return the Hub's word for a number of rows."""
    bounds = {1_000: "n<1K", 10_000: "1K<n<10K", 100_000: "10K<n<100K", 1_000_000: "100K<n<1M", 10_000_000: "1M<n<10M"}
    return next((name for bound, name in bounds.items() if rows < bound), "10M<n<100M")


def given_rule(relation_ids: Collection[str]) -> str:
    """Return the rule of the relations whose cross-subject edits are those of files; "" for none."""
    names = ", ".join(row.name for row in RELATIONS.values() if row.id in relation_ids)
    return f"- In `cross_subject` the edits of {names} are not drawn: files give them.\n" if names else ""


def drawn_section(draws: Draws) -> str:
    """Return which way people were drawn for each relation; "" for a source that finishes every query."""
    if not draws.limited:
        return ""
    names = [way for way in WAYS if any(counts[way] for counts in draws.ways.values())]
    rows = [[RELATIONS[id].name, *(draws.ways[id][way] for way in names)] for id in RELATIONS if id in draws.ways]
    meaning = "\n".join(f"- *{way}*: {WAYS[way]}." for way in names)
    return (
        "\nThe source ends queries that take long, so large samples were drawn in other ways. Samples (of the people "
        f"to edit, and of the holders of a value, by gender) per relation and way:\n\n{meaning}\n\n"
        f"{markdown(['Relation', *names], rows)}\n"
    )


def card_body(
    statistics: Statistics,
    tables: Mapping[str, pa.Table],
    options: BuildOptions,
    words: Mapping[str, str],
    skipped: Mapping[str, int],
    drawn: str = "",
) -> str:
    """Return the Markdown below the card's YAML.

    Args:
        statistics: Has counted every case.
        tables: The configs "open_ended", "candidates" and "demographics", and those of coupled edits.
        options: The rules of the build.
        words: See `About.words`.
        skipped: Why records of edit files made no edit -> how many.
        drawn: See `drawn_section`.
    """
    pairs = {"cross_property": CASES} if statistics.total("cases", pairs=True) else {}
    schemas = {"cross_subject": CASES} | pairs | {name: table.schema for name, table in tables.items()}
    people = f"{tables['demographics'].num_rows:,}"
    names = " and ".join(f"`{name}`" for name in tables if name.startswith("coupled_"))
    coupled = f", {names} one per edit and the entity that is coupled with it (LEME, section 3.1)" if names else ""
    grouped = (
        "\n  For edits of gender the men and women are those with a recorded ethnic group." * options.grouped_gender
    )
    left_out = markdown(["Records of edit files that make no edit", "Number"], sorted(skipped.items()))
    template = Template(_TEMPLATE.read_text(encoding="utf-8"), undefined=StrictUndefined)
    body: str = template.render(
        load=_LOCAL.format(folder=words.get("folder", "seesaw_cf")),
        citation=bibtex("seesaw_cf", "leme", "rome"),
        **{name: text.replace("{people}", people) for name, text in words.items()},
        cloze=f"{statistics.total('cloze', pairs=False):,}",
        probes=f"{statistics.total('probes', pairs=False):,}",
        edits=f"{statistics.total('cases', pairs=False):,}",
        pairs=f"{statistics.total('cases', pairs=True):,}",
        scored=f"{statistics.total('scored', pairs=True):,}",
        open=f"{sum(statistics.total('open', pairs=pairs) for pairs in (False, True)):,}",
        columns=columns_section(schemas),
        coupled=coupled,
        examples=examples(tables["candidates"]),
        cross_subject=statistics.cross_subject(),
        cross_property=statistics.cross_property(),
        attributes="\n\n".join(attributes(tables["candidates"]).values()),
        people_tables="\n\n".join(people_by_group(tables["demographics"], axis) for axis in ("race", "region")),
        prompts="\n\n".join(statistics.groups_of(axis) for axis in groups.AXES),
        skipped=f"\n{left_out}\n" if skipped else "",
        drawn=drawn,
        seed=options.seed,
        per_gender=options.per_gender,
        others=", and as many people of other genders" if options.other_genders else "",
        old=f"Up to {options.true_per_gender} of each who hold the old target."
        if options.true_per_gender
        else "Holders of the old target are not asked about.",
        both=f"People who hold both are {'left out' if options.skip_both else 'kept'}.{grouped}",
    )
    return body


class CardData(TypedDict, total=False):
    """What is read of the YAML of a data set's card."""

    pretty_name: str
    license: str
    tags: list[str]
    configs: list[dict[str, str]]


def benchmark(name: str, configs: Collection[str]) -> str:
    """Declare the tasks that a data set can be used for.

    Args:
        name: Of the data set, for people.
        configs: That it has, each with the split "test".

    Returns:
        YAML, the same for the same arguments; "" when no task is about any of the configs.
    """
    tasks = {id: task for id, task in TASKS.items() if task.config in configs}
    if not tasks:
        return ""
    meanings = "; ".join(f"{id}: {task.meaning}" for id, task in tasks.items())
    # Without evaluation_framework: the Hub refuses names that are not on its list.
    declared = {
        "name": name,
        "description": f"What an edit does to what a model believes about other people. {meanings}.",
        "tasks": [{"id": id, "config": task.config, "split": "test"} for id, task in tasks.items()],
    }
    return str(yaml.safe_dump(declared, sort_keys=False, allow_unicode=True))
