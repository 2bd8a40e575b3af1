"""Logs of every format give the same comparison; its numbers are scipy's and numpy's."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from seesaw_cf.cli import main
from seesaw_cf.logs import CompareSettings, LogComparison, compare, read_log
from seesaw_cf.logs.log import EvalLog
from tests import fresh
from tests.conftest import ROOT
from tests.logs.made import FORMATS, Item, Made, items, write_log

QUICK = CompareSettings(clusters=("passage",), permutations=199)
QUICK_ALONE = replace(QUICK, clusters=())
CHANGE: Mapping[str, Any] = {"seed": 1, "shift": -1.5, "only": "woman"}


def _compared(tmp_path: Path, form: str = "lm_eval", settings: CompareSettings = QUICK, **change: Any) -> LogComparison:
    base = write_log(tmp_path / "base", items(), Made(model="small"), form)
    changed = write_log(tmp_path / "changed", items(**(change or CHANGE)), Made(model="edited"), form)
    return compare(base, changed, settings)


def _row(comparison: LogComparison, **keys: object) -> pd.Series:
    frame = comparison.frame
    for name, value in {"what": "change", "axis": "all", **keys}.items():
        frame = frame[frame[name] == value]
    assert len(frame) == 1, frame
    return frame.iloc[0]


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_gives_the_same_numbers(form: str, tmp_path: Path) -> None:
    row = _row(_compared(tmp_path, form), asked="acc", relation="quiz")
    before, after = (np.array([item.right for item in items(**change)]) for change in ({}, CHANGE))
    assert (row["n"], row["clusters"]) == (60, 30)
    assert row["value"] == pytest.approx((after - before).mean())
    sums = (after - before - (after - before).mean()).reshape(30, 2).sum(axis=1)
    assert row["stderr"] == pytest.approx(math.sqrt(30 / 29 * (sums**2).sum()) / 60)
    lost, gained = int((before > after).sum()), int((after > before).sum())
    assert (row["lost"], row["gained"]) == (lost, gained)
    assert row["p_mcnemar"] == pytest.approx(stats.binomtest(lost, lost + gained, 0.5).pvalue)


def test_margins_are_of_the_right_answer_against_the_best_other_one(tmp_path: Path) -> None:
    row = _row(_compared(tmp_path), asked="margin")
    assert row["value"] == pytest.approx(
        np.mean([_margin(item) for item in items(**CHANGE)]) - np.mean([_margin(item) for item in items()])
    )
    assert row["family"] == "log-probabilities"
    assert row["verdict"] == "fell"


def _margin(item: Item) -> float:
    return item.logprobs[item.target] - max(v for at, v in enumerate(item.logprobs) if at != item.target)


def test_a_group_that_alone_is_hit_is_named(tmp_path: Path) -> None:
    comparison = _compared(tmp_path)
    row = _row(comparison, axis="gender", group="man", asked="margin", what="contrast")
    assert row["value"] == pytest.approx(1.5, abs=0.1)
    assert row["verdict"] == "hit_less"
    assert "gender woman lost more margin than man" in comparison.screen.title


@pytest.mark.parametrize(
    ("form", "change", "settings", "title", "verdicts"),
    [
        ("lm_eval", {"seed": 0}, {}, "Nothing changed: edited answers all items as small does, and log-prob", {"same"}),
        ("inspect_json", {"invalid": 1.0}, {}, "No answer any more in quiz: 100.0 % of edited's texts hold none", None),
        (
            "lm_eval",
            {"shift": -0.5, "seed": 1},
            {"margin_log_odds": 2.0, "metrics": ("margin",)},
            "A small change is certain, below what was declared to matter: in quiz margin fell",
            {"slightly_fell"},
        ),
    ],
)
def test_the_title_says_what_changed(
    form: str, change: Any, settings: Any, title: str, verdicts: set[str] | None, tmp_path: Path
) -> None:
    comparison = _compared(tmp_path, form, replace(QUICK, **settings), **change)
    assert comparison.screen.title.startswith(title)
    assert verdicts is None or verdicts <= set(comparison.frame.query("axis == 'all'")["verdict"])


@pytest.mark.parametrize("other", [0, 5])
def test_other_wrong_answers_are_a_change_though_no_score_is(other: int, tmp_path: Path) -> None:
    rows = [{"item": f"i{number}", "acc": 0, "answer": "no"} for number in range(40)]
    changed = [row | {"answer": "maybe" if number < other else "no"} for number, row in enumerate(rows)]
    for name, log in (("small", rows), ("edited", changed)):
        pd.DataFrame(log).to_csv(tmp_path / f"{name}.csv", index=False)
    title = compare(tmp_path / "small.csv", tmp_path / "edited.csv", QUICK_ALONE).screen.title
    share = f"{100 * other / 40:.1f} %"
    assert title == (
        f"No score changed, yet {share} of the answers in all items are other ones."
        if other
        else "Nothing changed: edited answers all items as small does."
    )


def test_values_that_all_moved_alike_have_no_interval_and_no_claim(tmp_path: Path) -> None:
    for name, score in (("base", 5.0), ("changed", 3.5)):
        rows = [{"item": f"i{number}", "points": score} for number in range(12)]
        pd.DataFrame(rows).to_csv(tmp_path / f"{name}.csv", index=False)
    row = _row(compare(tmp_path / "base.csv", tmp_path / "changed.csv", QUICK_ALONE), asked="points")
    assert math.isnan(row["low"])
    assert (row["value"], row["verdict"]) == (-1.5, "too_few")


@pytest.mark.slow
def test_several_changed_models_stand_side_by_side(tmp_path: Path) -> None:
    logs = [
        write_log(tmp_path / name, items(shift=shift), Made(model=name))
        for name, shift in (("a", 0.0), ("b", -3.0), ("c", 0.0))
    ]
    comparison = compare(logs[0], logs[1:], QUICK)
    assert list(dict.fromkeys(comparison.frame["editor"])) == ["b", "c"]
    assert "Nothing changed: c answers all items as a does" in comparison.screen.title
    assert set(compare(logs[0], {"B": logs[1]}, QUICK).frame["editor"]) == {"B"}


def test_an_empty_cell_is_no_invalid_answer(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("item,acc,invalid\na,1,False\nb,0,\nc,1,True\n")
    assert read_log(tmp_path / "x.csv").items["invalid"].tolist() == [False, False, True]


def test_epochs_of_an_item_are_averaged(tmp_path: Path) -> None:
    rows = [
        {"item": f"i{n}", "epoch": epoch, "acc": float((n + epoch) % 2), "gender": "x"}
        for n in range(20)
        for epoch in (1, 2)
    ]
    for name, table in (("base", rows), ("changed", [row | {"acc": 1.0} for row in rows])):
        pd.DataFrame(table).to_csv(tmp_path / f"{name}.csv", index=False)
    row = _row(compare(tmp_path / "base.csv", tmp_path / "changed.csv", replace(QUICK, clusters=())), asked="acc")
    assert (row["n"], row["clusters"]) == (20, 20)
    assert row["value"] == pytest.approx(0.5)
    partial = [row | {"acc": "" if row["epoch"] == 2 and str(row["item"]) < "i12" else row["acc"]} for row in rows]
    pd.DataFrame(partial).to_csv(tmp_path / "changed.csv", index=False)
    comparison = compare(tmp_path / "base.csv", tmp_path / "changed.csv", replace(QUICK, clusters=()))
    assert comparison.screen.missing == (
        "Of 20 items 20 are scored in both logs: 0 before and 4 after have a score in some of their epochs only."
    )
    pd.DataFrame(rows[:-1]).to_csv(tmp_path / "changed.csv", index=False)
    with pytest.raises(ValueError, match="base and changed differ in the number of epochs of all items: 1 item"):
        compare(tmp_path / "base.csv", tmp_path / "changed.csv", replace(QUICK, clusters=()))


@pytest.mark.slow
def test_the_command_writes_every_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = write_log(tmp_path / "base", items(), Made(model="small"))
    changed = write_log(tmp_path / "changed", items(shift=-1.0), Made(model="=<b>"), "lm_eval")
    words = ["compare", base, changed, "--cluster", "passage", "--permutations", "99", "--out", tmp_path / "out"]
    assert main([str(word) for word in words]) == 0
    shown = capsys.readouterr().out
    assert "FELL" in shown
    assert max(map(len, shown.splitlines())) <= 100
    assert "=<b>" not in (tmp_path / "out" / "report.html").read_text()
    record = json.loads((tmp_path / "out" / "report.json").read_text())
    assert record["screen"]["finding"][0] in " ".join(shown.split())
    assert (tmp_path / "out" / "tables" / "scores.csv").exists()


@pytest.mark.slow
def test_it_runs_without_torch(tmp_path: Path) -> None:
    absent = ("torch", "transformers", "safetensors", "datasets", "inspect_ai", "lm_eval")
    code = f"import sys\ndef find_spec(name, *_):\n    if name in {absent}: raise ImportError(name)\n"
    code += "sys.meta_path.insert(0, sys.modules['__main__'])\nfrom seesaw_cf.cli import main; main(sys.argv[1:])"
    logs = [write_log(tmp_path / name, items(seed=at), Made(model=name)) for at, name in enumerate("ab")]
    words = ["compare", *map(str, logs), "--permutations", "99", "--out", str(tmp_path / "out")]
    assert "60 items paired in 1 task" in fresh.python("-c", code, *words, cwd=ROOT).stdout


def logged(folder: Path, target: str, asked: Sequence[tuple[str, str, float]], **metrics: float | None) -> EvalLog:
    """Read a log of lm_eval with one sample; of each request: context, choice and log-probability."""
    arguments = {f"gen_args_{at}": {"arg_0": context, "arg_1": text} for at, (context, text, _) in enumerate(asked)}
    answers = [[str(value), "False"] for *_, value in asked]
    line = {"doc_id": 0, "target": target, "arguments": arguments, "filtered_resps": answers, "metrics": [*metrics]}
    (folder / "samples_quiz.jsonl").write_text(json.dumps(line | metrics) + "\n")
    return read_log(folder)


@pytest.mark.parametrize(("target", "choices", "right"), [
    ("1", (" yes", " no"), 1),
    ("no", (" yes", " no"), 1),
    ("[1, 2]", (" yes", " no"), None),  # several right choices
    ("left.", (" left.", " left."), None),  # one text after two contexts, as in WinoGrande
    ("Paris", (" Paris",), 0),
    ("7", (" 7",), 0),
])  # fmt: skip
def test_a_right_choice_of_lm_eval_is_taken_only_where_the_log_names_it(
    target: str, choices: tuple[str, ...], right: int | None, tmp_path: Path
) -> None:
    asked = [("Who?", text, value) for text, value in zip(choices, (-1.0, -3.0))]
    log = logged(tmp_path, target, asked, acc=1.0)
    assert log.names("metric") == (("acc",) if right is None else ("acc", "loglik", "margin")[: 1 + len(choices)])
    if right is not None:
        assert log.items["metric:loglik"].tolist() == [asked[right][2]]


def test_choices_that_lm_eval_asked_without_their_context_are_no_other_answers(tmp_path: Path) -> None:
    asked = [("Who?", " yes", -1.0), ("Who?", " no", -3.0), ("", "yes", -0.5), ("", "no", -9.0)]
    row = logged(tmp_path, "0", asked, acc_mutual_info=0.0).items.iloc[0]
    assert (row["metric:loglik"], row["metric:margin"], row["answer"]) == (-1.0, 2.0, "yes")


@pytest.mark.parametrize(("right", "margin"), [({"acc": 1.0}, 4.0), ({"acc": 0.0}, -4.0), ({"other": 1.0}, None)])
def test_a_number_that_is_also_a_choice_is_what_the_logged_accuracy_says(
    right: dict[str, float], margin: float | None, tmp_path: Path
) -> None:
    """ "3" is the third choice, and the fourth has the index 3."""
    asked = [("1 + 2 =", f" {at + 1}", value) for at, value in enumerate((-9.0, -8.0, -1.0, -5.0))]
    items = logged(tmp_path, "3", asked, **right).items
    assert ("metric:margin" in items) == (margin is not None)
    assert margin is None or items["metric:margin"].tolist() == [margin]
