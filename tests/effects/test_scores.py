"""Score tables in files: the same numbers as from memory, and codes that stand for the same words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.base.tables import SCORES
from seesaw_cf.effects import prompt_effects, success_of_scores
from seesaw_cf.effects.answers import answers, locality
from seesaw_cf.effects.tables import ScoreFile, as_codes, stack
from seesaw_cf.errors import RecordError
from tests.effects.rows import four, table

_TAGS = st.lists(st.sampled_from(["women", "men", "", None]), max_size=3)


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


@given(st.lists(_TAGS | st.none()))
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
