"""Pairing of the score table and D per prompt."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from seesaw_cf.effects import difference, prompt_effects
from seesaw_cf.errors import RecordError, UnknownNameError
from tests.effects.rows import four, table

LOG = math.log


def test_d_is_probability_of_new_minus_true_after_minus_before() -> None:
    # before: 0.5 - 0.25 = 0.25; after: 0.125 - 0.5 = -0.375; difference -0.625
    effects = prompt_effects(table(four(LOG(0.5), LOG(0.25), LOG(0.125), LOG(0.5))))
    row = effects.iloc[0]
    assert (row["D_pre"], row["D_post"], row["D"]) == pytest.approx((0.25, -0.375, -0.625))
    assert (row["editor"], row["person"], row["target_new"], row["target_true"]) == ("memit", "Q1", "Japan", "France")


def test_forms_of_score() -> None:
    # two tokens of probability 0.5 each: summed 0.25, normalised 0.5; one token of 0.25
    new, true = [2 * LOG(0.5)], [LOG(0.25)]
    assert difference(new, true) == pytest.approx([0.0])
    assert difference(new, true, "normalised", [2], [1]) == pytest.approx([0.25])
    assert difference(new, true, "log_odds") == pytest.approx([0.0])


def test_row_order_does_not_matter_and_pandas_is_accepted() -> None:
    rows = four(-1, -2, -3, -4, prompt_id=1) + four(-2, -1, -1, -1, prompt_id=0, subject="Bob", subject_id="")
    frame = table(rows).to_pandas()
    shuffled = frame.sample(frac=1, random_state=3)
    pd.testing.assert_frame_equal(prompt_effects(frame), prompt_effects(shuffled))
    assert prompt_effects(frame)["person"].tolist() == ["Bob", "Q1"]


def test_shared_pre_rows_serve_every_editor() -> None:
    rows = [row | {"editor": "none"} for row in four(-1, -2, -1, -2) if row["phase"] == "pre"]
    for editor, post in (("ft", -3.0), ("memit", -1.0)):
        rows += [row | {"editor": editor} for row in four(-1, -2, post, -2) if row["phase"] == "post"]
    effects = prompt_effects(table(rows)).set_index("editor")
    assert effects.index.tolist() == ["ft", "memit"]
    assert effects.loc["memit", "D"] == pytest.approx(0.0)
    assert effects.loc["ft", "D"] == pytest.approx(math.exp(-3) - math.exp(-1))


def test_unscorable_prompts_stay_with_their_reason() -> None:
    rows = four(-1, -2, -3, -4, prompt_id=0) + four(-1, -2, -3, -4, prompt_id=1) + four(-1, -2, -3, -4, prompt_id=2)
    rows[0] |= {"logprob": None, "status": "target merges with the context"}
    rows[6] |= {"logprob": -math.inf}
    del rows[11]
    effects = prompt_effects(table(rows))
    assert effects["status"].tolist() == [
        "pre_new: target merges with the context",
        "post_new: not finite",
        "post_true: missing",
    ]
    assert effects["D"].isna().all()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (four(-1, -2, -3, -4) * 2, "case_id 1, prompt_id 0. Expected .* once"),
        (
            four(0.4, -2, -3, -4),
            r"1 of 4 values are above 0 \(first: 0.4 in row 0\), expected log-probabilities in nats",
        ),
        (four(-1, -2, -3, -4, kind="efficacy"), r"no rows of kind 'cross_subject'.*kinds there: \['efficacy'\]"),
        ([row for row in four(-1, -2, -3, -4) if row["phase"] == "pre"], "no post-edit rows"),
        ([row | {"phase": "during"} for row in four(-1, -2, -3, -4)], r"phases \['during'\], expected only"),
    ],
)
def test_bad_tables_are_refused_with_a_reason(rows: list[dict[str, object]], message: str) -> None:
    with pytest.raises(RecordError, match=message):
        prompt_effects(table(rows))


def test_missing_columns_and_unknown_forms() -> None:
    good = table(four(-1, -2, -3, -4))
    with pytest.raises(RecordError, match=r"columns \['logprob'\] are missing"):
        prompt_effects(good.drop_columns(["logprob"]))
    with pytest.raises(UnknownNameError, match=r"unknown score 'normalized'\. Did you mean 'normalised'"):
        prompt_effects(good, score="normalized")  # type: ignore[arg-type]
    with pytest.raises(RecordError, match="n_tokens_new is missing"):
        difference([-1.0], [-1.0], "normalised")
    with pytest.raises(RecordError, match="smallest value is 0, expected at least one token"):
        difference([-1.0], [-1.0], "normalised", [0], [1])
