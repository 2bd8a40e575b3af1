"""A finished run's tables once more, with its short form, measures that need a model, and reference texts."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import pandas as pd
import pytest
from seesaw_cf.texts.report.again import read_references, report_leme

from seesaw_cf.base.tables import read_table
from seesaw_cf.cli import main
from seesaw_cf.effects.texts import ngram_entropy
from seesaw_cf.errors import RecordError, RunFolderError, SeesawError
from seesaw_cf.texts.tables import PASSAGES
from seesaw_cf.texts.write.passages import read_records, request_of
from tests.generation.models import chat_model, chat_tokenizer
from tests.generation.server import JudgeServer

EDITS = [
    "--model",
    "seesaw-tiny",
    "--editor",
    "ft",
    "--config",
    "coupled_counterfact",
    "--limit",
    "6",
    "--quiet",
    "--data",
    "sample",
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Long texts and scores of the same six edits."""
    place = tmp_path_factory.mktemp("runs")
    long, short = place / "long", place / "short"
    with JudgeServer(chat_model(), chat_tokenizer(), key="") as server:
        judge = ["--judge", server.name, "--judge-url", server.url, "--judge-key-env", ""]
        assert main(["leme", "run", *EDITS, "--max-new-tokens", "12", *judge, "--out", str(long)]) == 0
    assert main(["audit", *EDITS, "--control", "none", "--out", str(short)]) == 0
    return long, short


@pytest.mark.slow(60)
def test_short_form_measures_and_references(runs: tuple[Path, Path], tmp_path: Path) -> None:
    long, short = runs
    passages = read_table(long / "passages.parquet", PASSAGES).to_pandas()
    own = passages[(passages["passage"] == "subject") & (passages["editor"] == "ft")]
    case = int(own["case_id"].iloc[0])
    (row,) = [one for one in read_records("sample", "coupled_counterfact") if one["case_id"] == case]
    target = request_of(row).target_new.id
    text = own.set_index("case_id")["text"][case]
    file = tmp_path / "references.json"
    file.write_text(json.dumps([{"target_id": target, "samples": [{"text": text}]}]), encoding="utf-8")
    words = [str(long), "--scores", str(short), "--measure", "perplexity:seesaw-tiny", "--references", str(file)]
    assert main(["leme", "report", *words, "--out", str(tmp_path / "tables")]) == 0
    names = ("short", "kinds", "correlations", "simple")
    shares, kinds, _, simple = (pd.read_csv(tmp_path / "tables" / "tables" / f"{name}.csv") for name in names)
    assert set(shares["metric"]) >= {"edit_success", "generalization", "ground_truth"}
    assert kinds["n"][0] == 6
    simple = simple.set_index(["method", "metric"])
    entropy = [2 / 3 * ngram_entropy(one, 2) + 4 / 3 * ngram_entropy(one, 3) for one in own["text"] if one.strip()]
    known = [value for value in entropy if math.isfinite(value)]
    assert simple["value"]["ft", "generation_entropy"] == pytest.approx(sum(known) / len(known))
    assert float(simple["value"]["ft", "reference_score"]) > 0  # one of its texts is its own reference
    assert 0 < float(simple["value"]["none", "log_perplexity"]) < 12
    assert (long / "report" / "report.md").exists()
    assert not (long / "report" / "tables" / "short.csv").exists()


@pytest.mark.slow(60)
def test_what_does_not_belong_together_is_refused(runs: tuple[Path, Path], tmp_path: Path) -> None:
    long, short = runs
    for swap, message in (
        ({"fingerprint": "0" * 64}, "its model has the fingerprint 0000.*expected one model"),
        ({"dtype": "bfloat16"}, "its model has the dtype bfloat16"),
    ):
        other = tmp_path / next(iter(swap))
        shutil.copytree(short, other)
        manifest = json.loads((other / "manifest.json").read_text(encoding="utf-8"))
        manifest["model"] |= swap
        (other / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        with pytest.raises(RunFolderError, match=message):
            report_leme(long, tmp_path / "out", scores=other)
    one = [
        "audit",
        "--control",
        "none",
        *EDITS[:2],
        "--editor",
        "rome",
        "--data",
        "sample",
        "--config",
        "coupled_counterfact",
        "--limit",
        "1",
        "--quiet",
    ]
    assert main([*one, "--out", str(tmp_path / "rome")]) == 0
    with pytest.raises(RecordError, match=r"no edit by the same editor is in both runs; .* \['rome'\] and 1 cases"):
        report_leme(long, tmp_path / "out", scores=tmp_path / "rome")
    for folder, command in ((tmp_path, "leme run"), (tmp_path / "no", "leme run")):
        with pytest.raises(RunFolderError, match=f"no finished run of `seesaw-cf {command}`"):
            report_leme(folder, tmp_path / "out")
    with pytest.raises(RunFolderError, match=r"scores\.parquet missing, so it is no finished run of `seesaw-cf audit`"):
        report_leme(long, tmp_path / "out", scores=long)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        ("nil:x", "unknown measure 'nil'. Did you mean 'nli'"),
        ("nli", "no model, expected nli:MODEL"),
        ("nli:", "no mod"),
    ],
)
def test_wrong_measures_are_refused_first(measure: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SeesawError, match=message):
        report_leme(tmp_path, tmp_path, measures=[measure])


@pytest.mark.parametrize("content", ["{}", '[{"target_id": "Q1"}]', '[{"target_id": 1, "samples": []}]', "[[]]", "[1]"])
def test_references_of_another_form_are_refused(content: str, tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(RecordError, match=r"expected|Expected"):
        read_references(file)


def test_references_of_one_entity_are_put_together(tmp_path: Path) -> None:
    rows = [{"target_id": "Q1", "relation_id": "P27", "samples": [{"text": "a"}, {"text": "b", "name": "x"}]}] * 2
    (tmp_path / "r.json").write_text(json.dumps(rows), encoding="utf-8")
    assert read_references(tmp_path / "r.json") == {"Q1": ["a", "b", "a", "b"]}
