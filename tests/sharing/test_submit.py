"""A leaderboard takes rows that follow from a run's own shards, says what was changed, and shows what it has."""

from __future__ import annotations

import csv
import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from seesaw_cf.cli import main
from seesaw_cf.errors import RecordError, RunFolderError, SeesawError, StorageError
from seesaw_cf.io.files import write_text
from seesaw_cf.io.sheets import csv_text
from seesaw_cf.report import AuditSettings, read_results
from seesaw_cf.report.write import report_tables
from seesaw_cf.sharing.every_eval import export_run
from seesaw_cf.sharing.leaderboard import leaderboard_page, leaderboard_text
from seesaw_cf.sharing.leaderboard_rows import Row, read_rows, rows_text
from seesaw_cf.sharing.submit import fetch_leaderboard, submission
from seesaw_cf.sharing.verify import run_digest
from seesaw_cf.tables import read_table, write_table
from tests.conftest import ROOT
from tests.hub_routes import Repo
from tests.hub_server import Hub
from tests.page_reader import check_alone, csv_files
from tests.report.runs import cases, property_cases, write_run
from tests.sharing.shards import write_shards

TOKEN = "hf_writer_secret"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = cases(("P27",), 6, 8) + property_cases(1)
    folder = tmp_path_factory.mktemp("submit") / "run"
    write_shards(write_run(folder, made, ("memit", "ft", "random(memit)"), refused=1))
    for name, frame in report_tables(read_results(folder)).items():
        write_text(folder / "report" / f"{name}.csv", csv_text(frame))
    return folder


@pytest.fixture
def copy(run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(run, tmp_path / "run"))


@pytest.fixture(scope="module")
def rows(run: Path) -> list[Row]:
    return submission(run)[1]


def test_numbers_are_those_of_the_report_and_controls_stand_beside(run: Path, rows: list[Row]) -> None:
    effects = pd.read_csv(run / "report" / "effects_by_group.csv")
    assert [row.editor for row in rows] == ["memit", "ft"]
    for row in rows:
        assert {one.editor for one in row.numbers} == {row.editor} | (
            {"random(memit)"} if row.editor == "memit" else set()
        )
        for one in (one for one in row.numbers if one.measure.startswith("log_odds/")):
            where = (effects["editor"] == one.editor) & (effects["axis"] == "all") & (effects["holds"] == "target_new")
            [wanted] = effects[where & (effects["relation"] == one.measure.partition("/")[2])].to_dict("records")
            assert (one.value, one.low, one.high) == pytest.approx(
                (wanted["log_odds"], wanted["log_odds_low"], wanted["log_odds_high"])
            )
            assert one.n == wanted["n_prompts"]
        assert row.checked == "manifest, scores, edits, report"
        assert row.data_sha256 == "ef" * 32
        assert (
            row.run
            == hashlib.sha256("".join((row.manifest_sha256, row.scores_sha256, row.edits_sha256)).encode()).hexdigest()
        )


def test_rows_survive_their_file(rows: list[Row], tmp_path: Path) -> None:
    (tmp_path / "submissions").mkdir()
    (tmp_path / "submissions" / f"{rows[0].run}.jsonl").write_text(rows_text(rows), encoding="utf-8")
    assert read_rows(tmp_path) == rows


@pytest.mark.parametrize(
    ("stem", "change", "message"),
    [
        ("a", {}, r"line 1: its file is named 'a', expected [0-9a-f]{64}, the SHA-256 over the row's hashes"),
        ("", {"scores_sha256": "0" * 64}, r"line 1: its file is named '[0-9a-f]{64}', expected "),
        ("", {"run": "0" * 64}, r"line 1: its run is '0{64}', expected .*remove the file from submissions/"),
    ],
)
def test_a_row_belongs_to_the_run_that_its_file_names(
    rows: list[Row], tmp_path: Path, stem: str, change: dict[str, str], message: str
) -> None:
    (tmp_path / "submissions").mkdir()
    changed = json.dumps(json.loads(rows_text(rows).splitlines()[0]) | change)
    (tmp_path / "submissions" / f"{stem or rows[0].run}.jsonl").write_text(changed, encoding="utf-8")
    with pytest.raises(RecordError, match=message):
        read_rows(tmp_path)


def _scores(folder: Path) -> None:
    table = read_table(folder / "scores.parquet")
    column = table.column_names.index("logprob")
    values = table["logprob"].to_pylist()
    values[-1] = -0.5
    write_table(folder / "scores.parquet", table.set_column(column, "logprob", pa.array(values, pa.float64())))


def _fewer(folder: Path) -> None:
    table = read_table(folder / "scores.parquet")
    write_table(folder / "scores.parquet", table.slice(4))


def _edits(folder: Path) -> None:
    table = read_table(folder / "edits.parquet")
    status = table["status"].to_pylist()
    status[0] = "ok"
    column = table.column_names.index("status")
    write_table(folder / "edits.parquet", table.set_column(column, "status", pa.array(status)))


def _manifest(folder: Path) -> None:
    file = folder / "manifest.json"
    made = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps(made | {"model": made["model"] | {"id": "a larger one"}}), encoding="utf-8")


