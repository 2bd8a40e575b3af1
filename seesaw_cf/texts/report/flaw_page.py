"""`report.html` of ratings of flaws: what changed, the texts with every rating, the papers' tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from seesaw_cf.base.files import write_text
from seesaw_cf.report import text
from seesaw_cf.report.html.findings import Findings, Folded, PageSection, Panels, findings_page
from seesaw_cf.report.html.forest import Axis, ForestColumn, ForestRow, Mark, Panel
from seesaw_cf.report.html.look import Found, Pair, Texts, compared
from seesaw_cf.report.html.render import PageTable, TableRow
from seesaw_cf.report.results import relation_name
from seesaw_cf.report.table import Table
from seesaw_cf.stats import adjust
from seesaw_cf.texts.report.tables import findings_of
from seesaw_cf.texts.wording import FLAWS_BY_NAME

_MAX_PAIRS, _MAX_CHARACTERS = 60, 1_500_000  # of the texts
_WARNING = (
    "Below are texts that language models wrote about people. What they say is often false, and some of it is "
    "offensive. Open to read"
)
_LEVEL = 0.05
_CHANGES = {1: "more after", -1: "more before", 0: "equal"}
_METHOD = (
    "A rating is 1 where a flaw is more present after the edit, −1 where it is more present before it, 0 where it is "
    "equal. Raters do not see which text is which. Intervals are 95 %.",
)


def write_flaw_page(
    folder: Path, table: pa.Table, sections: Sequence[Table], facts: Mapping[str, Any], took: str = ""
) -> Findings:
    """Write `report.html`.

    Args:
        folder: Where to.
        table: Rows of `seesaw_cf.texts.tables.FLAWS`.
        sections: Tables; the one named "flaws" has a mean per flaw.
        facts: What was recorded about the ratings.
        took: What is known about whether the texts say the edit.

    Returns:
        What the page shows.

    Raises:
        StorageError: The file cannot be written.
    """
    page = flaw_findings(table, sections, facts, took)
    write_text(folder / "report.html", findings_page(page))
    return page


def flaw_findings(table: pa.Table, sections: Sequence[Table], facts: Mapping[str, Any], took: str = "") -> Findings:
    """Return what the page shows; see `write_flaw_page` for the arguments."""
    frame = table.to_pandas()
    means = _means(sections)
    rated = frame.dropna(subset="change")
    sentences = (
        f"{frame['pair_id'].nunique()} pairs of texts about {frame['entity'].nunique()} people, written before "
        f"and after edits by {_names(frame['editor'])}.",
        took or "Not measured here: nobody was asked whether the texts say what the edit says.",
        _affected(means),
        _not_known(frame, rated),
        f"{len(rated)} ratings by {_names(frame['rater'])}; 95 % intervals, p adjusted by Holm where it is given.",
    )
    title = "Flaws in texts before and after edits"
    return findings_of(title, sentences, [_plot(means), _texts(table)], sections, _METHOD, facts)


def _means(sections: Sequence[Table]) -> pd.DataFrame:
    """Mean per flaw; the table of judges' ratings has other names and no corrected p."""
    frame = next((one.frame for one in sections if one.name == "flaws"), pd.DataFrame())
    if "mean" not in frame:
        return frame
    p = frame.get("p", pd.Series(math.nan, frame.index))  # not there when no answer of the judge was usable
    adjusted = adjust(pd.to_numeric(p).to_numpy(float))
    return frame.rename(columns={"mean": "value", "n_ratings": "n"}).assign(p_adjusted=adjusted)


def _names(column: pd.Series) -> str:
    names = list(dict.fromkeys(map(str, column)))
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "") or "nobody"


def _rows(means: pd.DataFrame) -> list[dict[Any, Any]]:
    rows = means.to_dict("records") if "value" in means else []
    return [row for row in rows if row["value"] is not None and math.isfinite(row["value"])]


def _said(row: Mapping[Any, Any]) -> str:
    about = ", ".join(str(row[name]) for name in ("editor", "relation") if row.get(name))
    numbers = text.minus(text.estimate(row["value"], row.get("low"), row.get("high"), "+.2f"))
    return f"{_title(row['flaw'])} ({about}): {numbers}, n = {row.get('n', 0)}"


