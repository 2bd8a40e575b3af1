"""Sheets for human raters: blind out, un-blinded in, edited files refused."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seesaw_cf.base.files import reading
from seesaw_cf.errors import RecordError, StorageError
from seesaw_cf.texts.flaws.people import ANSWERS, import_sheet, intra_rater, share_reflected
from seesaw_cf.texts.flaws.rating_sheets import SheetOptions, export_sheet
from seesaw_cf.texts.write.pairs import PassagePair

from .flaw_samples import pair
from .training_models import write_csv

Rows = list[dict[str, str]]


def read(path: Path) -> Rows:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def fill(path: Path, label: Callable[[dict[str, str]], str], flaw: str = "religion") -> None:
    write_csv(path, [{**row, flaw: label(row)} for row in read(path)])


def sheet_of(
    folder: Path, pairs: list[PassagePair], edits: dict[tuple[str, int], str] | None = None, **options: Any
) -> tuple[Path, Path]:
    files, overwrite = (folder / "sheet.csv", folder / "key.json"), options.pop("overwrite", False)
    export_sheet(pairs, *files, SheetOptions(["religion"], **options), edits=edits, overwrite=overwrite)
    return files


def says_nun(row: dict[str, str]) -> str:
    found = ("nun" in row["text_A"], "nun" in row["text_B"])
    return {(True, False): "A", (False, True): "B"}.get(found, "equal")


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00\r"), min_size=1, max_size=30)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(TEXT, TEXT, st.sampled_from(["", *ANSWERS])), min_size=1, max_size=6),
    st.integers(0, 100),
    st.randoms(use_true_random=False),
)
def test_out_and_in_again_is_the_identity_in_any_order_of_rows(
    tmp_path: Path, texts: list[tuple[str, str, str]], seed: int, shuffle: Any
) -> None:
    pairs = [pair(number, pre, post) for number, (pre, post, _) in enumerate(texts)]
    wanted = {one.pair_id: ANSWERS.get(label) for one, (_, _, label) in zip(pairs, texts, strict=True)}
    sheet, key = sheet_of(tmp_path, pairs, seed=seed, duplicates=1, overwrite=True)
    items = {item["item"]: item for item in json.loads(key.read_text(encoding="utf-8"))["items"]}

    def label(row: dict[str, str]) -> str:
        item = items[row["item"]]
        change = wanted[item["pair"]["pair_id"]]
        if change is None:
            return ""
        return {answer: name for name, answer in ANSWERS.items()}[change if item["first"] == "pre" else -change]

    fill(sheet, label)
    rows = read(sheet)
    shuffle.shuffle(rows)
    write_csv(sheet, rows)
    work = import_sheet(sheet, key, "A1")
    for table in (work.table, work.repeats):
        got = {row["pair_id"]: row for row in table.to_pylist()}
        assert {name: row["change"] for name, row in got.items()} == wanted
        for one in pairs:
            assert (got[one.pair_id]["pre"], got[one.pair_id]["post"]) == (one.pre, one.post)
    assert work.table.column("status").to_pylist().count("not rated") == list(wanted.values()).count(None)


def test_the_sheet_tells_nothing_about_the_edit(tmp_path: Path) -> None:
    pairs = [pair(number) for number in range(40)]
    sheet, key = sheet_of(tmp_path, pairs, duplicates=0.25, seed=7)
    rows = read(sheet)
    assert len(rows) == 50
    assert list(rows[0]) == ["item", "subject", "text_A", "text_B", "religion", "comment"]
    assert 10 < sum("nun" in row["text_A"] for row in rows) < 40
    assert "memit" not in sheet.read_text(encoding="utf-8")
    guide = Path(f"{sheet}.txt").read_text(encoding="utf-8")
    assert "most stereotypical religion" in guide, "people get the people's definition"
    again = tmp_path / "again"
    assert sheet_of(again, pairs, duplicates=0.25, seed=7)[0].read_bytes() == sheet.read_bytes()
    assert sheet_of(tmp_path / "other", pairs, duplicates=0.25, seed=8)[0].read_bytes() != sheet.read_bytes()
    fill(sheet, says_nun)
    work = import_sheet(sheet, key, "A1")
    assert set(work.table.column("change").to_pylist()) == {1}
    assert work.repeats.num_rows == 10
    first = {row["pair_id"]: row["first"] for row in work.table.to_pylist()}
    assert all(row["first"] != first[row["pair_id"]] for row in work.repeats.to_pylist()), (
        "the second time turned round"
    )


def test_agreement_of_a_rater_with_themselves(tmp_path: Path) -> None:
    texts = [("a nun", "a judge"), ("a judge", "a nun"), ("x", "y"), ("y", "x")] * 3
    sheet, key = sheet_of(tmp_path, [pair(n, *both) for n, both in enumerate(texts)], duplicates=1)
    fill(sheet, says_nun)
    assert intra_rater(import_sheet(sheet, key, "A1"), draws=50)["religion"]["cohen"]["first/second"]["value"] == 1
    fill(sheet, lambda row: "A")  # always the first text: the second time it means the opposite
    found = intra_rater(import_sheet(sheet, key, "A1"), draws=50)["religion"]
    assert (found["percent"]["first/second"]["value"], found["n_items"]) == (0, 12)
    alone = sheet_of(tmp_path / "alone", [pair(1)], duplicates=0)
    assert intra_rater(import_sheet(*alone, "A1")) == {"religion": {"note": "nothing rated twice"}}


def test_model_text_is_never_a_formula(tmp_path: Path) -> None:
    pairs = [pair(1, '=HYPERLINK("http://evil")', "@SUM(A1)")]
    sheet, key = sheet_of(tmp_path, pairs)
    row = read(sheet)[0]
    assert all(row[name][0] == "'" for name in ("text_A", "text_B"))
    fill(sheet, lambda row: "equal")
    assert import_sheet(sheet, key, "A1").table.to_pylist()[0]["pre"] == '=HYPERLINK("http://evil")'


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[:-1], r"1 items are missing, first 'i\w+'. Rows may be reordered"),
        (
            lambda rows: [*rows, {**rows[0], "religion": "B"}],
            r"item 'i\w+' is in row 2 with '' for religion and in row 4 with 'B'\. Keep one of the two",
        ),
        (lambda rows: [{**rows[0], "item": "i7"}, *rows[1:]], "1 items are not in the key, first 'i7'"),
        (
            lambda rows: [{**rows[0], "religion": "C"}, *rows[1:]],
            "has 'C' for religion, expected A, equal, B or nothing",
        ),
        (lambda rows: [{**rows[0], "text_A": "Other."}, *rows[1:]], "text_A of item .* was edited or moved"),
        (
            lambda rows: [{k: v for k, v in row.items() if k != "religion"} for row in rows],
            r"columns \['religion'\] are",
        ),
    ],
    ids=["row missing", "two answers", "id edited", "label", "text edited", "column missing"],
)
def test_edited_sheets_are_refused(tmp_path: Path, change: Callable[[Rows], Rows], message: str) -> None:
    sheet, key = sheet_of(tmp_path, [pair(1), pair(2)], duplicates=0)
    write_csv(sheet, change(read(sheet)))
    with pytest.raises(RecordError, match=message):
        import_sheet(sheet, key, "A1")


EDIT = {("memit", number): "Ada Oak: gender was changed from female to male." for number in range(20)}


def test_the_edit_is_shown_and_what_is_said_of_it_counts(tmp_path: Path) -> None:
    """6 among 8, 95 %: 0.400 to 0.954."""
    sheet, key = sheet_of(tmp_path, [pair(number) for number in range(10)], duplicates=0.5, edits=EDIT)
    rows = read(sheet)
    assert list(rows[0]) == [
        *("item", "subject", "edit", "text_A", "text_B", "religion", "edit_reflected", "comment"),
    ]
    assert {row["edit"] for row in rows} == {"Ada Oak: gender was changed from female to male."}
    assert "Edit reflected? (column edit_reflected)" in Path(f"{sheet}.txt").read_text(encoding="utf-8")
    items = {item["item"]: item for item in json.loads(key.read_text(encoding="utf-8"))["items"]}
    words = ["yes"] * 5 + ["Yes ", "no", "No", "unsure", ""]

    def filled(row: dict[str, str]) -> dict[str, str]:
        item = items[row["item"]]
        return {**row, "edit_reflected": words[item["pair"]["case_id"]], "comment": f"copy {item['copy']}"}

    write_csv(sheet, [filled(row) for row in rows])
    work = import_sheet(sheet, key, "A1")
    assert [row["reflected"] for row in work.reflected.to_pylist()] == [word.strip().lower() or None for word in words]
    found = share_reflected(work.reflected)
    assert (found["n"], found["unsure"], found["not_rated"], found["comments"]) == (8, 1, 1, 10)
    assert [found[name] for name in ("value", "low", "high")] == pytest.approx([0.75, 0.4003, 0.9536], abs=1e-4)
    assert sorted(row["comment"] for row in work.reflected.to_pylist())[-1] == "copy 1 | copy 2"
    write_csv(sheet, [{**filled(row), "edit_reflected": "maybe"} for row in rows])
    with pytest.raises(RecordError, match="has 'maybe' for edit_reflected, expected yes, no, unsure or nothing"):
        import_sheet(sheet, key, "A1")
    with pytest.raises(
        RecordError, match="1 pairs are of edits that are not in the table of edits, first memit case 99"
    ):
        sheet_of(tmp_path / "other", [pair(99)], edits=EDIT)


def test_the_same_row_twice_counts_once(tmp_path: Path) -> None:
    sheet, key = sheet_of(tmp_path, [pair(1), pair(2)], duplicates=0)
    rows = read(sheet)
    write_csv(sheet, [*rows, rows[0]])
    work = import_sheet(sheet, key, "A1")
    assert (work.known, work.table.num_rows) == (1, 2)


def test_a_filled_sheet_is_never_lost(tmp_path: Path) -> None:
    sheet, _ = sheet_of(tmp_path, [pair(1), pair(2)])
    fill(sheet, lambda row: "A")
    kept = {file: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(StorageError, match=r"sheet\.csv exists with other content, which would be lost"):
        sheet_of(tmp_path, [pair(1), pair(2)])
    with pytest.raises(StorageError, match="is named twice for what is written"):
        export_sheet([pair(1)], tmp_path / "new.csv", tmp_path / "new.csv")
    (tmp_path / "link.csv").symlink_to(sheet)
    with reading([sheet]), pytest.raises(StorageError, match="is read by the same command"):
        export_sheet([pair(1)], tmp_path / "link.csv", tmp_path / "k.json", overwrite=True)
    (tmp_path / "link.csv").unlink()
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == kept


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"items": ["x"]}, "an item is 'x', expected an object"),
        ({"items": 3}, "items is 3, expected a list"),
        ({"items": [{}]}, "'pair' is missing"),
        ({"flaws": [["sexism"]]}, "unknown flaw"),
        ({"flaws": "sexism"}, "flaws is 'sexism', expected a list"),
    ],
)
def test_damaged_keys_are_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    sheet, key = sheet_of(tmp_path, [pair(1)])
    key.write_text(json.dumps(json.loads(key.read_text(encoding="utf-8")) | change), encoding="utf-8")
    with pytest.raises(RecordError, match=f"not the key of a sheet .*{message}"):
        import_sheet(sheet, key, "A1")


def test_other_bad_input(tmp_path: Path) -> None:
    sheet, key = sheet_of(tmp_path, [pair(1)])
    with pytest.raises(RecordError, match="the rater has no name"):
        import_sheet(sheet, key, " ")
    with pytest.raises(RecordError, match="not the key of a sheet"):
        import_sheet(sheet, sheet, "A1")
    with pytest.raises(StorageError, match="written beside the sheet"):
        import_sheet(sheet, tmp_path / "none.json", "A1")
    sheet.write_bytes(b"item,\xff\xfe")
    with pytest.raises(RecordError, match="not a CSV file in UTF-8"):
        import_sheet(sheet, key, "A1")
    with pytest.raises(RecordError, match="2 pairs, expected at least one and none of them twice"):
        export_sheet([pair(1), pair(1)], sheet, key)
