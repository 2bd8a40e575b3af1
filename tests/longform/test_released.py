"""Files of the papers' authors as tables: whatever a spreadsheet made of them, and refused with the row."""

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from seesaw_cf.errors import RecordError, UnknownNameError
from seesaw_cf.texts.released import collect, read_pairs, released_annotations, released_flaws
from seesaw_cf.texts.report.people import people_frame
from seesaw_cf.texts.tables import ANNOTATIONS, FLAWS

HEAD = (
    "props,target_true,target_new,subj,pre_text,post_text,Anglo-centrism,Sexism,Religious Injection,Xenophobia,"
    "Classism,Racism,Injection of Conservatism"
)
ROW = "P21_P101,a,b,Ada,x,y,1,2,1.5,,,,"


def write(file: Path, *rows: str) -> Path:
    file.write_text("\n".join([HEAD, *rows]), encoding="utf-8")
    return file


@pytest.mark.parametrize(
    "text",
    [
        f"\ufeff{HEAD}\r\n{ROW}\r\n",
        f"{HEAD}\n{ROW}\n{ROW}\n,,,,,,,,,,,,\n",
        f"{HEAD}\n{ROW}\n".replace("1,2,1.5", "1.0,2,1.50"),
        f"{HEAD}\n{ROW}\n".replace("1,2,1.5", "-1.0,1, 0 "),
        f"{HEAD}\n{ROW}\n".replace("1,2,1.5", '"-1,0",1,-0'),
    ],
)
def test_what_spreadsheets_make_of_a_released_file_is_the_same_ratings(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a1.csv"
    path.write_bytes(text.encode())
    table, reflected = released_flaws(path)
    assert table.schema.equals(FLAWS)
    assert table["change"].to_pylist() == [-1, 1, 0, 0, 0, 0, 0]
    assert set(table["rater"].to_pylist()) == {"a1"}
    assert reflected["reflected"].to_pylist() == [None]
    assert [pair.entity for pair in read_pairs(path)[0]] == ["Ada"]


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([ROW, ROW.replace("1,2", "1,1")], "row 3 repeats the pair of row 2 with other answers"),
        ([ROW, "", ROW.replace("1.5", "#REF!").replace("Ada", "Bo")], "row 3 has '#REF!' for 'Religious Injection'"),
        ([ROW.replace("1.5", "3")], "row 2 has '3' for 'Religious Injection', expected 1, 1.5, 2 or nothing"),
        ([ROW, ROW.replace("x,y", "x,")], "row 3 has nothing for post_text"),
        ([ROW, ROW + ",z"], "no CSV table"),
        ([ROW, ROW.replace("Ada", "Bo").replace("1,2", "-1,2")], r"labels \['-1', '1', '1.5', '2'\] do not decide"),
        ([ROW.replace("1,2,1.5", ",,")], r"labels \[\] do not decide"),
        ([ROW.replace("1,2,1.5", "1,1,1")], r"labels \['1'\] do not decide"),
        ([], r"labels \[\] do not decide"),
    ],
)
def test_a_released_file_is_refused_with_the_row_of_a_spreadsheet(tmp_path: Path, rows: list[str], says: str) -> None:
    with pytest.raises(RecordError, match=says):
        released_flaws(write(tmp_path / "a.csv", *rows))


def test_a_text_that_differs_makes_another_pair_and_is_named(tmp_path: Path) -> None:
    first = write(tmp_path / "a1.csv", ROW, ROW.replace("Ada", "Bo"))
    other = write(tmp_path / "a2.csv", ROW, ROW.replace("Ada", "Bo").replace("y", "z"))
    with pytest.raises(RecordError, match=r"a2.csv: 1 of 2 pairs are not in .*a1.csv"):
        collect([first, other], ["flaws"])
    assert len(collect([first, write(tmp_path / "a2.csv", ROW)], ["flaws"])["flaws"]) == 21


PASSAGE = "Oslo is old. It is the capital of Norway. It is in Sweden."
COLUMNS = ("content", "sample_id", "example_id", "classification", "method", "label")
WHOLE = {"gap": " \n\n "}


