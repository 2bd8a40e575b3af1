"""`report.html` of a comparison: the same numbers as its tables, each line with its control, nothing from elsewhere."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pandas as pd
import pytest

from seesaw_cf.study.figures import picture_file
from seesaw_cf.study.write import compare_runs
from tests.page_reader import HOSTILE, Read, in_browser
from tests.report.runs import cases, property_cases, write_run


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A comparison of two editors, of which one has a control."""
    folder = tmp_path_factory.mktemp("compared")
    made = cases(("P27", "P101"), 8, 12) + property_cases(3)
    runs = [
        write_run(folder / "memit", made, ("memit", "identity(memit)")),
        write_run(folder / "ft", made[::-1], ("ft",), shift=-1.0, seed=4),
    ]
    (folder / "said.txt").write_text(compare_runs(runs, folder / "out"), encoding="utf-8")
    return folder / "out"


def test_it_opens_with_five_sentences_that_the_terminal_ends_with(out: Path) -> None:
    page = Read((out / "report.html").read_text(encoding="utf-8"))
    said = re.search(
        r"Edited (.*?) Took (.*?) Affected (.*?) Not known (.*?) How sure (.*?) The runs", _one_line(page.text)
    )
    assert said is not None
    edited, took, affected, unknown, sure = said.groups()
    tables = {file.stem: pd.read_csv(file) for file in out.glob("*.csv")}
    assert edited.startswith("80 edits by memit, ft in tiny")

    shares = tables["efficacy"].query("relation == 'all' and editor != 'identity(memit)'").sort_values("post")
    assert re.findall(r"([\d.]+)% \[", took) == [f"{100 * post:.1f}" for post in shares["post"]]

    differences = tables["differences"]
    shown = differences[differences["p_adjusted"] < 0.05].sort_values("p_adjusted", kind="stable")
    how_many = f"{len(shown) or 'None'} of {differences['p'].notna().sum()} paired differences"
    assert f"{how_many} {'are shown' if len(shown) else 'between lines is shown'}" in affected
    named = re.findall(r"memit − ft ([+−][\d.]+) \[([^,]+), ([^\]]+)\]", affected)
    values = [[float(one.replace("−", "-")) for one in row] for row in named]
    assert values == [
        pytest.approx(list(row), rel=0.01, abs=6e-4) for row in shown[["value", "low", "high"]].values[:3]
    ]
    assert all(low * high > 0 for _, low, high in values)

    own = tables["verdicts"].query("editor != 'identity(memit)' and not mirror")
    counts = [(own["verdict"] == label).sum() for label in ("undetermined", "not testable")]
    assert "{} undetermined, {} not testable of {} contrasts".format(*counts, len(own)) in unknown
    assert "the runs disagree in seed" in unknown.replace("the seed", "seed")
    assert sure.startswith("40 edits a line")
    terminal = _one_line((out.parent / "said.txt").read_text(encoding="utf-8"))
    assert terminal.endswith(f"Affected: {affected} Not known: {unknown} How sure: {sure}")
    assert f"**How sure:** {sure}" in _one_line((out / "report.md").read_text(encoding="utf-8")).replace("\\", "")


def _one_line(said: str) -> str:
    return " ".join(said.split())


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


def test_names_of_any_length_have_pictures_of_their_own() -> None:
    made: list[str] = []
    for name in ("figure_2_a, b", "figure_2_a; b", "w" * 4_000, "w" * 4_001, HOSTILE["html"], HOSTILE["emoji"]):
        made.append(picture_file(name, made))
    assert len(set(made)) == len(made)
    assert max(map(len, made)) <= 120
    assert made[0] == "figure_2_a--b.png"


@pytest.mark.slow(20)
@pytest.mark.parametrize("width", [375, 1920])
def test_chromium_shows_it_at_any_width(out: Path, width: int) -> None:
    shown = in_browser(out / "report.html", width=width)
    assert "Comparison of 2 runs" in shown.text
    assert shown.all("circle")
