"""Pairs of texts and their ratings, as the SEESAW-CF authors released them: one CSV a rater, in one of two codings."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.seeds import seed_of
from seesaw_cf.base.tables import read_table
from seesaw_cf.texts.flaws.edits import edit_sentence
from seesaw_cf.texts.flaws.people import REFLECTED, HumanWork, ReflectedRow, read_sheet, reflected_row
from seesaw_cf.texts.tables import FLAWS, FlawRow
from seesaw_cf.texts.wording import FLAWS_BY_NAME
from seesaw_cf.texts.write.pairs import FlawAnswer, PassagePair, flaw_row, flaw_table, passage_pairs

# Coding -> word in a cell -> answer. "1" means more before in one and more after in the other.
CODINGS: Mapping[str, Mapping[str, int]] = {"halves": {"1": -1, "1.5": 0, "2": 1}, "signed": {"-1": -1, "0": 0, "1": 1}}
_NEEDED = ("props", "target_true", "target_new", "subj", "pre_text", "post_text")
_REFLECTED = {"1": "yes", "0": "no", "": None}
_COLUMN = "Edit reflected?"
_EDITOR = "memit"


def read_pairs(path: Path, kinds: Sequence[str] = ("free", "guided")) -> tuple[list[PassagePair], Counter[str]]:
    """Read the pairs of texts in a file, for new judges and new raters.

    Args:
        path: `passages.parquet` of a run, ratings (rows of `FLAWS`: their pairs, without the answers), or a CSV as the
            SEESAW-CF authors released them.
        kinds: Which values of `passage` to pair, of passages.

    Returns:
        The pairs in the file's order, and reason -> passages left out.

    Raises:
        StorageError: No such file.
        RecordError: It is none of these.
    """
    if path.suffix.lower() == ".csv":
        ratings = released_work(path, "released").table
    elif "flaw" in (table := read_table(path)).column_names:
        ratings = read_table(path, FLAWS)
    else:
        return passage_pairs(table, kinds)
    rows = ratings.select(list(PassagePair.__slots__)).to_pylist()
    return list({row["pair_id"]: PassagePair(**row) for row in rows}.values()), Counter()


def released_sentences(path: Path) -> dict[tuple[str, int], str]:
    """Return a sentence about each edit of a released CSV: (editor, case_id) -> "Ada Oak: gender was changed ..."."""
    edits = [_parts(row)[:4] for row in read_sheet(path, _NEEDED).values()]
    return {
        (_EDITOR, seed_of(*edit)): edit_sentence(edit[3], edit[0].split("_")[0], edit[1], edit[2]) for edit in edits
    }


def _parts(row: Mapping[str, str]) -> list[str]:
    """Return the edit and the texts of a row, however they are broken into lines."""
    return [" ".join(row[name].split()) for name in _NEEDED]


def released_work(
    path: str | os.PathLike[str],
    rater: str,
    *,
    blank: str = "equal",
    coding: str = "auto",
    like: pa.Table | None = None,
) -> HumanWork:
    """Read one rater's file in the layout of the SEESAW-CF authors.

    Pairs are known by their texts and edit, so files with rows in different orders still match.

    Args:
        path: CSV with props, target_true, target_new, subj, pre_text, post_text, a column per flaw and, where it is
            there, "Edit reflected?" (1 or 0).
        rater: Name of the rater.
        blank: What an empty cell is: "equal", as the authors count it (their first rater left equals blank), or
            "missing" (their third rater wrote equals down, and has twelve rows without a rating).
        coding: "halves" (1 = more before, 1.5 = equal, 2 = more after), "signed" (-1, 0, 1), or "auto": the one that
            the file's own labels decide.
        like: Rows of `FLAWS` of another rater of the same study; its pairs must be exactly these.

    Returns:
        Rows of `FLAWS`, nothing rated twice; `case_id` is made of the edit, the same in every file; `relation` is the
        edited property, `first` is "pre" (raters were not blind).

    Raises:
        StorageError: No such file.
        RecordError: Not that layout, an empty text, no label at all, one outside the coding, labels of both codings or
            of an unclear one, a pair twice with different answers, or
            other pairs than those of `like`; the message has the file and the row, as a spreadsheet counts.
    """
    if blank not in ("equal", "missing"):
        raise RecordError(f"{path}: blank is {blank!r}, expected 'equal' or 'missing'.")
    if not rater.strip():
        raise RecordError(f"{path}: the rater has no name; give one, such as A1.")
    columns = {flaw.name: flaw.released for flaw in FLAWS_BY_NAME.values()}
    rows = read_sheet(path, [*_NEEDED, *columns.values()])
    if not rows:
        raise RecordError(f"{path}: a head without rows, expected one for each pair. Give the rater's filled file.")
    answers = {**_coding(path, rows, list(columns.values()), coding), "": 0 if blank == "equal" else None}
    out: list[FlawRow] = []
    reflected: list[ReflectedRow] = []
    seen: dict[str, int] = {}
    for number, row in rows.items():
        if empty := [name for name in _NEEDED if not row[name].strip()]:
            raise RecordError(
                f"{path}: row {number} has nothing for {', '.join(empty)}, expected an edit and two texts. Fill it "
                "in, or take the row out."
            )
        parts = _parts(row)
        pair_id = format(seed_of(*parts, bits=64, joined="\0"), "016x")
        if pair_id in seen:
            _check_repeat(path, rows, seen[pair_id], number, [*columns.values(), _COLUMN])
            continue
        seen[pair_id] = number
        relation = row["props"].split("_")[0]
        pair = PassagePair(
            pair_id, _EDITOR, seed_of(*parts[:4]), relation, "", row["subj"], row["pre_text"], row["post_text"]
        )
        for flaw, column in columns.items():
            change = _answer(path, number, column, row[column], answers)
            answer = FlawAnswer(change, reply=row[column], status="not rated" if change is None else "ok")
            out.append(flaw_row(pair, flaw, rater, "pre", answer))
        word = _label(row.get(_COLUMN, ""))
        if word not in _REFLECTED:
            raise RecordError(
                f"{path}: row {number} has {word!r} for {_COLUMN!r}, expected 1, 0 or nothing. Put the cell right."
            )
        reflected.append(reflected_row(pair, rater, _REFLECTED[word]))
    if like is not None:
        _check_same_pairs(path, out, seen, like)
    table = pa.Table.from_pylist(reflected, schema=REFLECTED)
    return HumanWork(flaw_table(out), flaw_table([]), table, len(rows) - len(seen))


def _check_repeat(
    path: str | os.PathLike[str], rows: Mapping[int, Mapping[str, str]], first: int, again: int, columns: Sequence[str]
) -> None:
    """Refuse a pair that is there twice with two answers; with the same answers it counts once."""
    for column in columns:
        label, other = (_label(rows[number].get(column, "")) for number in (first, again))
        if label != other:
            raise RecordError(
                f"{path}: row {again} repeats the pair of {rows[again]['subj']!r} in row {first}, with {other!r} "
                f"instead of {label!r} for {column!r}. Keep one of the two."
            )


def _check_same_pairs(
    path: str | os.PathLike[str], rows: Sequence[FlawRow], numbers: Mapping[str, int], like: pa.Table
) -> None:
    """Check that two raters of one study rated the same pairs, in any order."""
    theirs: dict[str, FlawRow] = {row["pair_id"]: row for row in like.to_pylist()}
    ours = {row["pair_id"]: row for row in rows}
    other = [row for pair_id, row in ours.items() if pair_id not in theirs]
    lost = [row for pair_id, row in theirs.items() if pair_id not in ours]
    if not other and not lost:
        return
    where = f"{path}: {len(other)} of {len(ours)} pairs are not among those of {like['rater'][0].as_py()!r}, and "
    where += f"{len(lost)} of theirs are not here"
    if not other:
        raise RecordError(f"{where}, first that of {lost[0]['entity']!r}. Add the rows, or leave out --like.")
    first = other[0]
    near = next((row for row in lost if row["case_id"] == first["case_id"]), None)
    differs = [name for name in ("pre", "post") if near and near[name].split() != first[name].split()]
    why = f"its {' and '.join(f'{name}_text' for name in differs)} differ" if differs else "no such edit is there"
    raise RecordError(
        f"{where}; first in row {numbers[first['pair_id']]}, {first['entity']!r}: {why}. Put the texts right, or leave "
        "out --like."
    )


def _coding(
    path: str | os.PathLike[str], rows: Mapping[int, Mapping[str, str]], columns: Sequence[str], coding: str
) -> Mapping[str, int]:
    """Return the coding of a file: "1" alone does not tell, any other label does."""
    if coding != "auto":
        one_of("coding", coding, ["auto", *CODINGS])
        return CODINGS[coding]
    where: dict[str, str] = {}  # label -> where it is first
    for number, row in rows.items():
        for column in columns:
            where.setdefault(_label(row[column]), f"row {number} has {row[column]!r} for {column!r}")
    where.pop("", None)
    if not where:
        raise RecordError(
            f"{path}: no label in {len(rows)} rows, so every answer would be 'equal'. Give the filled file, or say so "
            "with --coding halves."
        )
    codings = [name for name, meaning in CODINGS.items() if (where.keys() & meaning.keys()) - {"1"}]
    if len(codings) > 1:
        examples = [next(where[word] for word in CODINGS[name] if word in where and word != "1") for name in codings]
        raise RecordError(
            f"{path}: labels of two codings: {examples[0]}, as among 1, 1.5, 2; {examples[1]}, as among -1, 0, 1. "
            "Bring all to one coding."
        )
    if where.keys() == {"1"}:
        raise RecordError(
            f"{path}: every label is 1, which is 'more before' among 1, 1.5, 2 and 'more after' among -1, 0, 1. Say "
            "which with --coding halves or --coding signed."
        )
    return CODINGS[codings[0] if codings else "halves"]


def _answer(
    path: str | os.PathLike[str], number: int, column: str, word: str, answers: Mapping[str, int | None]
) -> int | None:
    if (label := _label(word)) not in answers:
        expected = "1, 1.5, 2" if "1.5" in answers else "-1, 0, 1"
        raise RecordError(
            f"{path}: row {number} has {word!r} for {column!r}, expected {expected} or nothing. Put the cell right, or "
            "take out a row that is no pair."
        )
    return answers[label]


def _label(word: str) -> str:
    """Return a number as the codings write it, also 1.50 or 1,5; other words as they are."""
    try:
        return f"{float(word.replace(',', '.')) + 0.0:g}"
    except ValueError:
        return word.strip()
