"""Evidence from a finished run: the numbers of the card are those of the score table, and of one edit."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from scipy import stats

from seesaw_cf.base.tables import SCORES, write_table
from seesaw_cf.builder_scripts.dataset.card import benchmark
from seesaw_cf.errors import RecordError, StorageError, UnknownNameError
from seesaw_cf.records import sample
from seesaw_cf.run.edit_table import EDITS
from seesaw_cf.sharing import Evidence, Result, ShareOptions, edit_evidence, prepare_repo, save_delta
from seesaw_cf.sharing.card import SCORES_FILE, result_entries
from seesaw_cf.stats.skew import outer_limits

from .tiny import low_rank_delta, tiny


def _rows(editor: str, case: int, kind: str, shift: float, **extra: Any) -> list[dict[str, Any]]:
    """log p(new) = -4 and log p(true) = -2 before; p(new) rises by `shift` nats."""
    common = {
        "editor": editor, "case_id": case, "edit_relation": "P27", "effect_relation": "", "kind": kind, "prompt_id": 0,
        "template_id": "t", "prompt": "x", "subject_id": f"Q{case}", "subject": f"S{case}", "gender": ["woman"],
        "race": [], "region": [], "holds": "target_new", "gold": None, "n_tokens": 1, "greedy": False, "status": "ok",
    } | extra  # fmt: skip
    logprobs = {("target_new", "pre"): -4.0, ("target_true", "pre"): -2.0}
    logprobs |= {("target_new", "post"): -4.0 + shift, ("target_true", "post"): -2.0}
    return [
        {**common, "role": role, "target": role, "phase": phase, "logprob": value}
        for (role, phase), value in logprobs.items()
    ]


EDIT_ROWS = {"relation_id": "P27", "effect_relation_id": "", "status": "ok"}


def _fill(folder: Path, rows: list[dict[str, Any]], protocol: str = "single", **data: Any) -> Path:
    """A finished run folder with these score rows."""
    folder.mkdir()
    write_table(folder / "scores.parquet", pa.Table.from_pylist(rows, SCORES))
    keys = sorted({(row["editor"], row["case_id"]) for row in rows})
    edits = [{"editor": editor, "case_id": case} | EDIT_ROWS for editor, case in keys]
    write_table(folder / "edits.parquet", pa.Table.from_pylist(edits, EDITS))
    data = {"source": str(folder), "configs": ["cross_subject"], "revision": ""} | data
    manifest = {"model": {"id": "org/base", "revision": "", "dtype": "float32"}, "protocol": protocol, "data": data}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def _people(editor: str, case: int, shifts: list[float], **extra: Any) -> list[dict[str, Any]]:
    """One prompt about each of several people."""
    return [
        row
        for number, shift in enumerate(shifts)
        for row in _rows(editor, case, "cross_subject", shift, prompt_id=number, subject_id=f"Q{number}", **extra)
    ]


SHIFTS = [1.0, 1.0, 1.0, 2.0, 0.5, 0.0]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Edits 0 and 1 by memit, with other shifts; edit 0 by ft."""
    rows = [*_rows("memit", 0, "efficacy", 3.0), *_people("memit", 0, SHIFTS)]
    rows += _rows("memit", 0, "cross_subject", -1.0, prompt_id=90, subject_id="Q90", holds="target_true")
    rows += [*_rows("memit", 1, "efficacy", 9.0), *_people("memit", 1, [4.0] * 6)]
    rows += _rows("ft", 0, "efficacy", 0.5)
    return _fill(tmp_path / "run", rows)


def _named(evidence: Evidence) -> dict[str, Result]:
    return {result.task + (f", {result.group}" if result.group else ""): result for result in evidence.results}


