"""Counts of a built dataset, case by case, and their Markdown tables: the papers' Tables 1, 3, 7 and 16-18."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from seesaw_cf.base.terminal import markdown_table
from seesaw_cf.base.types import Case
from seesaw_cf.records import groups
from seesaw_cf.records.relations import PAIRS, RELATIONS

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


def _cell(value: object) -> str:
    """Format a cell: a number with thousands separators; a text in one line, in which no "|" ends the cell."""
    return f"{value:,}" if isinstance(value, int) else " ".join(str(value).splitlines()).replace("|", r"\|")


def markdown(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a Markdown table; numbers with thousands separators, right-aligned columns except the first."""
    return markdown_table([*head], [[_cell(value) for value in row] for row in rows])


class Statistics:
    """Counts that grow case by case, so that a large build never holds all its cases."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
        self._sets: dict[tuple[str, ...], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))

    def add(self, case: Case) -> Case:
        """Count a case and return it.

        Args:
            case: With an effect relation it counts for that pair, without for its relation.
        """
        relation_id, effect = case.request.relation_id, case.effect_relation_id
        key = (relation_id, effect) if effect else (relation_id,)
        counts, sets = self._counts[key], self._sets[key]
        counts["cases"] += 1
        counts["open"] += len(case.generation_prompts)
        counts["cloze"] += sum(row.holds != "target_true" for row in case.attribute_prompts)
        counts["probes"] += sum(row.holds == "target_true" for row in case.attribute_prompts)
        counts["effect"] += len(case.effect_prompts)
        counts["scored"] += len(case.effect_prompts) * len(case.candidates)
        counts["few"] += "few_holders" in case.flags
        sets["subjects"].add(str(case.extra.get("subject_id", case.request.subject)))
        sets["people"].update(row.subject.id or row.subject.label for row in case.attribute_prompts)
        sets["texts"].update(row.text for row in case.attribute_prompts)
        sets["new"].add(case.request.target_new.id or case.request.target_new.label)
        for row in case.attribute_prompts:
            for axis in groups.AXES:
                for tag in getattr(row, axis) or (groups.UNKNOWN,):
                    counts[f"{axis}:{tag}"] += 1
        return case

    def _row(self, key: tuple[str, ...], *columns: str) -> list[int]:
        counts, sets = self._counts[key], self._sets[key]
        return [len(sets[name]) if name in sets else counts[name] for name in columns]

    def cross_subject(self) -> str:
        """Return Table 3's counts per relation, with distinct texts."""
        rows = [
            [f"{row.name} ({row.id})", *self._row((row.id,), *_CROSS_SUBJECT)]
            for row in RELATIONS.values()
            if (row.id,) in self._counts
        ]
        return markdown(["Relation", *_CROSS_SUBJECT.values()], rows)

    def cross_property(self) -> str:
        """Return Table 7's counts per pair."""
        head = ["Edited", "Watched", "Cases", "Prompts", "Prompt and candidate pairs", "Open-ended prompts"]
        rows = [
            [RELATIONS[pair[0]].name, RELATIONS[pair[1]].name, *self._row(pair, "cases", "effect", "scored", "open")]
            for pair in PAIRS
            if pair in self._counts
        ]
        return markdown(head, rows)

    def groups_of(self, axis: str) -> str:
        """Return a table of the cross-subject prompts per relation and group of an axis."""
        keys = [(id,) for id in RELATIONS if (id,) in self._counts]
        seen = {name.split(":", 1)[1] for key in keys for name in self._counts[key] if name.startswith(f"{axis}:")}
        head = ["Group", *(RELATIONS[key[0]].name for key in keys)]
        rows = [[tag, *(self._counts[key][f"{axis}:{tag}"] for key in keys)] for tag in ordered(axis, seen)]
        return markdown(head, rows)

    def total(self, name: str, *, pairs: bool) -> int:
        """Return a count over all relations or all pairs: "cases", "cloze", "probes", "effect", "open", "scored"."""
        return sum(counts[name] for key, counts in self._counts.items() if (len(key) == 2) == pairs)


def ordered(axis: str, seen: set[str]) -> list[str]:
    """Put reported groups first, in the papers' order, then the rest by name, unknown last."""
    reported = groups.members(axis)
    return [*(tag for tag in reported if tag in seen), *sorted(seen - {*reported, groups.UNKNOWN}),
            *([groups.UNKNOWN] if groups.UNKNOWN in seen else [])]  # fmt: skip


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


def attributes(candidates: pa.Table) -> Mapping[str, str]:
    """Return values per area or continent: Tables 16 (work), 17 (citizenship) and 18 (birth).

    Args:
        candidates: The config `candidates`.

    Returns:
        Relation -> table. Values on two continents count once for each; the last row is the number of values.
    """
    return {
        relation_id: markdown([column.capitalize(), "Values"], _attribute_rows(candidates, relation_id, column))
        for relation_id, column in (("P101", "area"), ("P27", "continent"), ("P19", "continent"))
    }


def _attribute_rows(candidates: pa.Table, relation_id: str, column: str) -> Iterator[list[str | int]]:
    cells = [row[column] for row in candidates.to_pylist() if row["relation_id"] == relation_id]
    kinds = [[cell] if isinstance(cell, str) else cell or ["none"] for cell in cells]
    yield from ([kind, count] for kind, count in sorted(Counter(kind for row in kinds for kind in row).items()))
    yield ["**Total**", len(cells)]
