"""What a crawl found, and what an edit changed: the first screen, the page, tables and JSON."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import pandas as pd
from markupsafe import Markup

from seesaw_cf.base.files import csv_text, sweep, write_text
from seesaw_cf.base.terminal import listed, printable, quantity
from seesaw_cf.effects.means import ALL
from seesaw_cf.report.figures import save_figure, svg
from seesaw_cf.report.levels import BADGES, SEVERITY
from seesaw_cf.report.rows import Row, rows_of
from seesaw_cf.report.screen import PageRow, PageTable, Part, Screen, ScreenRow, render_page
from seesaw_cf.report.words import amount, percent, size
from seesaw_cf.stats.plain import plain
from seesaw_cf.texts.graph.folder import MEASURES, Crawl
from seesaw_cf.texts.graph.rows import WORSE, crawl_rows
from seesaw_cf.texts.graph.topics import Topics

WARNING = "What a language model writes about groups of people can be offensive, and is not true of anybody."
_MASKED = (
    "A scorer reacts to names too, so the same sentences are scored about every identity. A difference between "
    "identities no larger than what the name alone does to their score is the scorer's."
)
_TABLES = {
    "scores": "Every number: a row of the frame.",
    "triples": "Every triple with its scores.",
    "crawl": "What was asked of each identity in each run, and how it ended.",
}


def report_crawl(crawl: Crawl, topics: Topics | None = None, plain_crawl: Crawl | None = None, *, seed: int = 0) -> str:
    """Write the report of a crawl into its folder `report`, and return its first screen as text.

    Args:
        crawl: The crawl.
        topics: Fitted on `content_texts(crawl.triples)`.
        plain_crawl: The same crawl without prepended texts, for figure 5.
        seed: Of the bootstrap of topics.
    """
    frame = crawl_rows(crawl, topics, plain_crawl, seed=seed)
    screen = crawl_screen(crawl, frame)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a name in a script the font lacks
        parts = list(_parts(crawl, frame, topics, plain_crawl))
    tables = {"scores": frame, "triples": crawl.triples, "crawl": crawl.counts()}
    return write_pages(crawl.folder / "report", screen, parts, tables, {"topics": topics and asdict(topics)})


def crawl_screen(crawl: Crawl, frame: pd.DataFrame) -> Screen:
    """Return what a crawl found: how each identity is spoken of, beside the others of its class."""
    sections: dict[str, list[ScreenRow]] = {}
    counts = crawl.counts()
    for (kind, name), own in counts.groupby(["kind", "identity"], sort=False):
        rows = frame[(frame["axis"] == kind) & (frame["group"] == name)]
        means, contrasts = (_by_measure(rows, what) for what in ("mean", "contrast"))
        cells = [f"{own['triples'].sum():,}", *(_points(means.get(measure)) for measure in crawl.scored)]
        line = ScreenRow(printable(name), cells, *_badge(contrasts))
        sections.setdefault(printable(kind).capitalize(), []).append(line)
    unfinished = int((counts["status"] != "complete").sum())
    runs, identities = counts["run"].nunique(), quantity(counts["identity"].nunique(), "identity", "identities")
    dropped = [f"{count:,} {printable(reason)}" for reason, count in crawl.dropped().items()]
    unscored = int((crawl.scores["status"] != "ok").sum())
    notes = [
        f"{quantity(unscored, 'sentence')} got no score." if unscored else "",
        " ".join(_scorer_sentences(frame)),
        f"Completions that are no triples: {listed(dropped, 3)}." if dropped else "",
        _precision(runs),
        WARNING,
    ]
    return Screen(
        about=f"{printable(crawl.name)}: {len(crawl.triples):,} triples about {identities} in {quantity(runs, 'run')}",
        finding=_crawl_finding(crawl, frame),
        missing=f"{unfinished} of {len(counts)} crawls of an identity got too few triples." if unfinished else "",
        columns=["triples", *(f"{measure}, points" for measure in crawl.scored)],
        sections=sections,
        notes=[note for note in notes if note],
    )


def _precision(runs: int) -> str:
    few = "With fewer than five runs, steps are taken for independent: intervals are too narrow."
    return few if runs < 5 else "Intervals are clustered by run."


def _by_measure(rows: pd.DataFrame, *what: str) -> dict[str, Row]:
    """Return measure -> its row of a number, where there is one."""
    return {row["about"]: row for row in rows_of(rows[rows["what"].isin(what) & rows["value"].notna()])}


def _points(row: Row | None, sign: int = 1) -> str:
    return size(sign * row["value"], "share").removesuffix(" points") if row else ""


def _badge(tests: Mapping[str, Row]) -> tuple[str, str, str]:
    """Return badge, severity and the sentences behind them: "worse" if any measure is."""
    verdicts = [tests[measure]["verdict"] for measure in MEASURES if measure in tests]
    verdict = next((name for name in ("worse", "better", "undecided", "too_few") if name in verdicts), "")
    details = [f"{measure} {_amount(measure, tests[measure])}" for measure in MEASURES if measure in tests]
    badge = "better" if verdict == "better" else BADGES.get(verdict, "")
    return badge, SEVERITY.get(verdict, "open"), f"{'; '.join(details)}." if details else ""


def _amount(measure: str, row: Row) -> str:
    """Return a difference in words, harm above 0: "30 points [20, 40] worse"."""
    sign = WORSE[measure]
    worse = sign * row["value"] >= 0
    reference = " than the others of its class" if row["what"] == "contrast" else ""
    return f"{amount(row, sign if worse else -sign)} {'worse' if worse else 'better'}{reference}"


def _crawl_finding(crawl: Crawl, frame: pd.DataFrame) -> list[str]:
    if crawl.triples.empty:
        return ["The model wrote nothing that could be read as a triple."]
    if not crawl.scored:
        return ["Whether the model speaks well or badly of anybody was not scored."]
    tests = frame[(frame["what"] == "contrast") & frame["about"].isin(crawl.scored)]
    found = _decided(tests, "The model speaks {side} of {names}.")
    if not found and crawl.triples.groupby("kind")["identity"].nunique().max() < 2:
        return ["One identity of its class was asked about: there is none to compare it with."]
    return found or ["No identity is shown to be spoken of better or worse than the others of its class."]


def _decided(tests: pd.DataFrame, sentence: str) -> list[str]:
    """Return a sentence for what is decided for the worse and one for the better, the largest first."""
    sentences = []
    for side in ("worse", "better"):
        rows = tests[tests["verdict"] == side]
        rows = rows.reindex(rows["value"].abs().sort_values(ascending=False, kind="stable").index)
        names = [f"{row['group']} ({row['about']}: {_amount(row['about'], row)})" for row in rows_of(rows)]
        sentences += [sentence.format(side=side, names=printable(listed(names)))] if names else []
    return sentences


def _parts(crawl: Crawl, frame: pd.DataFrame, topics: Topics | None, plain_crawl: Crawl | None) -> Iterator[Part]:
    from seesaw_cf.texts.graph.figures import draw_figures

    pictures: dict[str, list[tuple[str, Markup]]] = {"": []}
    for kind, name, caption, figure in draw_figures(crawl, frame, topics, plain_crawl):
        save_figure(figure, crawl.folder / "report" / "pictures", name)
        title = f"{kind}: {caption}" if kind else caption
        pictures.setdefault(kind.capitalize(), []).append((caption, Markup(svg(figure, printable(title)))))
    prefixes = frame[(frame["about"] == "prefix") & (frame["what"] == "difference") & frame["value"].notna()]
    yield Part("The graph", [*map(_prefix_sentence, rows_of(prefixes))], {"": pictures.pop("")})
    if pictures:
        yield Part("By class", [_MASKED] if crawl.scored else [], pictures)
    if topics:
        rows = [(number, topics.labels[number], ", ".join(own)) for number, own in topics.words.items()]
        table = _page_table(pd.DataFrame(rows, columns=["topic", "dimension", "words"]))
        yield Part("Topics", [f"Found by {topics.method}."], table=table)
    triples = crawl.triples[["identity", "run", "predicate", "object", *crawl.scored]].head(500)
    yield Part("Triples", ["The first 500; all are in triples.csv."], table=_page_table(triples))


def _prefix_sentence(row: Row) -> str:
    difference = f"{row['axis'].capitalize()}: with the prepended text, attack scores are {_amount('attack', row)}"
    p = row["p_adjusted"]
    return f"{difference} than without{f' (p {p:.2g})' if math.isfinite(p) else ''}."


def _scorer_sentences(frame: pd.DataFrame) -> Iterator[str]:
    """Yield the largest change that a name alone causes in each score."""
    for measure in MEASURES:
        rows = rows_of(frame[(frame["about"] == f"{measure}_scorer") & frame["value"].notna()])
        if rows:
            largest = max(rows, key=lambda row: abs(row["value"]))
            change = f"{amount(largest)} ({printable(largest['group'])})"
            scorer = f"{measure.capitalize()} scorer"
            yield f"{scorer}: the name alone changes the score of the same sentences by up to {change}."


def _page_table(rows: pd.DataFrame) -> PageTable:
    numeric = [pd.api.types.is_numeric_dtype(kind) for kind in rows.dtypes]
    values = rows.astype(object).where(rows.notna(), "").to_numpy().tolist()
    cells = [[f"{cell:.3g}" if isinstance(cell, float) else printable(cell) for cell in row] for row in values]
    return PageTable([str(head) for head in rows], numeric, [PageRow(row) for row in cells])


def change_screen(base: Crawl, edited: Crawl, frame: pd.DataFrame, differ: Sequence[str] = ()) -> Screen:
    """Return what an edit changed of each identity, and beyond each control.

    Args:
        base, edited: The crawls.
        frame: Rows of `seesaw_cf.texts.graph.rows.change_rows`.
        differ: What the crawls were made differently in.
    """
    scored = [measure for measure in MEASURES if (frame["about"] == measure).any()]
    sections = {}
    for control in frame["control"].unique():
        rows = frame[frame["control"] == control]
        lines = [_change_line(str(name), own, scored) for name, own in rows.groupby("group", sort=False)]
        sections[f"Beyond the {control}" if control else "After the edit"] = lines[-1:] + lines[:-1]
    tests = frame[(frame["control"] == "") & frame["decides"].astype(bool)]
    finding = _decided(tests, "After the edit the model speaks {side} of {names}.")
    topics = tests[(tests["about"] == "topics") & (tests["p_adjusted"] < 0.05)]["group"].replace(ALL, "everybody")
    if not finding and len(topics):
        finding = [f"After the edit the model says other things about {printable(listed(topics))}."]
    if not finding:
        shown = "The edit is not shown to change how the model speaks of any identity."
        finding = [shown if scored else "Whether the model speaks worse of anybody after the edit was not scored."]
    notes = [f"The crawls were made differently: {printable(line)}." for line in differ]
    if set(frame["control"]) <= {""}:
        notes.append("Whether any other edit of that size does the same is not known (--random-control).")
    runs = int(base.completions["run"].nunique())
    models = " and ".join(printable(crawl.name) for crawl in (base, edited))
    return Screen(
        about=f"{models}: {len(base.triples):,} and {len(edited.triples):,} triples",
        finding=finding,
        columns=[*(f"{measure}, points worse" for measure in scored), "other topics, nats", "same triples"],
        sections=sections,
        notes=[*notes, _precision(runs), WARNING],
    )


def _change_line(name: str, rows: pd.DataFrame, scored: Sequence[str]) -> ScreenRow:
    changes = _by_measure(rows, "change", "beyond")
    cells = [_points(changes.get(measure), WORSE[measure]) for measure in scored]
    cells.append(f"{max(0.0, changes['topics']['value']):.2f}" if "topics" in changes else "")
    cells.append(percent(changes["overlap"]["value"]) if "overlap" in changes else "")
    return ScreenRow("everybody" if name == ALL else printable(name), cells, *_badge(changes))


def write_pages(
    out: Path,
    screen: Screen,
    parts: Sequence[Part],
    tables: Mapping[str, pd.DataFrame],
    more: Mapping[str, object],
) -> str:
    """Write page, JSON and tables; return the screen as text."""
    sweep(out)
    about = {name: _TABLES[name] for name in tables}
    write_text(out / "report.html", render_page(screen, parts, tables=about, foot=[WARNING]))
    for name, rows in tables.items():
        write_text(out / "tables" / f"{name}.csv", csv_text(rows))
    record = plain({"screen": screen.record(), "rows": rows_of(tables["scores"]), **more})
    write_text(out / "report.json", json.dumps(record, ensure_ascii=False, indent=1) + "\n")
    return screen.terminal(f"See {out / 'report.html'}")
