"""People's answers about long texts, from files and folders, as rows: ratings, claims, failure modes, judges."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError, StorageError
from seesaw_cf.base.tables import read_table
from seesaw_cf.effects.instruments import FAILURE_MODES, TYPES
from seesaw_cf.report.frame import Row
from seesaw_cf.stats.clustered import case_weights, clustered_mean
from seesaw_cf.stats.simple import share_estimate
from seesaw_cf.texts.released import read_csv, released_annotations, released_flaws
from seesaw_cf.texts.report.flaws import flaw_frame, flaw_rows, reflected_rows, repeat_rows, share_of_rows
from seesaw_cf.texts.report.leme import TYPE_OF, claim_rows, labelled, survey_rows, survey_values
from seesaw_cf.texts.report.rows import (
    PEOPLE,
    PLACE,
    QUESTION,
    agreement_rows,
    as_frame,
    beside_people,
    coded,
    frame_of,
    text_row,
)
from seesaw_cf.texts.tables import ANNOTATIONS, FAILURES, FLAWS, PASSAGES, RATINGS, REFLECTED

Answers = Mapping[str, pd.DataFrame]
"""Kind out of `KINDS` -> rows of all files; "again": flaws that were rated a second time. What is missing has none."""
KINDS: Mapping[str, pa.Schema] = {
    "flaws": FLAWS,
    "reflected": REFLECTED,
    "ratings": RATINGS,
    "annotations": ANNOTATIONS,
    "failures": FAILURES,
    "passages": PASSAGES,
    "again": FLAWS,
}
_AGAIN = ("swapped", "repeats")  # last part of a file's name
_TEXT = ["editor", "case_id", "phase", "sample"]
# What is answered, and what tells one row from another; the same answer twice is one.
_QUESTIONS = {
    "flaws": ["change", "pair_id", "flaw", "rater"],
    "again": ["change", "pair_id", "flaw", "rater"],
    "reflected": ["reflected", "pair_id", "rater"],
    "ratings": ["rating", *_TEXT, "item", "rater"],
    "annotations": ["label", *_TEXT, "passage", "claim_kind", "claim_id", "annotator"],
    "failures": ["present", *_TEXT, "mode", "rater"],
    "passages": ["text", *_TEXT, "passage", "prompt_id"],
}


def rows_of_kind(answers: Answers, kind: str) -> pd.DataFrame:
    """Return the answers of one kind."""
    return answers[kind] if kind in answers else KINDS[kind].empty_table().to_pandas()


def collect(places: Sequence[Path], needed: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Read answers of people and judges.

    Args:
        places: Parquet files, folders whose Parquet files are read, and CSV files as the authors of the papers
            released them. Beside a Parquet file `NAME.repeats` and `NAME.reflected` are read too.
        needed: Kinds of which there must be at least one row.

    Returns:
        The rows by kind. Files that are of no kind, such as calls to a judge, are left out.

    Raises:
        StorageError: A place is not there, or a file is not a Parquet file.
        RecordError: No row of a kind in `needed`, a rater who gives two answers to the same question, or raters of one
            released study whose pairs of texts differ.
    """
    parts: dict[str, dict[str, pd.DataFrame]] = {}
    for file in dict.fromkeys(file for place in places for file in _files(place)):
        for kind, table in _tables(file):
            again = kind == "flaws" and file.stem.split(".")[-1] in _AGAIN
            parts.setdefault("again" if again else kind, {})[str(file)] = table.to_pandas()
    _check_same_pairs({file: own for file, own in parts.get("flaws", {}).items() if file.lower().endswith(".csv")})
    answers = {kind: joined(kind, own) for kind, own in parts.items()}
    if not any(len(rows_of_kind(answers, kind)) for kind in needed):
        raise RecordError(
            f"{', '.join(map(str, places))}: no table of {' or '.join(needed)} with a row in it. Expected Parquet "
            "files as raters and judges write them, the folders they are in, or CSV files as released."
        )
    return answers


