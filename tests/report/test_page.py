"""The screen and the page of a report: they fit, alone, small, escaped, and the same for the same run."""

import base64
import csv
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import wcwidth
from hypothesis import given
from hypothesis import strategies as st

from docs.tools.columns import COLUMNS
from seesaw_cf.cli import main
from seesaw_cf.report import Report, Screen, read_run, report
from seesaw_cf.report.screen import ScreenRow
from seesaw_cf.report.tables import ABOUT
from seesaw_cf.types import AttributePrompt, Entity
from tests.fakes import slowly
from tests.report.conftest import BOTH, QUICK
from tests.report.runs import cases, property_cases, write_run

HOSTILE = "</script><img src=x onerror=alert(1)><script>alert(2)</script>&\"'\u202e"


@pytest.fixture(scope="module")
def written(made: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written")
    made.write(folder)
    return folder


def test_a_report_writes_a_page_a_record_and_at_most_eight_tables(made: Report, written: Path) -> None:
    assert {file.name for file in written.iterdir()} == {"report.html", "report.json", "tables"}
    names = {file.stem for file in (written / "tables").iterdir()}
    assert names == set(made.tables) <= set(ABOUT)
    assert len(names) <= 8
    for name in names:
        with (written / "tables" / f"{name}.csv").open(encoding="utf-8") as file:
            heads, *rows = csv.reader(file)
        assert all(re.fullmatch(r"[a-z_0-9]+", head) for head in heads), heads
        assert len(rows) == len(made.tables[name])
    assert json.loads((written / "report.json").read_text("utf-8"))["screen"]["finding"]


def test_the_same_run_gives_the_same_bytes(written: Path, run_folder: Path, tmp_path: Path) -> None:
    report(run_folder, QUICK).write(tmp_path)
    for file in written.rglob("*"):
        if file.is_file():
            assert file.read_bytes() == (tmp_path / file.relative_to(written)).read_bytes(), file


def test_a_page_asks_nothing_of_the_network_and_is_small(made: Report) -> None:
    page = made.page()
    assert len(page.encode()) < 500_000
    assert not re.search(r"(?:src|href)=[\"'](?:https?:)?//", page)
    assert "default-src 'none'" in page
    script = page.partition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in page
    assert not re.search(r">\s*(nan|None|inf)\s*<", page)


def test_names_of_models_editors_and_people_are_text(tmp_path: Path) -> None:
    made = cases(("P27",), 4, 10, holds=BOTH) + property_cases(1)
    hostile = [replace(case, attribute_prompts=tuple(map(_hostile, case.attribute_prompts))) for case in made]
    editors = (HOSTILE, f"random({HOSTILE})")
    folder = write_run(tmp_path, hostile, editors, model={"id": HOSTILE, "dtype": "float32"})
    edits = pd.read_parquet(folder / "edits.parquet")
    edits.assign(subject=HOSTILE, target_new=HOSTILE).to_parquet(folder / "edits.parquet")
    found = report(folder, QUICK)
    page = found.page()
    assert "<img" not in page
    assert "alert(2)</script>" not in page
    assert page.count("<script>") == 1
    assert "&lt;img" in page
    assert "\u202e" not in found.terminal()


def _hostile(prompt: AttributePrompt) -> AttributePrompt:
    return replace(prompt, text=HOSTILE, subject=Entity(prompt.subject.id, HOSTILE), gender=(HOSTILE,))


ODD: list[tuple[tuple[str, ...], int, tuple[str, ...]]] = [
    (("random(memit)",), 8, BOTH),  # a control only
    (("memit",), 3, BOTH),  # three people
    (("memit",), 8, ("target_new",)),  # one kind of people
    (("memit",), 8, ("",)),  # nobody knows what they hold
]


@pytest.mark.parametrize("odd", [ODD[0], *slowly(*ODD[1:])])
def test_odd_runs_have_a_report(odd: tuple[Sequence[str], int, Sequence[str]], tmp_path: Path) -> None:
    editors, n_people, holds = odd
    found = report(write_run(tmp_path, cases(("P27",), 2, n_people, holds=holds), editors), QUICK)
    assert found.screen.finding
    assert found.page().startswith("<!doctype html>")


def test_two_editors_with_different_records_are_compared_on_what_they_share(tmp_path: Path) -> None:
    folder = write_run(tmp_path, cases(("P27",), 4, 8, holds=BOTH), ("memit", "ft"))
    scores = pd.read_parquet(folder / "scores.parquet")
    kept = ~((scores["editor"] == "ft") & (scores["case_id"] < 2))
    scores[kept].to_parquet(folder / "scores.parquet")
    found = report(folder, QUICK).frame
    beyond = found[(found["what"] == "beyond") & (found["relation"] == "all") & (found["axis"] == "all")]
    assert set(beyond["n_edits"]) <= {2}


@pytest.mark.parametrize("name", ["manifest.json", "scores.parquet"])
def test_what_is_no_finished_run_is_refused(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(tmp_path / "run", cases(("P27",), 2, 5))
    (folder / name).unlink()
    assert main(["report", str(folder)]) == 1
    message = {"manifest.json": "no manifest.json", "scores.parquet": "not finished"}[name]
    assert message in " ".join(capsys.readouterr().err.split())


@pytest.mark.slow
def test_the_command_writes_where_it_says(run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(run_folder), "--out", str(tmp_path / "out"), "--permutations", "20", "--pictures"]) == 0
    assert str(tmp_path / "out" / "report.html") in capsys.readouterr().out.replace("\n", "").replace("  ", "")
    assert {file.suffix for file in (tmp_path / "out" / "pictures").iterdir()} == {".png", ".svg"}


def test_a_run_of_an_older_version_is_read(tmp_path: Path) -> None:
    folder = write_run(tmp_path, cases(("P27",), 2, 5))
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    del manifest["edited"], manifest["notes"], manifest["machine"]
    (folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    assert read_run(folder).floor.probability is None


def test_the_page_of_columns_explains_each_column_of_each_table(made: Report) -> None:
    """`other_people_old_asked` is `asked` of some people, `right_before_low` an end of `right_before`."""
    of, part = "^(other_people_(old|new)|other_facts)_", "(_(before|after)(?=_mrr|_top5))|_(low|high)$"
    there = {re.sub(f"{of}|{part}", "", str(column)) for table in made.tables.values() for column in table}
    assert there | {"low", "high"} == {name for names in COLUMNS for name in names.split(", ")}


def test_one_editor_fits_a_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = cases(("P27", "P101"), 5, 12, holds=BOTH) + property_cases(3)
    monkeypatch.setenv("COLUMNS", "80")
    found = report(write_run(tmp_path, made, ("memit", "random(memit)")), QUICK)
    lines = found.terminal(Path("report")).split("\n")
    assert len(lines) <= 25
    assert max(map(wcwidth.width, lines)) <= 80


_SEEN = st.characters(codec="utf-8", exclude_categories=("Cc", "Cf", "Cs", "Zl", "Zp", "Mn", "Me"))
_WORDS = st.text(_SEEN, max_size=60)


@given(_WORDS, st.lists(_WORDS, min_size=1, max_size=2), _WORDS, st.integers(60, 100))
def test_no_line_is_wider_than_the_terminal(words: str, cells: list[str], title: str, width: int) -> None:
    rows = [ScreenRow(words, cells, "not decided")]
    screen = Screen(f"about {title}", [f"It {title}."], columns=["after memit", "random edit"], sections={title: rows})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        assert all(wcwidth.width(line) <= width for line in screen.terminal().split("\n"))
