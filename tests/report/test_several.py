"""Several runs beside each other, and the papers' tables of them."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from seesaw_cf.cli import main
from seesaw_cf.records import groups
from seesaw_cf.report import read_run, report
from seesaw_cf.report.several import report_several
from seesaw_cf.study.paper import paper_effects, paper_tables, published_cells
from tests.report.conftest import BOTH, QUICK
from tests.report.runs import cases, property_cases, write_run

MADE = cases(("P27", "P101"), 5, 14, holds=BOTH) + property_cases(2)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("several")
    one = write_run(folder / "one", MADE, ("memit", "random(memit)"))
    return [one, write_run(folder / "two", MADE, ("memit", "ft"), shift=0.5)]


@pytest.mark.slow(20)
def test_an_editor_of_both_runs_is_named_with_its_run(folders: list[Path]) -> None:
    made = report_several(folders, QUICK, ["first", "second"])
    assert made.run.audited == ["memit [first]", "memit [second]", "ft"]
    assert ("memit [first]", "random(memit [first])") in made.run.controls
    assert made.page()


@pytest.mark.slow(20)
def test_numbers_of_a_run_are_those_of_its_own_report(folders: list[Path]) -> None:
    together, alone = report_several(folders, QUICK, ["first", "second"]).frame, report(folders[0], QUICK).frame
    own = together[together["editor"].isin(("memit [first]", "random(memit [first])"))]
    own = own[~own["control"].isin(("memit [second]", "ft"))].reset_index(drop=True)
    columns = ["what", "relation", "axis", "group", "value", "low", "high", "p_adjusted", "verdict"]
    rows = alone[alone["editor"] != "unedited"].reset_index(drop=True)
    pd.testing.assert_frame_equal(own.loc[own["editor"] != "unedited", columns], rows[columns])


def test_editors_of_two_runs_are_compared_on_the_same_questions(folders: list[Path]) -> None:
    frame = report_several(folders, QUICK, ["first", "second"]).frame
    pooled = frame[(frame["relation"] == "all") & (frame["axis"] == "all") & (frame["scale"] == "probability")]
    means = pooled[pooled["what"] == "change"].set_index(["editor", "true_answer"])["value"]
    first, second = "memit [first]", "memit [second]"
    across = pooled[(pooled["what"] == "beyond") & (pooled["editor"] == first) & (pooled["control"] == second)]
    assert set(across["true_answer"]) == {"old", "new"}
    for answer, value in zip(across["true_answer"], across["value"], strict=True):
        assert value == pytest.approx(means[first, answer] - means[second, answer], abs=1e-12)


def test_runs_of_unlike_protocols_are_said_to_be_and_not_compared(folders: list[Path], tmp_path: Path) -> None:
    other = shutil.copytree(folders[1], tmp_path / "batch")
    manifest = json.loads((other / "manifest.json").read_text()) | {"protocol": "batch", "edited": {"ft": {}}}
    (other / "manifest.json").write_text(json.dumps(manifest))
    made = report_several([folders[0], other], QUICK, ["one", "two"])
    assert "one by one or all together, beside ft" in made.screen.about
    assert "memit [two]" not in {*made.frame.query("editor == 'memit [one]'")["control"]}


def test_the_papers_tables_count_what_they_show(folders: list[Path]) -> None:
    runs = [read_run(folders[0])]
    cells, effects = paper_tables(runs), paper_effects(runs)
    total = cells[(cells["table"] == 8) & (cells["row"] == "Total") & (cells["panel"] == "memit")]
    stars = cells[cells["table"].isin((11, 13, 15)) & (cells["panel"] == "memit")]["star"].sum()
    assert total["value"].tolist() == [stars]  # Table 8 counts the stars that Tables 11, 13 and 15 show
    assert total["n"].tolist() == [73]  # 8 of gender, 30 of race, 35 of region
    shown = effects[effects["axis"].isin(("gender", "race", "region")) & (effects["n_cases"] > 0)]
    reported = [group in groups.members(axis) for axis, group in zip(shown["axis"], shown["group"], strict=True)]
    assert (cells["table"].isin((10, 12, 14))).sum() == sum(reported)
    assert len(published_cells(effects)) == 73 * effects["editor"].nunique()
    own = cells[(cells["table"] == 4) & (cells["panel"] == "memit")].set_index("row")["value"]
    assert own["mean of the rows"] == pytest.approx(own.drop("mean of the rows").mean())


@pytest.mark.slow
def test_paper_writes_its_files(folders: list[Path], tmp_path: Path) -> None:
    assert main(["report", str(folders[0]), "--out", str(tmp_path), "--paper", "--permutations", "20"]) == 0
    page = (tmp_path / "papers.md").read_text("utf-8")
    assert page.startswith("# Tables in the layout of SEESAW-CF")
    assert "## Table 4:" in page
    assert (tmp_path / "tables" / "papers.csv").is_file()
    figures = {file.name[:8] for file in (tmp_path / "pictures").iterdir()}
    assert figures == {"figure_2", "figure_3", "figure_4"}
