"""`report.html` of runs in which something is wrong or missing: it says so, shows no NaN, and runs nobody's markup."""

from __future__ import annotations

import csv
import io
import math
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from seesaw_cf.base.tables import SCORES, read_table, write_table
from seesaw_cf.report import read_results
from seesaw_cf.report.html.render import REPORTS
from seesaw_cf.report.write import run_report
from seesaw_cf.types import Entity
from tests.page_reader import HOSTILE, Read, check_alone, csv_files, in_browser
from tests.report.runs import cases, property_cases, write_run

pytestmark = pytest.mark.slow

TAGS = set(re.findall(r"<([a-z][a-z1-6]*)", " ".join(one.read_text("utf-8") for one in REPORTS.folder.glob("*.html"))))
"""Of the package's own templates."""
EVERYTHING = cases(("P27",), 5, 8) + property_cases(1)


def page_of(folder: Path) -> Read:
    """The page of a run, checked; its audit is checked as well."""
    pages = run_report(read_results(folder)).pages
    if "audit.html" in pages:
        assert not re.search(r"\b(nan|inf|None)\b", check_alone_of(pages["audit.html"]).text)
    page = check_alone(pages["report.html"])
    assert not re.search(r"\b(nan|inf|None)\b", page.text)
    return page


def check_alone_of(html: str) -> Read:
    """An audit has no script of its own to check the hash of where nothing is looked into."""
    return Read(html)


def ids(page: Read) -> set[str]:
    return {str(attrs["id"]) for _, attrs in page.tags if "id" in attrs}


def test_every_edit_refused(tmp_path: Path) -> None:
    page = page_of(write_run(tmp_path, EVERYTHING, ("memit", "random(memit)"), refused=len(EVERYTHING)))
    assert "Not measured: this run has no score of an edited fact" in page.text
    assert not {"look", "most", "verdicts"} & ids(page)
    assert f"0 0 {len(EVERYTHING)}" in " ".join(page.text.split())


def without_numbers(folder: Path, phases: Sequence[str]) -> None:
    """Every score of these phases has no number."""
    table = read_table(folder / "scores.parquet", SCORES)
    rows: list[dict[str, Any]] = table.to_pylist()
    for row in rows:
        if row["phase"] in phases:
            row.update({name: math.nan for name in row if isinstance(row[name], float)}, status="not finite")
    write_table(folder / "scores.parquet", pa.Table.from_pylist(rows, schema=table.schema))


@pytest.mark.parametrize("phases", [("post",), ("pre", "post")])
def test_nan_everywhere(tmp_path: Path, phases: tuple[str, ...]) -> None:
    folder = write_run(tmp_path, EVERYTHING, ("memit", "random(memit)"))
    without_numbers(folder, phases)
    page = page_of(folder)
    assert re.search(r"[\d,]+ of [\d,]+ score rows have no number", page.text)
    assert not {"look", "most", "verdicts"} & ids(page)


def test_one_case(tmp_path: Path) -> None:
    page = page_of(write_run(tmp_path, cases(("P27",), 1, 6)))
    assert "1 edit by memit" in page.text
    assert "most" not in ids(page), "nothing has an interval"
    assert {"look", "groups", "efficacy"} <= ids(page)


def test_nobody_has_a_group(tmp_path: Path) -> None:
    made = [
        replace(
            case,
            attribute_prompts=tuple(
                replace(prompt, gender=(), race=(), region=()) for prompt in case.attribute_prompts
            ),
        )
        for case in cases(("P27",), 6, 8)
    ]
    page = page_of(write_run(tmp_path, made, ("memit", "random(memit)")))
    assert "no group is recorded for 100 % (gender), 100 % (race), 100 % (region)" in page.text
    assert "no tag" in page.text
    assert "everybody" in page.text
    assert "intersections" not in ids(page)


def test_without_controls_the_page_says_what_is_not_known(tmp_path: Path) -> None:
    page = page_of(write_run(tmp_path, EVERYTHING))
    assert "This run had no control edit" in page.text
    assert "the run had no control." in page.text


def test_names_of_everything_stay_names(tmp_path: Path) -> None:
    """Persons, groups, answers, editors, model and notes."""
    names = list(HOSTILE.values())
    made = []
    for number, case in enumerate(cases(("P27",), len(names), 6)):
        new, true = (Entity(None, f"{names[number]} {which}") for which in ("new", "true"))
        prompts = tuple(
            replace(
                one, text=f"{names[i % 5]} is", subject=Entity(f"Q{i}", f"{names[i % 5]} {i}"), race=(names[i % 5],)
            )
            for i, one in enumerate(case.attribute_prompts)
        )
        request = replace(case.request, subject=names[number], target_new=new, target_true=true)
        made.append(replace(case, request=request, attribute_prompts=prompts))
    model = {"id": names[0], "revision": names[1], "dtype": "float32", "fingerprint": "ab", "tokenizer": "cd"}
    editors = (HOSTILE["html"], HOSTILE["long"], HOSTILE["formula"])
    page = page_of(write_run(tmp_path, [*made, *property_cases(1)], editors, refused=1, model=model, notes=names))
    assert {tag for tag, _ in page.tags} <= TAGS
    for name in names:
        assert max(re.findall(r"\w+|\S", name), key=len) in page.text
    for content in csv_files(page).values():
        cells = [cell for row in csv.reader(io.StringIO(content)) for cell in row]
        assert not any(cell.startswith(("=", "@", "\t")) for cell in cells)


@pytest.mark.slow(10)
def test_a_page_moved_elsewhere_still_works(tmp_path: Path) -> None:
    """Another folder, another name, and nothing of the run beside it."""
    folder = write_run(tmp_path / "run", EVERYTHING)
    results = read_results(folder)
    there = tmp_path / "else where" / "a #1 ü?.html"
    there.parent.mkdir()
    there.write_text(run_report(results).pages["report.html"], encoding="utf-8")
    shutil.rmtree(folder)
    assert re.search(r"[1-9]\d prompts shown", in_browser(there, "#look?editor=memit&group=women").text)
