"""Ratings of flaws as rows: people, judges beside people and beside a constant answer, answers given twice."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.base.tables import write_table
from seesaw_cf.errors import RecordError, UnknownNameError
from seesaw_cf.stats.multiple import adjust
from seesaw_cf.texts.pairs import flaw_row
from seesaw_cf.texts.released import collect
from seesaw_cf.texts.report.people import people_frame, reflected_rows, repeat_rows
from seesaw_cf.texts.report.rows import frame_of
from seesaw_cf.texts.tables import REFLECTED, coded

from .analysis_samples import flaw_table, frames, pair, reflected_row


def ratings(**by_rater: Sequence[int | None]) -> pa.Table:
    """Ratings of sexism: rater -> one answer per pair, of alternating relations."""
    return flaw_table(
        [
            flaw_row(pair(number, relation=("P21", "P27")[number % 2]), "sexism", rater, "pre", change)
            for rater, answers in by_rater.items()
            for number, change in enumerate(answers)
        ]
    )


def rows(table: pa.Table, what: str, judges: Sequence[str] = (), draws: int = 50) -> Any:
    frame = people_frame(frames({"flaws": table}), judges=judges, draws=draws)
    return frame[frame["what"] == what]


def judged(table: pa.Table, judge: str = "gpt", draws: int = 50) -> Any:
    """The row about a judge and chance."""
    found = rows(table, "judge_kappa", [judge], draws)
    assert len(found) == 1
    return found.iloc[0]


def right(table: pa.Table, judge: str = "gpt") -> dict[tuple[str, str], float]:
    return dict(rows(table, "judge_right", [judge]).set_index(["answer", "reference"])["value"])


@pytest.fixture
def study() -> pa.Table:
    """Five people and a judge on twelve pairs; the judge says "more after" to everything."""
    answers: list[int | None] = [1, 0, 1, 0, 1, 0, 1, 1, 1, 0, 1, -1]
    people = {f"r{n}": [*answers[:11], None] if n == 4 else answers for n in range(5)}
    return ratings(**people, judge=[1] * 12)


def test_people_alone_make_the_means_and_a_judge_is_never_among_them(study: pa.Table) -> None:
    flaws = rows(study, "flaw", ["judge"]).set_index("relation")
    assert (flaws["more"] - flaws["less"] - flaws["value"]).abs().max() < 1e-12
    cell, other = flaws.loc["P21"], flaws.loc["P27"]
    assert (round(cell["value"], 9), cell["n"], cell["n_edits"], cell["n_missing"]) == (1, 30, 6, 0)
    assert cell["note"] == "all values equal: no error to estimate"
    assert (round(other["value"] * 29, 9), other["n"], other["n_missing"]) == (5 - 4, 29, 1)
    assert other["note"].startswith("too few raters: 5, 5 needed (4.9 effective)"), "one of the five left a pair out"
    own = rows(study, "flaw_these_raters", ["judge"]).set_index("relation").loc["P27"]
    assert own["low"] < own["value"] == other["value"] < own["high"]
    percent = rows(study, "percent", ["judge"]).set_index("rater")
    assert (percent.loc["r0/r1", "value"], percent.loc["all", "n"]) == (100.0, 11)
    assert "judge" not in percent.index.str.cat()
    assert rows(study, "alpha", ["judge"])["value"].tolist() == [1.0]
    found = right(study, "judge")
    assert found["judge", "median"] == pytest.approx(7 / 12)
    assert found["equal", "median"] == pytest.approx(4 / 12)
    by_editor = rows(study, "flaw_by_editor", ["r0"]).set_index("rater")
    assert set(by_editor.index) == {"people", "r0"}
    assert np.isnan(by_editor.loc["people", "p"]), "they are 4.9 raters"
    assert by_editor.loc["r0", "p"] < 1, "a judge stands for itself"
    assert by_editor["p_adjusted"].tolist() == pytest.approx(adjust(by_editor["p"].tolist()).tolist(), nan_ok=True)
    with pytest.raises(UnknownNameError, match=r"unknown rater 'jugde'\. Did you mean 'judge'"):
        rows(study, "flaw", ["jugde"])


def test_the_published_rule_counts_pairs_not_edits() -> None:
    """Edit 0 has two pairs, the others have one; the judge agrees with somebody on all but one pair of edit 0."""
    pairs = [replace(pair(max(0, number - 1)), pair_id=f"{number}") for number in range(10)]
    table = flaw_table(
        [
            flaw_row(one, "religion", rater, "pre", int(rater == "judge" and number == 0))
            for rater in ("a", "b", "judge")
            for number, one in enumerate(pairs)
        ]
    )
    found = rows(table, "judge_right", ["judge"]).query("answer == 'judge'")
    assert found["value"].tolist() == pytest.approx([9 / 10] * 2), "of edits' means it would be 8.5 of 9"
    assert set(zip(found["n"], found["n_edits"])) == {(10, 9)}


def test_a_judge_with_the_sign_turned_round_is_named() -> None:
    answers = [1, -1, 0, 1] * 5
    turned = judged(ratings(A=answers, B=answers, gpt=[-x for x in answers]))
    assert (turned["flipped"], turned["verdict"]) == (1, "sign_in_doubt")
    straight = judged(ratings(A=answers, B=answers, gpt=answers))
    assert (straight["verdict"], straight["value"], round(straight["low"], 2)) == ("agrees", 1, 0.66)
    assert judged(ratings(A=[0] * 8, gpt=[0] * 8))["verdict"] == "no_better_than_equal"


def test_matching_is_by_pair_and_not_by_row() -> None:
    answers: list[int | None] = [1, -1, 0, 1, 0, None] * 3
    own = ratings(A=answers, B=answers, gpt=answers).to_pylist()
    shuffled = random.Random(1).sample(own, len(own))
    one, two = (judged(flaw_table(table)) for table in (own, shuffled))
    assert one.to_dict() == pytest.approx(two.to_dict(), nan_ok=True)


def test_no_overlap_a_split_and_one_flaw() -> None:
    apart = judged(ratings(A=[0, 1, None, None], gpt=[None, None, 1, 0]))
    assert (apart["verdict"], apart["note"]) == ("not_compared", "no pair was rated by people and judge")
    split = ratings(A=[0] * 6, B=[1] * 6, gpt=[1] * 6)
    assert judged(split)["note"] == "people are split evenly on all 6 pairs"
    assert right(split)["gpt", "any"] == 1
    assert np.isnan(right(split)["gpt", "median"])
    table = flaw_table(
        [
            flaw_row(pair(n), flaw, rater, "pre", n % 2)
            for n in range(8)
            for flaw, raters in (("sexism", ("A1", "gpt")), ("religion", ("A1",)))
            for rater in raters
        ]
    )
    assert judged(table)["asked"] == "sexism"
    assert rows(ratings(gpt=[0, 1]), "judge_kappa", ["gpt"]).empty, "nobody to compare with"


def test_an_even_number_of_people_has_a_middle_only_where_the_middle_two_agree() -> None:
    """Pairs 0, 1: equal against more; 2: before against after, between which is an "equal" that nobody said."""
    one, other, judge = (
        [0, 0, -1, 1, 1, -1, -1, 0, 0, 1],
        [1, -1, 1, 1, 1, -1, -1, 0, 0, 1],
        [1, -1, 0, 1, 1, -1, 1, 0, 0, 1],
    )
    table = ratings(A=one, B=other, gpt=judge)
    assert (judged(table)["n"], judged(table)["n_split"]) == (7, 3)
    assert right(table)["gpt", "median"] == pytest.approx(6 / 7), "a split is neither right nor wrong"
    assert right(table)["gpt", "any"] == pytest.approx(8 / 10), "the published rule counts it"
    third = judged(ratings(A=one, B=other, C=[0] * 10, gpt=judge))
    assert (third["n"], third["n_split"]) == (10, 0), "a third person decides every pair"


@pytest.mark.slow
def test_pairs_of_one_edit_are_not_independent() -> None:
    answers = np.random.default_rng(0).choice([-1, 0, 1], (2, 12)).repeat(5, axis=1)  # five texts of an edit alike
    table = ratings(A=answers[0].tolist(), gpt=answers[1].tolist())
    edits = pa.array(np.asarray(table["case_id"]) // 5, table.schema.field("case_id").type)
    of_edits = table.set_column(table.schema.get_field_index("case_id"), "case_id", edits)
    apart, together = (judged(own, draws=200) for own in (table, of_edits))
    assert together["value"] == apart["value"]
    assert together["high"] - together["low"] > 1.5 * (apart["high"] - apart["low"])


def answers(*given: tuple[int, str, int | None], rater: str = "gpt") -> pd.DataFrame:
    own = [flaw_row(pair(case), "sexism", rater, first, change) for case, first, change in given]
    return coded("flaws", flaw_table(own))


def test_answers_that_turn_round_with_the_texts() -> None:
    # Un-blinded, case 0 says the same twice, case 1 names one position twice, case 2 is equal twice, case 3 changes
    # from equal to "after", case 4 is answered once. Of the unequal first answers case 1 alone names the first text.
    once = answers((0, "pre", 1), (1, "pre", -1), (2, "pre", 0), (3, "pre", 0), (4, "pre", 1))
    again = answers((0, "post", 1), (1, "post", 1), (2, "post", 0), (3, "post", 1), (4, "post", None))
    found: Any = frame_of(repeat_rows(once, again)).set_index("what")
    assert found["value"].to_dict() == pytest.approx(
        {"same_again": 2 / 4, "order_turned": 1 / 3, "order_stuck": 1 / 3, "first_text": 1 / 3}
    )
    assert found.loc["order_turned", "n"] == 3
    with pytest.raises(RecordError, match=r"pair memit-1-free-0-0\S* was rated twice in the same order"):
        list(repeat_rows(once, answers((0, "post", 1), (1, "pre", 1))))


@given(st.lists(st.tuples(st.sampled_from(["pre", "post"]), st.sampled_from([-1, 0, 1])), min_size=1, max_size=12))
def test_turning_every_answer_round_names_the_other_position(given: list[tuple[str, int]]) -> None:
    first = []
    for sign in (1, -1):
        once = answers(*((case, order, sign * change) for case, (order, change) in enumerate(given)))
        again = answers(*((case, "post" if order == "pre" else "pre", 0) for case, (order, _) in enumerate(given)))
        found: Any = frame_of(repeat_rows(once, again)).set_index("what")
        first.append(found["value"].get("first_text"))
    if any(change for _, change in given):
        assert sum(first) == pytest.approx(1)


def test_the_share_of_reflected_edits_is_of_yes_and_no_alone() -> None:
    said = ("yes", "yes", "no", "unsure", None, "yes")
    own = [reflected_row(pair(number), "A1", word) for number, word in enumerate(said)]
    (found,) = reflected_rows(pa.Table.from_pylist(own, schema=REFLECTED).to_pandas())
    # 3 or more of 4 have a chance of 4 x^3 - 3 x^4 = 5 % at the low end, 3 or fewer 1 - x^4 = 5 % at the high end.
    assert (found["value"], found["n"], found["n_missing"]) == (0.75, 4, 2)
    assert 4 * found["low"] ** 3 - 3 * found["low"] ** 4 == pytest.approx(0.05)
    assert found["high"] == pytest.approx(0.95**0.25)


def test_folders_are_read_by_what_their_files_hold(study: pa.Table, tmp_path: Path) -> None:
    write_table(tmp_path / "a" / "flaws.parquet", study)
    write_table(tmp_path / "a" / "calls.parquet", pa.table({"prompt": ["x"]}))
    write_table(tmp_path / "a" / "swapped.parquet", study.slice(0, 12))
    found = collect([tmp_path / "a", tmp_path / "a" / "flaws.parquet"], ["flaws"])
    assert len(found["flaws"]) == 72, "a file that is named twice is read once"
    assert len(found["swapped"]) == 12
    write_table(tmp_path / "empty" / "calls.parquet", pa.table({"prompt": ["x"]}))
    with pytest.raises(RecordError, match=r"empty: no table of flaws with a row in it\. Expected Parquet files"):
        collect([tmp_path / "empty"], ["flaws"])
    write_table(tmp_path / "a" / "other.parquet", ratings(r0=[0]))
    with pytest.raises(
        RecordError, match=r"other.parquet, row 1: change is 0\S* for pair_id .*flaws.parquet, row 1 has 1"
    ):
        collect([tmp_path / "a"], ["flaws"])


SUMS = {  # of ratings over all 300 rows, by edited property; Table 6 prints those of 252 of them
    "P101": [-16, 7, 6, -2, -1, 1, -10],
    "P21": [-3, 154, -1, -4, 7, -3, -4],
    "P27": [-3, 1, 21, 55, 15, 19, 4],
}
JUDGE = [0.906, 0.846, 0.933, 0.886, 0.926, 0.983, 0.879]  # Table 20, rows properly aligned, 299 of them matched
CONSTANT = [0.990, 0.917, 0.987, 0.993, 1.0, 0.997, 1.0]


@pytest.fixture(scope="module")
def public(reference: Callable[..., Path]) -> Any:
    files = [reference("annotators", f"{name}.csv") for name in ("a1", "a2", "a3", "chat_small")]
    return people_frame(collect(files, ["flaws"]), judges=["chat_small"], draws=20)


@pytest.mark.slow
def test_the_public_ratings_give_tables_6_20_and_21(public: Any) -> None:
    from tests.stats.test_agreement import ALPHA, TABLE21

    means = public[public["what"] == "flaw"]
    for name, sums in SUMS.items():
        assert (300 * means.loc[means["relation"] == name, "value"]).tolist() == pytest.approx(sums)
    percent = public[public["what"] == "percent"]
    for raters, row in TABLE21.items():
        assert percent.loc[percent["rater"] == raters.lower(), "value"].tolist() == pytest.approx(row, abs=0.051)
    assert public.loc[public["what"] == "alpha", "value"].tolist() == pytest.approx(ALPHA, abs=0.0051)
    rule = public[(public["what"] == "judge_right") & (public["reference"] == "any")]
    assert rule.loc[rule["answer"] != "equal", "value"].tolist() == pytest.approx(JUDGE, abs=0.004)
    assert rule.loc[rule["answer"] == "equal", "value"].tolist() == pytest.approx(CONSTANT, abs=0.0011)
    reflected = public[public["what"] == "reflected"].set_index("rater")["n"]
    assert reflected[["a1", "a2", "a3"]].tolist() == [299, 298, 288]
    assert means["p_adjusted"].isna().all(), "three raters are too few to speak of others"
    these = public[(public["what"] == "flaw_these_raters") & (public["p_adjusted"] < 0.05)]
    assert {("P21", "sexism"), ("P27", "xenophobia")} <= set(zip(these["relation"], these["asked"]))
