"""Which choice of a sample of lm_eval is right, and which of its log-probabilities are of choices."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seesaw_cf.logs import read_log


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
    logprobs = [-1.0, -3.0][: len(choices)]
    line = {
        "doc_id": 0,
        "target": target,
        "arguments": {f"gen_args_{at}": {"arg_0": "Who?", "arg_1": text} for at, text in enumerate(choices)},
        "filtered_resps": [[str(value), "False"] for value in logprobs],
        "metrics": ["acc"],
        "acc": 1.0,
    }
    (tmp_path / "samples_quiz.jsonl").write_text(json.dumps(line) + "\n")
    log = read_log(tmp_path)
    assert log.names("metric") == (("acc",) if right is None else ("acc", "loglik", "margin")[: 1 + len(choices)])
    if right is not None:
        assert log.items["metric:loglik"].tolist() == [logprobs[right]]


def test_choices_that_lm_eval_asked_without_their_context_are_no_other_answers(tmp_path: Path) -> None:
    asked = {("Who?", " yes"): -1.0, ("Who?", " no"): -3.0, ("", "yes"): -0.5, ("", "no"): -9.0}
    line = {
        "doc_id": 0,
        "target": "0",
        "arguments": {f"gen_args_{at}": {"arg_0": context, "arg_1": text} for at, (context, text) in enumerate(asked)},
        "filtered_resps": [[str(value), "False"] for value in asked.values()],
        "metrics": ["acc_mutual_info"],
        "acc_mutual_info": 0.0,
    }
    (tmp_path / "samples_quiz.jsonl").write_text(json.dumps(line) + "\n")
    row = read_log(tmp_path).items.iloc[0]
    assert (row["metric:loglik"], row["metric:margin"], row["answer"]) == (-1.0, 2.0, "yes")


@pytest.mark.parametrize(("right", "margin"), [(1.0, 4.0), (0.0, -4.0), (None, None)])
def test_a_number_that_is_also_a_choice_is_what_the_logged_accuracy_says(
    right: float | None, margin: float | None, tmp_path: Path
) -> None:
    logprobs = (-9.0, -8.0, -1.0, -5.0)  # "3" is the third choice, and the fourth has the index 3
    line = {
        "doc_id": 0,
        "target": "3",
        "arguments": {f"gen_args_{at}": {"arg_0": "1 + 2 =", "arg_1": f" {at + 1}"} for at in range(4)},
        "filtered_resps": [[str(value), "False"] for value in logprobs],
        "metrics": ["acc" if right is not None else "other"],
        "acc": right,
        "other": 1.0,
    }
    (tmp_path / "samples_quiz.jsonl").write_text(json.dumps(line) + "\n")
    items = read_log(tmp_path).items
    assert ("metric:margin" in items) == (margin is not None)
    assert margin is None or items["metric:margin"].tolist() == [margin]