def _report(folder: Path) -> None:
    file = folder / "report" / "efficacy.csv"
    with file.open(encoding="utf-8", newline="") as lines:
        heads, *found = csv.reader(lines)
    found[0][heads.index("post")] = "0.99"
    with file.open("w", encoding="utf-8", newline="") as out:
        csv.writer(out, lineterminator="\n").writerows([heads, *found])


def _units(folder: Path) -> None:
    """A unit is left out everywhere: shards and tables agree with each other."""
    for file in folder.glob("shards/*/unit-1.parquet"):
        file.unlink()
    for name in ("scores", "edits"):
        table = read_table(folder / f"{name}.parquet")
        kept = [case % 2 == 0 for case in table["case_id"].to_pylist()]
        write_table(folder / f"{name}.parquet", table.filter(pa.array(kept)))


def _cut(name: str, to: int) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:to])


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (_units, RecordError, r"memit has \d+ edits, the manifest says 14 records; units are missing"),
        (_cut("shards/ft/unit-0.parquet", 300), RecordError, r"unit-0\.parquet: not a whole Parquet file"),
        (_cut("report/efficacy.csv", 0), RecordError, r"report/efficacy\.csv has 0 rows of \[\]"),
        (_cut("report/efficacy.csv", -9), RecordError, r"report/efficacy\.csv has [\d,]+ rows of"),
        (_scores, RecordError, r"scores\.parquet, .*case_id .*: logprob is -0\.5, measured -"),
        (_fewer, RecordError, r"scores\.parquet has [\d,]+ rows, the shards have [\d,]+"),
        (_edits, RecordError, r"edits\.parquet, editor memit, .*: status is 'ok', measured 'refused: singular"),
        (_manifest, RunFolderError, r"unit-0\.parquet was written by another run"),
        (_report, RecordError, r"report/efficacy\.csv, line 2: post is '0\.99', the scores give '"),
        (lambda folder: (folder / "edits.parquet").unlink(), RunFolderError, "the run is not finished"),
        (lambda folder: shutil.rmtree(folder / "shards"), RunFolderError, r"its folder shards/ is gone"),
    ],
)
def test_what_was_changed_is_named(
    copy: Path, change: Callable[[Path], object], error: type[SeesawError], message: str
) -> None:
    change(copy)
    with pytest.raises(error, match=message):
        submission(copy)


def test_the_place_of_a_model_stays_on_the_machine(tmp_path: Path) -> None:
    model = {"id": "/home/somebody/models/mine", "revision": "", "dtype": "float32", "fingerprint": "ab" * 32}
    folder = write_shards(write_run(tmp_path / "run", cases(("P27",), 2, 4), ("ft",), model=model))
    file, found = submission(folder)
    assert [row.model for row in found] == ["mine"]
    assert "somebody" not in file + rows_text(found)
    made = export_run(folder, tmp_path / "out", "An organisation")
    assert [one.parent.name for one in made] == ["mine-ft"]
    assert not [one for one in (tmp_path / "out").rglob("*.json*") if "somebody" in one.read_text(encoding="utf-8")]


@pytest.mark.parametrize(
    "change", [{"value": 1.7}, {"n": 0}, {"low": 0.9, "high": 0.1}, {"low": -3.0}, {"high": 2.0}], ids=str
)
def test_a_number_that_cannot_be_is_refused(rows: list[Row], tmp_path: Path, change: dict[str, float]) -> None:
    found = json.loads(rows_text(rows).splitlines()[0])
    assert found["numbers"][0]["share"]
    found["numbers"][0] |= change
    (tmp_path / "submissions").mkdir()
    (tmp_path / "submissions" / f"{rows[0].run}.jsonl").write_text(json.dumps(found), encoding="utf-8")
    with pytest.raises(RecordError, match=r"line 1: no row of a leaderboard \('efficacy': .* a share in 0\.\.1"):
        read_rows(tmp_path)


def test_every_number_has_an_n(rows: list[Row]) -> None:
    assert all(one.n > 0 for row in rows for one in row.numbers)


def test_settings_of_a_report_are_no_change(copy: Path) -> None:
    results = read_results(copy, settings=AuditSettings(margin=0.3, noise_floor=0.5))
    changed = csv_text(report_tables(results)["effects_by_group"])
    file = copy / "report" / "effects_by_group.csv"
    assert file.read_text(encoding="utf-8") != changed
    file.write_text(changed, encoding="utf-8")
    assert submission(copy)[1]


def test_the_page_and_the_terminal_say_n_intervals_and_controls(rows: list[Row]) -> None:
    page = check_alone(leaderboard_page(rows, "org/board"))
    shown = leaderboard_text(rows)
    for text in (page.text, shown):
        said = " ".join(text.split())
        assert "efficacy" in said
        assert "random(memit): " in said
        assert "n=" in said
        assert "edited: citizenship" in said
    tables = csv_files(page)
    read = list(csv.DictReader(tables["leaderboard.csv"].splitlines()))
    assert len(read) == sum(len(row.numbers) for row in rows)
    assert {row["scores_sha256"] for row in read} == {rows[0].scores_sha256}
    assert leaderboard_page(rows, "org/board") == leaderboard_page(rows, "org/board")


