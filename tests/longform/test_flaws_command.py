"""`seesaw-cf flaws` from passages to a validated judge, with a real model behind a real server."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from seesaw_cf.base.tables import read_table, write_table
from seesaw_cf.cli import main
from seesaw_cf.texts.released import released_flaws
from seesaw_cf.texts.tables import FLAWS
from seesaw_cf.texts.wording import FLAWS_BY_NAME
from seesaw_cf.texts.write.pairs import passage_pairs
from tests.generation.conftest import openai_server
from tests.generation.server import KEY, Fault, OpenAIServer

from .flaw_samples import passages
from .people_runs import answer_label_studio

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
    assert main(["flaws", "report", *files, "--judge", "tiny", "--out", str(folder / "valid")]) == 0
    assert "5 of 12 flaws are missing." in capsys.readouterr().out
    judges = pd.read_csv(folder / "valid" / "tables" / "judges.csv")
    assert {"judge_right", "judge_kappa", "judge_confusion"} <= set(judges["what"])
    assert judges["n"].max() <= len(pairs) == 6
    assert main(["flaws", "report", *files, "--judge", "tyny", "--out", str(folder / "valid")]) == 1
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
    ratings = released_flaws(path)[0]
    openai_server.faults += [Fault(text="Rating: 1")] * 6
    judge = ["flaws", "judge", str(path), "--model", "tiny", "--base-url", openai_server.url, "--protocol", "published"]
    assert main([*judge, "--flaws", "sexism", "--rater", "m", "--out", str(tmp_path / "judged")]) == 0
    assert all("Text after the edit" in str(request) for request in openai_server.seen)
    judged = read_table(tmp_path / "judged" / "flaws.parquet", FLAWS)
    assert judged["change"].to_pylist() == [1] * 6
    both = ["flaws", "report", str(path), str(tmp_path / "judged"), "--judge", "m", "--out", str(tmp_path / "both")]
    assert main(both) == 0
    right = pd.read_csv(tmp_path / "both" / "tables" / "judges.csv").query("what == 'judge_right' and answer == 'm'")
    assert right[["value", "n"]].to_numpy().tolist() == [[1, 6]] * 2, "the same pairs by the same names"
    found = json.loads((tmp_path / "judged" / "judge.json").read_text(encoding="utf-8"))
    assert found["protocol"] == "published"
    out = tmp_path / "tasks"
    make = ["people", "export", "flaws", str(path), "--protocol", "published", "--duplicates", "0", "--out", str(out)]
    assert main(make) == 0
    items = json.loads((out / "key.json").read_text(encoding="utf-8"))["items"].values()
    assert {item["about"]["pair"]["pair_id"] for item in items} == set(ratings["pair_id"].to_pylist())
    assert all(item["texts"]["edit"].endswith("gender was changed from male to female.") for item in items)
    key = ["--key", str(out / "key.json")]
    assert main(["people", "import", str(answer_label_studio(out)), *key, "--out", str(tmp_path / "rated")]) == 0
    assert set(read_table(tmp_path / "rated" / "flaws.parquet")["change"].to_pylist()) == {1}, "B is the text after"
