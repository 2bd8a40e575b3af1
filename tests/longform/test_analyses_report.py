"""The report of long form: tables, numbers and pictures; what models and data say is escaped."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from seesaw_cf.texts.report.tables import longform_sections, write_longform_report
from seesaw_cf.texts.report.values import short_values
from seesaw_cf.texts.write.pairs import FlawAnswer, flaw_row, flaw_table
from seesaw_cf.texts.write.writing import EDITS

from .analysis_samples import annotated, ratings, scores, table
from .flaw_samples import pair, passages

EVIL = "<script>alert(1)</script>|x"


def everything(editor: str = "memit") -> dict[str, object]:
    rng = np.random.default_rng(0)
    rated = {name: [float(x) for x in rng.integers(1, 8, 12)] for name in ("none", editor)}
    labelled = {name: [str(x) for x in rng.choice(["supports", "neutral", "contradicts"], 12)] for name in rated}
    rows = [
        (editor, case, kind, role, phase, bool(rng.random() < 0.5))
        for case in range(12)
        for kind, role in (
            ("efficacy", "target_new"),
            ("efficacy", "target_true"),
            ("paraphrase", "target_new"),
            ("neighborhood", "target_true"),
        )
        for phase in ("pre", "post")
    ]
    flaws = [
        flaw_row(pair(case), "sexism", rater, "pre", FlawAnswer(int(rng.integers(-1, 2))))
        for case in range(12)
        for rater in ("A1", "A2")
    ]
    scored = scores(rows)
    return {
        "passages": passages({"editor": editor}, {"editor": editor, "sample": 1, "text": None, "status": EVIL}),
        "ratings": ratings(rated),
        "annotations": annotated(labelled),
        "flaws": flaw_table(flaws),
        "scores": scored,
        "simple": short_values(scored).assign(metric="rouge_1"),
    }


@pytest.mark.slow
def test_all_tables_are_there_with_counts_and_intervals(tmp_path: Path) -> None:
    path = write_longform_report(tmp_path, **everything(), pictures=True)  # type: ignore[arg-type]
    text = path.read_text(encoding="utf-8")
    tables = {file.stem: pd.read_csv(file) for file in (tmp_path / "tables").iterdir()}
    assert set(tables) == {
        "passages", "survey", "survey_types", "survey_tests", "survey_type_tests", "kind_differences", "correlations",
        "labels", "contradicted", "drift",
        "label_tests", "kinds", "short", "short_differences", "simple",
        "raters", "flaws", "flaws_these_raters", "flaws_editors", "agreement_percent", "agreement", "agreement_pairs",
        "plan",
    }  # fmt: skip
    for number in ("Tables 1, 10-13", "Table 14", "Table 15", "Tables 16-18", "Table 19", "Figure 4", "Figure 5"):
        assert number in text
    for name, frame in tables.items():
        assert {"n", "n_cases", "n_items", "n_first"} & set(frame), name
    assert (tmp_path / "pictures" / "longform_survey.png").read_bytes()[:4] == b"\x89PNG"
    assert "![Mean rating of every method" in text
    assert "± " in text
    assert "of 12 edits)" in text
    again = tmp_path / "again"
    write_longform_report(again, **everything(), pictures=True)  # type: ignore[arg-type]
    for copy in again.rglob("*.*"):
        assert copy.read_bytes() == (tmp_path / copy.relative_to(again)).read_bytes(), (
            f"{copy.name} is not the same the second time"
        )


@pytest.mark.slow
def test_what_comes_from_data_is_escaped(tmp_path: Path) -> None:
    path = write_longform_report(tmp_path, **everything(EVIL))  # type: ignore[arg-type]
    text = path.read_text(encoding="utf-8")
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\|x" in text
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert lines


@pytest.mark.parametrize("given", [[], ["ratings"], ["annotations"], ["flaws"], ["ratings", "scores"]])
def test_parts_that_are_not_there_are_left_out(given: list[str]) -> None:
    tables = {name: table for name, table in everything().items() if name in ["passages", *given]}
    names = {one.name for one in longform_sections(**tables)}  # type: ignore[arg-type]
    assert "passages" in names
    assert ("survey" in names) == ("ratings" in given)
    assert ("labels" in names) == ("annotations" in given)
    assert ("flaws" in names) == ("flaws" in given)
    assert ("kinds" in names) == ("scores" in given)


def test_a_failed_rater_and_one_method_make_no_trouble(tmp_path: Path) -> None:
    given = {
        "passages": passages({}),
        "ratings": ratings({"memit": [None, None]}),
        "annotations": annotated({"memit": [None, "neutral"]}),
        "flaws": flaw_table([flaw_row(pair(1), "sexism", "A1", "pre", FlawAnswer(0))]),
    }
    text = write_longform_report(tmp_path, **given).read_text(encoding="utf-8")
    assert "2 missing" in text
    assert "one rater" in text


@pytest.mark.slow
@pytest.mark.parametrize("columns", [(), ("case_id", "kind", "phase", "status", "role", "greedy")])
def test_a_score_table_without_rows_has_no_part(columns: tuple[str, ...], tmp_path: Path) -> None:
    """As documented: what is None or empty has no part, with columns or without."""
    given = everything()
    without = write_longform_report(tmp_path / "none", **given | {"scores": None})  # type: ignore[arg-type]
    empty = pa.table({name: pa.array([], pa.string()) for name in columns})
    found = write_longform_report(tmp_path / "empty", **given | {"scores": empty})  # type: ignore[arg-type]
    assert found.read_text(encoding="utf-8") == without.read_text(encoding="utf-8")


@pytest.mark.slow
def test_settings_of_one_run_are_kept_apart_in_every_table() -> None:
    """Ratings and labels of cases 0-5 (factual) and 6-11 (counterfactual) differ: no number may mix them."""
    settings = {case: ("zsre factual", "zsre counterfactual")[case > 5] for case in range(12)}
    edits = table(EDITS, [{"editor": "memit", "case_id": case, "dataset": name} for case, name in settings.items()])
    texts = passages(*({"case_id": case} for case in settings))
    rated = ratings({"none": [4.0] * 12, "memit": [6.0] * 6 + [2.0] * 6})
    marked = annotated({"none": ["neutral"] * 12, "memit": ["supports"] * 6 + ["contradicts"] * 6})
    held = [
        ("memit", case, "efficacy", role, phase, (role == "target_new") == (phase == "post"))
        for case in settings
        for role in ("target_new", "target_true")
        for phase in ("pre", "post")
    ]
    simple = pd.DataFrame({"method": "memit", "case_id": list(settings), "metric": "m", "value": 1.0})
    sections = longform_sections(
        texts, rated, marked, scores=scores(held), factual=range(6), edits=edits, simple=simple
    )
    frames = {section.name: section.frame for section in sections}
    assert {name for name, frame in frames.items() if "dataset" not in frame} == {"survey_together"}
    survey = frames["survey"].query("method == 'memit'").set_index("dataset")["value"].to_dict()
    assert survey == pytest.approx({"zsre factual": 6.0, "zsre counterfactual": 2.0}), "Tables 12 and 13"
    together = frames["survey_together"].query("method == 'memit'")["value"].tolist()
    assert together == pytest.approx([4.0]), "Table 1"
    updates = frames["kinds"].query("what == 'fact update'").set_index("dataset")["factual"].to_dict()
    assert updates == {"zsre factual": True, "zsre counterfactual": False}, "both halves of Table 14"
    sections = longform_sections(texts, rated, edits=edits.slice(0, 6))
    assert all("dataset" not in section.frame for section in sections), "one data set needs no column"
