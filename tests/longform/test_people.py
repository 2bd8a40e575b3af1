"""Tasks for people out, through Label Studio or a sheet, and their answers back as the tables that judges write."""

import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seesaw_cf.base.tables import read_table, write_table
from seesaw_cf.cli import main
from seesaw_cf.effects.instruments import FAILURE_MODES, ITEMS
from seesaw_cf.errors import RecordError, StorageError
from seesaw_cf.texts import KINDS, ExportJob
from seesaw_cf.texts.exchange import export_people, import_people
from seesaw_cf.texts.pairs import passage_pairs, sample_pairs
from seesaw_cf.texts.tables import ANNOTATIONS, FAILURES, FLAWS, PASSAGES, RATINGS

from .analysis_samples import passages
from .people_runs import answer_label_studio, answer_sheet, truth, write_rows, write_run

HOSTILE = '<script>alert(1)</script> $text_B ]]> &amp; =1+1 \U0001f600 "quoted"'
SCHEMAS = {"flaws": FLAWS, "survey": RATINGS, "claims": ANNOTATIONS, "failures": FAILURES, "writing": PASSAGES}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("people") / "run")


def exported(run: Path, out: Path, kind: str, sample: int | None = None, **how: Any) -> Path:
    export_people(ExportJob(kind, run, limit=sample, **how), out, overwrite=True)
    return out


def key_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "key.json").read_text(encoding="utf-8"))
    return found


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    return [{**row, "rater": "", "annotator": "", "sample": 0} for row in table.to_pylist()]


@pytest.mark.parametrize("kind", KINDS)
def test_both_ways_give_the_same_tables(run: Path, tmp_path: Path, kind: str) -> None:
    out = exported(run, tmp_path, kind, duplicates=0.5)
    online = import_people(answer_label_studio(out), out / "key.json")
    sheet = import_people(answer_sheet(out), out / "key.json", "A1")
    assert list(online) == list(sheet)
    first = next(iter(online))
    assert online[first].schema == SCHEMAS[kind]
    assert set(online[first].column("status").to_pylist()) == {"ok"}
    for name, table in online.items():
        assert rows_of(table) == sorted(rows_of(sheet[name]), key=rows_of(table).index), name


def test_what_the_kinds_give(run: Path, tmp_path: Path) -> None:
    found: dict[str, pa.Table] = {}
    for kind in KINDS:
        out = exported(run, tmp_path / kind, kind, duplicates=0.25)
        found |= import_people(answer_label_studio(out, by={"id": 3, "email": "a@b.org"}), out / "key.json")
    assert list(found)[3:] == ["ratings", "annotations", "failures", "passages"]
    assert "a@b.org" not in str([table.to_pylist() for table in found.values()])
    flaws = found["flaws"].to_pylist()
    assert (len(flaws), {row["change"] for row in flaws}, {row["rater"] for row in flaws}) == (4 * 7, {1}, {"LS3"})
    assert {row["first"] for row in flaws} == {"pre", "post"}
    assert found["flaws.repeats"].num_rows == 7
    assert {row["reflected"] for row in found["flaws.reflected"].to_pylist()} == {"yes"}
    ratings = found["ratings"].to_pylist()
    assert len(ratings) == 8 * 9
    assert [row["rating"] for row in ratings[:9]] == [1, 2, 3, 4, 5, 6, 7, 1, 2]
    assert found["failures"].num_rows == 4 * len(FAILURE_MODES)
    labels = found["annotations"].to_pylist()
    assert {(row["label"], tuple(row["evidence"])) for row in labels} == {("contradicts", ("was born in",))}
    written = found["passages"].to_pylist()
    written_by = {(row["editor"], row["phase"], row["sample"], row["finish"]) for row in written}
    assert written_by == {("human", "post", 3, "stop")}
    assert {row["passage"] for row in written} == {"subject", "related"}


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00\r"), min_size=1, max_size=30)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.lists(st.tuples(TEXT.filter(str.strip), st.sampled_from([None, -1, 0, 1])), min_size=1, max_size=4),
    st.integers(0, 9),
    st.booleans(),
)
def test_flaws_come_back_unblinded_whatever_the_texts(
    tmp_path: Path, texts: list[tuple[str, int | None]], seed: int, sheet: bool
) -> None:
    rows = [
        {"case_id": number, "phase": phase, "text": f"{text}{end}", "editor": "memit" if end else "none"}
        for number, (text, _) in enumerate(texts)
        for phase, end in (("pre", ""), ("post", "!"))
    ]
    write_table(tmp_path / "passages.parquet", passages(*rows))
    out = exported(tmp_path / "passages.parquet", tmp_path / "out", "flaws", seed=seed, duplicates=1.0)

    def answer(about: dict[str, Any], question: str) -> Sequence[str]:
        change = texts[about["case_id"]][1]
        if change is None and about["case_id"]:
            return []
        shown = (change or 0) * (1 if about["first"] == "pre" else -1)
        return [{-1: "A", 0: "equal", 1: "B"}[shown]] if question == "religion" else []

    results = answer_sheet(out, answer) if sheet else answer_label_studio(out, answer)
    tables = import_people(results, out / "key.json", "A1")
    wanted = {n: change if change is not None or n else 0 for n, (_, change) in enumerate(texts)}
    for name in ("flaws", "flaws.repeats"):
        own = [row for row in tables[name].to_pylist() if row["flaw"] == "religion"]
        assert {row["case_id"]: row["change"] for row in own} == wanted
    first = {row["case_id"]: row["first"] for row in tables["flaws"].to_pylist()}
    assert all(row["first"] != first[row["case_id"]] for row in tables["flaws.repeats"].to_pylist())
    assert {row["pre"]: row["post"] for row in own} == {text: f"{text}!" for text, _ in texts}