def _files(place: Path) -> list[Path]:
    if place.is_dir():
        return sorted(place.glob("*.parquet"))
    beside = (place.with_suffix(f".{name}{place.suffix}") for name in ("repeats", "reflected"))
    return [place, *(file for file in beside if file.exists())]


def _tables(file: Path) -> Iterator[tuple[str, pa.Table]]:
    """Yield the kind and the rows of a file; a released one has two kinds."""
    if file.suffix.lower() == ".csv":
        if "classification" in read_csv(file):
            yield "annotations", released_annotations(file)[0]
        else:
            yield from zip(("flaws", "reflected"), released_flaws(file), strict=True)
        return
    try:
        columns = set(pq.read_schema(file).names)
    except (OSError, pa.ArrowException) as error:
        raise StorageError(f"{file}: no Parquet file that can be read ({error}). Check the path.") from error
    if kind := next((kind for kind, schema in KINDS.items() if set(schema.names) <= columns), ""):
        yield kind, read_table(file, KINDS[kind])


def _check_same_pairs(released: Mapping[str, pd.DataFrame]) -> None:
    """Refuse raters of one study who rated other pairs: a text that was changed makes another pair."""
    for file, own in released.items():
        first, expected = next(iter(released.items()))
        pairs = own.drop_duplicates("pair_id")
        other = pairs[~pairs["pair_id"].isin(expected["pair_id"])]
        if len(other):
            raise RecordError(
                f"{file}: {len(other)} of {len(pairs)} pairs are not in {first}, the first of "
                f"{other['entity'].iloc[0]!r}. Put its texts right, or report the files apart."
            )