def test_the_numbers_are_those_of_one_edit_and_of_no_other(run: Path) -> None:
    found = edit_evidence(run, "memit", "P27-00000000")
    results = _named(found)
    efficacy = results["efficacy_log_odds"]
    # log p(new) = -4 before and -4 + 3 after, log p(true) = -2; edit 1 has a shift of 9.
    assert (efficacy.before, efficacy.estimate.value, efficacy.estimate.n) == (-2, 1, 1)
    assert math.isnan(efficacy.estimate.low)
    assert "too few" in efficacy.estimate.note
    everybody = results["other_people_d"].estimate
    wanted = sum(math.exp(-4 + shift) - math.exp(-4) for shift in SHIFTS) / len(SHIFTS)
    assert everybody.value == pytest.approx(wanted)
    assert (everybody.n, everybody.n_clusters) == (6, 6)
    assert everybody.low < everybody.value < everybody.high
    assert results["other_people_d_log_odds"].estimate.value == pytest.approx(sum(SHIFTS) / 6)
    assert results["other_people_d, gender woman"].estimate.value == pytest.approx(wanted)
    assert results["old_target_people_d"].estimate.value == pytest.approx(math.exp(-5) - math.exp(-4))
    assert (found.data, found.config, found.protocol) == ("run", "cross_subject", "single")  # no local path
    assert found.date == "", "files of a copied run are as new as the copy"
    assert found.scores is not None
    assert set(found.scores["case_id"].to_pylist()) == {0}
    assert set(found.scores["editor"].to_pylist()) == {"memit"}


def test_the_interval_of_one_edit_is_clustered_by_person(run: Path) -> None:
    """With one prompt a person it is that over people: the outer of t's and Hall's, with the skewness of their mean."""
    found = _named(edit_evidence(run, "memit", "P27-00000000"))["other_people_d_log_odds"].estimate
    mean, error, skew = sum(SHIFTS) / 6, stats.sem(SHIFTS), stats.skew(SHIFTS, bias=False) / math.sqrt(6)
    ends = outer_limits(mean, error, stats.t.isf(0.025, 5), skew)
    assert (found.low, found.high) == pytest.approx(tuple(map(float, ends)))


def test_a_batch_is_one_edit_with_all_its_cases(tmp_path: Path) -> None:
    rows = [row for case in range(6) for row in _rows("memit", case, "efficacy", case / 2, prompt=f"x{case}")]
    found = edit_evidence(_fill(tmp_path / "run", rows, "batch"), "memit", "P27")
    efficacy = _named(found)["efficacy_log_odds"].estimate
    assert efficacy.value == pytest.approx(2.5 / 2 - 2)
    assert efficacy.n == 6
    assert efficacy.low < efficacy.value < efficacy.high


def _around(case: int = 0) -> list[dict[str, Any]]:
    """Paraphrases and a neighbour of an edit."""
    rows = [*_rows("memit", case, "paraphrase", 1.0), *_rows("memit", case, "paraphrase", 2.0, prompt_id=1)]
    return rows + _rows("memit", case, "neighborhood", 0.5)


def _property(case: int = 0) -> list[dict[str, Any]]:
    """Another property of an edited person."""
    rows = []
    for target, gold, before, after in (("a", True, -1.0, -3.0), ("b", False, -2.0, -2.0), ("c", False, -4.0, -4.0)):
        asked = {"prompt_id": 0, "role": "candidate", "target": target, "gold": gold, "effect_relation": "P101"}
        row = _rows("memit", case, "cross_property", 0.0)[0] | asked
        rows += [row | {"phase": "pre", "logprob": before}, row | {"phase": "post", "logprob": after}]
    return rows


def test_paraphrases_neighbours_and_other_properties(tmp_path: Path) -> None:
    results = _named(edit_evidence(_fill(tmp_path / "run", [*_around(), *_property(1)], "batch"), "memit", "P27"))
    assert results["paraphrase_log_odds"].estimate.value == pytest.approx(-0.5)  # mean of -4 + 1 + 2 and -4 + 2 + 2
    assert results["paraphrase_log_odds"].estimate.n == 2
    # The true answer stays ahead by 2 - 0.5 nats.
    assert (results["neighborhood_log_odds"].before, results["neighborhood_log_odds"].estimate.value) == (2, 1.5)
    # a is right: ahead of b by 1 before, behind it by 1 after.
    assert (results["cross_property_log_odds"].before, results["cross_property_log_odds"].estimate.value) == (1, -1)


