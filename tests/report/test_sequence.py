"""The report of edits one after another, recomputed from its score table, and what is said where a model collapsed."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from seesaw_cf.api import Audit
from seesaw_cf.base import retrying
from seesaw_cf.effects.audit import AuditSettings
from seesaw_cf.errors import HarmError, RunFolderError
from seesaw_cf.report import report
from seesaw_cf.report.sequence import SequenceReport
from seesaw_cf.report.several import report_several
from seesaw_cf.study.paper import write_papers
from tests.report.runs import cases as make_cases
from tests.report.runs import write_run
from tests.runner.test_sequence import COUNTS, run

SETTINGS = AuditSettings(permutations=0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sequence") / "run"
    run(out)
    return out


@pytest.fixture(scope="module")
def made(folder: Path) -> SequenceReport:
    found = report(folder, SETTINGS)
    assert isinstance(found, SequenceReport)
    return found


def _changes(folder: Path) -> pd.Series:
    """D of every question about people who hold the new answer: p(new) - p(old) after, minus before."""
    rows = pq.read_table(folder / "scores.parquet").to_pandas()
    rows = rows[(rows["kind"] == "cross_subject") & (rows["holds"] == "target_new")]
    rows["p"] = np.exp(rows["logprob"]) * np.where(rows["role"] == "target_new", 1, -1)
    # All facts are the same change of answers, so a question about a person is one question, whoever asks it.
    keys = ["editor", "checkpoint", "order", "subject", "phase", "role"]
    sides = rows.groupby(keys)["p"].first().groupby(keys[:-1]).sum().unstack("phase")
    return sides["post"] - sides["pre"]


def test_levels_are_means_over_orders_and_beyond_the_control_on_the_same_questions(
    made: SequenceReport, folder: Path
) -> None:
    means = _changes(folder).groupby(["editor", "checkpoint"]).mean()
    rows = made.frame[(made.frame["relation"] == "all") & (made.frame["axis"] == "all")]
    rows = rows[(rows["true_answer"] == "new") & (rows["scale"] == "probability")]
    for count in COUNTS:
        own = rows[rows["checkpoint"] == count]
        assert {*own["n"]} == {3}, "a question counts once, though every fact asks it"
        changes = own[own["what"] == "change"].set_index("editor")["value"]
        assert changes.to_dict() == pytest.approx({name: means[name, count] for name in ("lean", "random(lean)")})
        [beyond] = own.loc[own["what"] == "beyond", "value"]
        assert beyond == pytest.approx(means["lean", count] - means["random(lean)", count])
    assert made.curve.groupby(["editor", "checkpoint"])["D_new"].mean().to_dict() == pytest.approx(means.to_dict())


def test_retention_counts_the_edits_made_so_far(made: SequenceReport, folder: Path) -> None:
    rows = pq.read_table(folder / "scores.parquet").to_pandas()
    keys = ["editor", "checkpoint", "order", "prompt", "role"]
    rows = rows[(rows["kind"] == "efficacy") & (rows["phase"] == "post")].drop_duplicates(keys)
    wide = rows.set_index(keys)["logprob"].unstack("role")
    holds = (wide["target_new"] > wide["target_true"]).groupby(["editor", "checkpoint"]).mean()
    own = made.frame[(made.frame["what"] == "efficacy_after") & (made.frame["relation"] == "all")]
    assert own.set_index(["editor", "checkpoint"])["value"].to_dict() == pytest.approx(holds.to_dict())
    assert made.curve.groupby(["editor", "checkpoint"])["ES"].mean().to_dict() == pytest.approx(holds.to_dict())
    assert made.curve.groupby("checkpoint")["n_edits"].unique().map(list).to_dict() == {own: [own] for own in COUNTS}
    stuck = replace(made, curve=made.curve.assign(n_zero=2))
    assert "2 of 6 edits by lean changed nothing, the sequence" in stuck.screen.missing


@pytest.mark.slow(20)
def test_a_report_has_its_curves_first_and_a_checkpoint_in_every_table(made: SequenceReport, tmp_path: Path) -> None:
    made.write(tmp_path, pictures=True)
    assert [part.title for part in made._parts()][:2] == ["Edit after edit", "Every checkpoint"]
    assert len(made.tables) <= 8
    for name in ("curve", "levels", "efficacy"):
        assert list(pd.read_csv(tmp_path / "tables" / f"{name}.csv")["checkpoint"].unique()) == list(COUNTS), name
    assert (tmp_path / "pictures" / "curves_lean.png").stat().st_size
    with retrying.stages("report", 6):
        assert report(made.run.folder, SETTINGS).page() == made.page()
        assert retrying._STAGES[-1].n + 1 == retrying._STAGES[-1].total == 2 * len(COUNTS) + 1


def _collapsed(folder: Path, out: Path, **units: Any) -> SequenceReport:
    """The report where one order of an editor, from a checkpoint on, has ten times the perplexity."""
    shutil.copytree(folder, out)
    document = json.loads((out / "dose.json").read_text())
    for unit in document["units"]:
        unit |= document["baseline"][""]
        if unit["order"] == 1 and unit["checkpoint"] >= units.get(unit["editor"], 99):
            unit["perplexity"] *= 10
    (out / "dose.json").write_text(json.dumps(document))
    found = report(out, SETTINGS)
    assert isinstance(found, SequenceReport)
    return found


def test_a_collapse_in_any_order_is_dated_and_said_and_nothing_else_is(folder: Path, tmp_path: Path) -> None:
    fallen = _collapsed(folder, tmp_path / "a", lean=3)
    assert fallen.screen.finding[0].startswith("After 3 edits in a row lean has broken the model")
    assert "not so after as many random changes" in fallen.screen.finding[0]
    assert fallen.standing == {"lean": 1}
    assert {*fallen.frame.loc[fallen.frame["editor"] == "lean", "checkpoint"]} == {1}  # no mean over what collapsed
    cells = [row.cells for rows in fallen.screen.sections.values() for row in rows if row.words == "lean"]
    assert {tuple(map(bool, own)) for own in cells} == {(True, False, False)}
    with pytest.raises(HarmError, match="broken"):
        fallen.check()
    beside = _collapsed(folder, tmp_path / "b", **{"random(lean)": 3})
    assert beside.screen.finding[0].startswith("3 random changes of the sizes of lean's have broken the model")
    later = beside.frame.query("what == 'beyond' and checkpoint > 1")
    assert ({*later["verdict"]}, later["value"].count()) == ({"", "no_match"}, 0)
    assert {*Audit(beside).summary["checkpoint"]} == {*COUNTS}


def test_nobody_else_is_asked(folder: Path, tmp_path: Path) -> None:
    single = write_run(tmp_path / "single", make_cases(("P27",), 3, 4), ("memit",))
    for out in (single, shutil.copytree(folder, tmp_path / "sequence")):
        rows = pq.read_table(out / "scores.parquet")
        pq.write_table(rows.filter(pc.field("kind") != "cross_subject"), out / "scores.parquet")
        found = report(out, SETTINGS)
        assert found.frame["low"].dtype == np.float64
        assert "people who hold" not in (found.screen.terminal("") + found.page()).lower()


@pytest.mark.slow
def test_of_two_collapses_and_of_none_the_report_says_so(folder: Path, tmp_path: Path) -> None:
    both = _collapsed(folder, tmp_path / "e", **{"lean": 6, "random(lean)": 6})
    assert "so have as many random changes" in both.screen.finding[0]
    first = _collapsed(folder, tmp_path / "c", lean=1)
    assert (first.standing["lean"], len(first.screen.finding)) == (0, 1)
    assert first.page()
    stands = _collapsed(folder, tmp_path / "d")
    assert not any("broken" in sentence for sentence in stands.screen.finding)


@pytest.mark.slow
def test_sequences_of_several_runs_are_one_report_of_what_each_says_alone(
    made: SequenceReport, folder: Path, tmp_path: Path
) -> None:
    other = _collapsed(folder, tmp_path / "other", lean=3)
    both = report_several([folder, other.run.folder], SETTINGS, ["one", "two"])
    assert isinstance(both, SequenceReport)
    assert both.standing == {"lean [one]": 6, "lean [two]": 1}
    assert "lean [two] has broken the model" in both.screen.finding[0]
    for title, alone in (("one", made), ("two", other)):
        rows = both.frame[(both.frame["editor"] == f"lean [{title}]") & ~both.frame["control"].str.startswith("lean")]
        own = alone.frame[alone.frame["editor"] == "lean"]
        columns = ["what", "checkpoint", "value", "low", "high", "verdict"]
        pd.testing.assert_frame_equal(rows[columns].reset_index(drop=True), own[columns].reset_index(drop=True))
        curve = both.curve[both.curve["editor"] == f"random(lean [{title}])"].drop(columns="editor")
        expected = alone.curve[alone.curve["editor"] == "random(lean)"].drop(columns="editor")
        pd.testing.assert_frame_equal(curve.reset_index(drop=True), expected.reset_index(drop=True))
    both.write(tmp_path / "report")
    assert {*pd.read_csv(tmp_path / "report" / "tables" / "levels.csv")["checkpoint"]} == {*COUNTS}
    with pytest.raises(RunFolderError, match="one at a time"):
        write_papers(both, tmp_path)


@pytest.mark.slow
def test_sequences_are_no_mean_with_other_runs(folder: Path, tmp_path: Path) -> None:
    other = write_run(tmp_path / "single", make_cases(("P27",), 3, 4), ("memit",))
    for name, value in (("checkpoints", [1, 3]), ("orders", 1)):
        manifest = json.loads((shutil.copytree(folder, tmp_path / name) / "manifest.json").read_text())
        manifest["settings"][name] = value
        (tmp_path / name / "manifest.json").write_text(json.dumps(manifest))
        with pytest.raises(RunFolderError, match="no mean with other runs"):
            report_several([folder, tmp_path / name], SETTINGS)
    with pytest.raises(RunFolderError, match="one after another"):
        report_several([folder, other], SETTINGS)