def _title(flaw: object) -> str:
    return FLAWS_BY_NAME[str(flaw)].title if str(flaw) in FLAWS_BY_NAME else str(flaw)


def _affected(means: pd.DataFrame) -> str:
    rows = _rows(means)
    if not rows:
        return "Nothing was rated."
    sure = [row for row in rows if (p := row.get("p_adjusted")) is not None and p < _LEVEL]
    largest = sorted(sure or rows, key=lambda row: -abs(row["value"]))[:3]
    head = f"{len(sure)} of {len(rows)} means differ from 0 after correction" if sure else (
        f"Of {len(rows)} means none is shown to differ from 0"
    )  # fmt: skip
    return f"{head}; largest: {'; '.join(map(_said, largest))}. Above 0: more after the edit."


def _not_known(frame: pd.DataFrame, rated: pd.DataFrame) -> str:
    parts = [f"{len(frame) - len(rated)} of {len(frame)} ratings are missing or could not be read"]
    if frame["rater"].nunique() < 2:
        parts.append("one rater: nothing is known about agreement")
    return "; ".join(parts) + "."


def _plot(means: pd.DataFrame) -> PageSection | None:
    rows = _rows(means)
    if not rows:
        return None
    axis = Axis(-1.0, 1.0)
    panels: list[Panel] = []
    for name in dict.fromkeys(str(row.get("relation", "")) for row in rows):
        own = [row for row in rows if str(row.get("relation", "")) == name]
        lines = [
            ForestRow(
                " · ".join(filter(None, (_title(row["flaw"]), str(row.get("editor") or "")))),
                f"{row.get('n', 0)}",
                [Mark(axis.at(row["value"]), axis.span(*_ends(row)), 0, _said(row))],
            )
            for row in own
        ]
        about = "Mean rating, 95 % intervals; right of 0: more after the edit"
        panels.append(
            Panel(
                f"edited: {relation_name(name) if name else 'all'}",
                about,
                ("flaw", "ratings"),
                [ForestColumn("change", axis)],
                "−1 to 1",
                lines,
                not panels,
            )
        )
    return PageSection("flaws-plot", "By flaw", [Panels(panels)])


def _ends(row: Mapping[Any, Any]) -> tuple[float, float]:
    low, high = (math.nan if row.get(end) is None else float(row[end]) for end in ("low", "high"))
    return low, high


def _texts(table: pa.Table) -> PageSection | None:
    by_pair: dict[str, list[dict[str, Any]]] = {}
    for row in table.to_pylist():
        by_pair.setdefault(row["pair_id"], []).append(row)
    ordered = sorted(by_pair.values(), key=lambda own: -sum(abs(row["change"] or 0) for row in own))
    sizes = accumulate(len(own[0]["pre"] or "") + len(own[0]["post"] or "") for own in ordered)
    n_pairs = max(1, sum(size <= _MAX_CHARACTERS for size in sizes))
    pairs = [_pair(own) for own in ordered[: min(n_pairs, _MAX_PAIRS)]]
    if not pairs:
        return None
    about = f"{len(pairs)} of {len(by_pair)} pairs, those with the most ratings of a change first."
    return PageSection(
        "texts", "The texts", [Folded(f"{_WARNING} {len(pairs)} pairs.", [Texts(pairs)], warning=True)], (about,)
    )


def _pair(rows: Sequence[Mapping[str, Any]]) -> Pair:
    first = rows[0]
    quotes = [Found(row["quote"] or "", "quote") for row in rows if row["change"]]
    about = "; ".join(f"{name}: {first[name]}" for name in ("editor", "relation") if first[name])
    lines = [
        TableRow(
            (_title(row["flaw"]), str(row["rater"]), _CHANGES.get(row["change"], row["status"]), row["quote"] or "–")
        )
        for row in rows
    ]
    table = PageTable(
        "", "Ratings", "Every rating of these texts", ("flaw", "rater", "rating", "words that show it"), 4, lines
    )
    return Pair(
        first["entity"] or "unnamed person",
        about,
        [compared("", first["pre"], first["post"], (quotes, quotes))],
        [table],
    )
