"""Score tables, from memory and from files: pairs of answers, D in every form, and codes that stand for words."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.base.tables import SCORES
from seesaw_cf.effects import difference, prompt_effects, success_of_scores
from seesaw_cf.effects.answers import answers, locality
from seesaw_cf.effects.tables import ScoreFile, as_codes, stack
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
    reasons = ["pre_new: target merges with the context", "post_new: not finite", "post_true: missing"]
    assert effects["status"].tolist() == reasons
    assert effects["D"].isna().all()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (four(-1, -2, -3, -4) * 2, "case_id 1, prompt_id 0. Expected .* once"),
        (four(0.4, -2, -3, -4), r"1 of 4 values are above 0 \(first: 0.4 in row 0\)"),
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


def mixed() -> pa.Table:
    """Two editors with shared rows from before, people without an id or tags, another property, a missing score."""
    rows = [row | {"editor": "none"} for row in four(-1, -2, -1, -2) if row["phase"] == "pre"]
    rows += [row | {"editor": None} for row in four(-1, -3, -1, -2, prompt_id=1, subject_id=None, gender=None)]
    rows = [row for row in rows if row["phase"] == "pre"]
    for editor, post in (("ft", -3.0), ("memit", -1.0)):
        rows += [row | {"editor": editor} for row in four(-1, -2, post, -2) if row["phase"] == "post"]
        again = four(-1, -2, post - 1, -2, prompt_id=1, subject="Bob", subject_id=None, gender=["men"], holds=None)
        rows += [row | {"editor": editor} for row in again if row["phase"] == "post"]
        rows += four(-2, -1, -1, -2, editor=editor, kind="efficacy", status="refused" if editor == "ft" else "ok")
        for name, gold in (("Paris", True), ("Rome", False)):
            other = {"editor": editor, "kind": "cross_property", "role": "candidate", "target": name, "gold": gold}
            rows += [other | {"phase": phase, "logprob": -1.0 - gold} for phase in ("pre", "post")]
    return table(rows)


@pytest.mark.slow
@pytest.mark.parametrize("part", [1, 5, 500_000])
def test_a_file_gives_what_the_table_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int) -> None:
    monkeypatch.setattr("seesaw_cf.effects.tables._PART", part)
    one, file = mixed(), tmp_path / "scores.parquet"
    other = one.set_column(one.column_names.index("case_id"), "case_id", pa.array([2] * len(one)))
    scores = pa.concat_tables([one, other])
    pq.write_table(scores, file, row_group_size=3)
    stored = ScoreFile(file)
    for kind in ("cross_subject", "efficacy"):
        effects = prompt_effects(scores, kind=kind)
        pd.testing.assert_frame_equal(prompt_effects(stored, kind=kind), effects)
        assert effects["editor"].unique().tolist() == ["ft", "memit"]
    pd.testing.assert_frame_equal(answers(stored), answers(scores))
    assert repr(success_of_scores(stored)) == repr(success_of_scores(scores))
    assert locality(stored) == locality(scores) == locality(stored, people=prompt_effects(stored))
    with pytest.raises(
        RecordError, match=r"no rows of kind 'paraphrase' .* there: \['cross_property', 'cross_subject'"
    ):
        prompt_effects(stored, kind="paraphrase")


def test_a_file_of_an_older_version_and_a_damaged_one(tmp_path: Path) -> None:
    file = tmp_path / "scores.parquet"
    pq.write_table(mixed().drop_columns(["sitelinks", "n_kept"]), file)
    older = ScoreFile(file).rows(["case_id", "sitelinks"])
    assert older["sitelinks"].null_count == older.num_rows > 0
    assert len(prompt_effects(ScoreFile(file)))
    pq.write_table(mixed().drop_columns(["kind"]), file)
    with pytest.raises(RecordError, match="kind"):
        prompt_effects(ScoreFile(file))
    file.write_bytes(b"no table")
    with pytest.raises(RecordError, match="not a whole Parquet file"):
        prompt_effects(ScoreFile(file))


@given(st.lists(st.lists(st.sampled_from(["women", "men", "", None]), max_size=3) | st.none()))
def test_codes_of_lists_are_their_tags(lists: list[list[str | None] | None]) -> None:
    codes = as_codes(pa.chunked_array([pa.array(lists, SCORES.field("gender").type)]))
    assert codes.tolist() == [tuple(tag for tag in own or () if tag) for own in lists]
    assert len(set(codes.categories)) == len(codes.categories) == len(set(codes.tolist()))


@given(st.lists(st.lists(st.sampled_from(["b", "a", "c", None])), min_size=1, max_size=3))
def test_stacked_codes_are_sorted_words(parts: list[list[str | None]]) -> None:
    frames = [
        pd.DataFrame({"word": as_codes(pa.chunked_array([pa.array(own, pa.string())])), "n": np.arange(len(own))})
        for own in parts
    ]
    whole = stack(frames)
    words = [word for own in parts for word in own]
    assert [None if pd.isna(word) else word for word in whole["word"]] == words
    assert whole["word"].cat.categories.tolist() == sorted({word for word in words if word})
    assert whole["n"].tolist() == [n for own in parts for n in range(len(own))]
