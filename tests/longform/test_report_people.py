"""LEME's tables from people's answers: by hand, beside a run, on the public annotations."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from seesaw_cf.effects.instruments import FAILURE_MODES
from seesaw_cf.errors import RecordError, UnknownNameError
from seesaw_cf.texts.report.people import Answers, failure_examples, people_frame
from seesaw_cf.texts.tables import ANNOTATIONS, FAILURES, RATINGS

from .analysis_samples import frames, table
from .coupled import passages, record

PLACE = {"editor": "memit", "case_id": 1, "relation": "P19", "phase": "post", "sample": 0}
Row = dict[str, Any]


def rows_of(schema: pa.Schema, rows: Sequence[Row]) -> pa.Table:
    return table(schema, list(rows), **PLACE)


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


def rows(what: str, people: Answers, judged: Answers | None = None, draws: int = 40) -> Any:
    frame = people_frame(people, judged, draws=draws)
    return frame[frame["what"] == what]


def survey(by_rater: dict[str, list[float | None]]) -> Answers:
    return frames({"ratings": rows_of(RATINGS, ratings(by_rater))})


def test_the_survey_pools_people_and_says_how_far_they_agree() -> None:
    given = survey({"A": [7, 6, 5, 4, 3, 2], "B": [7, 6, 5, 4, 3, None]})
    cell = rows("rating", given).iloc[0]
    assert (cell["value"], cell["n"], cell["n_edits"], cell["n_missing"]) == (4.5, 11, 6, 1)
    assert (cell["editor"], cell["asked"], cell["rater"]) == ("memit", "fluency", "people")
    alpha = rows("alpha", given).set_index("asked")["value"]
    assert alpha.to_dict() == {"all": 1, "naturalness": 1, "fluency": 1}, "all, of each type, of each statement"
    percent = rows("percent", given).set_index(["rater", "asked"])
    assert (percent.loc[("A/B", "all"), "value"], percent.loc[("A/B", "all"), "n"]) == (100, 5)


def test_claims_are_counted_as_in_tables_2_and_3() -> None:
    given = frames({"annotations": rows_of(ANNOTATIONS, labels({"A": "ssnncc", "B": "ssnns-"}))})
    shares = rows("claims", given).set_index("answer")["value"].to_dict()
    assert shares == pytest.approx({"supports": 2.5 / 6, "neutral": 2 / 6, "contradicts": 1.5 / 6})
    counts = rows("claim_share", given).set_index("answer")["count"].to_dict()
    assert counts == {"supports": 5, "neutral": 4, "contradicts": 2, "new_fact, subject passage": 11}
    percent = rows("percent", given).set_index(["rater", "asked"])
    assert (percent.loc[("A/B", "all"), "value"], percent.loc[("A/B", "all"), "n"]) == (80, 5)


def test_table_3_is_of_all_labels_not_of_edits() -> None:
    """Edit 0 has one label of ground truth in the main passage, edit 1 has three, and one of the new fact."""
    kinds = [(0, "ground_truth"), *[(1, "ground_truth")] * 3, (1, "new_fact")]
    marked = [
        {"case_id": case, "claim_kind": kind, "passage": "subject", "claim_id": f"{kind}-{number}", "claim": "x"}
        | {"annotator": "A", "label": "supports", "evidence": []}
        for number, (case, kind) in enumerate(kinds)
    ]
    counts = rows("claim_share", frames({"annotations": rows_of(ANNOTATIONS, marked)}), draws=0).set_index("answer")
    shares = counts.loc[["ground_truth, subject passage", "new_fact, subject passage"], ["count", "value"]]
    assert shares.to_numpy().tolist() == [[4, 0.8], [1, 0.2]]


def test_failure_modes_have_shares_examples_and_agreement() -> None:
    given = [
        {"case_id": case, "mode": mode, "rater": rater, "present": mode == "topic_drift" and case < 3, "comment": "<b>"}
        for case in range(6)
        for mode in FAILURE_MODES
        for rater in ("A", "B")
    ]
    people = frames({"failures": rows_of(FAILURES, given), "passages": passages([record(0)])})
    shares = rows("failure", people).set_index("asked")
    assert shares.loc["Topic drift", "value"] == pytest.approx(0.5)
    assert 0 <= shares.loc["Topic drift", "low"] < 0.5
    assert shares.loc["Good edit", ["value", "low"]].tolist() == [0, 0]
    assert shares.loc["Good edit", "high"] == pytest.approx(1 - 0.05 ** (1 / 6)), "6 of 6 have a chance of 5 %"
    [example] = failure_examples(people["failures"], people["passages"]).to_dict("records")
    assert example["texts"].startswith("subject: Marie Curie was born in London.")
    assert " / related: " in example["texts"]
    assert rows("alpha", people).set_index("asked").loc["Topic drift", "value"] == 1
    with pytest.raises(UnknownNameError, match=r"unknown failure mode 'topc_drift'\. Did you mean 'topic_drift'"):
        rows("failure", frames({"failures": rows_of(FAILURES, [given[0] | {"mode": "topc_drift"}])}))


@pytest.mark.slow
def test_judges_stand_beside_a_constant_and_another_person() -> None:
    said = ratings({"A": [7, 6, 5, 4, 3, 3], "B": [6, 6, 5, 4, 3, 2]})
    own = ratings({"judge": [7, 6, 5, 4, 3, None]}) + ratings({"noise": [1, 1, 1, 7, 7, 7]})
    own[5] |= {"status": "left out: the rater learned from this passage"}
    marked = labels({"A": "ssnncc"})
    judged = frames({"ratings": rows_of(RATINGS, own), "annotations": rows_of(ANNOTATIONS, labels({"m": "ssnnnn"}))})
    people = frames({"ratings": rows_of(RATINGS, said), "annotations": rows_of(ANNOTATIONS, marked)})
    found = rows("beside_people", people, judged).set_index(["about", "asked", "rater"]).sort_index()
    alpha = found.loc[("survey", "alpha")]
    assert alpha["n"].to_dict() == {"judge": 10, "noise": 12, "the commonest": 12, "another person": 6}
    assert alpha["n_left_out"].to_dict() == {"judge": 1, "noise": 0, "the commonest": 0, "another person": 0}
    assert found.loc[("survey", "exact", "judge"), "value"] == pytest.approx(0.9)
    assert found.loc[("survey", "within_one", "judge"), "value"] == 1
    assert alpha.loc["judge", "value"] > 0.9 > alpha.loc["noise", "value"]
    accuracy = found.loc[("claims", "accuracy")]["value"]
    assert accuracy.to_dict() == pytest.approx({"m": 4 / 6, "the commonest": 2 / 6})


def test_bad_answers_are_named() -> None:
    with pytest.raises(RecordError, match=r"ratings: 1 outside 1 to 7, first 9\S* by 'A' for 'fluency' of case 1\."):
        rows("rating", survey({"A": [3, 9]}))
    wrong = labels({"A": "s"})
    wrong[0]["label"] = "maybe"
    with pytest.raises(RecordError, match="outside supports, neutral, contradicts, first 'maybe'"):
        rows("claims", frames({"annotations": rows_of(ANNOTATIONS, wrong)}))


def test_what_people_lose_is_compared_within_each_of_them() -> None:
    given = labels({"A": "ssssssss", "B": "cccccccc"})  # two who disagree, and change nothing
    about = {"claim_kind": "ground_truth", "claim_id": "fact"}
    marked = [row | about | phase for row in given for phase in ({}, {"editor": "none", "phase": "pre"})]
    people = frames({"annotations": rows_of(ANNOTATIONS, marked)})
    assert rows("contradicted_more", people)["value"].tolist() == [0]
    lost = rows("support_lost", people).iloc[0]
    assert (lost["value"], lost["n"]) == (0, 8)
