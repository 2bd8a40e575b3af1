"""The released files themselves: counts and damage as computed from them independently, and nothing lost.

Expected numbers: ../shared/reference/PEER_FACTS.md, sections A2, A4 and A5; those marked "own" were counted directly
from the JSON lists with a few lines of plain Python.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from seesaw_cf.records import cases_to_table, import_files, read_cases, table_to_cases, write_json
from seesaw_cf.records.importing import FileSummary
from seesaw_cf.types import Case

pytestmark = pytest.mark.slow

Reference = Callable[..., Path]
PAIRS = ("P21_P101", "P19_P101", "P27_P101")
FILES = (*PAIRS, "P101_eff", "P103_eff")

# cases, first id, last id, prompts, unique, open, unique, edit subjects, test subjects, new, true, either, min, max
COUNTS: dict[str, tuple[int, ...]] = {
    "P21_P101": (290, 21920, 22209, 29_000, 200, 2_900, 580, 290, 200, 2, 2, 2, 100, 100),
    "P19_P101": (286, 22775, 23060, 34_169, 21_370, 2_860, 572, 286, 21_388, 9, 232, 232, 12, 200),
    "P27_P101": (282, 23061, 23342, 49_105, 12_330, 2_820, 564, 282, 12_344, 41, 69, 73, 11, 200),
    "P101_eff": (352, 73, 21912, 0, 0, 0, 0, 343, 0, 47, 67, 76, 0, 0),
    "P103_eff": (898, 0, 21914, 0, 0, 0, 0, 897, 0, 25, 30, 30, 0, 0),
}
MEANS = {"P21_P101": 100.0, "P19_P101": 119.5, "P27_P101": 174.1, "P101_eff": 0.0, "P103_eff": 0.0}
# disambiguators in gender, duplicates: A5 and A2; tense damage: A5 (these 2 of the 6 rows are in this file); rest own.
PROMPT_FLAGS = {
    "P21_P101": {"disambiguator": 346},
    "P19_P101": {"disambiguator": 1812, "label_shared": 47, "double_space": 14, "duplicate_prompt": 1},
    "P27_P101": {
        "disambiguator": 2429,
        "label_shared": 114,
        "duplicate_prompt": 8,
        "double_space": 7,
        "tense_in_name": 2,
    },
    "P101_eff": {},
    "P103_eff": {},
}
# Every case of a pair file repeats its generation prompts (A2); "Abbasid Caliphate " and others end with a space (A3).
CASE_FLAGS = {
    "P21_P101": {"repeated_generation": 290},
    "P19_P101": {"repeated_generation": 286, "target_space": 2},
    "P27_P101": {"repeated_generation": 282, "target_space": 26},
    "P101_eff": {},
    "P103_eff": {},
}


@pytest.fixture(scope="module")
def imported(reference: Reference, tmp_path_factory: pytest.TempPathFactory) -> dict[str, FileSummary]:
    paths = [reference("seesaw", f"seesaw_cf_{name}.json") for name in FILES]
    out = tmp_path_factory.mktemp("imported") / "out"
    return dict(import_files(paths, out).files)


@pytest.fixture(scope="module")
def released(reference: Reference) -> Callable[[str], list[Case]]:
    """Gives the cases of a released file, read once."""
    return cache(lambda name: read_cases(reference("seesaw", f"seesaw_cf_{name}.json")))


@pytest.mark.parametrize("name", FILES)
def test_counts(imported: dict[str, FileSummary], name: str) -> None:
    numbers = imported[name].numbers
    low, mean, high = numbers["prompts per case, min / mean / max"]
    labels = ["cases", "case ids, first / last", "prompts", "unique prompts", "generation prompts"]
    labels += ["unique generation prompts", "edit subjects", "test subjects", "targets, new / true / either"]
    assert (*(number for label in labels for number in numbers[label]), low, high) == COUNTS[name]
    assert round(mean, 1) == MEANS[name]
    assert numbers["prompts with a group tag"] == (0,)


@pytest.mark.parametrize("name", FILES)
def test_damage(imported: dict[str, FileSummary], name: str) -> None:
    expected = {f"flag {flag} (prompts)": number for flag, number in PROMPT_FLAGS[name].items()}
    expected |= {f"flag {flag} (cases)": number for flag, number in CASE_FLAGS[name].items()}
    assert {label: number for label, number in imported[name].notes.items() if "flag" in label} == expected


@pytest.mark.parametrize("name", FILES)
def test_released_bytes_come_back_through_parquet(
    reference: Reference, released: Callable[[str], list[Case]], tmp_path: Path, name: str
) -> None:
    cases = released(name)
    back = table_to_cases(cases_to_table(cases))
    assert back == cases
    write_json(tmp_path / "again.json", back)
    assert (tmp_path / "again.json").read_bytes() == reference("seesaw", f"seesaw_cf_{name}.json").read_bytes()


@pytest.mark.parametrize(("name", "dead"), [("P21_P101", 14_560), ("P19_P101", 0), ("P27_P101", 20_157)])
def test_every_prompt_has_its_template_and_tense(released: Callable[[str], list[Case]], name: str, dead: int) -> None:
    """Own counts of "'s gender was" and " was a citizen of" (2 of them with a damaged name); birth shows no tense."""
    cases = released(name)
    rows = [row for case in cases for row in case.attribute_prompts]
    edit, effect = name.split("_")
    assert {row.template_id for row in rows} == {f"{edit}-cloze-01"}
    assert sum(row.living is False for row in rows) == dead
    assert {case.effect_relation_id for case in cases} == {effect}