def test_what_does_not_compare_stands_on_boards_of_their_own(rows: list[Row]) -> None:
    page = leaderboard_page([*rows, *(replace(row, protocol="other") for row in rows)], "org/board")
    names = re.findall(r'\bid="([^"]+)"', page)
    assert len(names) == len(set(names))
    assert {"board-1", "board-2"} <= set(names)


HOSTILE = "</script><img src=x onerror=alert(1)>\u202e=HYPERLINK(1)"


def test_a_row_of_somebody_else_is_text(rows: list[Row], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(rows_text(rows).splitlines()[0])
    for name, value in found.items():
        if isinstance(value, str) and name not in ("editor", "settings", "run"):
            found[name] = f"{HOSTILE} {value}"
    for one in found["numbers"]:
        one["about"] = HOSTILE
        one["measure"] = f"{HOSTILE}/{HOSTILE}"
    found["run"] = run_digest([found[f"{name}_sha256"] for name in ("manifest", "scores", "edits")])
    (tmp_path / "submissions").mkdir()
    (tmp_path / "submissions" / f"{found['run']}.jsonl").write_text(json.dumps(found), encoding="utf-8")
    check_alone(leaderboard_page(read_rows(tmp_path), HOSTILE))
    assert main(["leaderboard", str(tmp_path), "--out", str(tmp_path / "page.html")]) == 0
    assert "\u202e" not in capsys.readouterr().out
    check_alone((tmp_path / "page.html").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"form": 2}, r"a\.jsonl, line 1: a row of form 2, expected 1"),
        ({"seed": "x"}, r"a\.jsonl, line 1: no row of a leaderboard \(Row: seed is 'x', expected a whole number"),
        ({"numbers": [{"value": 1}]}, r"line 1: no row of a leaderboard"),
        ({"more": 1}, r"line 1: no row of a leaderboard"),
    ],
)
def test_a_wrong_row_is_named(rows: list[Row], tmp_path: Path, change: dict[str, object], message: str) -> None:
    found = json.loads(rows_text(rows).splitlines()[0]) | change
    (tmp_path / "submissions").mkdir()
    (tmp_path / "submissions" / "a.jsonl").write_text(json.dumps(found), encoding="utf-8")
    with pytest.raises(RecordError, match=message):
        fetch_leaderboard(str(tmp_path))


def test_commands_say_what_is_missing(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(StorageError, match=r"no rows in submissions/"):
        fetch_leaderboard(str(tmp_path))
    assert main(["submit", str(run), "--to", "board"]) == 1
    assert "repository 'board': expected ORG/NAME" in capsys.readouterr().err
    assert main(["submit", str(run), "--to", "org/board", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert json.loads(said.splitlines()[0])["editor"] == "memit"
    assert "Verified: manifest, scores, edits, report. Would be submissions/" in said
    assert main(["leaderboard", str(tmp_path), "--open"]) == 1
    assert "Give it with --out FILE.html" in capsys.readouterr().err


# One process for all commands: HF_ENDPOINT is read when the libraries are imported.
CALLS = """
import json, sys
from seesaw_cf.cli import main
for words in json.loads(sys.argv[1]):
    print("code", main(words), flush=True)
"""


@pytest.mark.slow(20)
def test_a_leaderboard_on_the_hub(run: Path, copy: Path, tmp_path: Path) -> None:
    made = json.loads((copy / "manifest.json").read_text(encoding="utf-8"))
    (copy / "manifest.json").write_text(json.dumps(made | {"versions": {"torch": "another"}}), encoding="utf-8")
    page = tmp_path / "page.html"
    calls = [["submit", str(folder), "--to", "org/board"] for folder in (run, run, copy)]
    calls += [["leaderboard", "org/board", "--out", str(page)], ["submit", str(run), "--to", "org/other"]]
    with Hub(tmp_path / "hub", writers=(TOKEN,)) as hub:
        hub.repos["dataset", "org/other"] = Repo(False)
        hub.repos["dataset", "org/other"].add("main", "x", {"mine.txt": hub.store(b"x", False)})
        done = subprocess.run(
            [sys.executable, "-c", CALLS, json.dumps(calls)],
            env={**hub.environment(TOKEN), "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert TOKEN not in done.stdout + done.stderr
        assert [line for line in done.stdout.splitlines() if line.startswith("code ")] == [
            f"code {code}" for code in (0, 1, 0, 0, 1)
        ], done.stderr
        assert "/datasets/org/board" in done.stdout
        assert "org/board has this run already (submissions/" in done.stderr
        assert "org/other exists and holds something else (mine.txt)" in done.stderr
        assert hub.repos["dataset", "org/board"].private
        files = hub.files("org/board", "dataset")
        assert len([name for name in files if name.startswith("submissions/")]) == 2
        assert b"path: submissions/*.jsonl" in files["README.md"]
    assert done.stdout.count("random(memit): ") >= 4
    check_alone(page.read_text(encoding="utf-8"))
