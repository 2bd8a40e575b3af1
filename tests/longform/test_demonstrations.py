"""In-context editing in long form: demonstrations from records that nobody is asked about."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pandas as pd
import pytest

from seesaw_cf.base.tables import read_table
from seesaw_cf.cli import main
from seesaw_cf.editors.ike import demonstrations
from seesaw_cf.texts.write.demonstrations import NONE_LEFT, spare_cases
from seesaw_cf.texts.write.passages import LongformRecord
from seesaw_cf.texts.write.writing import EDITS
from tests.longform.coupled import record


def about(case_id: int, subject: str, related: str, **prompts: Any) -> LongformRecord:
    row = cast(LongformRecord, {**record(case_id), **prompts})
    row["requested_rewrite"] = {**row["requested_rewrite"], "subject": subject}
    row["subject_entity"] = {**(row["subject_entity"] or {}), "entity": {"str": subject, "id": None}}
    row["related_entity"] = {**(row["related_entity"] or {}), "entity": {"str": related, "id": None}}
    return row


def test_whoever_is_asked_about_is_in_no_demonstration() -> None:
    rows = [
        about(1, "Ann", "Bob"),
        about(2, "Bob", "Cleo"),  # the related entity of an evaluated edit
        about(3, "Dan", "Ann"),  # related to an evaluated subject
        about(4, "Eve", "Fay", paraphrase_prompts=["Eve comes from"], neighborhood_prompts=["Gus was born in"]),
        about(4, "Eve", "Fay"),  # the same edit in another config
    ]
    spare = spare_cases(rows, rows[:1])
    assert [case.request.subject for case in spare] == ["Eve"]
    assert [one.text for one in demonstrations(spare)] == [
        "New Fact: Eve was born in London\nPrompt: Eve was born in London\n\n",
        "New Fact: Eve was born in London\nPrompt: Eve comes from London\n\n",
        "New Fact: Eve was born in London\nPrompt: Gus was born in Kraków\n\n",
    ]


WORDS = [
    "leme",
    "run",
    "--model",
    "seesaw-tiny",
    "--data",
    "sample",
    "--editor",
    "ike",
    "--config",
    "coupled_counterfact",
    "--max-new-tokens",
    "4",
    "--quiet",
]


@pytest.mark.slow(30)
def test_a_run_shows_what_fits_and_says_when_nothing_is_left(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    own = [*WORDS, "--annotator", ""]
    assert main([*own, "--limit", "2", "--out", str(tmp_path / "some")]) == 0
    edits = read_table(tmp_path / "some" / "edits.parquet", EDITS).to_pylist()
    assert [edit["status"] for edit in edits] == ["ok", "ok"]
    assert all(1 <= edit["demonstrations"] <= 16 for edit in edits)
    row = pd.read_csv(tmp_path / "some" / "report" / "tables" / "edits.csv").iloc[0]
    shown = [edit["demonstrations"] for edit in edits]
    assert row[["n_demonstrated", "fewest", "most"]].tolist() == [2, min(shown), max(shown)]
    assert main([*own, "--limit", "60", "--out", str(tmp_path / "all")]) == 0
    assert NONE_LEFT in caplog.text
    assert {edit["demonstrations"] for edit in read_table(tmp_path / "all" / "edits.parquet", EDITS).to_pylist()} == {0}
