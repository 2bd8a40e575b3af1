"""The frame of a run against sums over its score table that share no code with it, and its laws."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seesaw_cf.base.tables import SCORES, read_table, write_table
from seesaw_cf.effects.estimands import excess_over_control
from seesaw_cf.report import Report, build_frame, read_run
from seesaw_cf.report.frame import COLUMNS, KEYS
from seesaw_cf.report.pairs import distinct_questions
from seesaw_cf.report.rows import rows_of as rows_of_frame
from tests.report.conftest import QUICK
from tests.report.runs import cases, property_cases, write_run

Prompt = tuple[int, int]  # case, prompt
HOLDS = {"new": "target_new", "old": "target_true"}


def mean(values: Iterable[float]) -> float:
    found = list(values)
    return math.fsum(found) / len(found)


def changes(folder: Path, editor: str, answer: str) -> dict[Prompt, tuple[float, float, dict[str, object]]]:
    """Return prompt -> D before, D after and its row, of prompts that were scored four times."""
    logs: dict[Prompt, dict[tuple[str, str], float]] = defaultdict(dict)
    rows: dict[Prompt, dict[str, object]] = {}
    for row in pq.read_table(folder / "scores.parquet").to_pylist():
        if (
            row["kind"] == "cross_subject"
            and row["status"] == "ok"
            and row["editor"] == editor
            and row["holds"] == HOLDS[answer]
        ):
            key = (row["case_id"], row["prompt_id"])
            logs[key][row["role"], row["phase"]], rows[key] = row["logprob"], row
    sides = {}
    for key, own in logs.items():
        if len(own) == 4:
            before, after = (
                math.exp(own["target_new", phase]) - math.exp(own["target_true", phase]) for phase in ("pre", "post")
            )
            sides[key] = before, after, rows[key]
    return sides


def case_mean(values: dict[Prompt, float]) -> float:
    cases: dict[int, list[float]] = defaultdict(list)
    for (case, _), value in values.items():
        cases[case].append(value)
    return mean(map(mean, cases.values()))


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
    checked = 0
    own = rows_of(made, what="change", about="other_people", editor=editor, true_answer=answer, scale="probability")
    for row in rows_of_frame(own):

        def fits(prompt: dict[str, object], row: Mapping[str, Any] = row) -> bool:
            tags = prompt.get(str(row["axis"])) or []
            there = row["axis"] == "all" or (not tags if row["group"] == "unknown" else row["group"] in tags)  # type: ignore[operator]
            return there and row["relation"] in ("all", prompt["edit_relation"])

        chosen = {key: after - before for key, (before, after, prompt) in found.items() if fits(prompt)}
        assert row["n"] == len(chosen)
        assert row["value"] == pytest.approx(case_mean(chosen), rel=1e-9)
        assert row["n_edits"] == len({case for case, _ in chosen})
        checked += 1
    assert checked > 20


def test_beyond_the_control_is_the_mean_difference_on_the_same_questions(made: Report, run_folder: Path) -> None:
    first, second = (changes(run_folder, editor, "old") for editor in ("memit", "random(memit)"))
    excess = {
        key: first[key][1] - first[key][0] - (second[key][1] - second[key][0]) for key in first.keys() & second.keys()
    }
    own = rows_of(made, what="beyond", editor="memit", control="random(memit)", true_answer="old", axis="all")
    (row,) = own[(own["relation"] == "all") & (own["scale"] == "probability")].to_dict("records")
    assert row["value"] == pytest.approx(case_mean(excess), rel=1e-9)
    assert row["n"] == len(excess)


def test_answers_that_turned_wrong_are_counted(made: Report, run_folder: Path) -> None:
    for answer, sign in (("old", -1), ("new", 1)):
        sides = [(sign * before, sign * after) for before, after, _ in changes(run_folder, "memit", answer).values()]
        right = [after for before, after in sides if before > 0]
        (row,) = rows_of(made, what="turned_wrong", about="other_people", editor="memit", true_answer=answer).to_dict(
            "records"
        )
        assert row["n"] == len(right)
        assert round(row["value"] * row["n"]) == sum(after <= 0 for after in right)


def test_keys_name_a_row(made: Report) -> None:
    assert list(made.frame) == list(COLUMNS)
    assert not made.frame.duplicated(list(KEYS)).any()


def test_the_order_of_score_rows_does_not_matter(made: Report, run_folder: Path, tmp_path: Path) -> None:
    for name in ("edits.parquet", "manifest.json"):
        (tmp_path / name).write_bytes((run_folder / name).read_bytes())
    table = read_table(run_folder / "scores.parquet", SCORES)
    order = np.random.default_rng(0).permutation(len(table))
    write_table(tmp_path / "scores.parquet", table.take(pa.array(order)))
    found = build_frame(read_run(tmp_path), QUICK)
    pd.testing.assert_frame_equal(found, made.frame)


def test_shares_and_their_ends_are_shares(made: Report) -> None:
    shares = made.frame[made.frame["what"].isin(("after", "turned_wrong", "efficacy_after", "raised", "right_after"))]
    shares = shares[shares["scale"] == "share"]
    for name in ("value", "low", "high"):
        inside = shares[name].between(-1e-12, 1 + 1e-12) | shares[name].isna()
        assert inside.all()


def test_facts_that_ask_a_changed_model_the_same_are_one(tmp_path: Path) -> None:
    """Three facts with the same relation and answers ask the same people the same: they count once."""
    one = cases(("P27",), 1, 12, holds=("target_new", "target_true"))
    again = [type(one[0])(number, one[0].request, attribute_prompts=one[0].attribute_prompts) for number in range(3)]
    run = read_run(write_run(tmp_path, again, ("mine",), edited={"mine": {"source": "x", "form": "y", "moved": []}}))
    assert run.people is not None
    assert run.people["case_id"].nunique() == 1
    assert len(run.people) == 12
    apart = read_run(write_run(tmp_path / "apart", again, ("memit",)))
    assert apart.people is not None
    assert apart.people["case_id"].nunique() == 3
    assert len(distinct_questions(apart.people, set())) == 36


def test_a_changed_model_is_compared_with_its_control_on_the_same_question(tmp_path: Path) -> None:
    """Facts number their questions, so that equal numbers of two facts are different questions."""
    one = cases(("P27",), 1, 12, holds=("target_new", "target_true"))[0]
    prompts = one.attribute_prompts
    parts = (prompts[:7], prompts[:4:-1], prompts[3:9])
    facts = [type(one)(number, one.request, attribute_prompts=part) for number, part in enumerate(parts)]
    edited = {"mine": {"source": "x", "form": "y", "moved": []}}
    run = read_run(write_run(tmp_path, facts, ("mine", "random(mine)"), edited=edited))
    assert run.people is not None
    excess = excess_over_control(run.people, "random(mine)")
    assert len(excess) == len(prompts)
    sides = run.people.pivot(index=["person", "prompt"], columns="editor", values="log_odds")
    expected = (sides["mine"] - sides["random(mine)"]).to_numpy()
    np.testing.assert_allclose(np.sort(excess["log_odds"]), np.sort(expected), rtol=1e-12)


def test_a_batch_has_no_interval(tmp_path: Path) -> None:
    made = cases(("P27", "P101"), 4, 8, holds=("target_new", "target_true")) + property_cases(1)
    frame = build_frame(read_run(write_run(tmp_path, made, ("memit", "random(memit)"), protocol="batch")), QUICK)
    changed = frame[frame["what"].isin(("change", "beyond"))]
    assert changed[["low", "high", "p"]].isna().all().all()
    assert set(changed.loc[changed["verdict"] != "", "verdict"]) == {"too_few"}
