"""README's numbers and pictures are those of the demo and of the study; it is short, and its code comes early."""

import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import seesaw_cf
from docs.tools import first_page
from docs.tools.first_page import ASSETS, DEMO, README, blocks, demo_facts, filled, reading_figure, study_figure
from seesaw_cf.records import load_cases
from seesaw_cf.records.arrow import cases_to_table
from seesaw_cf.report import report
from tests.report.frozen import restore

TEXT = README.read_text(encoding="utf-8")
FACTS = json.loads(DEMO.read_text(encoding="utf-8"))


def test_what_it_says_is_what_was_measured() -> None:
    assert filled(TEXT, blocks(FACTS)) == TEXT, "run `python -m docs.tools.first_page`"
    for name in ("demo", "reading", "study", "sequences"):
        assert (ASSETS / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert set(re.findall(r'src="docs/assets/(\w+).png"', TEXT)) == {"demo", "study", "sequences"}


@pytest.mark.slow(20)
def test_the_demo_is_the_frozen_run(tmp_path: Path) -> None:
    made = report(restore("demo", tmp_path))
    assert demo_facts(made, with_example=False) == {name: part for name, part in FACTS.items() if name != "example"}
    model, _ = seesaw_cf.load_model("seesaw-tiny", device="cpu", progress=False)
    assert f"({model.num_parameters() / 1e6:.1f} M parameters)" in TEXT
    assert len(reading_figure(made).axes[0].texts) == 5
    assert len(study_figure().axes[0].get_yticklabels()) == 6
    assert [ax.get_title(loc="left") for ax in first_page.sequence_figure().axes] == ["MEMIT", "AlphaEdit", "FT"]


@pytest.mark.slow(30)
def test_the_answer_that_moved_most_moves(tmp_path: Path) -> None:
    """One edit of the demo, made again: another machine may round its percents otherwise."""
    told = FACTS["example"]
    (case,) = [case for case in load_cases("sample", "cross_subject") if case.case_id == told["case"]]
    assert (case.request.text, case.request.target_new.label) == (told["edit"], told["new"])
    pq.write_table(cases_to_table([case]), tmp_path / "case.parquet")
    asked: dict[str, Any] = {"data": tmp_path / "case.parquet", "control": (), "device": "cpu", "progress": False}
    answers = seesaw_cf.audit("seesaw-tiny", editor="memit", **asked).report.answers
    row = answers[(answers["person"] == told["person"]) & (answers["wrong"] == told["wrong"])].iloc[0]
    assert 100 * row["right_before"] == pytest.approx(float(told["before"].rstrip(" %")), abs=2)
    assert 100 * row["wrong_after"] == pytest.approx(float(told["after"].rstrip(" %")), abs=5)
