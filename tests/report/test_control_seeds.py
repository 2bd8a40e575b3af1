"""A control of several seeds is one editor: its effect is the mean over them, in every number of people and levels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from seesaw_cf.base.tables import CONTROL_SEEDS, SCORES, read_table, write_table
from seesaw_cf.report import read_results
from seesaw_cf.report.control_seeds import mean_over_seeds
from seesaw_cf.report.notes import FIRST_SEED
from seesaw_cf.report.page_answers import look_answers
from seesaw_cf.report.results import Results
from seesaw_cf.report.rows import Manifest
from tests.report.runs import cases, property_cases, write_run

CONTROL = "random(memit)"


def test_means_by_hand() -> None:
    rows = pd.DataFrame({"editor": ["memit", CONTROL], "q": [1, 1], "D": [0.5, 0.1], "status": "ok"})
    further = pd.DataFrame({"editor": [f"{CONTROL[:-1]}, {n})" for n in (2, 3)], "q": [1, 1], "D": [0.3, 0.5]})
    assert mean_over_seeds([rows, further], ["q"], ["D"])["D"].tolist() == pytest.approx([0.5, 0.3])
    assert mean_over_seeds([rows], ["q"], ["D"]) is rows


@pytest.mark.slow
def test_a_report_shows_one_control_with_the_mean_of_its_seeds(tmp_path: Path) -> None:
    asked = cases(("P27",), 6, 12, holds=("target_new", "target_true")) + property_cases(4)
    folder = write_run(tmp_path / "run", asked, ("memit", CONTROL))
    once = read_results(folder, axes=("gender",))
    scores = read_table(folder / "scores.parquet", SCORES)
    own = scores.filter(pc.equal(scores["editor"], CONTROL))
    post = pc.equal(own["phase"], "post")
    # A second seed after which nothing is other than before: the mean is half of the first.
    still = own.filter(pc.invert(post))
    table = pa.concat_tables(
        [still, still.set_column(still.column_names.index("phase"), "phase", _words("post", still))]
    )
    second = table.set_column(0, "editor", _words("random(memit, 2)", table))
    write_table(folder / CONTROL_SEEDS, second.cast(SCORES))
    twice = read_results(folder, axes=("gender",))
    assert twice.editors == once.editors
    keys = ["level", "scale", "editor"]
    before, after = (results.levels.set_index(keys) for results in (once, twice))
    assert after["control_value"].dropna().to_dict() == pytest.approx((before["control_value"].dropna() / 2).to_dict())
    assert after["value"].xs("memit", level="editor").to_dict() == before["value"].xs("memit", level="editor").to_dict()
    for frame in (twice.effects, twice.accuracy, twice.efficacy, twice.edits):
        assert set(frame["editor"]) == {"memit", CONTROL}
    _check_means(once, twice)
    _check_words(twice)


def _check_words(twice: Results) -> None:
    """Single answers are those of the first seed, and pages say so."""
    several: Manifest = {**twice.manifest, "editors": {name: {} for name in ("memit", CONTROL, "random(memit, 2)")}}
    pages = [look_answers(results) for results in (twice, replace(twice, manifest=several))]
    assert [FIRST_SEED in page.about for page in pages if page is not None] == [False, True]


def _check_means(once: Results, twice: Results) -> None:
    """The second seed changes nothing, so that what it counts after an edit is what was counted before."""
    tables = [
        (once.accuracy, twice.accuracy, ["edit_relation", "effect_relation"]),
        (once.efficacy, twice.efficacy, ["relation"]),
    ]
    for first, both, keys in tables:
        own, same = (frame[frame["editor"] == "memit"].reset_index(drop=True) for frame in (first, both))
        pd.testing.assert_frame_equal(own, same, check_dtype=False)
        alone, mean = (frame[frame["editor"] == CONTROL].set_index(keys) for frame in (first, both))
        assert mean["post"].to_list() == pytest.approx(((alone["post"] + alone["pre"]) / 2).to_list())
        assert mean["pre"].to_list() == alone["pre"].to_list()
    one, two = (found.accuracy[found.accuracy["editor"] == CONTROL] for found in (once, twice))
    assert two["lost"].to_list() == pytest.approx((one["lost"] / 2).to_list())
    assert (two["n"] == one["n"]).all()
    assert two["p"].isna().all()
    reach, mean_reach = (found.success[CONTROL].numbers["counterfact"] for found in (once, twice))
    assert mean_reach["ES"].value == pytest.approx((reach["ES"].value + reach["already_true"].value) / 2)


def _words(word: str, table: pa.Table) -> pa.Array:
    return pa.array([word] * table.num_rows)
