"""The model card: everything a reader needs, of the report of one edit alone, nothing a text could smuggle in."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import ModelCard, eval_result_entries_to_yaml, parse_eval_result_entries
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.base.tables import read_table
from seesaw_cf.builder_scripts.card import benchmark
from seesaw_cf.errors import EditError, RecordError, RunFolderError, StorageError, UnknownNameError
from seesaw_cf.models.weights import WeightDelta
from seesaw_cf.records import load as sample
from seesaw_cf.records.relations import TASKS
from seesaw_cf.report import report
from seesaw_cf.report.frame import row
from seesaw_cf.sharing import Evidence, ShareOptions, edit_evidence, load_delta, prepare_repo, save_delta
from seesaw_cf.sharing.card import escaped, result_entries
from seesaw_cf.sharing.hub import share
from seesaw_cf.types import EditRequest, Entity, Estimate
from tests.report.runs import cases, property_cases, write_run

from .tiny import low_rank_delta, tiny

NAN = float("nan")
FEW = "too few people: 3 in women, 5 needed"


def _row(task: str, what: str, about: str, estimate: Estimate, **names: object) -> dict[str, Any]:
    return row(what, about, estimate, task=task, scale="share") | names


EVIDENCE = Evidence(
    (
        _row("efficacy", "efficacy_after", "edited_fact", Estimate(0.75, n=1, note=FEW)),
        _row("other_people_old", "change", "other_people", Estimate(-0.25, -0.5, 0.125, 0.1, n=40), true_answer="old"),
        _row("other_people_new", "change", "other_people", Estimate(NAN, note=FEW), true_answer="new"),
        _row(
            "", "change", "other_people", Estimate(-0.5, n=6, note=FEW), true_answer="old", axis="race", group="Black"
        ),
    ),
    data="org/seesaw_cf",
    config="cross_subject",
    protocol="batch",
    revision="0123456789abcdef0123456789abcdef01234567",
)
NASTY = '</td><script>alert(1)</script> | [x](javascript:alert(1)) ![y](http://evil.example/a.png) `# *b*\n---\n\u202e"'


def _card(folder: Path, evidence: Evidence | None = EVIDENCE, **meta: object) -> str:
    """The card of a delta, in a new folder."""
    options = ShareOptions(evidence=evidence, base_model="org/base", model=tiny("llama"))
    prepare_repo(_delta(**meta), "org/name", folder, options=options)
    return (folder / "README.md").read_text()


def _delta(**meta: object) -> WeightDelta:
    delta = low_rank_delta(tiny("llama"), "llama")
    return WeightDelta(delta.updates, {**delta.meta, **meta})


def test_card_says_what_with_what_results_warning_and_how_to_load(tmp_path: Path) -> None:
    text = _card(tmp_path / "r")
    assert "**counterfactual**" in text
    assert "| &#123;&#125; is a citizen of | Ada | Peru | France |" in text
    assert f"| The edited fact | efficacy after, share (`efficacy`) | 0.7500 | {escaped(FEW)} | 1 |" in text
    old = "People for whom the old answer is true"
    assert f"| {old} | change, share (`other_people_old`) | -0.2500 | -0.5000 to 0.1250 | 40 |" in text
    assert f"| {old}: race Black | change, share | -0.5000 | {escaped(FEW)} | 6 |" in text
    assert "at commit 0123456789abcdef" in text
    assert 'load_delta(snapshot_download("org/name"), model)' in text


def test_hub_results_have_one_task_each_with_source_and_revision(tmp_path: Path) -> None:
    _card(tmp_path / "r")
    entries = yaml.safe_load((tmp_path / "r" / ".eval_results" / "seesaw_cf.yaml").read_text())
    found = parse_eval_result_entries(entries)
    assert [(entry.task_id, entry.value) for entry in found] == [("efficacy", 0.75), ("other_people_old", -0.25)]
    for entry in found:
        assert (entry.dataset_id, entry.dataset_revision) == ("org/seesaw_cf", EVIDENCE.revision)
        assert entry.source_url == "https://huggingface.co/org/name"
        assert entry.source_name
        assert entry.notes is not None
        assert "n " in entry.notes
        assert "config cross_subject; protocol batch" in entry.notes
    assert eval_result_entries_to_yaml(found) == entries
    local = replace(EVIDENCE, data="sample", revision="")  # no leaderboard without a data set on the Hub
    _card(tmp_path / "s", local)
    assert not (tmp_path / "s" / ".eval_results").exists()


def test_texts_from_data_cannot_act_in_the_card(tmp_path: Path) -> None:
    request = EditRequest("{} is " + NASTY, NASTY, "P27", Entity("Q1", NASTY), Entity("Q2", NASTY))
    text = _card(tmp_path / "r", None, requests=[request], editor=NASTY, config={NASTY: NASTY}).split("## Citation")[0]
    assert "<" not in text
    for part in ("script>", "](", "javascript:", "http:", "![", "\u202e"):
        assert part not in text.replace("> **Warning", "")
    rows = [line for line in text.splitlines() if "alert" in line and line.startswith("|")]
    assert rows
    assert {row.count("|") for row in rows} <= {3, 5}
    assert ModelCard.load(tmp_path / "r" / "README.md").data.base_model == "org/base"  # still one metadata block


@given(st.text())
def test_escaping_leaves_only_letters_entities_and_harmless_marks(text: str) -> None:
    import html
    import re

    found = escaped(text)
    assert not re.search(r"[<>|`*_\[\]()!\\\n\r\"'/:@.]", found)
    assert all(char.isalnum() or char in " ,-&#;" for char in found)
    kept = "".join(char if char.isprintable() and not char.isspace() else " " for char in text)
    back = "".join(char if char.isprintable() and not char.isspace() else " " for char in html.unescape(found))
    if text.isascii():
        assert back == kept


@pytest.mark.parametrize("name", ["name", "a/b/c", "org/na me", "../up/x", "org/", "org/x\n", "o" * 96 + "/n"])
def test_malformed_repository_names_are_refused_before_anything_is_sent(name: str) -> None:
    with pytest.raises(RecordError, match="expected ORG/NAME"):
        share(_delta(), name)


def test_a_local_path_never_becomes_the_base(tmp_path: Path) -> None:
    model = tiny("llama")
    model.config._name_or_path = str(tmp_path)
    with pytest.raises(RecordError, match="Pass base_model"):
        prepare_repo(_delta(), "org/name", tmp_path / "r", options=ShareOptions(model=model))
    prepare_repo(_delta(), "org/name", tmp_path / "r", options=ShareOptions(model=model, base_model="org/base"))
    for file in (tmp_path / "r").rglob("*"):
        assert file.is_dir() or str(tmp_path).encode() not in file.read_bytes()


def test_failed_edits_are_not_shared(tmp_path: Path) -> None:
    delta = _delta()
    zero = WeightDelta({name: delta.dense(name) * 0 for name in delta.updates})
    broken = WeightDelta({name: delta.dense(name) * NAN for name in delta.updates})
    for bad, words in ((zero, "changes nothing"), (broken, "not finite")):
        with pytest.raises(EditError, match=words):
            prepare_repo(bad, "org/name", tmp_path / "r", options=ShareOptions(base_model="org/base"))


def test_a_run_folder_with_several_deltas_asks_which(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "manifest.json").write_text('{"model": {"id": "org/base"}}')
    with pytest.raises(StorageError, match="kept no deltas"):
        prepare_repo(run, "org/name", tmp_path / "r")
    for unit in ("P27", "P19"):
        save_delta(_delta(), run / "deltas" / "memit" / unit, tiny("llama"))
    with pytest.raises(RecordError, match="2 deltas fit, expected one of memit/P19, memit/P27"):
        prepare_repo(run, "org/name", tmp_path / "r", options=ShareOptions(evidence=EVIDENCE))
    with pytest.raises(RecordError, match=r"0 deltas fit.*memit/P27"):
        prepare_repo(run, "org/name", tmp_path / "r", options=ShareOptions(unit="P28", evidence=EVIDENCE))
    prepare_repo(run, "org/name", tmp_path / "r", options=ShareOptions(unit="P27", evidence=EVIDENCE))
    assert load_delta(tmp_path / "r", tiny("llama")).meta["base"]["model_id"] == "org/base"


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
