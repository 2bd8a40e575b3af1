"""Records of Every Eval Ever: they fit its schemas, and their numbers are those of the report."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from seesaw_cf.cli import main
from seesaw_cf.errors import RecordError, UnknownNameError
from seesaw_cf.report import Results, read_results
from seesaw_cf.report.write import run_report
from seesaw_cf.sharing import every_eval
from seesaw_cf.sharing.every_eval import export_run
from tests.report.runs import cases, property_cases, write_run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    made = cases(("P27", "P101"), 8, 12) + property_cases(3)
    folder = tmp_path_factory.mktemp("eee") / "run"
    return read_results(write_run(folder, made, ("memit", "ft", "random(memit)"), refused=1))


@pytest.fixture(scope="module")
def exported(results: Results, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The records of the run; its results are not computed again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(every_eval, "read_results", lambda folder: results)
        return export_run(results.folder, tmp_path_factory.mktemp("exported"), "An organisation", when=5)


def record(file: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    found = json.loads(file.read_text(encoding="utf-8"))
    rows = file.with_name(f"{file.stem}_samples.jsonl").read_text(encoding="utf-8").splitlines()
    return found, [json.loads(row) for row in rows]


def test_records_fit_the_published_schemas(exported: list[Path], reference: Callable[..., Path]) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    whole, each = (
        jsonschema.Draft7Validator(json.loads(reference("every_eval_ever", f"{name}.schema.json").read_text()))
        for name in ("eval", "instance_level_eval")
    )
    assert len(exported) == 2  # the control is not an evaluation of its own
    for file in exported:
        found, rows = record(file)
        assert not list(whole.iter_errors(found))
        for row in rows:
            assert not list(each.iter_errors(row)), row


def test_numbers_are_those_of_the_report(results: Results, exported: list[Path], tmp_path: Path) -> None:
    run_report(results).write(tmp_path)
    tables = {
        name: pd.read_csv(tmp_path / "tables" / f"{name}.csv") for name in ("efficacy", "effects_by_group", "verdicts")
    }

    def of(name: str, **wanted: str) -> list[dict[Any, Any]]:
        table = tables[name]
        return table[(table[list(wanted)] == list(wanted.values())).all(axis=1)].to_dict("records")

    for file in exported:
        found, rows = record(file)
        editor = found["model_info"]["additional_details"]["editor"]
        scores = {one["evaluation_name"]: one["score_details"] for one in found["evaluation_results"]}
        (gate,) = of("efficacy", editor=editor, relation="all")
        assert scores["efficacy"]["score"] == pytest.approx(gate["post"])
        assert scores["efficacy"]["uncertainty"]["num_samples"] == gate["n"]
        for row in of("effects_by_group", editor=editor, axis="all", holds="target_new"):
            own = scores[f"D_d/{row['relation']}"]
            assert own["score"] == pytest.approx(row["D"])
            assert own["uncertainty"]["num_samples"] == row["n_prompts"]
            samples = [one for one in rows if one["evaluation_name"] == f"D_d/{row['relation']}"]
            assert len(samples) == row["n_prompts"]
        own = [one["evaluation"]["score"] for one in rows if one["evaluation_name"] == "efficacy"]
        assert sum(own) / len(own) == pytest.approx(scores["efficacy"]["score"])
        contrasts = [name for name in scores if name.startswith("contrast/")]
        assert len(contrasts) == len(of("verdicts", editor=editor))
        for one in rows:
            shares = {name: float(value) for name, value in one["metadata"].items()}
            change = shares["post_new"] - shares["post_true"] - shares["pre_new"] + shares["pre_true"]
            assert float(one["metadata"]["D"]) == pytest.approx(change, abs=1e-4)
            if one["evaluation_name"].startswith("D_d/"):
                assert one["evaluation"]["score"] == pytest.approx(change, abs=1e-4)
            new_wins = shares["post_new"] > shares["post_true"]
            assert one["output"]["raw"] == [one["input"]["choices"][0 if new_wins else 1]]


def test_the_samples_are_named_and_hashed_and_the_same_second_gives_the_same_bytes(
    results: Results, exported: list[Path], tmp_path: Path
) -> None:
    again = export_run(results.folder, tmp_path, "An organisation", when=5)
    for one, other in zip(exported, again, strict=True):
        assert one.read_bytes() == other.read_bytes()
        found, rows = record(one)
        details = found["detailed_evaluation_results"]
        samples = tmp_path / details["file_path"]
        assert hashlib.sha256(samples.read_bytes()).hexdigest() == details["checksum"]
        assert details["total_rows"] == len(rows)
        assert len({row["sample_id"] for row in rows}) == len(rows)
        assert all(math.isfinite(row["evaluation"]["score"]) for row in rows)


def test_what_has_no_number_is_left_out(tmp_path: Path) -> None:
    """A single case: some groups have nobody to be compared with."""
    folder = write_run(tmp_path / "run", cases(("P27",), 1, 3), ("memit",))
    (file,) = export_run(folder, tmp_path / "out", "An organisation")
    found, rows = record(file)
    assert rows
    assert all(math.isfinite(one["score_details"]["score"]) for one in found["evaluation_results"])


def test_what_cannot_be_exported_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "run", cases(("P27",), 1, 3))
    with pytest.raises(UnknownNameError, match=r"unknown relationship 'third'. Did you mean 'third_party'"):
        export_run(run, tmp_path, "An organisation", relationship="third")
    with pytest.raises(RecordError, match="organisation"):
        export_run(run, tmp_path, 3)  # type: ignore[arg-type]
    assert main(["export", str(tmp_path / "nowhere"), "--out", str(tmp_path), "--organisation", "A"]) == 1
    assert "no such folder" in capsys.readouterr().err
    assert main(["export", str(run), "--out", str(tmp_path / "out"), "--organisation", "A", "--when", "7"]) == 0
    assert "Written, each with its samples" in capsys.readouterr().out


def test_the_place_of_a_model_stays_on_the_machine(tmp_path: Path) -> None:
    model = {"id": "/home/somebody/models/mine", "revision": "", "dtype": "float32", "fingerprint": "ab" * 32}
    folder = write_run(tmp_path / "run", cases(("P27",), 2, 4), ("ft",), model=model)
    made = export_run(folder, tmp_path / "out", "An organisation")
    assert [file.parent.name for file in made] == ["mine-ft"]
    for file in (tmp_path / "out").rglob("*.json*"):
        assert "somebody" not in file.read_text(encoding="utf-8")


@pytest.mark.parametrize(("id", "developer", "name"), [
    ("org/base-7b", "org", "base-7b"),
    ("/home/me/hub/models--org--base-7b/snapshots/0123abc", "org", "base-7b"),
    ("seesaw-tiny", "seesaw_cf", "seesaw-tiny"),
    ("smollm2-135m-q4", "HuggingFaceTB", "smollm2-135m-q4"),
    ("/home/me/mine", "unknown", "mine"),
])  # fmt: skip
def test_developer_and_model_are_those_of_the_hub(id: str, developer: str, name: str, tmp_path: Path) -> None:
    model = {"id": id, "revision": "", "dtype": "float32", "fingerprint": "ab" * 32}
    folder = write_run(tmp_path / "run", cases(("P27",), 2, 4), ("ft",), model=model)
    (file,) = export_run(folder, tmp_path / "out", "An organisation")
    assert (file.parent.parent.name, file.parent.name) == (developer, f"{name}-ft")
    about = record(file)[0]["model_info"]
    assert (about["developer"], about["id"].rpartition("/")[2]) == (developer, name)
    assert "/home" not in file.read_text(encoding="utf-8")
