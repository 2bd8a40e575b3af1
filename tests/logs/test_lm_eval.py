"""Which choice of a sample of lm_eval is right, and which of its log-probabilities are of choices."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from seesaw_cf.logs import read_log
from seesaw_cf.logs.log import EvalLog

Asked = Sequence[tuple[str, str, float]]
"""Context, choice and log-probability of each request."""


def logged(folder: Path, target: str, asked: Asked, **metrics: float | None) -> EvalLog:
    """Read a log of lm_eval with one sample."""
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
