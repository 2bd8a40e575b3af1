"""Label Studio: tasks out and results in are the identity; what was edited, doubled or hostile is named or harmless."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from xml.etree import ElementTree as ET

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seesaw_cf.base.tables import read_table, write_table
from seesaw_cf.cli import main
from seesaw_cf.effects.survey_items import ITEMS, SCALE
from seesaw_cf.errors import RecordError
from seesaw_cf.texts.label_studio.projects import Project, project_of, tables_of
from seesaw_cf.texts.people.claims import claim_item
from seesaw_cf.texts.people.failures import FAILURE_TASK
from seesaw_cf.texts.people.flaws import flaw_item, flaw_questions
from seesaw_cf.texts.people.making import Kind, Made, Settings
from seesaw_cf.texts.people.survey import SURVEY_TASK
from seesaw_cf.texts.rate.survey import SurveySample
from seesaw_cf.texts.runs import RunTexts
from seesaw_cf.texts.wording import FLAWS_BY_NAME, OURS, Wording
from seesaw_cf.texts.write.claims import ClaimPair
from seesaw_cf.texts.write.pairs import PassagePair

from . import coupled
from .flaw_samples import pair, passages

HOSTILE = '<script>alert(1)</script> $text_B ]]> &amp; =1+1 \U0001f600 "quoted"\nline'
Result = dict[str, Any]


def flaws(
    pairs: Sequence[PassagePair],
    seed: int = 0,
    duplicates: float = 0.1,
    *,
    names: Sequence[str] = tuple(FLAWS_BY_NAME),
    edit: str = "",
    wording: Wording = OURS,
) -> Project:
    """The flaws of these names, about pairs whose edit is told where there is a sentence about it."""
    items = [replace(one, ask=(*names, *one.ask[len(FLAWS_BY_NAME) :])) for one in (flaw_item(p, edit) for p in pairs)]
    return project_of("flaws", Made((), flaw_questions(wording), items, ()), seed, duplicates)


def of_samples(kind: str, task: Kind, *samples: SurveySample) -> Project:
    run = cast(RunTexts, SimpleNamespace(samples=samples))
    return project_of(kind, task.make(run, Settings()))


def chosen(name: str, *choices: str, to: str = "text_A") -> Result:
    return {"from_name": name, "to_name": to, "type": "choices", "value": {"choices": list(choices)}}


def marked(label: str, start: int, end: int, text: str | None = None) -> Result:
    value = {"start": start, "end": end, "labels": [label]} | ({} if text is None else {"text": text})
    return {"from_name": "evidence", "to_name": "passage", "type": "labels", "value": value}


def answered(folder: Path, project: Project, answers: Mapping[str, list[Result]], by: object = 7) -> tuple[Path, Path]:
    """The files as Label Studio would export them: item -> its result."""
    tasks = [
        task | {"id": number, "annotations": [{"completed_by": by, "result": answers[str(task["data"]["item"])]}]}  # type: ignore[index]
        for number, task in enumerate(project.tasks(), 1)
        if task["data"]["item"] in answers  # type: ignore[index]
    ]
    files = folder / "results.json", folder / "key.json"
    for file, content in zip(files, (tasks, project.key()), strict=True):
        file.write_text(json.dumps(content), encoding="utf-8")
    return files


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.text(min_size=1), st.sampled_from([None, -1, 0, 1])), min_size=1, max_size=5),
    st.integers(0, 9),
)
def test_flaws_come_back_unblinded(tmp_path: Path, texts: list[tuple[str, int | None]], seed: int) -> None:
    pairs = [pair(number, pre=text, post=f"{text}!") for number, (text, _) in enumerate(texts)]
    project = flaws(pairs, seed, 1.0, names=["religion"])
    wanted = {one.pair_id: change for one, (_, change) in zip(pairs, texts, strict=True)}
    answers: dict[str, list[Result]] = {}
    for id, item in project.items.items():
        change, first = wanted[item["about"]["pair"]["pair_id"]], item["about"]["first"]
        shown = None if change is None else change if first == "pre" else -change
        answers[id] = [] if shown is None else [chosen("religion", {-1: "A", 0: "equal", 1: "B"}[shown])]
    tables = tables_of(*answered(tmp_path, project, answers))
    for name in ("flaws", "flaws.repeats"):
        got = {row["pair_id"]: row["change"] for row in tables[name].to_pylist()}
        assert got == wanted
    assert set(tables["flaws"].column("rater").to_pylist()) == {"LS7"}
    assert tables["flaws"].column("pre").to_pylist() != tables["flaws"].column("post").to_pylist()


@pytest.mark.parametrize("backwards", [False, True])
def test_of_a_pair_shown_twice_the_first_answer_about_the_edit_is_kept(tmp_path: Path, backwards: bool) -> None:
    pairs = [pair(0)]
    project = flaws(pairs, 0, 1.0, names=["religion"], edit="An edit.")
    said = {id: ("yes", "no")[item["about"]["copy"] - 1] for id, item in project.items.items()}
    assert sorted(said.values()) == ["no", "yes"]
    results, key = answered(tmp_path, project, {id: [chosen("edit_reflected", word)] for id, word in said.items()})
    tasks = json.loads(results.read_text(encoding="utf-8"))
    tasks.sort(key=lambda task: said[task["data"]["item"]], reverse=backwards)
    results.write_text(json.dumps(tasks), encoding="utf-8")
    assert tables_of(results, key)["flaws.reflected"]["reflected"].to_pylist() == ["yes"]


def test_the_tasks_tell_nothing_and_hostile_text_stays_text() -> None:
    project = flaws([pair(1, HOSTILE, "b")], edit=HOSTILE)
    told = json.dumps(project.tasks())
    assert "memit" not in told
    assert "pre" not in project.tasks()[0]["data"]  # type: ignore[operator]
    root = ET.fromstring(project.config)
    assert {one.get("valueType") for one in root.iter("Text")} == {"text"}
    assert not list(root.iter("HyperText"))
    assert HOSTILE in (project.tasks()[0]["data"]["text_A"], project.tasks()[0]["data"]["text_B"])  # type: ignore[index]
    words = replace(OURS.flaws["sexism"], title='<b> & "$text_B"')
    config = flaws([pair(1)], wording=replace(OURS, flaws={**OURS.flaws, "sexism": words})).config
    assert "$text_B" not in {one.get("value") for one in ET.fromstring(config).iter("Header")}
    assert any("<b> &" in str(one.get("value")) for one in ET.fromstring(config).iter("Header"))


def test_the_survey_and_failure_modes_come_back(tmp_path: Path) -> None:
    sample = coupled.sample()
    project = of_samples("survey", SURVEY_TASK, sample, coupled.sample(main=""))
    [id] = project.items
    said = [chosen(item.name, str(1 + at % 7), to="main") for at, item in enumerate(ITEMS)]
    said[1] = chosen(ITEMS[1].name, SCALE[6], to="main")  # the words, where a project was made without the alias
    table = tables_of(*answered(tmp_path, project, {id: said[:8]}, {"id": 3, "email": "a@b.org"}))["ratings"]
    rows = {row["item"]: row for row in table.to_pylist()}
    assert [rows[item.name]["rating"] for item in ITEMS] == [1, 6, 3, 4, 5, 6, 7, 1, None]
    assert rows[ITEMS[8].name]["status"] == "not rated"
    assert rows["fluency"]["rater"] == "LS3"
    assert "a@b.org" not in str(table.to_pylist())
    modes = of_samples("failures", FAILURE_TASK, sample)
    [id] = modes.items
    note = {"from_name": "comment", "to_name": "main", "type": "textarea", "value": {"text": ["odd", "text"]}}
    found = tables_of(*answered(tmp_path, modes, {id: [chosen("modes", "spaces", "good_edit"), note]}))["failures"]
    assert {row["mode"] for row in found.to_pylist() if row["present"]} == {"spaces", "good_edit"}
    assert set(found.column("comment").to_pylist()) == {"odd text"}
    files = answered(tmp_path, project, {key: [chosen("fluency", "8")] for key in project.items})
    with pytest.raises(RecordError, match=r"task 1 \(item i\w+\): \['8'\] for 'fluency', expected one of 1, 2"):
        tables_of(*files)


def claims(text: str) -> Project:
    claim = ClaimPair(text, "Ann was born in Rome", "new_fact", "new_fact", editor="memit", case_id=1)
    return project_of("claims", Made((), (), [claim_item([claim])], ()))


def test_spans_are_words_of_the_passage_also_behind_an_emoji(tmp_path: Path) -> None:
    text = "\U0001f600\U0001f600 Ann was born in Rome.\nShe sang."
    project = claims(text)
    [id] = project.items
    start = text.index("Ann")
    for shift in (0, 2):  # Python counts an emoji once, a browser twice
        spans = [marked("supports", start + shift, start + shift + 9, "Ann was b")]
        [row] = tables_of(*answered(tmp_path, project, {id: [*spans, chosen("label", "supports")]}))[
            "annotations"
        ].to_pylist()
        assert (row["label"], row["evidence"], row["annotator"]) == ("supports", ["Ann was b"], "LS7")
    alone = [marked("contradicts", 0, 2), marked("contradicts", 5, 9)]
    [row] = tables_of(*answered(tmp_path, project, {id: alone}))["annotations"].to_pylist()
    assert (row["label"], len(row["evidence"])) == ("contradicts", 2)
    [row] = tables_of(*answered(tmp_path, project, {id: []}))["annotations"].to_pylist()
    assert (row["label"], row["status"]) == (None, "not rated")
    for said, message in (
        (
            [marked("supports", 0, 5, "other words")],
            r"but the highlighted text is 'other words'\. The passage was changed",
        ),
        ([marked("supports", 0, 5), chosen("label", "neutral")], "highlighted as supports, but the label is neutral"),
        ([marked("supports", 0, 5), marked("contradicts", 0, 5)], "highlighted as contradicts, supports"),
    ):
        with pytest.raises(RecordError, match=message):
            tables_of(*answered(tmp_path, project, {id: said}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tasks: tasks[0]["data"].update(claim="x"), r"task 1 \(item i\w+\): claim is 'x', expected 'Ann was"),
        (lambda tasks: tasks[0]["data"].update(item="i7"), "task 1: item 'i7' is not in the key"),
        (lambda tasks: tasks[0].pop("annotations"), "task 1: no 'annotations'. Export the project as JSON, not"),
        (lambda tasks: tasks[0].update(annotations=[{"result": [{}]}]), r"task 1 .*: value is None, expected"),
        (
            lambda tasks: tasks[0]["annotations"].append({"completed_by": 7, "result": [chosen("label", "neutral")]}),
            r"task 1 .*: two different answers by LS7\. Keep one",
        ),
        (
            lambda tasks: tasks[0]["annotations"][0].update(completed_by="Ann"),
            "completed_by is 'Ann', expected a whole",
        ),
    ],
)
def test_what_is_wrong_is_named_by_its_task(tmp_path: Path, change: Any, message: str) -> None:
    project = claims("Ann was born in Rome.")
    [id] = project.items
    results, key = answered(tmp_path, project, {id: [chosen("label", "supports")]})
    tasks = json.loads(results.read_text(encoding="utf-8"))
    change(tasks)
    results.write_text(json.dumps(tasks), encoding="utf-8")
    with pytest.raises(RecordError, match=message):
        tables_of(results, key)


def test_cancelled_answers_and_equal_ones_count_once(tmp_path: Path) -> None:
    project = claims("Ann was born in Rome.")
    [id] = project.items
    results, key = answered(tmp_path, project, {id: [chosen("label", "supports")]})
    tasks = json.loads(results.read_text(encoding="utf-8"))
    [first] = tasks[0]["annotations"]
    tasks[0]["annotations"] += [first, {"completed_by": 8, "was_cancelled": True, "result": []}]
    results.write_text(json.dumps(tasks), encoding="utf-8")
    assert tables_of(results, key)["annotations"].num_rows == 1
    key.write_text("{}", encoding="utf-8")
    with pytest.raises(RecordError, match=r"key\.json: not the key of tasks \('kind'\)"):
        tables_of(results, key)


def test_the_command_there_and_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, out = tmp_path / "run", tmp_path / "tasks"
    texts = [{"case_id": case, "phase": phase} for case in range(4) for phase in ("pre", "post")]
    write_table(run / "passages.parquet", passages(*texts))
    words = ["labels", "export", "flaws", str(run), "--out", str(out), "--duplicates", "0"]
    assert main([*words, "--sample", "2"]) == 0
    assert "2 tasks in" in capsys.readouterr().out
    assert (out / "key.json").stat().st_mode & 0o777 == 0o600
    assert main(words) == 1
    assert "exists with other content" in capsys.readouterr().err
    tasks = json.loads((out / "tasks.json").read_text(encoding="utf-8"))
    done = [task | {"annotations": [{"completed_by": 1, "result": [chosen("sexism", "A")]}]} for task in tasks]
    (out / "results.json").write_text(json.dumps(done), encoding="utf-8")
    back = ["labels", "import", str(out / "results.json"), "--key", str(out / "key.json")]
    assert main([*back, "--out", str(tmp_path / "rated")]) == 0
    assert "flaws.parquet: 14 rows by 1 raters" in capsys.readouterr().out
    assert main([*back, "--raters", "ANN_", "--out", str(tmp_path / "hers")]) == 0
    assert set(read_table(tmp_path / "hers" / "flaws.parquet")["rater"].to_pylist()) == {"ANN_1"}
    table = read_table(tmp_path / "rated" / "flaws.parquet")
    assert pa.compute.sum(pa.compute.abs(table["change"])).as_py() == 2


def test_the_library_of_label_studio_takes_configurations_and_tasks() -> None:
    interface = pytest.importorskip("label_studio_sdk.label_interface", reason="label-studio-sdk is not installed")
    sample = coupled.sample()
    for project in (
        flaws([pair(1)], edit="x"),
        of_samples("survey", SURVEY_TASK, sample),
        of_samples("failures", FAILURE_TASK, sample),
        claims("Ann was born in Rome."),
    ):
        found = interface.LabelInterface(project.config)
        found.validate()
        assert all(found.validate_task(task) for task in project.tasks())
