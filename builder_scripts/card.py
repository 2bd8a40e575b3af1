"""The dataset card: templates, what every column means, and tables of counts: the papers' Tables 1, 3, 7, 16-18.

Cases are counted one by one, so that a large build never holds all of them.
"""

from __future__ import annotations

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from seesaw_cf.base.terminal import markdown_table
from seesaw_cf.base.types import Case
from seesaw_cf.builder_scripts.cases import tested
from seesaw_cf.builder_scripts.facts import Facts
from seesaw_cf.builder_scripts.sparql import TAGS, RecordedPerson, known_tags
from seesaw_cf.records import groups
from seesaw_cf.records.relations import PAIRS, RELATIONS, TASKS

FOLDER = Path(__file__).parent
CARD, COUPLED_CARD, TAG_CARD = (
    (FOLDER / f"{name}.md.jinja").read_text(encoding="utf-8") for name in ("card", "coupled", "tag")
)
METADATA = {
    "license": "mit",
    "pretty_name": "SEESAW-CF",
    "tags": ["model-editing", "bias", "fairness", "knowledge-editing", "wikidata"],
    "annotations_creators": ["expert-generated"],
    "source_datasets": ["original"],
}
# count -> heading
_CROSS_SUBJECT = {
    "cases": "Edits",
    "subjects": "Edit subjects",
    "new": "New targets",
    "cloze": "Cloze prompts (hold the new target)",
    "probes": "Cloze prompts (hold the old target)",
    "texts": "Distinct cloze prompts",
    "people": "People asked about",
    "open": "Open-ended prompts",
    "few": "Edits with fewer than 2 holders",
}
_CROSS_PROPERTY = {
    "cases": "Cases",
    "effect": "Prompts",
    "scored": "Prompt and candidate pairs",
    "open": "Open-ended prompts",
}


def published_card(card: str, repo: str, version: str) -> str:
    """Return the card as it is read on the Hub: its snippet names the repository and the version instead of a folder.

    Args:
        card: The whole text of a built folder's README.md.
        repo: "org/name".
        version: "major.minor.patch", tagged "v" + version.
    """
    there = f'cases = load_dataset("{repo}", "cross_subject", split="test", revision="v{version}")'
    return re.sub(r'# In a checkout of seesaw_cf;.*\ncases = load_dataset\("seesaw_cf".*', there, card)


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


COLUMNS: Mapping[str, dict[str, str]] = defaultdict(dict)
"""Config -> column -> what it means; configs with the same columns share their rows of `columns.tsv`."""
with (FOLDER / "columns.tsv").open(encoding="utf-8", newline="") as _file:
    for _row in csv.DictReader(_file, delimiter="\t", quoting=csv.QUOTE_NONE):
        for _config in _row["configs"].split(","):
            COLUMNS[_config][_row["column"]] = _row["meaning"]


def _type_name(kind: pa.DataType) -> str:
    """Return a short name of a column's type: "text", "number", "list of text", "record", "list of records"."""
    if pa.types.is_list(kind):
        return f"list of {_type_name(kind.value_type)}".replace("record", "records")
    names = {pa.types.is_struct: "record", pa.types.is_boolean: "yes or no", pa.types.is_string: "text"}
    return next((name for test, name in names.items() if test(kind)), "number")


def columns_section(schemas: Mapping[str, pa.Schema]) -> str:
    """Return the columns of configs as Markdown tables (name, type, meaning).

    Configs with the same columns share a table, also where a later one has some more, which say so.

    Args:
        schemas: Config -> its columns.
    """
    shared: list[tuple[list[str], list[list[str]]]] = []
    for config, schema in schemas.items():
        rows = [[f"`{field.name}`", _type_name(field.type), COLUMNS[config][field.name]] for field in schema]
        names, before = next((own for own in shared if rows[: len(own[1])] == own[1]), ([], []))
        if not names:
            shared.append((names, before))
        names.append(f"`{config}`")
        mark = f" (`{config}` only)" if before else ""
        before += [[*row[:-1], row[-1] + mark] for row in rows[len(before) :]]
    tables = [(", ".join(names), markdown_table(["Column", "Type", "Meaning"], rows, left=3)) for names, rows in shared]
    return "\n\n".join(f"{names}\n\n{table}" for names, table in tables)


