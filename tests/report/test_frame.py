"""The frame of a run against sums over its score table that share no code with it, and its laws."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from seesaw_cf.base.tables import SCORES, read_table, write_table
from seesaw_cf.effects.estimands import excess_over_control
from seesaw_cf.report import Report, build_frame, read_run
from seesaw_cf.report.frame import COLUMNS, KEYS
from seesaw_cf.report.pairs import distinct_questions
from tests.report.conftest import BOTH, QUICK
from tests.report.runs import cases, property_cases, write_run

HOLDS = {"new": "target_new", "old": "target_true"}
CHANGED = {"mine": {"source": "x", "form": "y", "moved": []}}


def changes(folder: Path, editor: str, answer: str) -> pd.DataFrame:
    """Return D before and after of every prompt about other people that was scored four times, with its tags."""
    rows = pd.read_parquet(folder / "scores.parquet")
    rows = rows[(rows["kind"] == "cross_subject") & (rows["status"] == "ok") & (rows["editor"] == editor)]
    rows, keys = rows[rows["holds"] == HOLDS[answer]], ["case_id", "prompt_id"]
    logprobs = rows.assign(of=rows["phase"].astype(str) + " " + rows["role"].astype(str))
    logprobs = logprobs.pivot(index=keys, columns="of", values="logprob").dropna()
    before, after = (
        np.exp(logprobs[f"{phase} target_new"]) - np.exp(logprobs[f"{phase} target_true"]) for phase in ("pre", "post")
    )
    tags = rows.drop_duplicates(keys).set_index(keys)[["edit_relation", "gender", "race", "region"]]
    return tags.join(pd.DataFrame({"before": before, "after": after, "change": after - before}), how="inner")


def case_mean(values: pd.Series) -> float:
    return float(values.groupby("case_id").mean().mean())


def rows_of(made: Report, **names: str) -> pd.DataFrame:
    frame = made.frame
    for name, value in names.items():
        frame = frame[frame[name] == value]
    return frame


@pytest.mark.parametrize("answer", ["old", "new"])
@pytest.mark.parametrize("editor", ["memit", "ft"])
def test_means_of_everybody_and_of_groups_are_means_of_edit_means(
    made: Report, run_folder: Path, editor: str, answer: str
) -> None:
    found = changes(run_folder, editor, answer)
    own = rows_of(made, what="change", about="other_people", editor=editor, true_answer=answer, scale="probability")
    for row in own.to_dict("records"):
        chosen = found if row["relation"] == "all" else found[found["edit_relation"] == row["relation"]]
        if row["axis"] != "all":
            tags = [list(own) if own is not None else [] for own in chosen[row["axis"]]]
            chosen = chosen[[row["group"] in (own or ["unknown"]) for own in tags]]
        assert row["n"] == len(chosen)
        assert row["value"] == pytest.approx(case_mean(chosen["change"]), rel=1e-9)
        assert row["n_edits"] == chosen.index.get_level_values("case_id").nunique()
    assert len(own) > 20


def test_beyond_the_control_is_the_mean_difference_on_the_same_questions(made: Report, run_folder: Path) -> None:
    first, second = (changes(run_folder, editor, "old")["change"] for editor in ("memit", "random(memit)"))
    excess = (first - second).dropna()
    own = rows_of(made, what="beyond", editor="memit", control="random(memit)", true_answer="old", axis="all")
    (row,) = own[(own["relation"] == "all") & (own["scale"] == "probability")].to_dict("records")
    assert row["value"] == pytest.approx(case_mean(excess), rel=1e-9)
    assert row["n"] == len(excess)


@pytest.mark.parametrize(("answer", "sign"), [("old", -1), ("new", 1)])
def test_answers_that_turned_wrong_are_counted(made: Report, run_folder: Path, answer: str, sign: int) -> None:
    sides = sign * changes(run_folder, "memit", answer)[["before", "after"]]
    after = sides.loc[sides["before"] > 0, "after"]
    found = rows_of(made, what="turned_wrong", about="other_people", editor="memit", true_answer=answer)
    (row,) = found.to_dict("records")
    assert row["n"] == len(after)
    assert round(row["value"] * row["n"]) == (after <= 0).sum()


def test_keys_name_a_row(made: Report) -> None:
    assert list(made.frame) == list(COLUMNS)
    assert not made.frame.duplicated(list(KEYS)).any()


def test_the_order_of_score_rows_does_not_matter(made: Report, run_folder: Path, tmp_path: Path) -> None:
    for name in ("edits.parquet", "manifest.json"):
        (tmp_path / name).write_bytes((run_folder / name).read_bytes())
    table = read_table(run_folder / "scores.parquet", SCORES)
    order = np.random.default_rng(0).permutation(len(table))
    write_table(tmp_path / "scores.parquet", table.take(pa.array(order)))
    pd.testing.assert_frame_equal(build_frame(read_run(tmp_path), QUICK), made.frame)


def test_shares_and_their_ends_are_shares(made: Report) -> None:
    shares = made.frame[made.frame["what"].isin(("after", "turned_wrong", "efficacy_after", "raised", "right_after"))]
    shares = shares[shares["scale"] == "share"]
    for name in ("value", "low", "high"):
        inside = shares[name].between(-1e-12, 1 + 1e-12) | shares[name].isna()
        assert inside.all()


def test_facts_that_ask_a_changed_model_the_same_are_one(tmp_path: Path) -> None:
    """Three facts with the same relation and answers ask the same people the same: they count once."""
    one = cases(("P27",), 1, 12, holds=BOTH)[0]
    again = [replace(one, case_id=number) for number in range(3)]
    run = read_run(write_run(tmp_path, again, ("mine",), edited=CHANGED))
    assert run.people is not None
    assert (run.people["case_id"].nunique(), len(run.people)) == (1, 12)
    apart = read_run(write_run(tmp_path / "apart", again, ("memit",)))
    assert apart.people is not None
    assert apart.people["case_id"].nunique() == 3
    assert len(distinct_questions(apart.people, set())) == 36


def test_a_changed_model_is_compared_with_its_control_on_the_same_question(tmp_path: Path) -> None:
    """Facts number their questions, so that equal numbers of two facts are different questions."""
    one = cases(("P27",), 1, 12, holds=BOTH)[0]
    prompts = one.attribute_prompts
    parts = (prompts[:7], prompts[:4:-1], prompts[3:9])
    facts = [replace(one, case_id=number, attribute_prompts=part) for number, part in enumerate(parts)]
    run = read_run(write_run(tmp_path, facts, ("mine", "random(mine)"), edited=CHANGED))
    assert run.people is not None
    excess = excess_over_control(run.people, "random(mine)")
    assert len(excess) == len(prompts)
    sides = run.people.pivot(index=["person", "prompt"], columns="editor", values="log_odds")
    expected = (sides["mine"] - sides["random(mine)"]).to_numpy()
    np.testing.assert_allclose(np.sort(excess["log_odds"]), np.sort(expected), rtol=1e-12)


def test_a_batch_has_no_interval(tmp_path: Path) -> None:
    made = cases(("P27", "P101"), 4, 8, holds=BOTH) + property_cases(1)
    frame = build_frame(read_run(write_run(tmp_path, made, ("memit", "random(memit)"), protocol="batch")), QUICK)
    changed = frame[frame["what"].isin(("change", "beyond"))]
    assert changed[["low", "high", "p"]].isna().all().all()
    assert set(changed.loc[changed["verdict"] != "", "verdict"]) == {"too_few"}
