"""The dataset card: the templates of its pages, what every column means, and the texts that are counted or chosen."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Collection, Mapping
from pathlib import Path

import pyarrow as pa
import yaml

from seesaw_cf.base.text import bibtex
from seesaw_cf.builder_scripts.draws import WAYS, Draws
from seesaw_cf.builder_scripts.people import Facts
from seesaw_cf.builder_scripts.statistics import Statistics, attributes, examples, markdown, people_by_group
from seesaw_cf.records import groups
from seesaw_cf.records.arrow import CASES
from seesaw_cf.records.relations import RELATIONS, TASKS

FOLDER = Path(__file__).parent
CARD, COUPLED_CARD = ((FOLDER / f"{name}.md.jinja").read_text(encoding="utf-8") for name in ("card", "coupled"))
METADATA = {
    "license": "mit",
    "pretty_name": "SEESAW-CF",
    "tags": ["model-editing", "bias", "fairness", "knowledge-editing", "wikidata"],
    "annotations_creators": ["expert-generated"],
    "source_datasets": ["original"],
}
_LOCAL = """# In a checkout of seesaw_cf; anywhere else, "seesaw_cf" is the path of this folder.
cases = load_dataset("seesaw_cf", "cross_subject", split="test")"""


def published_card(card: str, repo: str, version: str) -> str:
    """Return the card as it is read on the Hub: its snippet names the repository and the version instead of a folder.

    Args:
        card: The whole text of a built folder's README.md.
        repo: "org/name".
        version: "major.minor.patch", tagged "v" + version.
    """
    return card.replace(_LOCAL, f'cases = load_dataset("{repo}", "cross_subject", split="test", revision="v{version}")')


def benchmark(name: str, configs: Collection[str]) -> str:
    """Declare the tasks that a data set can be used for.

    Args:
        name: Of the data set, for people.
        configs: That it has, each with the split "test".

    Returns:
        YAML, the same for the same arguments; "" when no task is about any of the configs.
    """
    tasks = {id: task for id, task in TASKS.items() if task.config in configs}
    meanings = "; ".join(f"{id}: {task.meaning}" for id, task in tasks.items())
    # Without evaluation_framework: the Hub refuses names that are not on its list.
    declared = {
        "name": name,
        "description": f"What an edit does to what a model believes about other people. {meanings}.",
        "tasks": [{"id": id, "config": task.config, "split": "test"} for id, task in tasks.items()],
    }
    return str(yaml.safe_dump(declared, sort_keys=False, allow_unicode=True)) if tasks else ""


def _columns() -> dict[str, dict[str, str]]:
    meanings: dict[str, dict[str, str]] = defaultdict(dict)
    with (FOLDER / "columns.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            for config in row["configs"].split(","):
                meanings[config][row["column"]] = row["meaning"]
    return dict(meanings)


COLUMNS: Mapping[str, Mapping[str, str]] = _columns()
"""Config -> column -> what it means; configs with the same columns share their rows of `columns.tsv`."""


def type_name(kind: pa.DataType) -> str:
    """Return a short name of a column's type: "text", "number", "list of text", "record", "list of records"."""
    if pa.types.is_list(kind):
        return f"list of {type_name(kind.value_type)}".replace("record", "records")
    names = {pa.types.is_struct: "record", pa.types.is_boolean: "yes or no", pa.types.is_string: "text"}
    return next((name for test, name in names.items() if test(kind)), "number")


def columns_section(schemas: Mapping[str, pa.Schema]) -> str:
    """Return the columns of configs as Markdown tables (name, type, meaning); configs with the same columns share one.

    Args:
        schemas: Config -> its columns.
    """
    shared: dict[str, list[str]] = {}
    for config, schema in schemas.items():
        rows = [[f"`{field.name}`", type_name(field.type), COLUMNS[config][field.name]] for field in schema]
        shared.setdefault(markdown(["Column", "Type", "Meaning"], rows).replace("---:", "---"), []).append(config)
    return "\n\n".join(f"{', '.join(f'`{name}`' for name in names)}\n\n{table}" for table, names in shared.items())


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


def card_texts(
    statistics: Statistics,
    tables: Mapping[str, pa.Table],
    facts: Facts,
    words: Mapping[str, str],
    skipped: Mapping[str, int],
    given: Collection[str] = (),
) -> dict[str, object]:
    """Return what the template of the card is filled with.

    Args:
        statistics: Has counted every case.
        tables: The configs "open_ended", "candidates" and "demographics", and those of coupled edits.
        facts: The rules of the build, and how people were drawn.
        words: See `About.words`.
        skipped: Why records of edit files made no edit -> how many.
        given: Relations whose cross-subject edits are those of files.
    """
    pairs = {"cross_property": CASES} if statistics.total("cases", pairs=True) else {}
    schemas = {"cross_subject": CASES} | pairs | {name: table.schema for name, table in tables.items()}
    people = f"{tables['demographics'].num_rows:,}"
    names = " and ".join(f"`{name}`" for name in tables if name.startswith("coupled_"))
    return {name: text.replace("{people}", people) for name, text in words.items()} | {
        "load": _LOCAL,
        "citation": bibtex("seesaw_cf", "leme", "rome"),
        "total": statistics.total,
        "columns": columns_section(schemas),
        "coupled": names,
        "examples": examples(tables["candidates"]),
        "cross_subject": statistics.cross_subject(),
        "cross_property": statistics.cross_property(),
        "attributes": "\n\n".join(attributes(tables["candidates"]).values()),
        "people_tables": "\n\n".join(people_by_group(tables["demographics"], axis) for axis in ("race", "region")),
        "prompts": "\n\n".join(statistics.groups_of(axis) for axis in groups.AXES),
        "skipped": markdown(["Records of edit files that make no edit", "Number"], sorted(skipped.items()))
        if skipped
        else "",
        "given": ", ".join(row.name for row in RELATIONS.values() if row.id in given),
        "drawn": drawn_section(facts.draws),
        "options": facts.options,
    }