def drawn_table(facts: Facts) -> str:
    """Return how many samples were drawn which way, per relation; "" for a source that finishes every query."""
    names = [way for way in ("whole", "slices") if any(counts[way] for counts in facts.ways.values())]
    rows = [[RELATIONS[id].name, *(facts.ways[id][way] for way in names)] for id in RELATIONS if id in facts.ways]
    return markdown(["Relation", *names], rows) if facts.source.limited else ""


def markdown(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a Markdown table; numbers with thousands separators, right-aligned columns except the first."""
    return markdown_table([*head], [[_cell(value) for value in row] for row in rows])


def _cell(value: object) -> str:
    """Format a cell: a number with thousands separators; a text in one line, in which no "|" ends the cell."""
    return f"{value:,}" if isinstance(value, int) else " ".join(str(value).splitlines()).replace("|", r"\|")


class Statistics:
    """Counts that grow case by case: of a relation, or of a pair of an edited and a watched one."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
        self._sets: dict[tuple[str, ...], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))

    def add(self, case: Case) -> None:
        """Count a case; with an effect relation it counts for that pair, without for its relation."""
        request, prompts = case.request, case.attribute_prompts
        key = (request.relation_id, *filter(None, [case.effect_relation_id]))
        counts, sets = self._counts[key], self._sets[key]
        counts["cases"] += 1
        counts["open"] += len(case.generation_prompts)
        counts["effect"] += len(case.effect_prompts)
        counts["scored"] += len(case.effect_prompts) * len(case.candidates)
        counts["few"] += "few_holders" in case.flags
        counts.update("probes" if row.holds == "target_true" else "cloze" for row in prompts)
        counts.update(
            f"{axis}:{tag}" for row in prompts for axis in groups.AXES for tag in getattr(row, axis) or [groups.UNKNOWN]
        )
        sets["subjects"].add(str(case.extra.get("subject_id", request.subject)))
        sets["new"].add(request.target_new.id or request.target_new.label)
        sets["people"].update(row.subject.id or row.subject.label for row in prompts)
        sets["texts"].update(row.text for row in prompts)

    def _row(self, key: tuple[str, ...], columns: Iterable[str]) -> list[int]:
        counts, sets = self._counts[key], self._sets[key]
        return [len(sets[name]) if name in sets else counts[name] for name in columns]

    def cross_subject(self) -> str:
        """Return Table 3's counts per relation, with distinct texts."""
        known = [row for row in RELATIONS.values() if (row.id,) in self._counts]
        rows = [[f"{row.name} ({row.id})", *self._row((row.id,), _CROSS_SUBJECT)] for row in known]
        return markdown(["Relation", *_CROSS_SUBJECT.values()], rows)

    def cross_property(self) -> str:
        """Return Table 7's counts per pair."""
        pairs = [pair for pair in PAIRS if pair in self._counts]
        rows = [[*(RELATIONS[id].name for id in pair), *self._row(pair, _CROSS_PROPERTY)] for pair in pairs]
        return markdown(["Edited", "Watched", *_CROSS_PROPERTY.values()], rows)

    def groups_of(self, axis: str) -> str:
        """Return a table of the cross-subject prompts per relation and group of an axis."""
        keys = [(id,) for id in RELATIONS if (id,) in self._counts]
        seen = {name.split(":", 1)[1] for key in keys for name in self._counts[key] if name.startswith(f"{axis}:")}
        rows = [[tag, *(self._counts[key][f"{axis}:{tag}"] for key in keys)] for tag in ordered(axis, seen)]
        return markdown(["Group", *(RELATIONS[key[0]].name for key in keys)], rows)

    def total(self, name: str, *, pairs: bool) -> int:
        """Return a count over all relations or all pairs: "cases", "cloze", "probes", "effect", "open", "scored"."""
        return sum(counts[name] for key, counts in self._counts.items() if (len(key) == 2) == pairs)


def ordered(axis: str, seen: Collection[str]) -> list[str]:
    """Put reported groups first, in the papers' order, then the rest by name, unknown last."""
    reported = groups.members(axis)
    place = {**{tag: (0, n) for n, tag in enumerate(reported)}, groups.UNKNOWN: (2, 0)}
    return sorted(seen, key=lambda tag: (place.get(tag, (1, 0)), tag))


