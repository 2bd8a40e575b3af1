"""`report.json` and `report.md` of a LEME run: the survey's means, the share of contradicted claims, the gaps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, cast

import pandas as pd
import pyarrow as pa

from seesaw_cf.effects.leme_annotation import LABELS
from seesaw_cf.effects.leme_survey import survey_of_columns
from seesaw_cf.effects.survey_items import ITEMS
from seesaw_cf.errors import RunFolderError
from seesaw_cf.io.files import write_text
from seesaw_cf.io.text import read_json
from seesaw_cf.longform.tables import ANNOTATIONS, PASSAGES, RATINGS
from seesaw_cf.longform.train.card import held_out_lines
from seesaw_cf.longform.write.writing import EDITS
from seesaw_cf.report import text
from seesaw_cf.stats.case_means import CaseMeanRecord, case_share
from seesaw_cf.stats.plain import as_json, json_text, plain
from seesaw_cf.tables import read_table

_READING = (
    "Ratings go from 1 (strongly disagree) to 7 (strongly agree). Cells: mean of case means, [95 % interval clustered "
    "by case], number of ratings. *none* is the model before any edit. Raters called *baseline* were not measured "
    "against people: read them as a check of the pipeline, not as findings."
)


NOT_MEASURED = (
    "This annotator comes without held-out figures. docs/instruments.md has those of those that were measured; "
    "measure yours with `seesaw-cf leme train-annotator`."
)


class PassageCounts(TypedDict):
    """How many texts of one editor and kind there are, and why others are not (`failures`: status -> texts)."""

    editor: str
    passage: str
    n: int
    n_ok: int
    n_empty: int
    n_cut: int
    failures: dict[str, int]


class DemonstrationCounts(TypedDict):
    """How many examples in-context edits were shown: the least, the most, and over how many edits."""

    n: int
    least: int
    most: int


class LabelShares(TypedDict):
    """The share of each label among the claims of one kind."""

    annotator: str
    editor: str
    passage: str
    claim_kind: str
    n: int
    n_missing: int
    shares: dict[str, CaseMeanRecord]


class LemeResults(TypedDict):
    """The content of `report.json`.

    `model`, `seed` and `generation` (name of the settings, sampling, samples) are those of the manifest; `survey` is
    rater -> `seesaw_cf.effects.leme_survey.Survey`, as plain JSON types.
    """

    model: dict[str, object]
    seed: int
    generation: dict[str, Any]
    edits: dict[str, dict[str, int]]
    passages: list[PassageCounts]
    survey: dict[str, dict[str, Any]]
    ratings_without_value: dict[str, int]
    demonstrations: DemonstrationCounts | None
    annotations: list[LabelShares]
    annotator: list[str]


def leme_results(folder: Path) -> LemeResults:
    """Everything the report says, as plain JSON types.

    Args:
        folder: A finished run folder.
    """
    passages = read_table(folder / "passages.parquet", PASSAGES)
    ratings = read_table(folder / "ratings.parquet", RATINGS).to_pandas()
    edits = read_table(folder / "edits.parquet", EDITS).to_pandas()
    manifest = read_json(folder / "manifest.json", error=RunFolderError)
    survey = {
        str(rater): as_json(survey_of_columns)(
            rows["case_id"].tolist(), rows["editor"].tolist(), rows["item"].tolist(), rows["rating"].tolist(), "none"
        )
        for rater, rows in ratings.groupby("rater", sort=False)
    }
    found: LemeResults = {
        "model": manifest["model"],
        "seed": manifest["seed"],
        "generation": manifest["settings"],
        "edits": {str(name): dict(Counter(rows["status"])) for name, rows in edits.groupby("editor", sort=False)},
        "passages": _written(passages),
        "survey": survey,
        "ratings_without_value": dict(Counter(ratings.loc[ratings["status"] != "ok", "status"])),
        "demonstrations": _demonstrations(edits),
        "annotations": _annotations(folder / "annotations.parquet"),
        "annotator": _annotator(folder / "annotator.json"),
    }
    results: LemeResults = plain(found)
    return results


def _written(passages: pa.Table) -> list[PassageCounts]:
    frame = passages.to_pandas()
    return [
        {
            "editor": editor,
            "passage": kind,
            "n": len(rows),
            "n_ok": int((rows["status"] == "ok").sum()),
            "n_empty": int(((rows["status"] == "ok") & (rows["text"].str.strip() == "")).sum()),
            "n_cut": int((rows["finish"] == "length").sum()),
            "failures": dict(Counter(rows.loc[rows["status"] != "ok", "status"])),
        }
        for (editor, kind), rows in frame.groupby(["editor", "passage"], sort=False)
    ]


def _demonstrations(edits: pd.DataFrame) -> DemonstrationCounts | None:
    """How many worked examples in-context edits were shown."""
    shown = edits["demonstrations"].dropna()
    return {"n": len(shown), "least": int(shown.min()), "most": int(shown.max())} if len(shown) else None


def _annotator(file: Path) -> list[str]:
    """How good the annotator is on texts it has not seen, as sentences."""
    found = read_json(file, error=RunFolderError) if file.exists() else {}
    if found.get("report", {}).get("figures"):
        return held_out_lines(found["report"])
    return [NOT_MEASURED] if found else []


def _annotations(file: Path) -> list[LabelShares]:
    """Share of each label per editor, passage and kind of claim; Source: LEME, Figures 4 and 5."""
    if not file.exists():
        return []
    frame = read_table(file, ANNOTATIONS).to_pandas()
    found: list[LabelShares] = []
    by = ["annotator", "editor", "passage", "claim_kind"]
    for key, rows in frame.groupby(by, sort=False):
        labelled = rows[rows["status"] == "ok"]
        shares = {
            label: case_share(labelled["label"] == label, labelled["case_id"]) for label in LABELS if len(labelled)
        }
        counts = {"n": len(labelled), "n_missing": len(rows) - len(labelled), "shares": shares}
        found.append(cast(LabelShares, dict(zip(by, key, strict=True)) | counts))
    return found


def write_leme_report(folder: Path, conclusion: str = "") -> str:
    """Writes `report.json` and `report.md` into a finished run folder.

    Args:
        folder: The run.
        conclusion: Markdown that stands first.

    Returns:
        The Markdown.
    """
    results = leme_results(folder)
    write_text(folder / "report.json", json_text(results))
    markdown = _markdown(results, conclusion)
    write_text(folder / "report.md", markdown)
    return markdown


def _markdown(results: LemeResults, conclusion: str) -> str:
    title = f"# Long-form texts of {text.escape(results['model']['id'])}"
    parts = [title, *filter(None, (conclusion,)), _READING, _written_how(results)]
    parts += [_passage_table(results)]
    for rater, found in results["survey"].items():
        parts += [f"## Survey, rated by {text.escape(rater)}", _survey_table(found)]
    if results["annotations"]:
        parts += ["## Claims in the passages", _claim_table(results["annotations"])]
        parts += ["\n".join(f"- {text.escape(line)}" for line in results["annotator"])]
    missing = results["ratings_without_value"]
    if missing:
        rows = [[text.escape(reason), str(number)] for reason, number in sorted(missing.items())]
        parts += ["## Ratings without a value", text.markdown_table(["Reason", "Number"], rows)]
    return "\n\n".join(parts) + "\n"


def _written_how(results: LemeResults) -> str:
    how = results["generation"]
    drawn = ", ".join(f"{name} {value}" for name, value in how["sampling"].items() if value)
    shown = results["demonstrations"]
    line = f"Generation settings *{text.escape(how['generation'])}*: {text.escape(drawn)}; {how['samples']} per prompt."
    if shown is None:
        return line
    counted = f"{shown['least']} to {shown['most']} demonstrations (n={shown['n']})"
    return f"{line} In-context edits were shown {counted}; none is the zero-shot variant."


def _passage_table(results: LemeResults) -> str:
    rows = [
        [
            text.escape(row["editor"]),
            row["passage"],
            *map(str, (row["n"], row["n_ok"], row["n_empty"], row["n_cut"])),
            text.escape("; ".join(f"{why} ({number})" for why, number in row["failures"].items())),
        ]
        for row in results["passages"]
    ]
    return text.markdown_table(
        ["Method", "Passage", "asked", "written", "empty", "cut at the limit", "not written"], rows, left=2
    )


def _survey_table(found: Mapping[str, Any]) -> str:
    methods = sorted(found["methods"], key=lambda name: (name != "none", name))
    rows = []
    for item in ITEMS:
        cells = [found["methods"][name]["items"].get(item.name) for name in methods]
        changes = [(cell or {}).get("difference") for cell in cells[1:]]
        rows.append(
            [text.escape(item.statement), item.type, *(_cell(cell) for cell in cells), *(_cell(one) for one in changes)]
        )
    headers = ["Statement", "Type", *methods, *(f"{name} − none" for name in methods[1:])]
    return text.markdown_table([text.escape(name) for name in headers], rows, left=2)


def _cell(cell: Mapping[str, Any] | None) -> str:
    if cell is None or cell["mean"] is None:
        return "–"
    shown = text.estimate(cell["mean"], cell["low"], cell["high"], missing=_why(cell["note"]))
    return text.minus(shown) + (f" n={cell['n']}" if "n" in cell else "")


def _claim_table(rows: Sequence[LabelShares]) -> str:
    lines = [
        [
            text.escape(row["editor"]),
            row["passage"],
            row["claim_kind"],
            *(_share(row["shares"].get(label)) for label in LABELS),
            str(row["n"]),
            str(row["n_missing"]),
        ]
        for row in rows
    ]
    heads = ["Method", "Passage", "Claim", *LABELS, "n", "missing"]
    return f"Annotator: {text.escape(rows[0]['annotator'])}.\n\n{text.markdown_table(heads, lines, left=3)}"


def _share(cell: CaseMeanRecord | None) -> str:
    if cell is None or cell["value"] is None:
        return "–"
    if cell["low"] is None or cell["high"] is None:
        return f"{text.percent(cell['value'])} {_why(cell['note'])}"
    return text.percent_interval(cell["value"], max(cell["low"], 0.0), min(cell["high"], 1.0))


def _why(note: str) -> str:
    """Why there is no interval, short where it is plain to see."""
    short = {"all values equal": "(all equal)", "too few c": "(too few cases)"}
    return next((words for start, words in short.items() if note.startswith(start)), f"({note})")
