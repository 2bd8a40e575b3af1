"""A finished run's tables once more, with its short form, measures that need a model, and reference texts."""

import json
import math
import shutil
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from seesaw_cf.base.tables import read_table
from seesaw_cf.cli import main
from seesaw_cf.effects.texts import ngram_entropy
from seesaw_cf.errors import RecordError, RunFolderError, SeesawError
from seesaw_cf.texts.records import read_records, request_of
from seesaw_cf.texts.report import report_run
from seesaw_cf.texts.report.measures import model_measures, read_references
from seesaw_cf.texts.tables import PASSAGES
from tests.generation.models import chat_model, chat_tokenizer
from tests.generation.server import JudgeServer

DATA = ["--quiet", "--data", "sample", "--config", "coupled_counterfact", "--model", "seesaw-tiny"]
EDITS = [*DATA, "--editor", "ft", "--limit", "6"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Long texts and scores of the same six edits."""
    place = tmp_path_factory.mktemp("runs")
    long, short = place / "long", place / "short"
    with JudgeServer(chat_model(), chat_tokenizer(), key="") as server:
        assert main(["texts", "write", *EDITS, "--max-new-tokens", "12", "--rate", "lexical", "--out", str(long)]) == 0
        judge = ["--rater", server.name, "--base-url", server.url, "--key-env", "", "--what", "survey"]
        assert main(["texts", "rate", str(long), *judge]) == 0
    assert main(["texts", "report", str(long)]) == 0
    assert main(["audit", *EDITS, "--control", "none", "--out", str(short)]) == 0
    return long, short


@pytest.mark.slow(60)
def test_short_form_measures_and_references(runs: tuple[Path, Path], tmp_path: Path) -> None:
    long, short = runs
    passages = read_table(long / "passages.parquet", PASSAGES).to_pandas()
    own = passages[(passages["passage"] == "subject") & (passages["editor"] == "ft")]
    case = int(own["case_id"].iloc[0])
    rows = read_records("sample", ["coupled_counterfact"])["coupled_counterfact"]
    (row,) = [one for one in rows if one["case_id"] == case]
    target = request_of(row).target_new.id
    text = own.set_index("case_id")["text"][case]
    file = tmp_path / "references.json"
    file.write_text(json.dumps([{"target_id": target, "samples": [{"text": text}]}]), encoding="utf-8")
    words = [str(long), "--scores", str(short), "--measure", "perplexity:seesaw-tiny", "--references", str(file)]
    assert main(["texts", "report", *words, "--out", str(tmp_path / "tables")]) == 0
    short_form, simple = (
        pd.read_csv(tmp_path / "tables" / "tables" / f"{name}.csv") for name in ("short_form", "measures")
    )
    assert set(short_form.query("what == 'short_form'")["asked"]) >= {"edit_success", "generalization", "ground_truth"}
    assert short_form.query("what == 'edit_kind'")["n"].tolist() == [6, 6]
    assert len(short_form.query("what == 'correlation'"))
    simple = simple.set_index(["editor", "asked"])
    entropy = [2 / 3 * ngram_entropy(one, 2) + 4 / 3 * ngram_entropy(one, 3) for one in own["text"] if one.strip()]
    known = [value for value in entropy if math.isfinite(value)]
    assert simple["value"]["ft", "generation_entropy"] == pytest.approx(sum(known) / len(known))
    assert float(simple["value"]["ft", "reference_score"]) > 0  # one of its texts is its own reference
    assert 0 < float(simple["value"]["none", "log_perplexity"]) < 12
    assert not (long / "report" / "tables" / "short_form.csv").exists(), "the run's own report stays as it was"


@pytest.mark.slow(60)
def test_what_does_not_belong_together_is_refused(runs: tuple[Path, Path], tmp_path: Path) -> None:
    long, short = runs
    for swap, message in (
        ({"fingerprint": "0" * 64}, "its model has .*0000.*expected one model"),
        ({"dtype": "bfloat16"}, "its model has .*bfloat16"),
    ):
        other = tmp_path / next(iter(swap))
        shutil.copytree(short, other)
        manifest = json.loads((other / "manifest.json").read_text(encoding="utf-8"))
        manifest["model"] |= swap
        (other / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        with pytest.raises(RunFolderError, match=message):
            report_run(long, tmp_path / "out", scores=other)
    one = ["audit", *DATA, "--control", "none", "--editor", "rome", "--limit", "1"]
    assert main([*one, "--out", str(tmp_path / "rome")]) == 0
    with pytest.raises(RecordError, match=r"no edit by the same editor is in both runs; .* \['rome'\]"):
        report_run(long, tmp_path / "out", scores=tmp_path / "rome")
    for folder in (tmp_path, tmp_path / "no"):
        with pytest.raises(RunFolderError, match=r"Give the folder that `seesaw-cf texts write --out` wrote"):
            report_run(folder, tmp_path / "out")
    with pytest.raises(RunFolderError, match=r"the run is not finished \(scores\.parquet missing"):
        report_run(long, tmp_path / "out", scores=long)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        ("nil:x", "unknown measure 'nil'. Did you mean 'nli'"),
        ("nli", "no model, expected nli:MODEL"),
        ("nli:", "no mod"),
    ],
)
def test_wrong_measures_are_refused(measure: str, message: str) -> None:
    with pytest.raises(SeesawError, match=message):
        model_measures(measure, [], pa.table({}))


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