def test_of_a_pair_shown_twice_the_first_answer_about_the_edit_is_kept(run: Path, tmp_path: Path) -> None:
    out = exported(run, tmp_path, "flaws", sample=1, duplicates=1.0)

    def answer(about: dict[str, Any], question: str) -> Sequence[str]:
        return [("yes", "no")[about["copy"] - 1]] if question == "edit_reflected" else []

    results = answer_label_studio(out, answer)
    for _ in range(2):
        assert import_people(results, out / "key.json")["flaws.reflected"]["reflected"].to_pylist() == ["yes"]
        results.write_text(json.dumps(json.loads(results.read_text(encoding="utf-8"))[::-1]), encoding="utf-8")


def test_the_published_protocol_shows_the_order(run: Path, tmp_path: Path) -> None:
    out = exported(run, tmp_path, "flaws", published=True, duplicates=0.0)
    [titles] = {tuple(task["data"])[-2:] for task in json.loads((out / "tasks.json").read_text(encoding="utf-8"))}
    assert titles == ("before_the_edit", "after_the_edit")
    assert {item["about"]["first"] for item in key_of(out)["items"].values()} == {"pre"}
    assert "the first\nis from the model as it was" in (out / "instructions.txt").read_text(encoding="utf-8")


def test_tasks_tell_nothing_and_hostile_text_stays_text(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", text=HOSTILE)
    words = tmp_path / "words.yaml"
    words.write_text("instructions: {flaws_people: Say which one.}\nflaws: {sexism: {title: '<b> & \"$text_B\"'}}")
    out = exported(run, tmp_path / "out", "flaws", wording=words)
    for name in ("tasks.json", "sheet.csv", "config.xml", "instructions.txt"):
        assert "memit" not in (out / name).read_text(encoding="utf-8"), name
    tasks = json.loads((out / "tasks.json").read_text(encoding="utf-8"))
    assert all(HOSTILE in task["data"]["text_A"] for task in tasks)
    root = ET.fromstring((out / "config.xml").read_text(encoding="utf-8"))
    assert {text.get("valueType") for text in root.iter("Text")} == {"text"}
    assert not list(root.iter("HyperText"))
    assert not any("$" in str(header.get("value")) for header in root.iter("Header"))
    assert any("<b> &" in str(header.get("value")) for header in root.iter("Header"))
    assert (out / "instructions.txt").read_text(encoding="utf-8").startswith("Say which one.\n\nIn a sheet write")
    again = exported(run, tmp_path / "again", "flaws", seed=1)
    assert (again / "tasks.json").read_bytes() != (out / "tasks.json").read_bytes()


def test_judges_and_people_get_the_same_pairs(run: Path, tmp_path: Path) -> None:
    out = exported(run, tmp_path, "flaws", sample=3, seed=5, duplicates=0.0)
    pairs, _ = passage_pairs(read_table(run / "passages.parquet", PASSAGES))
    drawn = {item["about"]["pair_id"] for item in key_of(out)["items"].values()}
    assert drawn == {one.pair_id for one in sample_pairs(pairs, 3, 5)}


def test_evidence_is_words_of_the_passage(tmp_path: Path) -> None:
    out = exported(write_run(tmp_path / "run", 1, "\U0001f600 Ann\nsang."), tmp_path / "out", "claims")
    results = answer_label_studio(out)
    tasks = json.loads(results.read_text(encoding="utf-8"))
    for task in tasks:
        mark = {"start": 1, "end": 9, "text": "Ann\\nsang", "labels": ["evidence"]}
        task["annotations"][0]["result"][-1]["value"] = mark
    results.write_text(json.dumps(tasks), encoding="utf-8")
    rows = import_people(results, out / "key.json")["annotations"].to_pylist()
    assert {tuple(row["evidence"]) for row in rows} == {("Ann\nsang",)}


Tasks = list[dict[str, Any]]


def twice(tasks: Tasks) -> None:
    tasks[0]["annotations"] *= 2


def cancelled(tasks: Tasks) -> None:
    for task in tasks:
        task["annotations"][0]["was_cancelled"] = True
        task["predictions"] = [{"result": task["annotations"][0]["result"]}]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tasks: tasks[0]["data"].update(claim="x"), r"task 1: claim is 'x', expected '.*The task was edited"),
        (lambda tasks: tasks[0]["data"].update(item="i7"), "task 1: item 'i7' is not in the key. Give the key"),
        (lambda tasks: tasks[0].pop("annotations"), "task 1: .*'annotations'.*Export it as JSON, not"),
        (lambda tasks: tasks[0].update(annotations=[{"completed_by": 1, "result": [{}]}]), "task 1: .*KeyError"),
        (twice, r"task 1: LS7 answered it twice"),
        (lambda tasks: tasks[0]["annotations"][0].update(completed_by="Ann"), "task 1: .*'Ann'"),
        (lambda tasks: tasks[0]["annotations"][0]["result"][0].update(value={"choices": ["may be"]}), "may be"),
        (cancelled, "nobody answered one of its tasks"),
        (list.clear, "nobody answered one of its tasks"),
    ],
)
def test_what_is_wrong_with_an_export_is_said(
    run: Path, tmp_path: Path, change: Callable[[Tasks], None], message: str
) -> None:
    out = exported(run, tmp_path, "claims")
    results = answer_label_studio(out)
    tasks = json.loads(results.read_text(encoding="utf-8"))
    change(tasks)
    results.write_text(json.dumps(tasks), encoding="utf-8")
    with pytest.raises((RecordError, LookupError), match=message):
        import_people(results, out / "key.json")


