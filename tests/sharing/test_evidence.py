"""Evidence from a finished run: the rows of the card are those of the report of one edit alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from seesaw_cf.base.tables import read_table
from seesaw_cf.builder_scripts.card import benchmark
from seesaw_cf.errors import RecordError, RunFolderError, UnknownNameError
from seesaw_cf.records import load as sample
from seesaw_cf.records.relations import TASKS
from seesaw_cf.report import report
from seesaw_cf.sharing import edit_evidence
from seesaw_cf.sharing.card import result_entries
from tests.report.runs import cases, property_cases, write_run

UNIT = "P27-00000001"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Three edits of two editors, each about twelve other people, and eight about other facts."""
    made = cases(("P27",), 3, 12, holds=("target_true", "target_new")) + property_cases(1)
    data = {"source": str(tmp_path), "configs": ["cross_subject", "cross_property"], "revision": ""}
    model = {"id": "org/base", "revision": "", "dtype": "float32"}
    return write_run(tmp_path / "run", made, ("memit", "ft"), data=data, model=model)


def test_rows_are_those_of_the_report_of_one_edit_and_of_no_other(run: Path, tmp_path: Path) -> None:
    found = edit_evidence(run, "memit", UNIT)
    assert found.scores is not None
    assert set(found.scores["case_id"].to_pylist()) == {1}
    assert set(found.scores["editor"].to_pylist()) == {"memit"}
    assert (found.data, found.config, found.protocol) == (tmp_path.name, "cross_subject,cross_property", "single")
    everybody = {row["task"]: row for row in found.rows if row["task"]}
    assert set(everybody) == set(TASKS) - {"other_facts"}
    changes = read_table(run / "scores.parquet", found.scores.schema).to_pandas()
    own = changes[(changes["editor"] == "memit") & (changes["case_id"] == 1) & (changes["holds"] == "target_true")]
    p = own.assign(p=2.718281828459045 ** own["logprob"]).pivot_table(
        index="prompt_id", columns=["role", "phase"], values="p"
    )
    d = (p["target_new"] - p["target_true"])["post"] - (p["target_new"] - p["target_true"])["pre"]
    assert everybody["other_people_old"]["value"] == pytest.approx(d.mean())
    assert everybody["other_people_old"]["n"] == len(d) == 6
    assert everybody["efficacy"]["n"] == 1
    whole = report(run).frame
    assert everybody["other_people_old"]["value"] != pytest.approx(
        whole.query("what == 'change' and about == 'other_people' and scale == 'probability'")["value"].iloc[0]
    )


def test_results_name_the_tasks_that_the_data_set_declares(run: Path) -> None:
    found = edit_evidence(run, "memit", UNIT)
    assert not result_entries(found, "org/edited"), "records that are not on the Hub have no leaderboard"
    shared = replace(found, data="org/seesaw_cf", revision="0" * 40)
    declared = {task["id"] for task in yaml.safe_load(benchmark("SEESAW-CF", sample.configs()))["tasks"]}
    entries = result_entries(shared, "org/edited")
    assert {entry["dataset"]["task_id"] for entry in entries} == declared - {"other_facts"}
    assert not result_entries(replace(shared, config="coupled_counterfact"), "org/edited"), "no task has these records"


def test_unfinished_damaged_and_unknown_are_named(run: Path) -> None:
    with pytest.raises(UnknownNameError, match="'memit'"):
        edit_evidence(run, "memitt", UNIT)
    with pytest.raises(UnknownNameError, match="P27-00000001"):
        edit_evidence(run, "memit", "P27-00000009")
    file = run / "scores.parquet"
    file.write_bytes(file.read_bytes()[:40])
    with pytest.raises(RecordError, match="not a whole Parquet file"):
        edit_evidence(run, "memit", UNIT)
    file.unlink()
    with pytest.raises(RunFolderError, match="not finished"):
        edit_evidence(run, "memit", UNIT)
