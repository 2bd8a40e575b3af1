"""`report.json` and `report.md` of a LEME run: the survey's means, the share of contradicted claims, the gaps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from seesaw_cf.effects.leme_survey import survey_of_columns
from seesaw_cf.errors import RunFolderError
from seesaw_cf.files import write_text
from seesaw_cf.longform.estimates import case_mean
from seesaw_cf.longform.survey_items import ITEMS
from seesaw_cf.longform.tables import ANNOTATIONS, PASSAGES, RATINGS
from seesaw_cf.longform.training_card import held_out_lines
from seesaw_cf.longform.writing import EDITS
from seesaw_cf.report import text
from seesaw_cf.stats.plain import json_text, plain
from seesaw_cf.tables import read_table
from seesaw_cf.textfiles import read_json

__all__ = ["leme_results", "write_leme_report"]

_READING = (
    "Ratings go from 1 (strongly disagree) to 7 (strongly agree). Cells: mean of case means, [95 % interval clustered "
    "by case], number of ratings. *none* is the model before any edit. Raters called *baseline* were not measured "
    "against people: read them as a check of the pipeline, not as findings."
)


NOT_MEASURED = (
    "This annotator comes without held-out figures. docs/instruments.md has those of those that were measured; "
    "measure yours with `seesaw-cf leme train-annotator`."
)


def leme_results(folder: Path) -> dict[str, Any]:
    """Everything the report says, as plain JSON types.

    Args:
        folder: A finished run folder.
    """
    passages = read_table(folder / "passages.parquet", PASSAGES)
    ratings = read_table(folder / "ratings.parquet", RATINGS).to_pandas()
    edits = read_table(folder / "edits.parquet", EDITS).to_pandas()
    manifest = read_json(folder / "manifest.json", error=RunFolderError)
    survey = {
        str(rater): survey_of_columns(
            rows["case_id"].tolist(), rows["editor"].tolist(), rows["item"].tolist(), rows["rating"].tolist(), "none"
        )
        for rater, rows in ratings.groupby("rater", sort=False)
    }
    found = {
        "model": manifest["model"],
        "seed": manifest["seed"],
        "generation": manifest["scoring"],
        "edits": {str(name): dict(Counter(rows["status"])) for name, rows in edits.groupby("editor", sort=False)},
        "passages": _written(passages),
        "survey": survey,
        "ratings_without_value": dict(Counter(ratings.loc[ratings["status"] != "ok", "status"])),
        "demonstrations": _demonstrations(edits),
        "annotations": _annotations(folder / "annotations.parquet"),
        "annotator": _annotator(folder / "annotator.json"),
    }
    return dict(plain(found))


def _written(passages: pa.Table) -> list[dict[str, Any]]:
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


def _demonstrations(edits: Any) -> dict[str, Any] | None:
    """How many worked examples in-context edits were shown."""
    shown = edits["demonstrations"].dropna()
    return {"n": len(shown), "least": int(shown.min()), "most": int(shown.max())} if len(shown) else None


def _annotator(file: Path) -> list[str]:
    """How good the annotator is on texts it has not seen, as sentences."""
    found = read_json(file, error=RunFolderError) if file.exists() else {}
    if found.get("report", {}).get("figures"):
        return held_out_lines(found["report"])
    return [NOT_MEASURED] if found else []


def _annotations(file: Path) -> list[dict[str, Any]]:
    """Share of each label per editor, passage and kind of claim; Source: LEME, Figures 4 and 5."""
    if not file.exists():
        return []
    frame = read_table(file, ANNOTATIONS).to_pandas()
    found = []
    for (annotator, editor, passage, kind), rows in frame.groupby(
        ["annotator", "editor", "passage", "claim_kind"], sort=False
    ):
        labelled = rows[rows["status"] == "ok"]
        shares = {
            label: case_mean((labelled["label"] == label).astype(float), labelled["case_id"])
            for label in ("supports", "neutral", "contradicts")
            if len(labelled)
        }
        names = {"annotator": annotator, "editor": editor, "passage": passage, "claim_kind": kind}
        found.append({**names, "n": len(labelled), "n_missing": len(rows) - len(labelled), "shares": shares})
    return found


def write_leme_report(folder: Path) -> str:
    """Writes `report.json` and `report.md` into a finished run folder.

    Returns:
        The Markdown.
    """
    results = leme_results(folder)
    write_text(folder / "report.json", json_text(results))
    markdown = _markdown(results)
    write_text(folder / "report.md", markdown)
    return markdown


def _markdown(results: Mapping[str, Any]) -> str:
    parts = [f"# Long-form texts of {text.escape(results['model']['id'])}", _READING, _written_how(results)]
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


def _written_how(results: Mapping[str, Any]) -> str:
    how = results["generation"]
    drawn = ", ".join(f"{name} {value}" for name, value in how["sampling"].items() if value)
    shown = results["demonstrations"]
    line = f"Generation settings *{text.escape(how['generation'])}*: {text.escape(drawn)}; {how['samples']} per prompt."
    if shown is None:
        return line
    counted = f"{shown['least']} to {shown['most']} demonstrations (n={shown['n']})"
    return f"{line} In-context edits were shown {counted}; none is the zero-shot variant."


def _passage_table(results: Mapping[str, Any]) -> str:
    rows = [
        [
            text.escape(row["editor"]),
            row["passage"],
            *(str(row[name]) for name in ("n", "n_ok", "n_empty", "n_cut")),
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
    low, high = cell["low"], cell["high"]
    inside = f" [{low:.2f}, {high:.2f}]" if low is not None and high is not None else f" {_why(cell['note'])}"
    return text.minus(f"{cell['mean']:.2f}{inside}") + (f" n={cell['n']}" if "n" in cell else "")


def _claim_table(rows: list[dict[str, Any]]) -> str:
    lines = [
        [
            text.escape(row["editor"]),
            row["passage"],
            row["claim_kind"],
            *(_share(row["shares"].get(label)) for label in ("supports", "neutral", "contradicts")),
            str(row["n"]),
            str(row["n_missing"]),
        ]
        for row in rows
    ]
    heads = ["Method", "Passage", "Claim", "supports", "neutral", "contradicts", "n", "missing"]
    return f"Annotator: {text.escape(rows[0]['annotator'])}.\n\n{text.markdown_table(heads, lines, left=3)}"


def _share(cell: Mapping[str, Any] | None) -> str:
    if cell is None or cell["value"] is None:
        return "–"
    if cell["low"] is None:
        return f"{text.percent(cell['value'])} {_why(cell['note'])}"
    return text.percent_interval(cell["value"], max(cell["low"], 0.0), min(cell["high"], 1.0))


def _why(note: str) -> str:
    """Why there is no interval, short where it is plain to see."""
    short = {"all values equal": "(all equal)", "too few c": "(too few cases)"}
    return next((words for start, words in short.items() if note.startswith(start)), f"({note})")
