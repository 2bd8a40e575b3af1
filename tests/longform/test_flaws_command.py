"""`seesaw-cf flaws` from passages to a validated judge, with a real model behind a real server."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from seesaw_cf.base.tables import read_table, write_table
from seesaw_cf.cli import main
from seesaw_cf.texts.flaws.released import released_work
from seesaw_cf.texts.flaws.validity import validate_judge
from seesaw_cf.texts.people.export import export_study
from seesaw_cf.texts.people.store import StudyStore
from seesaw_cf.texts.tables import FLAWS
from seesaw_cf.texts.wording import FLAWS_BY_NAME
from seesaw_cf.texts.write.pairs import passage_pairs
from tests.generation.conftest import openai_server
from tests.generation.server import KEY, Fault, OpenAIServer
from tests.people.studies import answered

from .flaw_samples import passages
from .test_human import fill, says_nun

__all__ = ["openai_server"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [
        {"case_id": case, "editor": editor, "phase": phase, "text": text}
        for case in range(6)
        for editor, phase, text in (("none", "pre", "Ada Oak is a judge."), ("memit", "post", "Ada Oak is a nun."))
    ]
    write_table(tmp_path / "passages.parquet", passages(*rows, {"case_id": 9, "text": " "}))
    return tmp_path


def test_a_sheet_goes_out_and_comes_back(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sheet, key, out = (str(folder / name) for name in ("sheet.csv", "key.json", "a1.parquet"))
    export = ["flaws", "export", str(folder / "passages.parquet"), "--sheet", sheet, "--key", key]
    assert main([*export, "--flaws", "religion", "--duplicates", "0.5"]) == 0
    said = capsys.readouterr().out
    assert "left out: 1: empty text" in said
    assert "9 rows in" in said
    fill(folder / "sheet.csv", says_nun)
    assert main(["flaws", "import", sheet, "--key", key, "--rater", "A1", "--out", out]) == 0
    assert "religion: rated twice 3, the same 100.0 %" in capsys.readouterr().out
    assert read_table(out).column("change").to_pylist() == [1] * 6
    assert read_table(folder / "a1.repeats.parquet").num_rows == 3
    assert main(["flaws", "import", sheet, "--key", sheet, "--rater", "A1", "--out", out]) == 1
    assert "not the key of a sheet" in capsys.readouterr().err


@pytest.mark.slow
def test_judge_resume_and_validate(
    folder: Path, openai_server: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    openai_server.faults += [Fault(500), Fault(text="Quote: a nun\nAnswer: B")]
    words = ["flaws", "judge", str(folder / "passages.parquet"), "--model", "tiny", "--base-url", openai_server.url]
    words += [
        "--out",
        str(folder / "judged"),
        "--flaws",
        "religion",
        "--tries",
        "1",
        "--swap",
        "0.5",
        "--rater",
        "tiny",
    ]
    assert main(words) == 0
    asked = len(openai_server.seen)
    table = read_table(folder / "judged" / "flaws.parquet")
    assert table.num_rows == 6
    assert 0 < read_table(folder / "judged" / "swapped.parquet").num_rows < 6
    results = json.loads((folder / "judged" / "judge.json").read_text(encoding="utf-8"))
    assert results["counts"]["judgements"] == 6 + read_table(folder / "judged" / "swapped.parquet").num_rows
    assert main(words) == 0
    assert len(openai_server.seen) == asked, "a second run asks nothing again"
    for file in folder.rglob("*"):
        assert not file.is_file() or KEY.encode() not in file.read_bytes(), file

    pairs, _ = passage_pairs(read_table(folder / "passages.parquet"))
    people = table.to_pandas().assign(rater="A1", change=[1, 1, 1, 0, 0, 0], status="ok")
    write_table(folder / "a1.parquet", pa.Table.from_pandas(people, schema=table.schema, preserve_index=False))
    capsys.readouterr()
    files = [str(folder / "a1.parquet"), str(folder / "judged" / "flaws.parquet")]
    assert main(["flaws", "validate", *files, "--judge", "tiny", "--out", str(folder / "valid")]) == 0
    assert "beyond chance" in capsys.readouterr().out
    found = json.loads((folder / "valid" / "report.json").read_text(encoding="utf-8"))["flaws"]["religion"]
    assert found["n"] <= len(pairs) == 6
    assert set(found["accuracy"]) == {"judge", "constant"}
    assert main(["flaws", "validate", *files, "--judge", "tyny", "--out", str(folder / "valid")]) == 1
    assert "unknown rater 'tyny'. Did you mean 'tiny'" in capsys.readouterr().err


@pytest.mark.slow
def test_a_missing_key_is_said_before_anything_is_asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    words = ["flaws", "judge", str(folder / "passages.parquet"), "--model", "m", "--base-url", "http://127.0.0.1:9/v1"]
    assert main([*words, "--out", str(folder / "judged")]) == 1
    assert "environment variable OPENAI_API_KEY is not set" in capsys.readouterr().err
    assert not (folder / "judged" / "flaws.parquet").exists()


@pytest.mark.slow
def test_pairs_of_a_released_file_go_to_a_judge_and_to_raters(tmp_path: Path, openai_server: OpenAIServer) -> None:
    head = "props,target_true,target_new,subj,pre_text,post_text," + ",".join(
        f.released for f in FLAWS_BY_NAME.values()
    )
    lines = [
        f"P21_P101,male,female,Ada {n},Ada {n} is a judge.,Ada {n} is a nun.,1.5,2,2,1.5,1.5,1.5,1.5" for n in range(6)
    ]
    path = tmp_path / "a1.csv"
    path.write_text("\n".join([head, *lines]), encoding="utf-8")
    ratings = released_work(path, "A1").table
    openai_server.faults += [Fault(text="Rating: 1")] * 6
    judge = ["flaws", "judge", str(path), "--model", "tiny", "--base-url", openai_server.url, "--protocol", "published"]
    assert main([*judge, "--flaws", "sexism", "--rater", "m", "--out", str(tmp_path / "judged")]) == 0
    assert all("Text after the edit" in str(request) for request in openai_server.seen)
    judged = read_table(tmp_path / "judged" / "flaws.parquet", FLAWS)
    assert judged["change"].to_pylist() == [1] * 6
    validity = validate_judge(pa.concat_tables([ratings, judged]), "m")
    assert validity["sexism"]["confusion"]["1"] == {"-1": 0, "0": 0, "1": 6}, "the same pairs by the same names"
    found = json.loads((tmp_path / "judged" / "judge.json").read_text(encoding="utf-8"))
    assert found["protocol"] == "published"
    assert "sign_check" not in found
    tasks = tmp_path / "T.tasks"
    make = ["annotate", "make", "flaws", str(path), "--raters", "2", "--out", str(tasks)]
    assert main([*make, "--protocol", "published"]) == 0
    with StudyStore(tasks, readonly=True) as store:
        items = [item for item in store.items.values() if "pair" in item.about]
        assert {item.about["pair"]["pair_id"] for item in items} == set(ratings["pair_id"].to_pylist())
        assert {text.title for item in items for text in item.texts} == {"Before the edit", "After the edit"}
        assert dict(items[0].told)["Edit"][0].endswith("gender was changed from male to female.")
    out = tmp_path / "out"
    with StudyStore(answered(tasks), readonly=True) as store:
        export_study(store, out)
    assert set(read_table(out / "flaws.parquet")["change"].to_pylist()) == {-1}, "A is the text before the edit"
