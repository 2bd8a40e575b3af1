"""What the released SEESAW-CF files say of people and values: names, labels, groups."""

from __future__ import annotations

import ast
import csv
import json
from collections import defaultdict
from functools import cache
from pathlib import Path

from seesaw_cf.builder_scripts.sample.people import KINDS

__all__ = ["reference_groups", "reference_labels", "reference_names"]


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
