"""Reports about texts and graphs as files: a page, JSON and CSV tables; and the pictures of reports about texts.

The pictures are LEME's Figures 3 to 7 and the flaws of SEESAW-CF's Table 6: intervals below each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

import pandas as pd

from seesaw_cf.base.terminal import printable
from seesaw_cf.effects.instruments import flaw_title
from seesaw_cf.report.figures import COLOURS, CONTROL_COLOUR, Panel, draw_panels
from seesaw_cf.report.rows import rows_of
from seesaw_cf.report.screen import Part, Screen, render_page, write_files
from seesaw_cf.report.words import relation_name
from seesaw_cf.texts.report.rows import BASELINE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Numbers, caption, label of the axis, column of the lines, columns with a panel for every value.
PICTURES: Sequence[tuple[str, str, str, str, Sequence[str]]] = (
    ("flaw_these_raters", "Mean rating of every flaw; right of 0: more after the edit", "mean rating, −1 to 1", "asked",
     ("relation",)),
    ("rating", "Mean rating of every statement (LEME Figure 3)", "rating, 1 to 7", "asked", ("dataset", "rater")),
    ("claims", "Claims that texts support (green), leave open (grey), contradict (red) (LEME Figure 4)",
     "share of claims", "asked", ("dataset", "rater", "about")),
    ("contradicted", "Claims that texts contradict (LEME Figure 5)", "share of claims", "asked",
     ("dataset", "rater", "about")),
    ("by_kind", "Ratings by kind of edit (LEME Figure 6)", "difference from the other edits", "reference",
     ("dataset", "rater", "asked")),
    ("short_by_kind", "Short form by kind of edit (LEME Figure 7)", "difference from the other edits", "reference",
     ("dataset", "asked")),
)  # fmt: skip
_TITLE = 22  # letters of a line above a panel
_LABELS = {"supports": (-0.2, "#15803d"), "neutral": (0.0, CONTROL_COLOUR), "contradicts": (0.2, "#b91c1c")}


def write_report(
    out: Path,
    screen: Screen,
    parts: Sequence[Part],
    tables: Mapping[str, pd.DataFrame],
    record: Mapping[str, object],
    *,
    about: Mapping[str, str],
    foot: Sequence[str],
    command: str = "",
) -> str:
    """Write page, JSON and tables; return the screen as text.

    Args:
        out: The folder.
        screen: What comes first.
        parts: What follows on the page.
        tables: Name -> rows of a CSV file.
        record: What the JSON has beside the screen.
        about: Name -> what a table holds; the file of one that is not there now is removed.
        foot: How it was made.
        command: What repeats it.
    """
    listed = {name: words for name, words in about.items() if name in tables}
    page = render_page(screen, parts, tables=listed, foot=foot, command=command)
    write_files(out, page, {"screen": screen.record(), **record}, tables)
    for name in about.keys() - tables.keys():
        (out / "tables" / f"{name}.csv").unlink(missing_ok=True)
    return screen.terminal(f"See {out / 'report.html'}")


def page_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of a table of a page: numbers of three digits, printable text, nothing where nothing is."""
    values = rows.astype(object).where(rows.notna(), "")
    return values.map(lambda cell: f"{cell:.3g}" if isinstance(cell, float) else printable(cell))


def figures_of(frame: pd.DataFrame) -> Iterator[tuple[str, str, Figure]]:
    """Yield name, caption and figure of everything that there are numbers for."""
    against = frame[(frame["what"] == "claims") & (frame["answer"] == "contradicts")].assign(what="contradicted")
    every = pd.concat([frame, against]).dropna(subset="value")
    editors = [name for name in dict.fromkeys(every["editor"]) if name not in ("", BASELINE)]
    colours = {name: COLOURS[number % len(COLOURS)] for number, name in enumerate(editors)} | {BASELINE: CONTROL_COLOUR}
    for what, caption, label, across, columns in PICTURES:
        rows = every[every["what"] == what]
        by = [name for name in columns if rows[name].notna().any()]
        panels = [
            _panel(own, fill(", ".join(map(_word, key)), _TITLE), label, across, colours)
            for key, own in rows.groupby(by, sort=False)
        ] if by else []  # fmt: skip
        if panels:
            yield what, caption, draw_panels(panels)


def _panel(rows: pd.DataFrame, title: str, label: str, across: str, colours: Mapping[str, str]) -> Panel:
    """Return a line for every value and editor, texts before the edit first."""
    ordered = rows.assign(value_of=pd.factorize(rows[across])[0], edited=rows["editor"] != BASELINE)
    ordered = ordered.sort_values(["value_of", "edited"], kind="stable")
    lines = list(dict.fromkeys(zip(ordered[across], ordered["editor"])))
    firsts = dict(reversed(lines))
    labels = [_word(value) if firsts[value] == editor else f"after {_word(editor)}" for value, editor in lines]
    marks = []
    for row in rows_of(ordered):
        place, colour = float(lines.index((row[across], row["editor"]))), colours[row["editor"]]
        if row["what"] == "claims":
            shift, colour = _LABELS[row["answer"]]
            place += shift
        marks.append((place, row["value"], row["low"], row["high"], colour))
    return Panel(title, labels, marks, 0.0, label)


def _word(name: object) -> str:
    """Return a name as a picture can show it: no control characters, none that its font lacks."""
    word = flaw_title(relation_name(str(name))).replace("_", " ")
    return "".join(letter if ord(letter) < 0x10000 else "\N{WHITE SQUARE}" for letter in printable(word))[:28]