def people_by_group(demographics: pa.Table, axis: str) -> str:
    """Return a table of the people per group of an axis and gender, from the config `demographics`."""
    counted: Counter[tuple[str, str]] = Counter()
    for row in demographics.select([axis, "gender"]).to_pylist():
        counted.update((tag, g) for tag in row[axis] or [groups.UNKNOWN] for g in row["gender"] or [groups.UNKNOWN])
    genders = ordered("gender", {gender for _, gender in counted})
    rows = [[tag, *(counted[tag, gender] for gender in genders)] for tag in ordered(axis, {tag for tag, _ in counted})]
    return markdown([axis.capitalize(), *genders], rows)


def examples(candidates: pa.Table) -> str:
    """Return Table 1: how many values each relation has, and the first ones by name."""
    names: dict[str, list[str]] = defaultdict(list)
    for row in candidates.select(["relation_id", "label"]).to_pylist():
        names[row["relation_id"]].append(row["label"])
    rows = [[RELATIONS[id].name, len(labels), ", ".join(labels[:4])] for id, labels in names.items()]
    return markdown(["Relation", "Values", "For example"], rows)


def attributes(candidates: pa.Table, relation_id: str, column: str) -> str:
    """Return the values of a relation per area or continent: Tables 16 (work), 17 (citizenship) and 18 (birth).

    Values on two continents count once for each; the last row is the number of values.
    """
    cells = [row[column] for row in candidates.to_pylist() if row["relation_id"] == relation_id]
    kinds = Counter(kind for cell in cells for kind in ([cell] if isinstance(cell, str) else cell or ["none"]))
    return markdown([column.capitalize(), "Values"], [*sorted(kinds.items()), ("**Total**", len(cells))])


def coverage_of(
    persons: Mapping[str, RecordedPerson], before: Sequence[Case], cases: Sequence[Case], outcomes: Counter[str]
) -> dict[str, Any]:
    """Count what tagging found and what it did not.

    Args:
        persons: Identifier -> what the source says.
        before, cases: Before and after they were tagged.
        outcomes: What became of pairs -> records.
    """
    rows = [row for case in cases for row in tested(case)]
    asked = {row.subject.id for case in before for row in tested(case)}
    people = {row.subject.id: row for row in rows if row.subject.id and row.subject.id in asked}
    found = {id: persons[id] for id in people if id in persons}
    tagged, prompts = (Counter(tag for row in some for tag in known_tags(row)) for some in (people.values(), rows))
    return {
        "people": len(people),
        "found": len(found),
        "merged": sum(person.id != id for id, person in found.items()),
        "prompts": len(rows),
        "prompts_without_id": sum(not row.subject.id for row in rows),
        "tags": {tag: {"people": tagged[tag], "prompts": prompts[tag]} for tag in TAGS},
        "groups": {tag: Counter(name for row in people.values() for name in getattr(row, tag)) for tag in groups.AXES},
        "pairs": dict(sorted(outcomes.items())),
    }


def coverage_text(source: str, coverage: Mapping[str, Any]) -> str:
    """Return the tables of `coverage_of` to print and to put on a card; `source` is the name of the source."""
    n_people, found = coverage["people"], coverage["found"]
    per_tag, n_prompts = coverage["tags"].items(), coverage["prompts"]
    rows = [[tag, n["people"], n_people - n["people"], f"{n['prompts']:,} of {n_prompts:,}"] for tag, n in per_tag]
    parts = [
        markdown(["Tag", f"People who have it (n = {n_people:,})", "Unknown", "Prompts with it"], rows),
        f"Of {n_people:,} identified people {source} knows {found:,}; nothing is recorded about {n_people - found:,} "
        f"(deleted, or never there), {coverage['merged']:,} were merged into another identifier, which was asked "
        f"instead. {coverage['prompts_without_id']:,} prompts are about somebody without identifier: unknown, as no "
        "tag is taken from a name.",
    ]
    for tag, counts in coverage["groups"].items():
        members = [[name, counts[name]] for name in ordered(tag, counts)]
        unknown = [groups.UNKNOWN, n_people - coverage["tags"][tag]["people"]]
        parts += [markdown([tag.capitalize(), "People"], [*members, unknown])] if counts else []
    if coverage["pairs"]:
        parts.append(markdown(["Answers about the watched property", "Records"], coverage["pairs"].items()))
    return "\n\n".join(parts)
