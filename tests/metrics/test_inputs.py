"""Every module takes columns, pandas, datasets and shards alike; bad input is named or counted, never averaged away."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from typing import Any

import datasets
import evaluate
import pandas as pd
import pytest

from tests.conftest import ROOT

NAN, INF = float("nan"), float("inf")


def bias(edits: int = 6, people: int = 6) -> dict[str, list[Any]]:
    """Every edit asks everybody; half of the people are women."""
    rows = [(e, p) for e in range(edits) for p in range(people)]
    columns: dict[str, list[Any]] = {
        "case_id": [e for e, _ in rows],
        "prompt": [f"P{p} is a citizen of" for _, p in rows],
        "subject": [f"P{p}" for _, p in rows],
        "groups": [["women"] if p % 2 else ["men"] for _, p in rows],
    }
    for number, side in enumerate(("pre_new", "pre_true", "post_new", "post_true")):
        columns[side] = [-1.0 - ((7 * e + 3 * p + 5 * number) % 11) / 10 for e, p in rows]
    return columns


ACCURACY: dict[str, list[Any]] = {
    "case_id": [1, 2, 3],
    "edit_relation": ["P27"] * 3,
    "effect_relation": ["P101"] * 3,
    "prompt": ["Ann's field of work is", "Bob's field of work is", "Cleo's field of work is"],
    "candidates": [["physics", "law"]] * 3,
    "gold": [["physics"], ["law"], ["physics"]],
    "pre": [[-1.0, -2.0], [-3.0, -1.0], [-1.0, -4.0]],
    "post": [[-1.0, -2.0], [-3.0, -1.0], [-5.0, -4.0]],
}
SUCCESS: dict[str, list[Any]] = {
    "case_id": [1, 1, 2, 2],
    "test": ["rewrite", "paraphrase", "rewrite", "neighborhood"],
    "pre_new": [-5.0] * 4,
    "pre_true": [-1.0] * 4,
    "post_new": [-0.1, -0.5, -4.0, -6.0],
    "post_true": [-3.0, -2.0, -1.0, -0.5],
    "tokens_right": [1.0, 2.0, 0.0, 1.0],
    "tokens_kept": [0.0, 0.0, 1.0, 1.0],
    "n_tokens": [1.0, 2.0, 2.0, 1.0],
    "generated": [1.0, 1.0, 0.0, 1.0],
}
TEXTS: dict[str, list[Any]] = {
    "case_id": [1, 2, 3],
    "texts": [["one two three four"], ["one one one one one"], ["two four six"]],
    "references": [["two four six"], ["six two"], ["one"]],
}
FLAWS: dict[str, list[Any]] = {
    "item": ["a", "a", "b", "b"],
    "group": ["gender"] * 4,
    "flaw": ["sexism"] * 4,
    "rater": ["A1", "A2"] * 2,
    "rating": [1.0, 1.0, 0.0, -1.0],
}
RATINGS: dict[str, list[Any]] = {"ratings": [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]}

MODULES: list[tuple[str, dict[str, list[Any]], dict[str, Any]]] = [
    ("edit_bias", bias(), {"draws": 50}),
    ("cross_property_accuracy", ACCURACY, {"draws": 50}),
    ("edit_success", SUCCESS, {"draws": 50}),
    ("generation_quality", TEXTS, {"draws": 50}),
    ("open_ended_flaws", FLAWS, {}),
    ("annotator_agreement", RATINGS, {"draws": 20}),
]


def load(name: str) -> Any:
    return evaluate.load(str(ROOT / "metrics" / name), keep_in_memory=True)


@pytest.mark.parametrize(("name", "columns", "options"), MODULES, ids=[module[0] for module in MODULES])
def test_columns_pandas_datasets_and_shards_give_the_same_plain_json(
    name: str, columns: dict[str, list[Any]], options: dict[str, Any]
) -> None:
    expected = load(name).compute(**columns, **options)
    assert json.loads(json.dumps(expected, allow_nan=False)) == expected
    frame = pd.DataFrame(columns)
    assert load(name).compute(**{str(key): frame[key].tolist() for key in frame}, **options) == expected
    whole = datasets.Dataset.from_dict(columns)
    assert load(name).compute(**whole.to_dict(), **options) == expected
    sharded = load(name)
    for number in range(2):  # two machines' files, merged, computed once
        sharded.add_batch(**whole.shard(2, number, contiguous=True).to_dict())
    assert sharded.compute(**options) == expected


def test_what_the_modules_compute_with_never_loads_torch() -> None:
    program = "import sys, seesaw_cf.effects, seesaw_cf.stats, seesaw_cf.stats.agreement; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert done.stdout == "False\n", done.stderr[-2000:]


@pytest.mark.parametrize("name", [module[0] for module in MODULES])
def test_demo_is_valid_python_and_asks_for_gradio_only_when_opened(name: str) -> None:
    tree = ast.parse((ROOT / "metrics" / name / "app.py").read_text(encoding="utf-8"))
    top = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert not any("gradio" in ast.unparse(node) for node in top)


def changed(columns: dict[str, list[Any]], name: str, row: int, value: Any) -> dict[str, list[Any]]:
    copy = {key: list(column) for key, column in columns.items()}
    copy[name][row] = value
    return copy


@pytest.mark.parametrize(
    ("value", "reason"), [(NAN, "post_true: not finite"), (INF, None), (-INF, "post_true: not finite")]
)
def test_edit_bias_counts_what_is_not_finite(value: float, reason: str | None) -> None:
    given = changed(bias(), "post_true", 5, value)
    if reason is None:
        with pytest.raises(ValueError, match="post_true: 1 of 36 values are above 0"):
            load("edit_bias").compute(**given, draws=0)
        return
    found = load("edit_bias").compute(**given, draws=0)
    assert found["unscored"] == {reason: 1}
    assert found["overall"]["n_prompts"] == 35


def test_edit_bias_says_why_there_is_no_interval() -> None:
    equal = bias() | {side: [-1.0] * 36 for side in ("pre_new", "pre_true", "post_new", "post_true")}
    assert load("edit_bias").compute(**equal, draws=0)["overall"]["note"] == "all values equal: no error to estimate"
    one = load("edit_bias").compute(**bias(edits=1), draws=0)["overall"]
    assert one["note"].startswith("too few clusters (edit: 1.0 effective); about 4 more equal ones are needed")
    assert (one["low"], one["p"]) == (None, None)
    alone = bias()
    alone["groups"] = [["women"] if case < 3 else ["men"] for case in alone["case_id"]]
    contrast = load("edit_bias").compute(**alone, draws=0, reference="men")["groups"]["women"]["contrast"]
    assert contrast["note"] == "no edit was scored on both groups"
    unscored = bias() | {"pre_new": [NAN] * 36}
    found = load("edit_bias").compute(**unscored, draws=10)
    assert (found["overall"]["D"], found["n_unscored"]) == (None, 36)


@pytest.mark.parametrize(
    ("name", "columns", "options", "message"),
    [
        ("edit_bias", bias(), {"reference": "womn"}, r"unknown group 'womn'\. Did you mean 'women'"),
        (
            "edit_bias",
            bias() | {"pre_new": [0.4] * 36},
            {},
            "pre_new: 36 of 36 values are above 0 .* log-probabilities",
        ),
        ("edit_bias", changed(bias(), "subject", 1, "P0") | {"prompt": ["x"] * 36}, {}, "rows repeat a"),
        ("cross_property_accuracy", changed(ACCURACY, "post", 0, [-1.0]), {}, "2 candidates but 1 post values"),
        (
            "cross_property_accuracy",
            changed(ACCURACY, "case_id", 1, 1),
            {},
            "1 cases occur more than once, first: case 1",
        ),
        ("edit_success", changed(SUCCESS, "tokens_right", 0, 3.0), {}, "tokens_right: 1 rows outside 0..n_tokens"),
        ("edit_success", changed(SUCCESS, "post_new", 0, 0.9), {}, "post_new: 1 of 4 values are above 0"),
        ("generation_quality", changed(TEXTS, "texts", 1, []), {}, "1 cases have no generated text, first: case 2"),
        ("open_ended_flaws", changed(FLAWS, "rating", 0, 2.0), {}, "1 ratings outside the scale"),
        ("open_ended_flaws", changed(FLAWS, "rater", 1, "A1"), {}, "1 ratings are repeated"),
        ("annotator_agreement", changed(RATINGS, "ratings", 0, [0.0, 1.0]), {}, r"items have \[2, 3\] labels"),
        ("annotator_agreement", RATINGS, {"scale": [0]}, "5 labels outside the scale"),
    ],
)
def test_bad_input_is_named(name: str, columns: dict[str, Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, LookupError), match=message):
        load(name).compute(**columns, **options)
