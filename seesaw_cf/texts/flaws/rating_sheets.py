"""Human ratings of flaws: blind sheets out."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa

from seesaw_cf.base.errors import RecordError, UnknownNameError
from seesaw_cf.base.files import neutral, write_new
from seesaw_cf.base.seeds import seed_of
from seesaw_cf.records.relations import relation
from seesaw_cf.texts.wording import OURS, Wording, chosen_flaws
from seesaw_cf.texts.write.pairs import PassagePair, seeded_uniform, showings


@dataclass(frozen=True, slots=True)
class SheetOptions:
    """What a sheet asks, and in which order.

    Attributes:
        flaws: Names; all seven when empty.
        seed: Of the order of rows and of the texts within them.
        duplicates: Share of pairs that are there a second time, in the other order.
        wording: Instructions for raters, and definitions of the flaws.
    """

    flaws: Sequence[str] = ()
    seed: int = 0
    duplicates: float = 0.1
    wording: Wording = OURS


@dataclass(frozen=True, slots=True)
class SheetItem:
    """One row of a sheet, as its key keeps it.

    Attributes:
        item: The row's id.
        copy: 1, or 2 for a pair that is there again.
        first: Which text is text A, "pre" or "post".
        pair: The texts.
    """

    item: str
    copy: int
    first: str
    pair: PassagePair


def export_sheet(
    pairs: Sequence[PassagePair],
    sheet: str | os.PathLike[str],
    key: str | os.PathLike[str],
    options: SheetOptions | None = None,
    *,
    edits: Mapping[tuple[str, int], str] | None = None,
    overwrite: bool = False,
) -> int:
    """Write a blind sheet for raters, its key, and the instructions (`SHEET.txt`).

    Args:
        pairs: The texts.
        sheet: CSV for raters: item, subject, the edit, text A, text B, an empty column per flaw, and columns for
            whether the edit is reflected and for a comment.
        key: JSON for you alone; keep it apart from the sheet.
        options: What is asked, and in which order; the defaults when None.
        edits: (editor, case_id) -> sentence about the edit (`edit_sentences`); None = raters do not see the edit, and
            not asked whether it is reflected.
        overwrite: Replace files with other content; without it a filled sheet is never lost.

    Returns:
        Rows written.

    Raises:
        RecordError: No pairs, one twice, or a pair without its edit in `edits`.
        UnknownNameError: Unknown flaw.
        StorageError: A file cannot be written, is an input, or is there with other content.
    """
    how = options or SheetOptions()
    seed, wording = how.seed, how.wording
    chosen = [flaw.name for flaw in chosen_flaws(how.flaws)]
    lost = [pair for pair in pairs if edits is not None and (pair.editor, pair.case_id) not in edits]
    if lost:
        raise RecordError(
            f"sheet of ratings: {len(lost)} pairs are of edits that are not in the table of edits, first "
            f"{lost[0].editor} case {lost[0].case_id}. Give the edits.parquet of the same run, or hide the edit."
        )
    items = sheet_items(pairs, how)
    record = {"seed": seed, "flaws": chosen, "shows_edit": edits is not None, "wording": wording.facts()}
    about = json.dumps({**record, "items": [asdict(item) for item in items]}, ensure_ascii=False, indent=1) + "\n"
    files: list[tuple[Path, bytes | str]] = [
        (Path(sheet), b"\xef\xbb\xbf" + _sheet_text(items, chosen, edits).encode("utf-8")),
        (Path(key), about),
        (Path(f"{os.fspath(sheet)}.txt"), _instructions(chosen, wording, edits is not None)),
    ]
    write_new(files, overwrite=overwrite)
    return len(items)


def sheet_items(pairs: Sequence[PassagePair], how: SheetOptions) -> list[SheetItem]:
    """Return the rows of a sheet, blind and in random order; some pairs are there twice.

    Raises:
        RecordError: No pairs, one twice, or a share of duplicates outside 0..1.
    """
    if not pairs or len({pair.pair_id for pair in pairs}) < len(pairs):
        raise RecordError(f"sheet of ratings: {len(pairs)} pairs, expected at least one and none of them twice.")
    by_id = {pair.pair_id: pair for pair in pairs}
    items = [
        SheetItem(f"i{seed_of(how.seed, id, copy, joined=chr(0)):012x}", copy, first, by_id[id])
        for id, copy, first in showings(list(by_id), how.seed, how.duplicates)
    ]
    return sorted(items, key=lambda item: seeded_uniform(how.seed, "row", item.item))


def _sheet_text(items: Sequence[SheetItem], flaws: Sequence[str], edits: Mapping[tuple[str, int], str] | None) -> str:
    edit_column, last_columns = (["edit"], ["edit_reflected"]) if edits is not None else ([], [])
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["item", "subject", *edit_column, "text_A", "text_B", *flaws, *last_columns, "comment"])
    for item in items:
        pair = item.pair
        edit_text = [edits[pair.editor, pair.case_id]] if edits is not None else []
        texts = [neutral(text) for text in (pair.entity, *edit_text, *pair.shown(item.first))]
        writer.writerow([item.item, *texts, *("" for _ in (*flaws, *last_columns, "comment"))])
    return out.getvalue()


def edit_sentences(edits: pa.Table) -> dict[tuple[str, int], str]:
    """Return a sentence about each edit: (editor, case_id) -> "Ada Oak: gender was changed from female to male."

    Args:
        edits: `edits.parquet` of a long-form run.
    """
    return {
        (row["editor"], row["case_id"]): edit_sentence(
            row["subject"], row["relation"], row["target_true"], row["target_new"]
        )
        for row in edits.to_pylist()
    }


def edit_sentence(subject: str, relation_id: str, old: str, new: str) -> str:
    """Return what raters are told about an edit."""
    return f"{subject}: {property_label(relation_id, 'one fact')} was changed from {old} to {new}."


def property_label(relation_id: str, otherwise: str = "") -> str:
    """Return the label of an edited property; `otherwise` of one that the package does not know."""
    try:
        return relation(relation_id).label
    except UnknownNameError:
        return otherwise


def _instructions(flaws: Sequence[str], wording: Wording, shows_edit: bool) -> str:
    lines = [
        wording.task.rstrip(),
        "",
        "A      more in text A",
        "B      more in text B",
        "equal  the same in both, or in neither",
        "Leave a cell empty only if you cannot tell. Do not change the columns item, subject, edit, text_A and text_B.",
    ]
    for flaw in wording.chosen(flaws):
        lines += ["", f"{flaw.title} (column {flaw.name}):", *(f"- {line}" for line in flaw.people)]
    if shows_edit:
        lines += [
            "",
            "Edit reflected? (column edit_reflected): the column 'edit' says what was changed in the model.",
            "yes     at least one text says what the edit says, or takes it for granted",
            "no      neither text does",
            "unsure  it cannot be told",
        ]
    lines += ["", "Column comment: anything that the other columns cannot hold; may stay empty."]
    return "\n".join(lines) + "\n"
