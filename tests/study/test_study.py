"""A study is run cell by cell, killed, extended and reported as one."""

import json
import os
import shutil
from pathlib import Path

import pandas as pd
import pytest
import torch

from seesaw_cf.cli import main
from seesaw_cf.run.runner import Run
from seesaw_cf.run.units import Block
from seesaw_cf.study import work
from seesaw_cf.study.cells import StudyCell, failure, note_failure
from seesaw_cf.study.declared import Base, RecordSet
from tests import fresh
from tests.conftest import ROOT
from tests.runner import small
from tests.tokenizer_styles import byte_level

pytestmark = pytest.mark.slow

LAST = """
title: Two models, two editors
models: {models}
editors: {editors}
records: {records}
controls: [identity]
threads: 1
"""
MODELS = {"one": "one", "two": "two"}
EDITORS = {"ft": {"steps": 1, "layers": [1]}, "lora": {"steps": 1, "layers": [1]}}
RECORDS = {
    "mine": {"data": "sample", "configs": ["cross_subject", "cross_property"], "limit": 2},
    "more": {"data": "sample", "configs": ["cross_subject"], "limit": 3},
}


def written(folder: Path, models: int = 2, editors: int = 2, records: int = 2) -> Path:
    """The first so many of each, in the file's order."""
    parts = {
        name: json.dumps(dict(list(found.items())[:count]))
        for name, found, count in (
            ("models", MODELS, models),
            ("editors", EDITORS, editors),
            ("records", RECORDS, records),
        )
    }
    file = folder / "study.yaml"
    file.write_text(LAST.format(**parts), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two small models, and in `out` the finished study of one of them, two editors and one set of records."""
    folder = tmp_path_factory.mktemp("finished")
    for seed, name in enumerate(MODELS):
        model = small.model()
        with torch.no_grad():
            model.model.embed_tokens.weight.mul_(1 + seed)
        model.save_pretrained(folder / name)
        byte_level(bos=False).save_pretrained(folder / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert study(written(folder, 1, 2, 1), "out") == 0
    return folder


@pytest.fixture
def folder(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The models alone."""
    for name in MODELS:
        shutil.copytree(finished / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def out(finished: Path, folder: Path) -> Path:
    """The finished study beside the models."""
    return shutil.copytree(finished / "out", folder / "out")


def study(file: Path, out: str, *words: str) -> int:
    return main(["study", str(file), "--out", out, "--quiet", *words])


def contents(out: Path) -> dict[str, bytes]:
    report = out / "report"
    return {file.relative_to(report).as_posix(): file.read_bytes() for file in report.rglob("*.*")}


def notes(out: Path) -> str:
    """Return the finding and the notes of a study's report."""
    screen = json.loads((out / "report" / "report.json").read_text("utf-8"))["screen"]
    return "\n".join([*screen["finding"], *screen["notes"]])


def interrupted(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Ctrl-C after so many blocks of edits."""
    done: list[Block] = []
    do = Run.do

    def stop(self: Run, task: Block) -> None:
        if len(done) == after:
            raise KeyboardInterrupt
        done.append(task)
        do(self, task)

    monkeypatch.setattr(Run, "do", stop)


def grown_equals_whole(
    folder: Path, whole: Path, monkeypatch: pytest.MonkeyPatch, steps: list[tuple[int, int, int]]
) -> str:
    """The first step is killed after a block and repeated; returns the report's page."""
    with monkeypatch.context() as patch:
        interrupted(patch, 1)
        assert study(written(folder, *steps[0]), "grown") == 130
    assert not (folder / "grown" / "report").exists()
    made: dict[Path, int] = {}
    for step in steps:
        assert study(written(folder, *step), "grown") == 0
        assert {file: file.stat().st_mtime_ns for file in made} == made  # nothing is done again
        made = {file: file.stat().st_mtime_ns for file in (folder / "grown" / "cells").rglob("*.parquet")}
    one, other = contents(whole), contents(folder / "grown")
    assert one == other
    assert {"report.html", "report.json", "tables/levels.csv", "tables/efficacy.csv"} <= one.keys()
    return notes(folder / "grown")


@pytest.mark.slow(30)
def test_killed_and_extended_by_an_editor_it_is_reported_like_one_made_in_one_go(
    folder: Path, out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = grown_equals_whole(folder, out, monkeypatch, [(1, 1, 1), (1, 2, 1)])
    assert "Missing" not in page
    assert "Edits by ft are not shown to work" in page or "Edits by ft did not work" in page
    assert "Two models, two editors" in page
    assert "Declared before looking: margin 2 points" in page
    assert "grown/report/report.html" in capsys.readouterr().out


SEQUENCE = LAST.replace("identity", "random") + "protocols: [sequential]\ncheckpoints: [1, 2]\norders: 2\n"


@pytest.mark.slow(60)
def test_edits_one_after_another_are_killed_continued_and_reported_with_their_checkpoints(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records, file = json.dumps({"mine": RECORDS["mine"]}), folder / "study.yaml"
    file.write_text(SEQUENCE.format(models="[one]", editors=json.dumps(EDITORS), records=records), encoding="utf-8")
    assert study(file, "whole") == 0
    with monkeypatch.context() as patch:
        interrupted(patch, 5)  # between two checkpoints of the second editor
        assert study(file, "killed") == 130
    assert (folder / "killed" / "cells" / "one" / "mine" / "sequential" / "ft" / "edits.parquet").exists()
    assert study(file, "killed") == 0
    assert contents(folder / "whole") == contents(folder / "killed")
    curve = pd.read_csv(folder / "whole" / "report" / "tables" / "curve.csv")
    assert {*curve["editor"]} == {"ft", "random(ft)", "lora", "random(lora)"}
    assert curve.groupby("editor").size().tolist() == [4] * 4
    assert study(file, "whole", "--report-only", "--paper") == 1


@pytest.mark.slow(60)
@pytest.mark.exhaustive
def test_extended_by_a_model_and_by_records_it_is_reported_like_one_made_in_one_go(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert study(written(folder, editors=1), "whole") == 0
    steps = [(1, 1, 1), (2, 1, 1), (2, 1, 2)]
    assert "ft [one/mine/single/ft]" in grown_equals_whole(folder, folder / "whole", monkeypatch, steps)


def test_an_error_without_words_is_named_and_kept(folder: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("on purpose")

    file = written(folder, 1, 2, 1)
    shutil.rmtree(out / "cells" / "one" / "mine" / "single" / "lora")
    with monkeypatch.context() as patch:
        patch.setattr(work, "run_job", broken)
        assert study(file, "out") == 1
    assert "Missing: one/mine/single/lora: ZeroDivisionError: on purpose" in notes(folder / "out")
    assert study(file, "out") == 0
    assert "Missing" not in notes(folder / "out")
    assert not list((folder / "out" / "failed").rglob("*.txt"))


def test_cells_are_chosen_and_what_was_not_run_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(folder, 1, 2, 1)
    assert study(file, "out", "--report-only") == 1
    assert "no cell of the study is finished.\n  Missing: one/mine/single/ft: not run yet" in capsys.readouterr().err
    assert study(file, "out", "--cell", "one/mine/single/lora") == 0
    assert "Missing: one/mine/single/ft: not run yet" in capsys.readouterr().out
    assert study(file, "out", "--cell", "one/mine/single/lara") == 1
    assert "unknown cell 'one/mine/single/lara'. Did you mean 'one/mine/single/lora'" in capsys.readouterr().err


def test_what_is_kept_of_one_cell_is_not_that_of_another_with_dashes_in_its_names(folder: Path) -> None:
    cells = [StudyCell(name, Base("one"), RecordSet(), {}) for name in ("a/b--c/single/ft", "a--b/c/single/ft")]
    note_failure(cells[0], folder, "broken")
    assert [failure(cell, folder) for cell in cells] == ["broken", ""]


@pytest.mark.slow(60)
def test_workers_share_every_cell_and_write_the_tables_of_one_process(folder: Path, out: Path) -> None:
    pytest.importorskip("ray", reason="the extra ray is not installed")
    file = written(folder, 1, 2, 1)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SEESAW_CF_CACHE": str(folder / "cache")}
    words = ["study", str(file), "--out", "shared", "--quiet", "--engine", "ray"]
    done = fresh.python("-m", "seesaw_cf", *words, cwd=folder, env=environment)
    assert done.stdout.count("shared/report/report.html") == 1
    tables = [file.relative_to(out) for file in out.rglob("cells/**/*.parquet") if "shards" not in file.parts]
    assert len(tables) == 4
    for table in tables:
        assert (out / table).read_bytes() == (folder / "shared" / table).read_bytes()


def test_records_changed_between_cells_are_refused(folder: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(folder, 1, 2, 1)
    manifest = out / "cells" / "one" / "mine" / "single" / "ft" / "manifest.json"
    found = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(found | {"data": found["data"] | {"sha256": "0" * 64}}))
    assert study(file, "out", "--report-only") == 1
    said = capsys.readouterr().err
    assert "one/mine/single/ft and one/mine/single/lora are of one study, but they differ in data.sha256: " in said
