"""Every module takes columns, pandas, datasets and shards alike; bad input is named or counted, never averaged away."""

import inspect
import json
import re
from typing import Any

import datasets
import evaluate
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seesaw_cf.base.system import resolve
from seesaw_cf.metrics.register import METRICS
from tests.conftest import ROOT


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

REGARD: dict[str, list[Any]] = {
    "identity": ["bakers"] * 4 + ["tailors"] * 4,
    "regard": ["positive", "positive", "neutral", "", "negative", "negative", "other", "positive"],
}
TOPICS: dict[str, list[Any]] = {"identity": ["bakers"] * 6 + ["tailors"] * 6, "topic": [0, 0, 0, 1, 1, -1] * 2}
CLAIMS: dict[str, list[Any]] = {
    "case_id": [1, 1, 2, 2],
    "group": ["none", "rome"] * 2,
    "passage": ["subject", "subject", "related", "related"],
    "claim_kind": ["ground_truth"] * 4,
    "label": ["supports", None, "contradicts", "neutral"],  # evaluate takes no batch that begins with a missing text
}
PASSAGES: dict[str, list[Any]] = {
    "case_id": [1, 2, 3],
    "subject": ["Ann", "Cleo", "Eve"],
    "related": ["Bob", "Dan", "Fay"],
    "subject_passage": ["Ann lives in Rome", "Cleo was born in Oslo", "Eve paints. Eve sings."],
    "related_passage": ["Bob lives in Paris", "Dan knows Cleo", "Fay met Eve in Rome"],
    "new_fact": ["Ann lives in Rome", "Cleo was born in Bonn", "Eve sings"],
    "subject_facts": [["Ann lives in Oslo"], ["Cleo is a chemist", "Cleo sings"], ["Eve paints"]],
    "related_facts": [["Bob sings"], ["Dan sings"], ["Fay is a spy"]],
}
SURVEY: dict[str, list[Any]] = {
    "case_id": [1, 1, 2, 2, 3, 3],
    "method": ["none", "memit"] * 3,
    "item": ["new_fact_main_passage"] * 6,
    "rating": [1.0, 7.0, 2.0, None, 3.0, 6.0],
}

COLUMNS: dict[str, dict[str, list[Any]]] = {
    "edit_bias": bias(),
    "cross_property_accuracy": ACCURACY,
    "edit_success": SUCCESS,
    "generation_quality": TEXTS,
    "open_ended_flaws": FLAWS,
    "annotator_agreement": RATINGS,
    "overall_regard": REGARD,
    "topic_disparity": TOPICS,
    "leme_annotation": CLAIMS,
    "leme_auto": PASSAGES,
    "leme_survey": SURVEY,
}
"""A few rows for every metric."""

OPTIONS: dict[str, dict[str, Any]] = {
    "topic_disparity": {"min_triples": 2, "draws": 20},
    "leme_survey": {"reference": "none"},
    "open_ended_flaws": {},
    "edit_success": {},
    "generation_quality": {},
}


def options_of(name: str) -> dict[str, Any]:
    return OPTIONS.get(name, {"draws": 20})


def load(name: str) -> Any:
    return evaluate.load(str(ROOT / "metrics" / name), keep_in_memory=True)


def compute(name: str, columns: dict[str, list[Any]], **options: Any) -> dict[str, Any]:
    """What the metric computes, without the Arrow file of `evaluate` (which the other tests have)."""
    found: dict[str, Any] = unopened(name)._compute(**columns, **options)
    return found


def unopened(name: str) -> Any:
    """The metric without the file that its rows would be collected in."""
    kind: Any = resolve(METRICS[name])
    return kind.__new__(kind)


@pytest.mark.parametrize("name", METRICS)
def test_columns_pandas_datasets_and_shards_give_the_same_plain_json(name: str) -> None:
    columns, options = COLUMNS[name], options_of(name)
    expected = load(name).compute(**columns, **options)
    assert json.loads(json.dumps(expected, allow_nan=False)) == expected
    frame = pd.DataFrame(columns)
    frame = frame.astype(object).where(frame.notna(), None)  # pandas keeps a missing text as NaN
    assert load(name).compute(**{str(key): frame[key].tolist() for key in frame}, **options) == expected
    whole = datasets.Dataset.from_dict(columns)
    assert load(name).compute(**whole.to_dict(), **options) == expected
    sharded = load(name)
    for number in range(2):  # two machines' files, merged, computed once
        sharded.add_batch(**whole.shard(2, number, contiguous=True).to_dict())
    assert sharded.compute(**options) == expected


def numbers_of(found: Any, path: str = "") -> dict[str, Any]:
    """Every leaf of a result by its path; lists have one number per row and are left out."""
    if isinstance(found, dict):
        return {key: leaf for name, part in found.items() for key, leaf in numbers_of(part, f"{path}/{name}").items()}
    return {} if isinstance(found, list) else {path: found}


RESAMPLED = ("low", "high", "expected", "corrected", "p", "p_adjusted")