@pytest.mark.slow
def test_results_of_edited_models_name_the_tasks_that_the_data_set_declares(tmp_path: Path) -> None:
    """An edit with every kind of prompt fills every leaderboard, and no other: each with records of its own config."""
    rows = [*_rows("memit", 0, "efficacy", 3.0), *_people("memit", 0, SHIFTS), *_around()]
    rows += [*_rows("memit", 1, "efficacy", 4.0), *_around(1), *_property(1)]
    rows += _rows("memit", 0, "cross_subject", -1.0, prompt_id=90, subject_id="Q90", holds="target_true")
    data = {"source": "org/seesaw_cf", "revision": "0" * 40, "configs": ["cross_subject", "cross_property"]}
    found = edit_evidence(_fill(tmp_path / "run", rows, "batch", **data), "memit", "P27")
    entries = result_entries(found, "org/edited")
    declared = yaml.safe_load(benchmark("SEESAW-CF", sample.configs()))
    assert [entry["dataset"]["task_id"] for entry in entries] == [task["id"] for task in declared["tasks"]]
    named = {entry["dataset"]["task_id"]: entry["value"] for entry in entries}
    assert (named["efficacy_log_odds"], named["cross_property_efficacy_log_odds"]) == (1, 2)
    assert not result_entries(replace(found, config="coupled_counterfact"), "org/edited"), "no task has these records"


def test_a_hub_data_set_is_named_with_its_commit(tmp_path: Path) -> None:
    rows = _rows("memit", 0, "efficacy", 1.0)
    run = _fill(tmp_path / "run", rows, source="org/seesaw_cf", revision="0123abc")
    found = edit_evidence(run, "memit", "P27-00000000")
    assert (found.data, found.revision) == ("org/seesaw_cf", "0123abc")
    gone = _fill(tmp_path / "gone", rows, source="secret/project/cases.json")
    assert edit_evidence(gone, "memit", "P27-00000000").data == "cases.json"


@pytest.mark.slow
def test_a_shared_run_takes_evidence_and_base_from_its_folder(run: Path, tmp_path: Path) -> None:
    delta = run / "deltas" / "memit" / "P27-00000000"
    save_delta(low_rank_delta(tiny("llama"), "llama"), delta, tiny("llama"))
    prepare_repo(run, "org/name", tmp_path / "repository")
    card = (tmp_path / "repository" / "README.md").read_text()
    assert "| `efficacy_log_odds` | -2.0000 | 1.0000 |" in card
    assert "org/base" in card
    assert str(tmp_path) not in card
    rows = [json.loads(line) for line in (tmp_path / "repository" / SCORES_FILE).read_text().splitlines()]
    assert {(row["editor"], row["case_id"]) for row in rows} == {("memit", 0)}
    prepare_repo(delta, "org/name", tmp_path / "from the delta", options=ShareOptions(base_model="org/base"))
    assert (tmp_path / "from the delta" / "README.md").read_text() == card  # the run around the folder is found


def test_unfinished_damaged_and_unknown_are_named(run: Path) -> None:
    with pytest.raises(UnknownNameError, match="'memit'"):
        edit_evidence(run, "memitt", "P27-00000000")
    with pytest.raises(UnknownNameError, match="P27-00000001"):
        edit_evidence(run, "memit", "P27-00000002")
    file = run / "scores.parquet"
    file.write_bytes(file.read_bytes()[:40])
    with pytest.raises(RecordError, match="not a whole Parquet file"):
        edit_evidence(run, "memit", "P27-00000000")
    file.unlink()
    with pytest.raises(StorageError, match="no such file"):
        edit_evidence(run, "memit", "P27-00000000")
