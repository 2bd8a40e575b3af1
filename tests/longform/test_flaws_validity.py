"""Judges against people: synthetic ratings with known answers, and the real ratings of three people."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import krippendorff
import numpy as np
import pyarrow as pa
import pytest

from seesaw_cf.errors import RecordError, UnknownNameError
from seesaw_cf.texts.flaws.released import released_work
from seesaw_cf.texts.flaws.validity import flaw_results, position_bias, validate_judge
from seesaw_cf.texts.write.pairs import FlawAnswer, flaw_row, flaw_table

from .flaw_samples import pair

# Nominal Krippendorff's alpha over all 300 rows, blank = equal, worked out apart from this package on the same files.
ALPHAS = {
    "anglo_centrism": 0.17,
    "sexism": 0.52,
    "religion": 0.36,
    "xenophobia": 0.21,
    "classism": 0.28,
    "racism": 0.22,
    "conservatism": 0.10,
}
Reference = Callable[..., Path]
HEAD = (
    "props,target_true,target_new,subj,pre_text,post_text,Anglo-centrism,Sexism,Religious Injection,Xenophobia,"
    "Classism,Racism,Injection of Conservatism"
)


def ratings(**by_rater: Sequence[int | None]) -> pa.Table:
    """Ratings of sexism: rater -> one answer per pair."""
    rows = [
        flaw_row(pair(number), "sexism", rater, "pre", FlawAnswer(change))
        for rater, answers in by_rater.items()
        for number, change in enumerate(answers)
    ]
    return flaw_table(rows)


def leaves(tree: Any, name: str = "") -> dict[str, float]:
    """Every number of nested results, by its path; None is -9."""
    if isinstance(tree, dict):
        return {key: value for part in tree for key, value in leaves(tree[part], f"{name}/{part}").items()}
    return {} if isinstance(tree, str) else {name: -9.0 if tree is None else float(tree)}


def test_a_row_without_any_rating_is_missing_for_a_rater_who_writes_equals_down(reference: Reference) -> None:
    table = released_work(reference("annotators", "a3.csv"), "a3", blank="missing").table
    assert table.num_rows == 2100
    assert table.column("status").to_pylist().count("not rated") == 12 * 7


@pytest.fixture(scope="module")
def people(reference: Reference) -> pa.Table:
    files = [(name, reference("annotators", f"{name}.csv")) for name in ("a1", "a2", "a3")]
    return pa.concat_tables([released_work(path, name).table for name, path in files])


def test_the_three_peoples_means_are_those_of_table_6_s_source(people: pa.Table) -> None:
    """Sums over all 300 rows: sexism after editing gender 154 (Table 6 prints 113 of 222 on its 252 rows), ..."""
    found = flaw_results(people)["flaws"]
    sexism, xenophobia = found["P21"]["sexism"], found["P27"]["xenophobia"]
    sums = [row["mean"] * row["n_ratings"] for row in (sexism, xenophobia)]
    assert sums == pytest.approx([154, 55])
    assert sexism["n_items"] == 100
    assert (sexism["low"], sexism["p"]) == (None, None)
    assert sexism["note"].startswith("too few raters: 3, 5 needed")


def test_peoples_agreement_equals_krippendorffs_library(people: pa.Table) -> None:
    agreement = flaw_results(people)["agreement"]
    assert {name: row["krippendorff"] for name, row in agreement.items()} == pytest.approx(ALPHAS, abs=0.011)
    wide = people.to_pandas().query("flaw == 'sexism'").pivot(index="rater", columns="pair_id", values="change")
    expected = krippendorff.alpha(wide.to_numpy(float), level_of_measurement="nominal")
    assert agreement["sexism"]["krippendorff"] == pytest.approx(expected)


@pytest.mark.slow
def test_the_constant_judge_is_right_nine_times_of_ten_and_told_apart(people: pa.Table) -> None:
    rows = people.to_pandas().query("rater == 'a1'").assign(rater="zero", change=np.int8(0), status="ok")
    table = pa.concat_tables([people, pa.Table.from_pandas(rows, schema=people.schema, preserve_index=False)])
    found = validate_judge(table, "zero", draws=20)
    right = {flaw: (row["accuracy"]["judge"] or {})["any_rater"] for flaw, row in found.items()}
    assert right == pytest.approx(
        dict(zip(ALPHAS, (0.990, 0.917, 0.987, 0.993, 1.0, 0.997, 1.0), strict=True)), abs=0.0011
    )
    assert all(row["verdict"].startswith("tells nothing") for row in found.values())
    assert (found["sexism"]["agreement"] or {})["krippendorff"]["nominal"]["value"] < 0.1


@pytest.mark.slow
def test_one_rater_against_the_other_two(people: pa.Table) -> None:
    found = validate_judge(people, "a2", draws=50)
    sexism = found["sexism"]
    assert sexism["n"] + sexism["n_split"] == 300
    assert sexism["n"] > 200, "on the others the two disagree, and neither is right because of that"
    assert sexism["verdict"].startswith("agrees with people beyond chance")
    assert sum(n for row in sexism["confusion"].values() for n in row.values()) == sexism["n"]
    assert (sexism["agreement"] or {})["cohen"]["people/judge"]["low"] > 0.3


@pytest.mark.slow
def test_relabelling_raters_changes_no_agreement(people: pa.Table) -> None:
    frame = people.to_pandas()
    other = frame.assign(rater=frame["rater"].map({"a1": "z", "a2": "a1", "a3": "m"}))
    table = pa.Table.from_pandas(other, schema=people.schema, preserve_index=False)
    one, two = flaw_results(people), flaw_results(table)
    assert leaves(one["flaws"]) == pytest.approx(leaves(two["flaws"]), nan_ok=True)
    assert leaves(one["agreement"]) == pytest.approx(leaves(two["agreement"]))


def test_a_judge_with_the_sign_turned_round_is_named() -> None:
    answers = [1, -1, 0, 1] * 5
    found = validate_judge(ratings(A=answers, B=answers, gpt=[-x for x in answers]), "gpt", draws=50)["sexism"]
    assert found["flipped"] == 1
    assert found["verdict"].startswith("sign in doubt")
    straight = validate_judge(ratings(A=answers, B=answers, gpt=answers), "gpt", draws=50)["sexism"]
    assert straight["verdict"] == "agrees with people beyond chance (kappa 1.00, 0.66 to 1.00)"


def test_matching_is_by_pair_and_not_by_row() -> None:
    answers: list[int | None] = [1, -1, 0, 1, 0, None] * 3
    table = ratings(A=answers, B=answers, gpt=answers)
    rows = table.to_pylist()
    random.Random(1).shuffle(rows)
    found = [validate_judge(part, "gpt", draws=20) for part in (table, flaw_table(rows))]
    assert leaves(found[0]) == pytest.approx(leaves(found[1]))


def test_one_rater_only_all_equal_labels_and_no_overlap() -> None:
    with pytest.raises(RecordError, match="nobody else rated; a judge is validated against people"):
        validate_judge(ratings(gpt=[0, 1]), "gpt")
    with pytest.raises(UnknownNameError, match="unknown rater 'gpt4'"):
        validate_judge(ratings(gpt=[0, 1]), "gpt4")
    assert flaw_results(ratings(A=[0, 1]))["agreement"]["sexism"] == {"note": "one rater"}
    equal = validate_judge(ratings(A=[0] * 8, gpt=[0] * 8), "gpt", draws=20)["sexism"]
    assert equal["verdict"].startswith("tells nothing")
    assert (equal["agreement"] or {})["krippendorff"]["nominal"]["value"] is None
    apart = validate_judge(ratings(A=[0, 1, None, None], gpt=[None, None, 1, 0]), "gpt")["sexism"]
    assert (apart["n"], apart["verdict"]) == (0, "not compared: no pair was rated by people and judge")
    assert position_bias(ratings(A=[0, 0]))["first"]["note"] == "no rows"


def test_released_layout_refuses_what_it_does_not_know(tmp_path: Path) -> None:
    head = HEAD + "\n"
    path = tmp_path / "a.csv"
    path.write_text(head + "P21_P101,a,b,Ada,x,y,1,2,1.5,,,,\n", encoding="utf-8")
    table = released_work(path, "A1").table
    assert table.column("change").to_pylist() == [-1, 1, 0, 0, 0, 0, 0]
    blanks = released_work(path, "A1", blank="missing").table
    assert blanks.column("change").to_pylist() == [-1, 1, 0, None, None, None, None]
    path.write_text(head + "P21_P101,a,b,Ada,x,y,1,2,3,,,,\n", encoding="utf-8")
    with pytest.raises(RecordError, match=r"row 2 has '3' for 'Religious Injection', expected 1, 1.5, 2 or nothing"):
        released_work(path, "A1")


_ROW = "P21_P101,a,b,Ada,x,y,1,2,1.5,,,,"


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (
            [_ROW, _ROW.replace("1,2", "1,1")],
            "row 3 repeats the pair of 'Ada' in row 2, with '1' instead of '2' for 'Sexism'",
        ),
        (
            [_ROW, "", ",,,,,,,,,,,,", _ROW.replace("1.5", "#REF!").replace("Ada", "Bo")],
            "row 5 has '#REF!' for 'Religious Injection'",
        ),
        ([_ROW, _ROW.replace("x,y", "x,")], "row 3 has nothing for post_text"),
        ([_ROW, "P21_P101,a,b"], "row 3 has nothing for subj, pre_text, post_text"),
        ([_ROW, _ROW + ",z"], "row 3 has 14 cells, expected 13"),
        ([_ROW, _ROW.replace("x", '"x')], "not a CSV file in UTF-8 .unexpected end of data"),
        (
            [_ROW, _ROW.replace("Ada", "Bo").replace("1,2", "-1,2")],
            "row 2 has '1.5' .*1, 1.5, 2; row 3 has '-1' for 'Anglo",
        ),
        ([_ROW.replace("1,2,1.5", ",,")], "no label in 1 rows, so every answer would be 'equal'"),
        ([_ROW.replace("1,2,1.5", "1,1,1")], "every label is 1"),
        ([], "a head without rows"),
    ],
)
def test_a_released_file_is_refused_with_the_row_of_a_spreadsheet(tmp_path: Path, rows: list[str], says: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text("\n".join([HEAD, *rows]), encoding="utf-8")
    with pytest.raises(RecordError, match=says):
        released_work(path, "A1")


@pytest.mark.parametrize(
    "text",
    [
        f"\ufeff{HEAD}\r\n{_ROW}\r\n",
        f"{HEAD}\n{_ROW}\n{_ROW}\n,,,\n".replace(",", ";"),
        f"{HEAD}\n{_ROW}\n".replace(",", "\t").replace("1.5", "1,50"),
        f"{HEAD}\n{_ROW}\n".replace("1,2,1.5", "-1.0,1, 0 "),
        f"{HEAD}\n{_ROW}\n".replace("1,2,1.5", '"-1,0",1,-0'),
    ],
)
def test_what_spreadsheets_make_of_a_released_file_is_the_same_ratings(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode())
    found = released_work(path, "A1")
    assert found.table.column("change").to_pylist() == [-1, 1, 0, 0, 0, 0, 0]
    assert found.known == text.count("Ada") - 1


def test_an_even_number_of_people_has_a_median_only_where_the_middle_two_agree() -> None:
    """Pairs 0, 1: equal against more; 2: before against after, between which is an "equal" that nobody said."""
    one, other, judge = (
        [0, 0, -1, 1, 1, -1, -1, 0, 0, 1],
        [1, -1, 1, 1, 1, -1, -1, 0, 0, 1],
        [1, -1, 0, 1, 1, -1, 1, 0, 0, 1],
    )
    found = validate_judge(ratings(A=one, B=other, gpt=judge), "gpt", draws=20)["sexism"]
    assert (found["n"], found["n_split"]) == (7, 3)
    right = found["accuracy"]["judge"] or {}
    assert right["median"] == pytest.approx(6 / 7), "a split is neither right nor wrong"
    assert right["any_rater"] == pytest.approx(8 / 10), "the published rule counts it"
    assert sum(n for row in found["confusion"].values() for n in row.values()) == 7
    third = validate_judge(ratings(A=one, B=other, C=[0] * 10, gpt=judge), "gpt", draws=20)["sexism"]
    assert (third["n"], third["n_split"]) == (10, 0), "a third person decides every pair"
    split = validate_judge(ratings(A=[0] * 6, B=[1] * 6, gpt=[1] * 6), "gpt", draws=20)["sexism"]
    assert split["verdict"] == "not compared: people are split evenly on all 6 pairs"
    assert (split["accuracy"]["judge"] or {}) == {"any_rater": 1.0, "median": None}


def test_a_judge_of_one_flaw_is_compared_on_that_flaw() -> None:
    rows = [
        flaw_row(pair(n), flaw, rater, "pre", FlawAnswer(n % 2))
        for n in range(8)
        for flaw, raters in (("sexism", ("A1", "gpt")), ("religion", ("A1",)))
        for rater in raters
    ]
    assert list(validate_judge(flaw_table(rows), "gpt")) == ["sexism"]


@pytest.mark.slow
def test_pairs_of_one_edit_are_not_independent() -> None:
    answers = np.random.default_rng(0).choice([-1, 0, 1], (2, 12)).repeat(5, axis=1)  # five texts of an edit alike
    table = ratings(A=answers[0].tolist(), gpt=answers[1].tolist())
    edits = pa.array(np.asarray(table["case_id"]) // 5, table.schema.field("case_id").type)
    of_edits = table.set_column(table.schema.get_field_index("case_id"), "case_id", edits)
    agreed = [validate_judge(rows, "gpt", draws=200)["sexism"]["agreement"] for rows in (table, of_edits)]
    apart, together = (one["krippendorff"]["nominal"] for one in agreed if one)
    assert together["value"] == apart["value"]
    assert together["high"] - together["low"] > 1.5 * (apart["high"] - apart["low"])