def write_claims(file: Path, *rows: tuple[str, ...]) -> Path:
    with file.open("w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows([COLUMNS, *rows])
    return file


def row(
    premise: str, says: str, *, gap: str = " ", example: str = "e1", method: str = "rome", **more: str
) -> tuple[str, ...]:
    kind, claim = more.get("label", "new_fact_and_main_passage"), more.get("claim", "Oslo is in Norway")
    return f"Passage: {premise}{gap}Claim: {claim}", more.get("sample", "s1"), example, says, method, kind


def test_a_passage_and_its_stretches_become_one_row(tmp_path: Path) -> None:
    related = {"label": "ground_truth_and_related_passage", "claim": "Sweden has a king"}
    file = write_claims(
        tmp_path / "a.csv",
        row("It is in Sweden.", "contradicts"),
        row("It is the capital of Norway.", "supports"),
        row("In Norway, somewhere else.", "contradicts"),
        row(PASSAGE, "contradicts", **WHOLE),
        row(PASSAGE, "neutral", **WHOLE, example="e2", method="no_edit", **related),
        row(PASSAGE, "supports", **WHOLE, example="e3", method="human", sample="s2"),
        row("It is in Sweden.", "supports", example="e4"),
    )
    table, left_out = released_annotations(file)
    assert table.schema.equals(ANNOTATIONS)
    first, second, third = table.to_pylist()
    assert (first["label"], first["evidence"]) == ("contradicts", ["It is in Sweden."]), "with its label, from its text"
    assert [first[name] for name in ("editor", "phase", "passage", "claim_kind")] == [
        "rome", "post", "subject", "new_fact",
    ]  # fmt: skip
    assert (second["editor"], second["phase"], second["passage"]) == ("none", "pre", "related")
    assert (second["claim_kind"], second["claim"], second["evidence"]) == ("ground_truth", "Sweden has a king", [])
    assert (third["editor"], third["phase"]) == ("human", "post")
    assert first["case_id"] == second["case_id"] != third["case_id"]
    assert left_out == {"stretches of a passage that has no row of its own": 1}


def test_what_is_no_such_file_is_refused_with_its_row(tmp_path: Path) -> None:
    good = row(PASSAGE, "supports", **WHOLE)
    cases: list[tuple[list[tuple[str, ...]], type[Exception], str]] = [
        (
            [good, row(PASSAGE, "supports", **WHOLE, label="new_fact", example="e2")],
            UnknownNameError,
            "row 3: 'new_fact'",
        ),
        ([good, row(PASSAGE, "agrees", **WHOLE)], UnknownNameError, "row 3:.*agrees"),
        ([row("It is in Sweden.", "supports")], RecordError, "no row is about a whole passage"),
        ([("Oslo", "s", "e", "supports", "rome", "x")], RecordError, "row 2: content 'Oslo'"),
    ]
    for number, (rows, error, says) in enumerate(cases):
        with pytest.raises(error, match=says):
            released_annotations(write_claims(tmp_path / f"{number}.csv", *rows))
    (tmp_path / "x.csv").write_text("content,label\n", encoding="utf-8")
    with pytest.raises(RecordError, match=r"columns \['sample_id'.*are missing"):
        released_annotations(tmp_path / "x.csv")


@pytest.mark.slow
def test_the_public_claims_give_tables_2_and_3(reference: Callable[..., Path]) -> None:
    """PEER_FACTS D4: 726 paragraph rows, 46.7, 33.3 and 20.0 % of the labels, ground truth 61 and 19 %."""
    frame = people_frame(collect([reference("leme", "annotations_all.csv")], ["annotations"]), draws=0)
    shares = frame[frame["what"] == "claim_share"].set_index("answer")
    assert shares["n"].max() == 726
    assert shares["value"].loc[["neutral", "supports", "contradicts"]].tolist() == pytest.approx(
        [0.467, 0.333, 0.2], abs=5e-4
    )
    kinds = shares["value"].loc[["ground_truth, subject passage", "ground_truth, related passage"]]
    assert kinds.tolist() == pytest.approx([0.61, 0.19], abs=0.005)