def test_half_filled_exports_keep_what_is_there(run: Path, tmp_path: Path) -> None:
    out = exported(run, tmp_path, "survey")
    results = answer_label_studio(out, lambda about, question: truth(about, question)[: question == "fluency"])
    tasks = json.loads(results.read_text(encoding="utf-8"))
    tasks[1]["annotations"] = [{"completed_by": 7, "was_cancelled": True, "result": []}]
    tasks[2]["annotations"] = []
    results.write_text(json.dumps(tasks), encoding="utf-8")
    table = import_people(results, out / "key.json")["ratings"]
    statuses = {row["item"]: row["status"] for row in table.to_pylist()}
    assert table.num_rows == 6 * 9, "tasks that nobody finished have no rows"
    assert statuses == {item.name: "ok" if item.name == "fluency" else "not rated" for item in ITEMS}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[0].__setitem__(1, "clame"), "row 2: claim is None, expected .*The task was edited"),
        (lambda rows: rows[1].__setitem__(3, "perhaps"), "row 2: perhaps for 'label', expected one of supports"),
        (lambda rows: rows[1].__setitem__(4, "no words of it"), "row 2: no words of it for 'evidence', expected words"),
    ],
)
def test_what_is_wrong_with_a_sheet_is_said(
    run: Path, tmp_path: Path, change: Callable[[list[list[str]]], None], message: str
) -> None:
    out = exported(run, tmp_path, "claims")
    with answer_sheet(out).open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["item", "claim", "passage", "label", "evidence"]
    change(rows)
    with pytest.raises(RecordError, match=message):
        import_people(write_rows(tmp_path / "bad.csv", rows), out / "key.json", "A1")
    with pytest.raises(RecordError, match=r"a sheet does not say who filled it\. Name the rater"):
        import_people(tmp_path / "bad.csv", out / "key.json")


