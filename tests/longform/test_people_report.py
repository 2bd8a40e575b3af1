"""LEME's tables from people's answers: by hand, beside a run, on the public annotations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from seesaw_cf.base.tables import write_table
from seesaw_cf.cli import main
from seesaw_cf.errors import RecordError, UnknownNameError
from seesaw_cf.report.html.findings import findings_page
from seesaw_cf.texts.rate.survey import survey_samples
from seesaw_cf.texts.report.collected import Collected, collect
from seesaw_cf.texts.report.people_page import people_findings
from seesaw_cf.texts.report.people_survey import people_sections
from seesaw_cf.texts.tables import ANNOTATIONS, FAILURES, RATINGS
from seesaw_cf.texts.wording import FAILURE_MODES
from tests.page_reader import HOSTILE, check_alone, csv_files

from .coupled import passages, record

PLACE = {"editor": "memit", "case_id": 1, "relation": "P19", "phase": "post", "sample": 0}
Row = dict[str, Any]


def rows_of(schema: pa.Schema, rows: Sequence[Row]) -> pa.Table:
    blank: Row = dict.fromkeys(schema.names) | {"status": "ok"}
    return pa.Table.from_pylist([blank | PLACE | row for row in rows], schema=schema)


def ratings(by_rater: dict[str, list[float | None]], item: str = "fluency") -> list[Row]:
    """One rating per case."""
    return [
        {"case_id": case, "item": item, "rater": rater, "rating": value}
        for rater, values in by_rater.items()
        for case, value in enumerate(values)
    ]


def labels(by_rater: dict[str, str]) -> list[Row]:
    """s, n, c per case, of the new fact in the main passage."""
    names = {"s": "supports", "n": "neutral", "c": "contradicts", "-": None}
    about = {"passage": "subject", "claim_kind": "new_fact", "claim_id": "new_fact", "claim": "x", "evidence": []}
    return [
        about | {"case_id": case, "annotator": rater, "label": names[letter]}
        for rater, letters in by_rater.items()
        for case, letter in enumerate(letters)
    ]


def frames(people: Collected, judged: Collected | None = None) -> dict[str, Any]:
    return {one.name: one.frame for one in people_sections(people, judged, draws=40)}


def test_the_survey_pools_people_and_says_how_far_they_agree() -> None:
    given = ratings({"A": [7, 6, 5, 4, 3, 2], "B": [7, 6, 5, 4, 3, None]})
    found = frames(Collected({"ratings": rows_of(RATINGS, given)}))
    cell = found["survey"].iloc[0]
    assert (cell["value"], cell["n"], cell["n_cases"], cell["n_missing"]) == (4.5, 11, 6, 1)
    assert (cell["method"], cell["metric"]) == ("memit", "fluency")
    agreement = found["survey_agreement"].set_index("type")
    assert set(agreement.index) == {"all", "naturalness"}
    assert agreement.loc["naturalness", "alpha"] == 1
    percent = found["survey_agreement_percent"].set_index(["raters", "type"])
    assert (percent.loc[("A/B", "all"), "value"], percent.loc[("A/B", "all"), "n"]) == (100, 5)
    assert found["survey_raters"]["note"].str.startswith("too few raters: ").all()
    assert found["survey_plan"]["sd_rater"].max() < 0.01, "two who agree"


@pytest.mark.slow
def test_each_figure_of_agreement_has_its_own_n_and_a_reason_for_no_interval() -> None:
    apart = ratings({"A": [7, 6, 5, 4, None, None, 1], "B": [7, 5, 5, 4, 3, None, None], "C": [None] * 5 + [1, 2]})
    one = frames(Collected({"ratings": rows_of(RATINGS, apart)}))["survey_agreement"].set_index("type").loc["all"]
    assert (one["n"], one["fleiss_n"], one["n_items"]) == (5, 0, 7)
    assert one["note"] == "Fleiss: nothing rated by all raters"
    alike = ratings({"A": [4, 4, 4], "B": [4, 4, 4]})
    one = frames(Collected({"ratings": rows_of(RATINGS, alike)}))["survey_agreement"].set_index("type").loc["all"]
    assert one["note"] == "alpha: no two different ratings; Fleiss: no two different ratings"
    assert one["n"] == one["fleiss_n"] == 3
    enough = ratings({"A": [7, 6, 5, 4, 3, 2], "B": [7, 6, 5, 4, 3, 1]})
    assert not frames(Collected({"ratings": rows_of(RATINGS, enough)}))["survey_agreement"]["note"].any()


def test_claims_are_counted_as_in_tables_2_and_3() -> None:
    found = frames(Collected({"annotations": rows_of(ANNOTATIONS, labels({"A": "ssnncc", "B": "ssnns-"}))}))
    shares = found["labels"].set_index("label")
    assert shares["value"].to_dict() == pytest.approx({"supports": 2.5 / 6, "neutral": 2 / 6, "contradicts": 1.5 / 6})
    counts = found["claim_counts"].set_index("name")["count"].to_dict()
    assert counts == {"supports": 5, "neutral": 4, "contradicts": 2, "new_fact, subject passage": 11}
    percent = found["claim_agreement_percent"].set_index(["raters", "claim"])
    assert (percent.loc[("A/B", "all"), "value"], percent.loc[("A/B", "all"), "n"]) == (80, 5)


def test_table_3_is_of_all_labels_not_of_edits() -> None:
    """LEME Table 3: 61 % of 726 labels are of ground truth in the main passage, 444; 19 % in the related, 138.

    New and old facts have 36 in each passage (5 %). Edits differ in how many labels they have: here 12 have one of the
    444, the other 24 have 18 each.
    """
    kinds: dict[tuple[str, str], Callable[[int], int]]
    kinds = {("ground_truth", "subject"): lambda case: 1 if case < 12 else 18}
    kinds |= {("ground_truth", "related"): lambda case: 6 if case > 12 else 0}
    kinds |= {
        (fact, passage): lambda case: 1 for fact in ("new_fact", "old_fact") for passage in ("subject", "related")
    }
    rows = [
        {"case_id": case, "claim_kind": kind, "passage": passage, "claim_id": f"{kind}-{number}", "claim": "x"}
        | {"annotator": "A", "label": "supports", "evidence": []}
        for (kind, passage), count in kinds.items()
        for case in range(36)
        for number in range(count(case))
    ]
    assert len(rows) == 726
    counts = frames(Collected({"annotations": rows_of(ANNOTATIONS, rows)}))["claim_counts"].set_index("name")
    published = {"ground_truth, subject passage": (444, 0.61), "ground_truth, related passage": (138, 0.19)}
    for name, (count, share) in published.items():
        assert (counts.loc[name, "count"], round(counts.loc[name, "value"], 2)) == (count, share)
    assert round(counts.loc["new_fact, subject passage", "value"], 2) == 0.05


def test_failure_modes_have_shares_examples_and_agreement() -> None:
    given = [
        {"case_id": case, "mode": mode, "rater": rater, "present": mode == "topic_drift" and case < 3, "comment": "<b>"}
        for case in range(6)
        for mode in FAILURE_MODES
        for rater in ("A", "B")
    ]
    people = Collected({"failures": rows_of(FAILURES, given), "passages": passages([record(0)])})
    found = frames(people)
    shares = found["failures"].set_index("failure")
    assert shares.loc["Topic drift", "value"] == pytest.approx(0.5)
    assert 0 <= shares.loc["Topic drift", "low"] < 0.5
    assert shares.loc["Good edit", ["value", "low"]].tolist() == [0, 0]
    assert shares.loc["Good edit", "high"] == pytest.approx(1 - 0.05 ** (1 / 6)), "6 of 6 have a chance of 5 %"
    [example] = found["failure_examples"].to_dict("records")
    assert example["passages"].startswith("subject: Marie Curie was born in London.")
    assert found["failure_agreement"].set_index("failure").loc["Topic drift", "alpha"] == 1
    with pytest.raises(UnknownNameError, match=r"unknown failure mode 'topc_drift'\. Did you mean 'topic_drift'"):
        frames(Collected({"failures": rows_of(FAILURES, [given[0] | {"mode": "topc_drift"}])}))


@pytest.mark.slow
def test_judges_stand_beside_a_constant_and_another_person() -> None:
    said = ratings({"A": [7, 6, 5, 4, 3, 3], "B": [6, 6, 5, 4, 3, 2]})
    own = ratings({"judge": [7, 6, 5, 4, 3, None]}) + ratings({"noise": [1, 1, 1, 7, 7, 7]})
    own[5] |= {"status": "left out: the rater learned from this passage"}
    marked = labels({"A": "ssnncc"})
    judged = Collected({"ratings": rows_of(RATINGS, own), "annotations": rows_of(ANNOTATIONS, labels({"m": "ssnnnn"}))})
    people = Collected({"ratings": rows_of(RATINGS, said), "annotations": rows_of(ANNOTATIONS, marked)})
    found = frames(people, judged)
    judge = found["judges"].set_index("judge")
    assert judge["n"].to_dict() == {"judge": 10, "noise": 12, "commonest rating": 12, "another person": 6}
    assert judge["left_out"].to_dict() == {"judge": 1, "noise": 0, "commonest rating": 0, "another person": 0}
    assert judge.loc["judge", "exact"] == 0.9
    assert judge.loc["judge", "within_one"] == 1
    assert judge.loc["judge", "alpha"] > 0.9 > judge.loc["noise", "alpha"]
    annotator = found["annotators"].set_index("annotator")
    assert annotator.loc["m", "accuracy"] == pytest.approx(4 / 6)
    assert annotator.loc["commonest label", "accuracy"] == pytest.approx(2 / 6)


def test_intervals_of_shares_of_labels_stay_within_0_and_1() -> None:
    people = Collected({"annotations": rows_of(ANNOTATIONS, labels({"A": "s" * 12}))})
    judged = Collected({"annotations": rows_of(ANNOTATIONS, labels({"m": "s" * 11 + "n"}))})
    assert frames(people, judged)["annotators"].set_index("annotator").loc["m", "accuracy_high"] < 1
    given = Collected({"annotations": rows_of(ANNOTATIONS, labels({"A": "s" * 11 + "n"}))})
    counts = frames(given)["claim_counts"].set_index("name")
    assert counts.loc["supports", "value"] < counts.loc["supports", "high"] < 1
    assert 0 < counts.loc["neutral", "low"] < counts.loc["neutral", "value"]


@pytest.mark.slow
@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_the_page_concludes_plots_and_shows_names_as_text(hostile: str) -> None:
    said = ratings({"A": [7, 6, 5, 4, 3, None], "B": [7, 6, 5, 4, 3, 2]})
    marked = [row | {"claim_kind": "ground_truth"} for row in labels({hostile: "ssnncc"})]
    said += [row | {"editor": hostile} for row in said]
    people = Collected({"ratings": rows_of(RATINGS, said), "annotations": rows_of(ANNOTATIONS, marked)})
    sections = people_sections(people, draws=40)
    found = people_findings(people, sections, {"effects": "(0.5,)"})
    assert "edits by memit, " in found.screen.about
    answers = dict(found.screen.lines)
    assert "2 of 24 ratings are missing; labels of claims by one person" in answers["Not known"]
    assert "no answers about failure modes" in answers["Not known"]
    assert "22 ratings by 2 people; 6 labels of claims by 1 person; Krippendorff" in answers["How sure"]
    assert [one.name for one in found.sections] == ["tables"]
    assert [part.kind for part in found.first] == ["keys", "panels", "panels"]
    html = findings_page(found)
    page = check_alone(html)
    assert html == findings_page(people_findings(people, sections, {"effects": "(0.5,)"}))
    assert {f"{one.name}.csv" for one in sections} == set(csv_files(page))
    nothing = people_findings(Collected({"ratings": rows_of(RATINGS, [])}), [], {})
    assert nothing.screen.title == "No text was written."


def test_bad_answers_are_named() -> None:
    with pytest.raises(RecordError, match=r"ratings: 1 outside 1 to 7, first 9 by 'A' for 'fluency' of case 1\."):
        frames(Collected({"ratings": rows_of(RATINGS, ratings({"A": [3, 9]}))}))
    wrong = labels({"A": "s"})
    wrong[0]["label"] = "maybe"
    with pytest.raises(RecordError, match=r"labels \['maybe'\], expected supports, neutral, contradicts"):
        frames(Collected({"annotations": rows_of(ANNOTATIONS, wrong)}))


@pytest.mark.slow
def test_the_command_alone_and_beside_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, folder = tmp_path / "run", tmp_path / "people"
    records = [record(case) for case in range(3)]
    written = pa.concat_tables([passages(records, editor=name) for name in ("none", "memit")])
    write_table(run / "passages.parquet", written)
    write_table(run / "ratings.parquet", rows_of(RATINGS, ratings({"judge": [7, 6, 5]})))
    assert len(survey_samples(written, records)) == 6
    write_table(folder / "ratings.parquet", rows_of(RATINGS, ratings({"A": [7, 6, 4], "B": [7, 5, 4]})))
    words = ["leme", "report", "--raters", str(folder)]
    assert main(words) == 1
    assert "give RUN, or --raters TABLE with --out DIR, or both" in capsys.readouterr().err
    words += ["--out", str(tmp_path / "out"), "--pictures"]
    assert main([*words, "--effect", "1", "--per-rater", "9"]) == 0
    assert [file.name for file in (tmp_path / "out" / "pictures").iterdir()] == ["longform_survey.png"]
    assert (tmp_path / "out" / "tables" / "survey_agreement.csv").exists()
    tables = tmp_path / "out" / "tables"
    assert set(pd.read_csv(tables / "survey_plan.csv")["per_rater"]) == {9}
    assert not (tables / "judges.csv").exists()
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "3 cases, as people rate them · edits by memit" in page
    assert "No rating is shown to be lower" in page
    assert "6 ratings by 2 people" in page
    beside = collect([run], ["passages"])
    assert frames(collect([folder], ["ratings"]), beside)["judges"]["n"].tolist() == [6, 6, 3]


def test_what_people_lose_is_compared_within_each_of_them() -> None:
    given = labels({"A": "ssssssss", "B": "cccccccc"})  # two who disagree, and change nothing
    about = {"claim_kind": "ground_truth", "claim_id": "fact"}
    rows = [row | about | phase for row in given for phase in ({}, {"editor": "none", "phase": "pre"})]
    drift = frames(Collected({"annotations": rows_of(ANNOTATIONS, rows)}))["drift"].iloc[0]
    assert (drift["value"], drift["lost"], drift["n_supported"]) == (0, 0, 8)
