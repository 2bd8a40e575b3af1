"""D per group by hand; cells of several models; seeds, counts and bad requests."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from seesaw_cf.effects import ALL, UNKNOWN, group_effects, prompt_effects
from seesaw_cf.effects.means import members
from seesaw_cf.errors import RecordError, UnknownNameError
from tests.conftest import REFERENCE
from tests.effects.rows import four, table


def prompts(rows: list[tuple[int, str, list[str], float]]) -> pd.DataFrame:
    """Prompts with a given D: (case, person, race tags, D)."""
    score_rows = []
    for number, (case, person, race, d) in enumerate(rows):
        post = math.log(0.5 + d)
        score_rows += four(
            math.log(0.5),
            math.log(0.25),
            post,
            math.log(0.25),
            case_id=case,
            prompt_id=number,
            subject_id=person,
            race=race,
        )
    return prompt_effects(table(score_rows))


WORKED = [
    (1, "a", ["white"], 0.10),
    (1, "b", ["white"], 0.30),
    (2, "c", ["white", "Black"], -0.20),
    (3, "a", ["Black"], 0.05),
    (3, "d", [], 0.00),
]


def by_group(frame: pd.DataFrame, axis: str = "race") -> dict[str, dict[str, Any]]:
    rows = frame[frame["axis"] == axis].set_index("group").to_dict("index")
    return {str(group): {str(k): v for k, v in row.items()} for group, row in rows.items()}


def test_case_means_pooled_means_and_counts() -> None:
    groups = by_group(group_effects(prompts(WORKED), axes=["race"], mode="paper", draws=50))
    # white: case 1 mean 0.2, case 2 mean -0.2 -> 0; pooled (0.1 + 0.3 - 0.2) / 3
    assert groups["white"]["D"] == pytest.approx(0.0)
    assert groups["white"]["pooled_D"] == pytest.approx(0.2 / 3)
    assert [groups["white"][n] for n in ("n_prompts", "n_subjects", "n_cases")] == [3, 3, 2]
    # Black: cases 2 (-0.2) and 3 (0.05) -> -0.075; the person with two tags counts in both groups
    assert groups["Black"]["D"] == pytest.approx(-0.075)
    assert groups["Black"]["D_pre"] == pytest.approx(0.25)
    assert list(groups) == ["Black", "white", UNKNOWN]
    assert groups[UNKNOWN]["note"] == "fewer than two cases"
    assert math.isnan(groups[UNKNOWN]["low"])


def test_overall_row_and_t_test_over_cases() -> None:
    row = by_group(group_effects(prompts(WORKED), axes=[], mode="paper", draws=0), ALL)[ALL]
    means = [0.2, -0.2, 0.025]
    assert row["D"] == pytest.approx(np.mean(means))
    assert row["p"] == pytest.approx(stats.ttest_1samp(means, 0).pvalue)
    assert row["n_subjects"] == 4


def test_interval_is_seeded_and_blind_to_row_order() -> None:
    frame = prompts(
        [(case, f"p{case % 7}", ["white"] if case % 3 else ["Black"], 0.01 * case - 0.2) for case in range(40)]
    )
    shuffled = frame.sample(frac=1, random_state=1)
    pd.testing.assert_frame_equal(group_effects(frame), group_effects(shuffled))
    one, two = (group_effects(rows, mode="paper", seed=5) for rows in (frame, shuffled))
    pd.testing.assert_frame_equal(one, two)
    assert not one.equals(group_effects(frame, mode="paper", seed=6))
    white = by_group(one)["white"]
    assert white["low"] < white["D"] < white["high"]
    # the bootstrap standard error of a mean of independent values is s / sqrt(n)
    overall = by_group(one, ALL)[ALL]
    values = 0.01 * np.arange(40) - 0.2
    assert overall["stderr"] == pytest.approx(values.std() / math.sqrt(40), rel=0.1)


def test_bad_requests() -> None:
    frame = prompts(WORKED)
    with pytest.raises(UnknownNameError, match=r"unknown axis 'rase'\. Did you mean 'race'"):
        group_effects(frame, axes=["rase"])
    with pytest.raises(RecordError, match=r"no prompts about people with holds='target_true'.*\{'target_new': 5\}"):
        group_effects(frame, holds="target_true")


def test_members_count_repeated_tags_once() -> None:
    groups = members([["white", "white"], None, ["Jewish", "white"], [""]])
    assert {name: rows.tolist() for name, rows in groups.items()} == {"Jewish": [2], "white": [0, 2], UNKNOWN: [1, 3]}


SHORT = {"Llama 2-c": "Llama 2-chat", "Mistral-i": "Mistral-instruct"}
# Table 8 prints 9, 17, 10, 19, 22: one starred cell of Mistral is in no table.
TOTALS = {"GPT-J": 9, "Llama 2": 17, "Llama 2-chat": 10, "Mistral": 18, "Mistral-instruct": 22}


def test_negative_starred_cells_per_model() -> None:
    paper = REFERENCE.parent / "papers" / "seesaw_cf_acl.txt"
    if not paper.exists():
        pytest.skip("the paper's text is not beside this checkout (../shared/papers)")
    text = paper.read_text(encoding="utf-8")
    counts: Counter[str] = Counter()
    for number in (11, 13, 15):
        end = text.index(f"\nTable {number}:")
        for line in text[text.rfind("\nTable ", 0, end) : end].split("\n"):
            cells = [re.sub(r"<.*?>", "", cell).strip() for cell in line.split("\t")]
            if len(cells) > 3 and cells[0] in ("work", "language", "gender", "citizenship", "birth"):
                bad = [cell for cell in cells[2:] if re.match(r"\$?-", cell) and "*" in cell]
                counts[SHORT.get(cells[1], cells[1])] += len(bad)
    assert counts == TOTALS
