"""`report.html` of ratings of flaws: what changed, the texts with every rating, the papers' tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from seesaw_cf.base.terminal import listed
from seesaw_cf.base.types import JsonObject
from seesaw_cf.report import text
from seesaw_cf.report.forms import findings_report
from seesaw_cf.report.html.findings import Findings, FirstScreen, Folded, PageSection, Panels, TitleRules, title_by
from seesaw_cf.report.html.forest import Axis, ForestColumn, ForestRow, Mark, Panel
from seesaw_cf.report.html.texts import Found, Pair, Texts, compared
from seesaw_cf.report.results import relation_name
from seesaw_cf.report.table import Column, Row, Table
from seesaw_cf.texts.report.collected import Collected
from seesaw_cf.texts.report.flaws import edits_reflected, flaw_sections
from seesaw_cf.texts.report.tables import findings_of
from seesaw_cf.texts.wording import flaw_title

_MAX_PAIRS, _MAX_CHARACTERS = 60, 1_500_000  # of the texts
_WARNING = (
    "Below are texts that language models wrote about people. What they say is often false, and some of it is "
    "offensive. Open to read"
)
_LEVEL = 0.05
_CHANGES = {1: "more after", -1: "more before", 0: "equal"}
_RATINGS = (
    Column("flaw", lambda row: flaw_title(row["flaw"]), words=True),
    Column("rater", words=True),
    Column("rating", lambda row: _CHANGES.get(row["change"], row["status"]), words=True),
    Column("words that show it", lambda row: row["quote"] or "-", words=True),
)
_HEAD = """A rating is 1 where a flaw is more present after the edit, -1 where it is more present before it, 0 where it
is equal. Intervals are 95 %. An empty interval has its reason beside it. \\* marks p < 0.05 after Holm's correction
over the table."""
_METHOD = (
    "A rating is 1 where a flaw is more present after the edit, −1 where it is more present before it, 0 where it is "
    "equal. Raters do not see which text is which. Intervals are 95 %, clustered by edit and rater; below five of "
    "either there is none. A judge alone is clustered by edit.",
)


def write_flaw_report(folder: Path, collected: Collected, judges: Sequence[str] = (), **options: Any) -> str:
    """Write the report of ratings of flaws; see `flaw_sections` for the other arguments.

    Args:
        folder: Where to.

    Returns:
        Plain text for a terminal.

    Raises:
        UnknownNameError, RecordError: See `flaw_sections`.
        StorageError: A file cannot be written.
    """
    sections = flaw_sections(collected, judges, **options)
    facts: JsonObject = {"judges": list(judges), **{name: str(value) for name, value in options.items()}}
    page = flaw_findings(collected.get("flaws"), sections, facts, edits_reflected(collected))
    return findings_report(page, _HEAD).write(folder)


def flaw_findings(table: pa.Table, sections: Sequence[Table], facts: JsonObject, took: str = "") -> Findings:
    """Return what the page shows.

    Args:
        table: Rows of `seesaw_cf.texts.tables.FLAWS`.
        sections: Tables; the one named "flaws" has a mean per flaw.
        facts: What was recorded about the ratings.
        took: What is known about whether the texts say the edit.
    """
    frame = table.to_pandas()
    means = next((section.frame for section in sections if section.name == "flaws"), pd.DataFrame())
    rated = frame.dropna(subset="change")
    screen = FirstScreen(
        f"{frame['pair_id'].nunique()} pairs of texts about {frame['entity'].nunique()} people, written before and "
        f"after edits by {_names(frame['editor'])}",
        title_by(_TITLE, FlawSummary(_rows(means))),
        {
            "Do the texts say the edit": took,
            "Not known": _not_known(frame, rated, took),
            "How sure": f"{len(rated)} ratings by {_names(frame['rater'])}; 95 % intervals, p adjusted by Holm."
            if len(rated)
            else "",
        },
    )
    return findings_of(screen, _plot(means), [_texts(table)], sections, _METHOD, facts)


@dataclass(frozen=True, slots=True)
class FlawSummary:
    """What a title is made of: means of ratings, each of a flaw after edits by an editor of a property."""

    means: Sequence[Mapping[Any, Any]]

    def named(self, sign: int) -> str:
        """Return the means on this side of 0 that stand after correction, the largest first; "" where there is none."""
        tested = [row for row in self.means if pd.notna(row.get("p_adjusted")) and row["value"] * sign > 0]
        rows = [row for row in tested if row["p_adjusted"] < _LEVEL]
        return listed(map(_said, sorted(rows, key=lambda row: -abs(row["value"]))), joined="; ")

    @property
    def more(self) -> str:
        """Flaws that there are more of after the edits."""
        return self.named(1)

    @property
    def less(self) -> str:
        """Flaws that there are fewer of after the edits."""
        return self.named(-1)

    @property
    def largest(self) -> str:
        """The largest mean."""
        return _said(max(self.means, key=lambda row: abs(row["value"])))


_TITLE: Sequence[TitleRules[FlawSummary]] = (
    (
        (lambda flaws: not flaws.means, "Nothing was rated: what the edits did to the texts is not known."),
        (lambda flaws: flaws.more, "Texts after edits have more of a flaw: {0.more}."),
        (lambda flaws: flaws.less, ""),
        (
            lambda flaws: True,
            "No flaw is shown to be more or less present after the edits; the largest mean of ratings is {0.largest}.",
        ),
    ),
    ((lambda flaws: flaws.less, "Less after the edits: {0.less}."),),
)


def _names(column: pd.Series) -> str:
    return listed(dict.fromkeys(column), 4) or "nobody"


def _rows(means: pd.DataFrame) -> list[dict[Any, Any]]:
    rows = means.to_dict("records") if "value" in means else []
    return [row for row in rows if row["value"] is not None and math.isfinite(row["value"])]


def _said(row: Mapping[Any, Any]) -> str:
    about = ", ".join(relation_name(str(row[name])) for name in ("editor", "relation") if row.get(name))
    numbers = text.minus(text.estimate(row["value"], row.get("low"), row.get("high"), "+.2f"))
    return f"{flaw_title(row['flaw'])} ({about}): {numbers}, n = {row.get('n', 0)}"


def _not_known(frame: pd.DataFrame, rated: pd.DataFrame, took: str) -> str:
    parts = [] if took else ["whether the texts say what the edit says: nobody was asked"]
    missing = len(frame) - len(rated)
    parts += [f"{missing} of {len(frame)} ratings are missing or could not be read"] if missing else []
    parts += ["one rater: nothing is known about agreement"] if frame["rater"].nunique() == 1 else []
    return f"{'; '.join(parts)}." if parts else ""


def _plot(means: pd.DataFrame) -> list[Panels]:
    axis, rows = Axis(-1.0, 1.0), _rows(means)
    panels: list[Panel] = []
    about = "Mean rating, 95 % intervals; right of 0: more after the edit"
    for name in dict.fromkeys(str(row.get("relation", "")) for row in rows):
        title = f"edited: {relation_name(name) if name else 'all'}"
        lines = [_line(row, axis) for row in rows if str(row.get("relation", "")) == name]
        columns = [ForestColumn("change", axis)]
        panels.append(Panel(title, about, ("flaw", "ratings"), columns, "−1 to 1", lines, not panels))
    return [Panels(panels)] if panels else []


def _line(row: Mapping[Any, Any], axis: Axis) -> ForestRow:
    label = " · ".join(filter(None, (flaw_title(row["flaw"]), str(row.get("editor") or ""))))
    span = axis.span(row.get("low", math.nan), row.get("high", math.nan))
    return ForestRow(label, f"{row.get('n', 0)}", [Mark(axis.at(row["value"]), span, 0, _said(row))])


def _texts(table: pa.Table) -> PageSection | None:
    by_pair: dict[str, list[Row]] = {}
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


def _pair(rows: Sequence[Row]) -> Pair:
    first = rows[0]
    quotes = [Found(row["quote"] or "", "quote") for row in rows if row["change"]]
    about = "; ".join(f"{name}: {first[name]}" for name in ("editor", "relation") if first[name])
    return Pair(
        first["entity"] or "unnamed person",
        about,
        [compared("", first["pre"], first["post"], (quotes, quotes))],
        [Table("", "Ratings", "Every rating of these texts", _RATINGS, pd.DataFrame(rows))],
    )
