"""Files that the authors of the papers released, as our tables: ratings of flaws, and annotated claims."""

from __future__ import annotations

import hashlib
import io
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path

import pandas as pd
import pyarrow as pa

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.files import read_bytes
from seesaw_cf.base.tables import read_table
from seesaw_cf.base.text import seed_of
from seesaw_cf.effects.instruments import FLAWS_BY_NAME
from seesaw_cf.effects.texts import CLAIM_KINDS, LABELS
from seesaw_cf.texts.pairs import PassagePair, flaw_row, passage_pairs
from seesaw_cf.texts.tables import ANNOTATIONS, FLAWS, PASSAGES, QUESTIONS, REFLECTED, TABLES, edit_sentence

# Coding -> word in a cell -> answer. "1" means more before in one and more after in the other.
CODINGS: Mapping[str, Mapping[str, int]] = {"halves": {"1": -1, "1.5": 0, "2": 1}, "signed": {"-1": -1, "0": 0, "1": 1}}
_EDIT_AND_TEXTS = ["props", "target_true", "target_new", "subj", "pre_text", "post_text"]
_COLUMNS = {flaw.name: flaw.released for flaw in FLAWS_BY_NAME.values()}
_REFLECTED = {"1": "yes", "0": "no", "": None}
_EDITOR = "memit"


