"""Human ratings of flaws: blind sheets out, filled sheets in.

A sheet is a CSV that opens in any spreadsheet. Which text was written after the edit is in the key file alone, which
raters never see. Some pairs are there twice, the second time in the other order, to see whether raters agree with
themselves.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from seesaw_cf.errors import RecordError, StorageError
from seesaw_cf.files import atomic_path, write_text
from seesaw_cf.longform.flaws import FLAWS_BY_NAME, Flaw, chosen_flaws
from seesaw_cf.longform.pairs import Pair, coin, first_shown, flaw_row, flaw_table, unblinded
from seesaw_cf.sheets import neutral
from seesaw_cf.stats.agreement import annotator_agreement

__all__ = ["LABELS", "HumanWork", "export_sheet", "import_released", "import_sheet", "intra_rater"]

# Label in a sheet -> answer in the order shown; a blank cell is a missing rating, never "equal".
LABELS: Mapping[str, int] = {"A": -1, "equal": 0, "B": 1}


@dataclass(frozen=True, slots=True)
class HumanWork:
    """A filled sheet, un-blinded.

    Attributes:
        table: Rows of `FLAWS`, one per (pair, flaw); a blank cell has the status "not rated".
        repeats: The same for the pairs that were rated a second time.
    """

    table: pa.Table
    repeats: pa.Table


def export_sheet(
    pairs: Sequence[Pair],
    sheet: str | os.PathLike[str],
    key: str | os.PathLike[str],
    *,
    flaws: Sequence[str] = (),
    seed: int = 0,
    duplicates: float = 0.1,
) -> int:
    """Writes a blind sheet for raters, its key, and the instructions (`SHEET.txt`).

    Args:
        pairs: The texts.
        sheet: CSV for raters: item, subject, text A, text B, and an empty column per flaw.
        key: JSON for you alone; keep it apart from the sheet.
        flaws: Names; all seven when empty.
        seed: Of the order of rows and of the texts within them.
        duplicates: Share of pairs that are there a second time, in the other order.

    Returns:
        Rows written.

    Raises:
        RecordError: No pairs, or one twice.
        UnknownNameError: Unknown flaw.
        StorageError: A file cannot be written.
    """
    chosen = chosen_flaws(flaws)
    if not pairs or len({pair.pair_id for pair in pairs}) < len(pairs):
        raise RecordError(f"sheet of ratings: {len(pairs)} pairs, expected at least one and none of them twice.")
    items = [_item(pair, seed, copy) for copy in (1, 2) for pair in _copy(pairs, seed, duplicates, copy)]
    items.sort(key=lambda item: coin(seed, "row", item["item"]))
    with atomic_path(sheet) as temporary, temporary.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["item", "subject", "text_A", "text_B", *(flaw.name for flaw in chosen)])
        for item in items:
            pair = Pair(**item["pair"])
            texts = [neutral(text) for text in (pair.entity, *pair.shown(item["first"]))]
            writer.writerow([item["item"], *texts, *("" for _ in chosen)])
    record = {"seed": seed, "flaws": [flaw.name for flaw in chosen], "items": items}
    write_text(key, json.dumps(record, ensure_ascii=False, indent=1) + "\n")
    write_text(f"{os.fspath(sheet)}.txt", _instructions(chosen))
    return len(items)


def _copy(pairs: Sequence[Pair], seed: int, duplicates: float, copy: int) -> list[Pair]:
    if copy == 1:
        return list(pairs)
    ranked = sorted(pairs, key=lambda pair: coin(seed, "duplicate", pair.pair_id))
    return ranked[: round(duplicates * len(pairs))]


def _item(pair: Pair, seed: int, copy: int) -> dict[str, Any]:
    digest = hashlib.sha256(f"{seed}\0{pair.pair_id}\0{copy}".encode()).hexdigest()[:12]
    first = first_shown(seed, pair.pair_id)
    if copy == 2:
        first = "post" if first == "pre" else "pre"
    about = {name: getattr(pair, name) for name in Pair.__slots__}
    return {"item": f"i{digest}", "copy": copy, "first": first, "pair": about}


def _instructions(flaws: Sequence[Flaw]) -> str:
    lines = [
        "A language model was changed in one fact about a person. Each row has two texts about that person, one from",
        "the model as it was and one from the changed model; you are not told which is which, and rows are in random",
        "order. Some come twice; please rate each as if you saw it for the first time.",
        "",
        "For every flaw say in which text it is more present:",
        "A      more in text A",
        "B      more in text B",
        "equal  the same in both, or in neither",
        "Leave a cell empty only if you cannot tell. Do not change the other columns.",
    ]
    for flaw in flaws:
        lines += ["", f"{flaw.title} (column {flaw.name}):", *(f"- {line}" for line in flaw.people)]
    return "\n".join(lines) + "\n"


def import_sheet(sheet: str | os.PathLike[str], key: str | os.PathLike[str], rater: str) -> HumanWork:
    """Reads a filled sheet back and un-blinds it. Rows may come in any order.

    Args:
        sheet: The CSV, filled.
        key: The key that was written with it.
        rater: Name of the rater.

    Returns:
        The ratings.

    Raises:
        StorageError: A file is missing.
        RecordError: Ids edited, missing or repeated, texts edited, columns missing, or labels unknown; the message
            says where.
    """
    record = _read_key(key)
    items = {item["item"]: item for item in record["items"]}
    rows = _read_rows(sheet, ["item", "text_A", "text_B", *record["flaws"]])
    _check_ids(sheet, rows, items)
    if not rater.strip():
        raise RecordError(f"{sheet}: the rater has no name; give one, such as A1.")
    by_id = {row["item"].strip(): row for row in rows}
    table: dict[int, list[dict[str, Any]]] = {1: [], 2: []}
    for item in sorted(items.values(), key=lambda one: str(one["pair"]["pair_id"])):
        pair, row = Pair(**item["pair"]), by_id[item["item"]]
        _check_texts(sheet, row, pair.shown(item["first"]))
        for flaw in record["flaws"]:
            answer = _label(sheet, row, flaw)
            change = None if answer is None else unblinded(answer, item["first"])
            said = {"change": change, "reply": row[flaw].strip(), "status": "not rated" if answer is None else "ok"}
            table[item["copy"]].append(flaw_row(pair, flaw, rater, item["first"], **said))
    return HumanWork(flaw_table(table[1]), flaw_table(table[2]))


def _read_key(path: str | os.PathLike[str]) -> dict[str, Any]:
    try:
        record: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
        return {"flaws": list(record["flaws"]), "items": list(record["items"])}
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error.strerror}). It was written beside the sheet.") from error
    except (ValueError, KeyError, TypeError) as error:
        raise RecordError(
            f"{path}: not the key of a sheet ({error}). Give the file that was written with it."
        ) from error


def _read_rows(path: str | os.PathLike[str], columns: Sequence[str]) -> list[dict[str, str]]:
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            rows = [{name: value or "" for name, value in row.items() if name} for row in reader]
            found = list(reader.fieldnames or [])
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error.strerror}). Check the path.") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise RecordError(f"{path}: not a CSV file in UTF-8 ({error}). Save the sheet as CSV UTF-8.") from error
    missing = [name for name in columns if name not in found]
    if missing:
        raise RecordError(f"{path}: columns {missing} are missing; it has {found}. Keep the sheet's columns and names.")
    return rows


def _check_ids(path: str | os.PathLike[str], rows: Sequence[dict[str, str]], known: Mapping[str, Any]) -> None:
    got = [row["item"].strip() for row in rows]
    for reason, ids in (
        ("are not in the key", [one for one in got if one not in known]),
        ("are repeated", sorted({one for one in got if got.count(one) > 1})),
        ("are missing", [one for one in known if one not in set(got)]),
    ):
        if ids:
            raise RecordError(
                f"{path}: {len(ids)} items {reason}, first {ids[0]!r}. Rows may be reordered, but the column 'item' "
                "must stay as it was exported, every row once."
            )


def _check_texts(path: str | os.PathLike[str], row: dict[str, str], texts: tuple[str, str]) -> None:
    for name, text in zip(("text_A", "text_B"), texts, strict=True):
        if row[name].split() != neutral(text).split() and row[name].split() != text.split():
            raise RecordError(
                f"{path}: {name} of item {row['item']!r} was edited or moved; its rating would be of another text. "
                "Copy the labels into the sheet as it was exported."
            )


def _label(path: str | os.PathLike[str], row: dict[str, str], flaw: str) -> int | None:
    word = row[flaw].strip()
    if not word:
        return None
    found = {label.lower(): answer for label, answer in LABELS.items()}.get(word.lower())
    if found is None:
        raise RecordError(
            f"{path}: item {row['item']!r} has {word!r} for {flaw}, expected {', '.join(LABELS)} or nothing."
        )
    return found


def intra_rater(work: HumanWork, *, draws: int = 1000) -> dict[str, Any]:
    """How often a rater agrees with themselves on pairs rated twice, the second time in the other order.

    Args:
        work: A filled sheet.
        draws: Bootstrap samples of pairs behind the intervals.

    Returns:
        Flaw -> `seesaw_cf.stats.agreement.annotator_agreement` of first and second rating (`percent`, `cohen`,
        `krippendorff`, `n_items`, `majority_share`), or {"note": ...} where nothing was rated twice.
    """
    once, twice = (
        frame.dropna(subset="change").set_index(["flaw", "pair_id"])["change"]
        for frame in (work.table.to_pandas(), work.repeats.to_pandas())
    )
    both = pd.concat({"first": once, "second": twice}, axis=1).dropna()
    found: dict[str, Any] = {}
    for flaw in dict.fromkeys(work.table.column("flaw").to_pylist()):
        rows = both[both.index.get_level_values("flaw") == flaw]
        found[flaw] = (
            annotator_agreement(rows.to_numpy(float).tolist(), names=["first", "second"], draws=draws)
            if len(rows)
            else {"note": "nothing rated twice"}
        )
    return found


def import_released(path: str | os.PathLike[str], rater: str, *, blank: str = "equal") -> pa.Table:
    """Reads one rater's file in the layout of the SEESAW-CF authors (1 = more before, 2 = more after, 1.5 = equal).

    Pairs are known by their texts and edit, so files whose rows are in different orders still meet.

    Args:
        path: CSV with props, target_true, target_new, subj, pre_text, post_text and a column per flaw.
        rater: Name of the rater.
        blank: What an empty cell is: "equal", as the authors count it (their first rater left equals blank), or
            "missing" (their third rater wrote equals down, and has twelve rows without a rating).

    Returns:
        Rows of `FLAWS`; `relation` is the edited property, `first` is "pre" (raters were not blind).

    Raises:
        StorageError: No such file.
        RecordError: Not that layout, a label outside it, or a pair twice.
    """
    if blank not in ("equal", "missing"):
        raise RecordError(f"{path}: blank is {blank!r}, expected 'equal' or 'missing'.")
    names = {flaw.name: flaw.released for flaw in FLAWS_BY_NAME.values()}
    needed = ["props", "target_true", "target_new", "subj", "pre_text", "post_text"]
    out: list[dict[str, Any]] = []
    seen: set[str] = set()
    for number, row in enumerate(_read_rows(path, [*needed, *names.values()])):
        parts = [" ".join(row[name].split()) for name in needed]
        pair_id = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
        if pair_id in seen:
            raise RecordError(f"{path}: row {number + 1} repeats the pair of {row['subj']!r}. Keep it once.")
        seen.add(pair_id)
        relation = row["props"].split("_")[0]
        pair = Pair(pair_id, "memit", number, relation, "", row["subj"], row["pre_text"], row["post_text"])
        for flaw, column in names.items():
            change = _released(path, number, column, row[column].strip(), blank == "equal")
            said = {"change": change, "reply": row[column], "status": "not rated" if change is None else "ok"}
            out.append(flaw_row(pair, flaw, rater, "pre", **said))
    return flaw_table(out)


def _released(path: str | os.PathLike[str], number: int, column: str, word: str, blank_is_equal: bool) -> int | None:
    known = {"1": -1, "1.0": -1, "1.5": 0, "2": 1, "2.0": 1, "": 0 if blank_is_equal else None}
    if word not in known:
        raise RecordError(f"{path}: row {number + 1} has {word!r} for {column!r}, expected 1, 1.5, 2 or nothing.")
    return known[word]
