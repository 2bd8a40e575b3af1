"""What the released SEESAW-CF files say of people and values, and where the curated tables disagree with them."""

from __future__ import annotations

import ast
import csv
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from seesaw_cf.builder_scripts.sample.people import KIND_OF, KINDS, CuratedPerson, LabelledValue


def reference_groups(folder: Path) -> dict[str, tuple[frozenset[str], frozenset[str]]]:
    """Races and regions that the released ethnic-group sheets give, keyed by QID; a group in both sheets gets both."""
    races: dict[str, set[str]] = defaultdict(set)
    regions: dict[str, set[str]] = defaultdict(set)
    for name in ("P101_ethnic_groups.csv", "P103_ethnic_groups.csv"):
        with (folder / name).open(encoding="utf-8", newline="") as handle:
            for row in csv.DictReader(handle):
                code = row["Code"]
                race = (row["Racial Group"] or "").strip()
                region = (row["Geo Group"] or "").strip()
                races[code] |= {"Black" if race == "black" else race} - {""}
                regions[code] |= {region} - {""}
    return {code: (frozenset(races[code]), frozenset(regions[code])) for code in races}


def _pairs(value: object) -> list[str]:
    parsed = ast.literal_eval(value) if isinstance(value, str) else value
    return [str(item) for item in parsed] if isinstance(parsed, list) else []


@cache
def reference_names(folder: Path) -> dict[str, set[str]]:
    """From QID to the names under which the released subject and case files hold it."""
    names: dict[str, set[str]] = defaultdict(set)
    for path in sorted(folder.glob("seesaw_cf_P*_P101.json")):
        for case in json.loads(path.read_text(encoding="utf-8")):
            for iri, name in zip(_pairs(case["attribute_aux_info"]), _pairs(case["attribute_aux_ent"])):
                names[iri].add(name)
    for path in sorted(folder.glob("*_subject_info.json")):
        for iri, subject in json.loads(path.read_text(encoding="utf-8")).items():
            names[iri].add(subject["name"])
    return dict(names)


def reference_labels(folder: Path) -> dict[str, dict[str, set[str]]]:
    """From kind and QID to the labels that the released tables give it."""
    labels: dict[str, dict[str, set[str]]] = {kind: defaultdict(set) for kind in KINDS}

    def read(name: str, kind: str, code: int, label: int, header: bool) -> None:
        with (folder / name).open(encoding="utf-8", newline="") as handle:
            for row in list(csv.reader(handle))[int(header) :]:
                if len(row) > max(code, label) and row[code].strip():
                    labels[kind][row[code].strip()].add(row[label].strip())

    read("fow.csv", "field", 0, 1, True)
    read("P27_cats.csv", "country", 0, 1, False)
    read("city_to_country.csv", "city", 1, 2, False)
    for name in ("P101_ethnic_groups.csv", "P103_ethnic_groups.csv"):
        read(name, "ethnic_group", 0, 2, True)
    for code, label in ((1, 2), (3, 4)):
        read("P103_conversions.csv", "language", code, label, True)
    return labels


def _claims(folder: Path) -> dict[str, dict[str, list[object]]]:
    """QID -> property -> values, of the subjects of the released edits."""
    return {
        iri: subject["properties"]
        for path in sorted(folder.glob("*_subject_info.json"))
        for iri, subject in json.loads(path.read_text(encoding="utf-8")).items()
    }


def _wrong_names(people: Sequence[CuratedPerson], names: Mapping[str, set[str]]) -> Iterator[str]:
    owners: dict[str, set[str]] = defaultdict(set)
    for iri, labels in names.items():
        for label in labels:
            owners[label].add(iri)
    for person in people:
        if person.iri in names and person.name not in names[person.iri]:
            yield f"{person.name}: {person.iri} is {sorted(names[person.iri])} in the reference"
        if len(owners.get(person.name, set())) == 1 and person.iri not in owners[person.name]:
            yield f"{person.name}: the reference has {sorted(owners[person.name])}, not {person.iri}"


def _wrong_entities(entities: Mapping[tuple[str, str], LabelledValue], folder: Path) -> Iterator[str]:
    tables, sheets = reference_labels(folder), reference_groups(folder)
    for (kind, label), entity in entities.items():
        names = tables[kind].get(entity.iri)
        if names is not None and label not in names:
            yield f"{kind} {label!r}: {entity.iri} is {sorted(names)} in the reference"
        codes = {code for code, labels in tables[kind].items() if label in labels}
        if codes and entity.iri not in codes:
            yield f"{kind} {label!r}: the reference has {sorted(codes)}, not {entity.iri}"
        ours = (frozenset(entity.race), frozenset(entity.region))
        if kind == "ethnic_group" and ours != sheets.get(entity.iri, ours):
            yield f"{label}: race and region {ours}, {sheets[entity.iri]} in the reference"


def _wrong_values(
    person: CuratedPerson, entities: Mapping[tuple[str, str], LabelledValue], claims: Mapping[str, list[object]]
) -> Iterator[str]:
    sources = {key: source for keys, source in person.provenance for key in keys}
    for key, values in person.values().items():
        stated = [str(value) for value in claims.get(key, [])]
        if key in KIND_OF:
            agrees = {entities[KIND_OF[key], label].iri for label in values} <= set(stated)
        else:
            agrees = f"{int(values[0]):+05d}" in {value[:5] for value in stated}
        if stated and not agrees:
            yield f"{person.name}: {key} {values} is not among the claims {stated}"
        if not stated and "reference claims" in sources[key]:
            yield f"{person.name}: {key} claims to come from the reference, which lacks it"
    if person.death_year is None and claims.get("P570"):
        yield f"{person.name}: has died, says the reference"


def check_against_reference(
    people: Sequence[CuratedPerson], entities: Mapping[tuple[str, str], LabelledValue], folder: Path
) -> list[str]:
    """Return what disagrees with the released files: names, labels, groups, and the full claims of their subjects.

    Args:
        people: Of the table.
        entities: All values that they have; see `load_entities`.
        folder: Of the released files.
    """
    problems = [*_wrong_names(people, reference_names(folder)), *_wrong_entities(entities, folder)]
    claims = _claims(folder)
    for person in people:
        if person.iri in claims:
            problems += _wrong_values(person, entities, claims[person.iri])
        elif any("reference claims" in source for _, source in person.provenance):
            problems.append(f"{person.name}: claims to come from the reference, which has no claims")
    return problems