def read_csv(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Return a table with commas, semicolons or tabs as texts; empty cells are "".

    Raises:
        StorageError: See `read_bytes`.
        RecordError: It is not a CSV table.
    """
    content = read_bytes(path)
    head = content.partition(b"\n")[0].decode("utf-8", "replace")
    between = max("\t,;", key=head.count)
    try:
        return pd.read_csv(io.BytesIO(content), sep=between, dtype=str, keep_default_na=False, index_col=False)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise RecordError(f"{path}: no CSV table ({error}). Expected CSV UTF-8 with a header.") from error


def _read(path: Path, needed: Sequence[str]) -> dict[int, dict[str, str]]:
    """Return the rows of a CSV file, each by its number in a spreadsheet (the head is 1)."""
    frame = read_csv(path)
    if missing := [name for name in needed if name not in frame]:
        raise RecordError(f"{path}: columns {missing} are missing; it has {list(frame)}. Give the file as released.")
    rows = frame[(frame != "").any(axis=1)].to_dict("records")
    return {number: {str(name): cell for name, cell in row.items()} for number, row in enumerate(rows, 2)}


# Ratings of flaws: SEESAW-CF.


def read_pairs(path: Path) -> tuple[list[PassagePair], Counter[str]]:
    """Read the pairs of texts in a file, for new judges and new raters.

    Args:
        path: `passages.parquet` of a run, ratings (rows of `FLAWS`: their pairs, without the answers), or a CSV as the
            SEESAW-CF authors released them.

    Returns:
        The pairs in the file's order, and reason -> passages left out.
    """
    if path.suffix.lower() == ".csv":
        ratings = released_flaws(path)[0]
    elif "flaw" in read_table(path).column_names:
        ratings = read_table(path, FLAWS)
    else:
        return passage_pairs(read_table(path, PASSAGES))
    rows = ratings.select(list(PassagePair.__slots__)).to_pylist()
    return list({row["pair_id"]: PassagePair(**row) for row in rows}.values()), Counter()


def released_sentences(path: Path) -> dict[tuple[str, int], str]:
    """Return a sentence about each edit of a released CSV: (editor, case_id) -> "Ada Oak: gender was changed ..."."""
    pairs = [_pair(row) for row in _read(path, _EDIT_AND_TEXTS).values()]
    return {(_EDITOR, pair.case_id): edit_sentence(pair.entity, pair.relation, *edit) for pair, edit in pairs}


def _pair(row: Mapping[str, str]) -> tuple[PassagePair, tuple[str, str]]:
    """Return the pair of a row, known by its edit and texts however they are broken into lines, and both targets."""
    parts = [" ".join(row[name].split()) for name in _EDIT_AND_TEXTS]
    pair_id, case_id = format(seed_of(*parts, bits=64, joined="\0"), "016x"), seed_of(*parts[:4])
    texts = row["subj"], row["pre_text"], row["post_text"]
    return PassagePair(pair_id, _EDITOR, case_id, parts[0].split("_")[0], "", *texts), (parts[1], parts[2])


def released_flaws(path: Path, rater: str = "") -> tuple[pa.Table, pa.Table]:
    """Read one rater's file in the layout of the SEESAW-CF authors; files in different orders of rows still match.

    Args:
        path: CSV with props, target_true, target_new, subj, pre_text, post_text, a column per flaw and, where it is
            there, "Edit reflected?" (1 or 0). Labels are 1 (more before), 1.5 and 2 (more after), or -1, 0 and 1: the
            file's own labels decide. An empty cell is "equal", as the authors count it (their first rater left equals
            blank; their third wrote them down, and left twelve rows without a rating).
        rater: Name of the rater; the file's own when it is "".

    Returns:
        Rows of `FLAWS`, nothing rated twice (`case_id` is made of the edit, `first` is "pre": raters were not blind),
        and rows of `REFLECTED`.

    Raises:
        RecordError: Not that layout, an empty text, a label outside the coding, labels that decide no coding, or a pair
            twice with different answers; the message has the file and the row.
    """
    rows, rater = _read(path, [*_EDIT_AND_TEXTS, *_COLUMNS.values()]), rater or path.stem
    labels = {number: {flaw: _label(row[column]) for flaw, column in _COLUMNS.items()} for number, row in rows.items()}
    answers = {**_coding(path, labels), "": 0}
    out, reflected = [], []
    seen: dict[str, tuple[int, dict[str, str]]] = {}
    for number, row in rows.items():
        if empty := [name for name in _EDIT_AND_TEXTS if not row[name].strip()]:
            raise RecordError(f"{path}: row {number} has nothing for {', '.join(empty)}. Fill it in, or take it out.")
        (pair, _), told = _pair(row), _label(row.get("Edit reflected?", ""))
        given = labels[number] | {"Edit reflected?": told}
        first, earlier = seen.setdefault(pair.pair_id, (number, given))
        if earlier != given:
            raise RecordError(f"{path}: row {number} repeats the pair of row {first} with other answers. Keep one.")
        if first != number:
            continue
        for name, label in given.items():
            known: Mapping[str, object] = answers if name in labels[number] else _REFLECTED
            if label not in known:
                raise RecordError(
                    f"{path}: row {number} has {label!r} for {_COLUMNS.get(name, name)!r}, expected "
                    f"{', '.join(word for word in known if word)} or nothing. Put the cell right."
                )
        out += [flaw_row(pair, flaw, rater, "pre", answers[label], label) for flaw, label in labels[number].items()]
        reflected.append(asdict(pair) | {"rater": rater, "reflected": _REFLECTED[told], "comment": ""})
    return pa.Table.from_pylist(out, FLAWS), pa.Table.from_pylist(reflected, REFLECTED)


def _coding(path: Path, labels: Mapping[int, Mapping[str, str]]) -> Mapping[str, int]:
    """Return the coding of a file: "1" alone does not tell, any other label does."""
    there = {label for row in labels.values() for label in row.values()} - {""}
    names = [name for name, meaning in CODINGS.items() if (there & meaning.keys()) - {"1"}]
    if len(names) > 1 or there <= {"1"}:
        raise RecordError(
            f"{path}: the labels {sorted(there)} do not decide between the codings 1, 1.5, 2 (halves) and -1, 0, 1 "
            "(signed). Give the filled file, with labels of one coding."
        )
    return CODINGS[names[0] if names else "halves"]


def _label(word: str) -> str:
    """Return a number as the codings write it, also 1.50 or 1,5; other words as they are."""
    try:
        return f"{float(word.replace(',', '.')) + 0.0:g}"
    except ValueError:
        return word.strip()


# Annotated claims: LEME.

_CLAIM = re.compile(r"\s*Passage:(?P<premise>.*?)(?P<gap>\s*)Claim:(?P<claim>(?:(?!Claim:).)*)", re.DOTALL)
_ANNOTATED = ("content", "sample_id", "example_id", "classification", "method", "label")
_EDITORS = {"no_edit": ("none", "pre"), "human": ("human", "post")}  # every other method is an editor
_KINDS = {
    f"{kind}_and_{name}_passage": (kind, side)
    for kind in CLAIM_KINDS
    for name, side in (("main", "subject"), ("related", "related"))
}


def content_parts(where: str, content: str) -> tuple[str, str, bool]:
    """Take "Passage: ... Claim: ..." apart: both texts, and whether an empty line says that the passage is whole.

    Raises:
        RecordError: It is something else.
    """
    match = _CLAIM.fullmatch(content)
    if match is None or not match["premise"].strip() or not match["claim"].strip():
        raise RecordError(f"{where}: content {content[:60]!r} is not 'Passage: ... Claim: ...'.")
    return match["premise"].strip(), match["claim"].strip(), match["gap"].count("\n") > 1


def released_annotations(path: Path, annotator: str = "LEME") -> tuple[pa.Table, Counter[str]]:
    """Read a CSV file in the layout of LEME's annotated data.

    A row there is a passage or a highlighted stretch of it with a claim and a label; here a passage with a claim is one
    row. Its evidence are the stretches with its own label.

    Args:
        path: CSV with content ("Passage: ... Claim: ...", an empty line before "Claim:" where it is the whole
            passage), sample_id, example_id, classification, method ("no_edit", "human", or an editor) and label
            (such as "new_fact_and_main_passage").
        annotator: Who annotated.

    Returns:
        Rows of `ANNOTATIONS`, `case_id` made of the sample's id, no relation; and why -> claims that are left out.

    Raises:
        SeesawError: Columns are missing, or a cell is not as it should be; the message has the row.
    """
    rows = []
    for number, row in _read(path, _ANNOTATED).items():
        where = f"{path}, row {number}"
        premise, claim, whole = content_parts(where, row["content"])
        one_of(f"classification in {where}:", row["classification"], LABELS)
        kind, passage = _KINDS[one_of(f"label in {where}:", row["label"], _KINDS)]
        editor, phase = _EDITORS.get(row["method"], (row["method"], "post"))
        about = {"editor": editor, "case_id": seed_of(row["sample_id"]), "relation": "", "phase": phase, "sample": 0}
        about |= {"passage": passage, "claim_kind": kind, "claim": claim, "label": row["classification"]}
        about["claim_id"] = hashlib.sha256(claim.encode()).hexdigest()[:16]
        rows.append(about | {"premise": premise, "whole": whole, "example_id": row["example_id"]})
    out, left_out = [], Counter[str]()
    for _, part in pd.DataFrame(rows).groupby(["example_id", "claim"], sort=False) if rows else ():
        if not part["whole"].any():
            left_out["stretches of a passage that has no row of its own"] += 1
            continue
        longest = part.loc[part.loc[part["whole"], "premise"].str.len().idxmax()]
        others = part.drop(longest.name)
        same = others.loc[others["label"] == longest["label"], "premise"]
        evidence = [text for text in dict.fromkeys(same) if text in str(longest["premise"])]
        out.append(longest.to_dict() | {"annotator": annotator, "evidence": evidence, "reply": "", "status": "ok"})
    if not out:
        raise RecordError(f"{path}: no row is about a whole passage. Expected an empty line before 'Claim:' in those.")
    return pa.Table.from_pylist(out, ANNOTATIONS), left_out


# Answers of people and judges, from files and folders.


def collect(places: Sequence[Path], needed: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Read answers of people and judges.

    Args:
        places: Parquet files, folders whose Parquet files are read, and CSV files as the authors of the papers
            released them. Beside a Parquet file `NAME.repeats` and `NAME.reflected` are read too.
        needed: Kinds of which there must be at least one row.

    Returns:
        Kind out of `QUESTIONS` -> its rows, of files of such a kind; "swapped" are flaws that were rated a second time.

    Raises:
        RecordError: No row of a kind in `needed`, a rater who gives two answers to the same question, or raters of one
            released study whose pairs of texts differ.
    """
    parts: dict[str, dict[str, pd.DataFrame]] = {}
    for file in dict.fromkeys(file for place in places for file in _files(place)):
        for kind, table in _tables(file):
            again = kind == "flaws" and file.stem.split(".")[-1] in ("swapped", "repeats")
            parts.setdefault("swapped" if again else kind, {})[str(file)] = table.to_pandas()
    studies = {file: set(own["pair_id"]) for file, own in parts.get("flaws", {}).items() if file.endswith(".csv")}
    for study, pairs in studies.items():
        first = next(iter(studies))
        if other := pairs - studies[first]:
            raise RecordError(
                f"{study}: {len(other)} of {len(pairs)} pairs are not in {first}. Put its texts right, or report the "
                "files apart."
            )
    answers = {kind: joined(kind, own) for kind, own in parts.items()}
    if not any(len(answers.get(kind, ())) for kind in needed):
        raise RecordError(
            f"{', '.join(map(str, places))}: no table of {' or '.join(needed)} with a row in it. Expected Parquet "
            "files as raters and judges write them, the folders they are in, or CSV files as released."
        )
    return {kind: rows for kind, rows in answers.items() if len(rows)}


