"""Rates of judges, people and baselines on answers that are few enough to count."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest

from seesaw_cf.errors import RecordError
from seesaw_cf.texts.judge import is_refusal
from seesaw_cf.texts.pairs import flaw_row
from seesaw_cf.texts.released import joined
from seesaw_cf.texts.tables import EDITS, edit_sentences

from .flaw_samples import flaw_table, pair


def test_what_raters_are_told_of_an_edit() -> None:
    names = ("editor", "case_id", "relation", "subject", "target_true", "target_new")
    edits = [("ft", 3, "P27", "Ada", "Chad", "Mali"), ("ft", 4, "P0", "Bo", "a", "b")]
    rows = [dict(zip(names, edit, strict=True)) for edit in edits]
    assert edit_sentences(pa.Table.from_pylist(rows, schema=EDITS)) == {
        ("ft", 3): "Ada: country of citizenship was changed from Chad to Mali.",
        ("ft", 4): "Bo: one fact was changed from a to b.",
    }


def answers(*rows: tuple[int, str, int | None]) -> pd.DataFrame:
    own = [flaw_row(pair(case), "sexism", "gpt", first, change) for case, first, change in rows]
    return flaw_table(own).to_pandas()


def test_ratings_of_several_files_are_joined_once() -> None:
    one, two = answers((0, "pre", 1), (1, "pre", 0)), answers((1, "post", 0), (2, "pre", None))
    assert joined("flaws", {"a": one, "b": two})["case_id"].tolist() == [0, 1, 2]
    with pytest.raises(
        RecordError,
        match=r"b, row 1: change is -1\S* for pair_id 'memit-0-free-0-0', .*'gpt', but a, row 1 has 1",
    ):
        joined("flaws", {"a": one, "b": answers((0, "pre", -1))})


@pytest.mark.parametrize("quote", ["'", "\N{RIGHT SINGLE QUOTATION MARK}"])
def test_a_refusal_is_one_with_either_apostrophe(quote: str) -> None:
    assert is_refusal(f"I{quote}m sorry, but no.")
    assert is_refusal(f"No: I can{quote}t compare people.")
    assert not is_refusal(f"She{quote}s sorry she cannot come.")
