"""`report.html` of a comparison: the same numbers as its tables, each line with its control, nothing from elsewhere."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pandas as pd
import pytest

from seesaw_cf.study.write import compare_runs
from tests.page_reader import Read, in_browser
from tests.report.runs import cases, property_cases, write_run


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A comparison of two editors, of which one has a control."""
    folder = tmp_path_factory.mktemp("compared")
    made = cases(("P27", "P101"), 8, 12) + property_cases(3)
    runs = [
        write_run(folder / "memit", made, ("memit", "identity(memit)")),
        write_run(folder / "ft", made, ("ft",)),
    ]
    compare_runs(runs, folder / "out")
    return folder / "out"


def test_lines_stand_on_one_axis_with_their_controls(out: Path) -> None:
    html = (out / "report.html").read_text(encoding="utf-8")
    page = Read(html)
    marks = [str(tag["aria-label"]) for tag in page.all("svg") if tag.get("role") == "img"]
    assert marks
    assert all(("control" in mark) == mark.startswith("memit:") for mark in marks)
    effects = pd.read_csv(out / "effects_by_group.csv")
    real = effects[effects["editor"].isin(["memit", "ft"]) & (effects["group"] != "unknown")]
    shown = {(mark.split(":")[0], int(n)) for mark in marks for n in re.findall(r"(\d+) people", mark)[:1]}
    assert shown == set(zip(real["editor"], real["n_subjects"], strict=True))
    for heading in ("What is compared", "Did the edits take", "Verdicts", "Paired differences"):
        assert heading in page.text


def test_tables_come_along_and_nothing_is_fetched(out: Path) -> None:
    page = Read((out / "report.html").read_text(encoding="utf-8"))
    links = {str(tag["download"]): str(tag["href"]) for tag in page.all("a") if "download" in tag}
    assert {"efficacy.csv", "differences.csv", "effects_by_group.csv", "verdicts.csv"} <= links.keys()
    for name, link in links.items():
        assert base64.b64decode(link.partition("base64,")[2]) == (out / name).read_bytes()
    assert not [tag for _, tag in page.tags if str(tag.get("href") or tag.get("src") or "").startswith(("http", "//"))]


@pytest.mark.slow(20)
@pytest.mark.parametrize("width", [375, 1920])
def test_chromium_shows_it_at_any_width(out: Path, width: int) -> None:
    shown = in_browser(out / "report.html", width=width)
    assert "Comparison of 2 runs" in shown.text
    assert shown.all("circle")