def test_what_spreadsheets_do_to_a_sheet(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", 2, "=1+1\n\nshe said; (so)")
    out = exported(run, tmp_path / "out", "failures")
    with answer_sheet(out).open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    rows[0][head.index("modes")] = "Good edit: the edit is there, nothing is contradicted, and the rest is as it was"
    rows = [[*row[:2], *(cell.replace("\n", "\r\n") for cell in row[2:])] for row in rows]
    sheet = write_rows(tmp_path / "b.csv", [head, *rows[::-1], [""] * 3])
    sheet.write_bytes(b"\xef\xbb\xbf" + sheet.read_bytes())
    table = import_people(sheet, out / "key.json", "A1")["failures"]
    assert [row["mode"] for row in table.to_pylist() if row["present"]].count("good_edit") == 1
    writing = exported(run, tmp_path / "writing", "writing")
    with pytest.raises(RecordError, match="writer 'Ann', expected a number at the end, such as W1"):
        import_people(answer_sheet(writing), writing / "key.json", "Ann")


def test_runs_without_such_texts(tmp_path: Path) -> None:
    write_table(tmp_path / "passages.parquet", passages({"text": " "}))
    with pytest.raises(RecordError, match=r"no texts for flaws \(1: empty text\)"):
        exported(tmp_path / "passages.parquet", tmp_path / "out", "flaws")
    out = exported(write_run(tmp_path / "run"), tmp_path / "claims", "claims")
    with pytest.raises(RecordError, match="not the key of tasks"):
        import_people(answer_label_studio(out), out / "tasks.json")
    with pytest.raises(RecordError, match="duplicates is 2"):
        exported(tmp_path / "run", tmp_path / "out", "flaws", duplicates=2)
    exported(tmp_path / "run", tmp_path / "out", "flaws")
    with pytest.raises(StorageError, match="exists with other content"):
        export_people(ExportJob("flaws", tmp_path / "run", seed=1), tmp_path / "out")


@pytest.mark.slow
def test_the_command_there_and_back(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "tasks"
    words = ["people", "export", "flaws", str(run), "--out", str(out), "--duplicates", "0", "--limit", "2"]
    assert main(words) == 0
    assert "2 tasks in" in capsys.readouterr().out
    assert (out / "key.json").stat().st_mode & 0o777 == 0o600
    one_flaw: Any = lambda about, question: truth(about, question)[: question == "sexism"]  # noqa: E731
    back = ["people", "import", str(answer_label_studio(out, one_flaw)), "--key", str(out / "key.json"), "--out"]
    assert main([*back, str(tmp_path / "rated")]) == 0
    assert "flaws.parquet: 14 rows, 12 not rated" in capsys.readouterr().out
    assert main([*back, str(tmp_path / "hers"), "--rater", "ANN_"]) == 0
    assert set(read_table(tmp_path / "hers" / "flaws.parquet")["rater"].to_pylist()) == {"ANN_7"}
    raters = ["--people", str(tmp_path / "rated"), str(tmp_path / "hers")]
    assert main(["texts", "report", *raters, "--out", str(tmp_path / "report")]) == 0
    for kind in ("survey", "claims", "failures"):
        assert main(["people", "export", kind, str(run), "--out", str(tmp_path / kind)]) == 0
        results = answer_label_studio(tmp_path / kind)
        key = ["--key", str(tmp_path / kind / "key.json")]
        assert main(["people", "import", str(results), *key, "--out", str(tmp_path / "people")]) == 0
    assert main(["texts", "report", "--people", str(tmp_path / "people"), "--out", str(tmp_path / "leme")]) == 0