def _files(place: Path) -> list[Path]:
    if place.is_dir():
        return sorted(place.glob("*.parquet"))
    beside = (place.with_suffix(f".{name}{place.suffix}") for name in ("repeats", "reflected"))
    return [place, *(file for file in beside if file.exists())]


def _tables(file: Path) -> Iterable[tuple[str, pa.Table]]:
    """Return kinds and rows of a file; a released one may have two kinds."""
    if file.suffix.lower() == ".csv":
        if "classification" in read_csv(file):
            return [("annotations", released_annotations(file)[0])]
        return zip(("flaws", "reflected"), released_flaws(file), strict=True)
    table = read_table(file)
    kinds = (kind for kind in QUESTIONS if set(TABLES[kind].names) <= set(table.column_names))
    return [(kind, read_table(file, TABLES[kind])) for kind in islice(kinds, 1)]


def joined(kind: str, tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Join the tables of one kind; the same answer twice counts once.

    Args:
        kind: One of `QUESTIONS`.
        tables: Where each is from -> rows; both places are named where a rater gave two answers to one question.
    """
    value, *key = QUESTIONS[kind]
    places = [f"{source}, row {number}" for source, own in tables.items() for number in range(1, len(own) + 1)]
    rows = pd.concat(tables.values(), ignore_index=True).assign(place=places).drop_duplicates([value, *key])
    for _, other in rows[rows.duplicated(key)].head(1).iterrows():
        one = rows[(rows[key].astype(object) == other[key].astype(object)).all(axis=1)].iloc[0]
        words = ", ".join(f"{name} {other[name]!r}" for name in key)
        raise RecordError(
            f"{other['place']}: {value} is {other[value]} for {words}, but {one['place']} has {one[value]}. Keep "
            "one of the two; or import people of another Label Studio with another word for --raters."
        )
    return rows.drop(columns="place").reset_index(drop=True)