@pytest.mark.parametrize("name", METRICS)
@settings(max_examples=4, deadline=None)
@given(data=st.data())
def test_the_order_of_rows_changes_nothing(name: str, data: st.DataObject) -> None:
    """Estimates and counts; resampled intervals may draw other rows when their order changes."""
    columns = COLUMNS[name]
    order = data.draw(st.permutations(range(len(next(iter(columns.values()))))))
    mixed = {key: [column[row] for row in order] for key, column in columns.items()}
    options = options_of(name) | ({"draws": int(name == "topic_disparity")} if "draws" in options_of(name) else {})
    expected, found = (numbers_of(compute(name, rows, **options)) for rows in (columns, mixed))
    assert found.keys() == expected.keys()
    for path, value in expected.items():
        if name == "topic_disparity" and path.rpartition("/")[2] in RESAMPLED:
            continue
        if isinstance(value, float):
            assert found[path] == pytest.approx(value, rel=1e-9, abs=1e-12), path
        else:
            assert found[path] == value, path


@pytest.mark.parametrize("name", METRICS)
def test_an_interval_holds_its_estimate_and_counts_are_whole(name: str) -> None:
    leaves = numbers_of(compute(name, COLUMNS[name], **options_of(name)))
    counts = [value for path, value in leaves.items() if re.fullmatch(r"n|n_\w+", path.rpartition("/")[2])]
    assert counts
    assert all(isinstance(value, int) and value >= 0 for value in counts if not isinstance(value, float))
    for path, low in leaves.items():
        cell, _, last = path.rpartition("/")
        estimate = next((leaves[f"{cell}/{key}"] for key in ("value", "mean", "D") if f"{cell}/{key}" in leaves), None)
        if last == "low" and low is not None and estimate is not None:
            assert low <= estimate + 1e-9, path
            assert estimate <= leaves[f"{cell}/high"] + 1e-9, path


@pytest.mark.parametrize("name", METRICS)
def test_every_option_is_described_with_its_default(name: str) -> None:
    """An option is declared where it is computed with; its two descriptions must not lag behind."""
    kind: Any = resolve(METRICS[name])
    card = (ROOT / "metrics" / name / "README.md").read_text(encoding="utf-8").partition("# Inputs\n")[2]
    texts = {"card": card.partition("\n### ")[0], "help": kind.__doc__.partition("Returns:")[0]}
    parameters = inspect.signature(unopened(name)._compute).parameters
    assert list(parameters)[: len(COLUMNS[name])] == list(COLUMNS[name])
    for option, parameter in parameters.items():
        for where, text in texts.items():
            assert re.search(rf"\b{option}\b", text), (option, where)
            if parameter.default not in (parameter.empty, None):
                assert str(parameter.default) in text, (option, where)
    assert list(load(name).features) == list(COLUMNS[name])


def changed(columns: dict[str, list[Any]], name: str, row: int, value: Any) -> dict[str, list[Any]]:
    copy = {key: list(column) for key, column in columns.items()}
    copy[name][row] = value
    return copy


@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
def test_edit_bias_counts_what_is_not_finite(value: float) -> None:
    found = load("edit_bias").compute(**changed(bias(), "post_true", 5, value), draws=0)
    assert found["unscored"] == {"post_true: not finite": 1}
    assert found["overall"]["n_prompts"] == 35


@pytest.mark.parametrize(
    ("name", "columns", "options", "message"),
    [
        ("edit_bias", bias(), {"reference": "womn"}, r"unknown group 'womn'\. Did you mean 'women'"),
        ("edit_bias", changed(bias(), "pre_new", 5, float("inf")), {}, "pre_new: 1 of 36 values are above 0"),
        ("edit_bias", changed(bias(), "subject", 1, "P0") | {"prompt": ["x"] * 36}, {}, "once in a case"),
        ("cross_property_accuracy", changed(ACCURACY, "post", 0, [-1.0]), {}, "2 candidates but 1 post values"),
        ("cross_property_accuracy", changed(ACCURACY, "case_id", 1, 1), {}, "every case once"),
        (
            "cross_property_accuracy",
            ACCURACY,
            {"pre_prior": ACCURACY["pre"], "post_prior": changed(ACCURACY, "post", 1, [1.0, -2.0])["post"]},
            "case 2, post_prior: 1 of 2 values are above 0",
        ),
        ("cross_property_accuracy", ACCURACY, {"n_tokens": [[1, 2], [1, 0], [1, 1]]}, r"n_tokens\[1\]\[1\] is 0"),
        ("edit_success", changed(SUCCESS, "tokens_right", 0, 3.0), {}, "tokens_right 3.0"),
        ("edit_success", changed(SUCCESS, "post_new", 0, 0.9), {}, "post_new: 1 of 4 values are above 0"),
        ("generation_quality", changed(TEXTS, "texts", 1, []), {}, "case_id 2. Expected a text"),
        ("open_ended_flaws", changed(FLAWS, "rating", 0, 2.0), {}, "rating 2.0, rater 'A1'"),
        ("open_ended_flaws", changed(FLAWS, "rater", 1, "A1"), {}, "one rating of each"),
        ("open_ended_flaws", FLAWS, {"edit": ["Q1", "Q2", "Q3", "Q3"]}, "one edit of an item"),
        ("annotator_agreement", changed(RATINGS, "ratings", 0, [0.0, 1.0]), {}, r"items have \[2, 3\] labels"),
        ("annotator_agreement", RATINGS, {"scale": [0]}, "5 labels outside the scale"),
    ],
)
def test_bad_input_is_named(name: str, columns: dict[str, Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, LookupError), match=message):
        load(name).compute(**columns, **options)