def joined(kind: str, tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Join the tables of one kind; the same answer twice counts once.

    Args:
        kind: One of `KINDS`.
        tables: Where each is from -> rows.

    Raises:
        RecordError: Two answers to the same question by the same rater; both places are named.
    """
    value, *key = _QUESTIONS[kind]
    places = [f"{source}, row {number}" for source, own in tables.items() for number in range(1, len(own) + 1)]
    rows = pd.concat(tables.values(), ignore_index=True).assign(place=places).drop_duplicates([value, *key])
    if (twice := rows.duplicated(key)).any():
        other = rows[twice].iloc[0]
        one = rows[(rows[key].astype(object) == other[key].astype(object)).all(axis=1)].iloc[0]
        words = ", ".join(f"{name} {other[name]!r}" for name in key)
        raise RecordError(
            f"{other['place']}: {value} is {other[value]} for {words}, but {one['place']} has {one[value]}. Keep "
            "one of the two; or import people of another Label Studio with another word for --raters."
        )
    return rows.drop(columns="place").reset_index(drop=True)


def people_frame(
    people: Answers, judged: Answers | None = None, judges: Collection[str] = (), draws: int = 1000
) -> pd.DataFrame:
    """Return every number that people's answers allow.

    Args:
        people: Answers of people, and of judges of flaws.
        judged: Those of a run: its raters and annotators are compared with people.
        judges: Which raters of flaws are models.
        draws: Bootstrap samples behind the intervals of agreement.

    Raises:
        RecordError: Ratings outside 1 to 7, or labels of claims that are none.
        UnknownNameError: An item, failure mode or judge that does not exist.
    """
    rows: list[Row] = []
    given = {kind: rows_of_kind(people, kind) for kind in KINDS}
    if len(given["flaws"]):
        frame = flaw_frame(given["flaws"])
        rows += [*flaw_rows(frame, judges, draws), *repeat_rows(frame, flaw_frame(given["again"]))]
    rows += reflected_rows(given["reflected"])
    for kind, rows_about in (("ratings", _survey), ("annotations", _claims), ("failures", _failures)):
        rows += rows_about(given[kind], draws) if len(given[kind]) else []
    for kind in ("ratings", "annotations") if judged else ():
        rows += beside_people(kind, given[kind], rows_of_kind(judged or {}, kind), draws)
    return frame_of(rows)


def _survey(frame: pd.DataFrame, draws: int) -> Iterator[Row]:
    outside = frame[frame["rating"].notna() & ~frame["rating"].between(1, 7)]
    if len(outside):
        first = outside.iloc[0]
        raise RecordError(
            f"ratings: {len(outside)} outside 1 to 7, first {first['rating']:g} by {first['rater']!r} for "
            f"{first['item']!r} of case {first['case_id']}. Recode them, or leave them empty."
        )
    yield from survey_rows(survey_values(as_frame(frame.assign(rater=PEOPLE))))
    yield from _other_raters(as_frame(frame))
    items = pd.Categorical(frame["item"], list(TYPE_OF))
    for asked in ("all", frame["item"].map(TYPE_OF), items):
        yield from agreement_rows(coded("ratings", frame), "survey", asked, draws, QUESTION["ratings"])


def _other_raters(frame: pd.DataFrame) -> Iterator[Row]:
    """Yield means with an interval for raters like these: clustered by case and rater, none below five raters."""
    frame = frame.dropna(subset="rating").assign(asked=lambda own: pd.Categorical(own["item"].map(TYPE_OF), TYPES))
    for (editor, asked), part in frame.groupby(["editor", "asked"], sort=True, observed=True):
        case, rater = (pd.factorize(part[column])[0] for column in ("case_id", "rater"))
        weights = case_weights(case, case >= 0)
        found = clustered_mean(part["rating"].to_numpy(float), [weights], {"case": case, "rater": rater})
        yield text_row("rating_other_raters", found, editor=editor, asked=asked, n_people=part["rater"].nunique())


def _claims(frame: pd.DataFrame, draws: int) -> Iterator[Row]:
    yield from claim_rows(labelled(frame.assign(person=frame["annotator"], annotator=PEOPLE)))
    given = frame.dropna(subset="label")
    columns = {"label": given["label"], "kind": given["claim_kind"] + ", " + given["passage"] + " passage"}
    for by, column in columns.items():  # LEME Tables 2 and 3: of all labels
        for name in sorted(set(column)):
            count = int((column == name).sum())
            found = share_of_rows(column == name, given["case_id"])
            yield text_row("claim_share", found, asked=by, answer=name, scale="share", count=count)
    for asked in ("all", frame["claim_kind"]):
        yield from agreement_rows(coded("annotations", frame), "claims", asked, draws, QUESTION["annotations"])


def _failures(table: pd.DataFrame, draws: int) -> Iterator[Row]:
    frame = failures_of(table)
    for (name, editor), part in frame.groupby(["asked", "editor"], sort=True, observed=True):
        answered = part.dropna(subset="present")
        found = share_estimate(answered["present"], answered["case_id"])
        missing = len(part) - len(answered)
        yield text_row("failure", found, asked=name, editor=editor, scale="share", n_missing=missing)
    present = frame.assign(value=frame["present"].astype(float))
    yield from agreement_rows(present, "failures", frame["asked"].astype(str), draws, PLACE)


def failures_of(table: pd.DataFrame) -> pd.DataFrame:
    """Return rows of `seesaw_cf.texts.tables.FAILURES`, `asked` being the title of the failure mode."""
    frame = as_frame(table)
    for name in set(frame["mode"]):
        one_of("failure mode", name, FAILURE_MODES)
    titles = {name: title for name, (title, _) in FAILURE_MODES.items()}
    return frame.assign(asked=pd.Categorical(frame["mode"].map(titles), list(titles.values())))


def failure_examples(people: Answers) -> pd.DataFrame:
    """Return one text of each failure mode, the first by name of editor and case: LEME Table 20."""
    frame, passages = failures_of(rows_of_kind(people, "failures")), as_frame(rows_of_kind(people, "passages"))
    firsts = frame[frame["present"].eq(True)].sort_values([*PLACE, "rater"]).drop_duplicates("asked")
    texts = passages[passages["about"].isin(["subject", "related"])].sort_values("about", ascending=False)
    texts = texts.assign(texts=texts["about"] + ": " + texts["text"].fillna(""))
    words = texts.groupby(PLACE, sort=False)["texts"].agg(" / ".join).reset_index()
    return firsts.merge(words, "left", PLACE)[["asked", "editor", "case_id", "comment", "texts"]].fillna({"texts": ""})
