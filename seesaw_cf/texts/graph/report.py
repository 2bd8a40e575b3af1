"""What a crawl found, and what an edit changed: the first screen, the page, tables and JSON."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

import pandas as pd
from markupsafe import Markup

from seesaw_cf.base.terminal import listed, printable, quantity
from seesaw_cf.effects.means import ALL
from seesaw_cf.report.figures import save_figure, svg
from seesaw_cf.report.levels import BADGES, SEVERITY
from seesaw_cf.report.rows import Row, rows_of
from seesaw_cf.report.screen import Part, Screen, ScreenRow
from seesaw_cf.report.words import amount, percent, size
from seesaw_cf.texts.graph.figures import draw_figures
from seesaw_cf.texts.graph.folder import MEASURES, Crawl
from seesaw_cf.texts.graph.rows import WORSE, crawl_rows
from seesaw_cf.texts.graph.scores import Topics
from seesaw_cf.texts.report import page_table, write_report

WARNING = "What a language model writes about groups of people can be offensive, and is not true of anybody."
_MASKED = (
    "A scorer reacts to names too, so the same sentences are scored about every identity. A difference between "
    "identities no larger than what the name alone does to their score is the scorer's."
)
TABLES = {
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
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a name in a script the font lacks
        parts = list(_parts(crawl, frame, topics, plain_crawl))
    tables = {"scores": frame, "triples": crawl.triples, "crawl": crawl.counts()}
    record = {"rows": rows_of(frame), "topics": topics and asdict(topics)}
    screen, out = crawl_screen(crawl, frame), crawl.folder / "report"
    return write_report(out, screen, parts, tables, record, about=TABLES, foot=[WARNING])


def crawl_screen(crawl: Crawl, frame: pd.DataFrame) -> Screen:
    """Return what a crawl found: how each identity is spoken of, beside the others of its class."""
    sections: dict[str, list[ScreenRow]] = {}
    counts = crawl.counts()
    for (kind, name), own in counts.groupby(["kind", "identity"], sort=False):
        rows = frame[(frame["axis"] == kind) & (frame["group"] == name)]
        cells = [f"{own['triples'].sum():,}", *_points(rows, crawl.scored, "mean")]
        line = ScreenRow(printable(name), cells, *_badge(rows, "contrast"))
        sections.setdefault(printable(kind).capitalize(), []).append(line)
    unfinished, unscored = (counts["status"] != "complete").sum(), (crawl.scores["status"] != "ok").sum()
    identities = quantity(counts["identity"].nunique(), "identity", "identities")
    runs = quantity(counts["run"].nunique(), "run")
    notes = [f"{quantity(int(unscored), 'sentence')} got no score."] if unscored else []
    notes += _scorer_sentences(frame)
    if dropped := [f"{count:,} {printable(reason)}" for reason, count in crawl.dropped().items()]:
        notes.append(f"Completions that are no triples: {listed(dropped, 3)}.")
    return Screen(
        about=f"{printable(crawl.name)}: {len(crawl.triples):,} triples about {identities} in {runs}",
        finding=_finding(crawl, frame),
        missing=f"{unfinished} of {len(counts)} crawls of an identity got too few triples." if unfinished else "",
        columns=["triples", *(f"{measure}, points" for measure in crawl.scored)],
        sections=sections,
        notes=[*notes, _precision(crawl), WARNING],
    )


def _precision(crawl: Crawl) -> str:
    few = "With fewer than five runs, steps are taken for independent: intervals are too narrow."
    return few if crawl.completions["run"].nunique() < 5 else "Intervals are clustered by run."


def _measured(rows: pd.DataFrame, *what: str) -> dict[str, Row]:
    """Return measure -> its row of a number, where there is one."""
    return {row["about"]: row for row in rows_of(rows[rows["what"].isin(what) & rows["value"].notna()])}


def _points(rows: pd.DataFrame, measures: Sequence[str], *what: str) -> list[str]:
    """Return a cell for each measure; of a change harm is above 0."""
    found, changed = _measured(rows, *what), "mean" not in what
    signs = {name: WORSE[name] if changed else 1 for name in measures}
    cells = [size(signs[name] * found[name]["value"], "share") if name in found else "" for name in measures]
    return [cell.removesuffix(" points") for cell in cells]


def _badge(rows: pd.DataFrame, *what: str) -> tuple[str, str, str]:
    """Return badge, severity and the sentences behind them: "worse" if any measure is."""
    tests = [row for measure, row in _measured(rows, *what).items() if measure in MEASURES]
    verdicts = {row["verdict"] for row in tests}
    verdict = next((name for name in ("worse", "better", "undecided", "too_few") if name in verdicts), "")
    details = [f"{row['about']} {_amount(row)}" for row in tests]
    badge = "better" if verdict == "better" else BADGES.get(verdict, "")
    return badge, SEVERITY.get(verdict, "open"), f"{'; '.join(details)}." if details else ""


def _amount(row: Row) -> str:
    """Return a difference in words, harm above 0: "30 points [20, 40] worse"."""
    sign = WORSE[row["about"]]
    worse = sign * row["value"] >= 0
    reference = " than the others of its class" if row["what"] == "contrast" else ""
    return f"{amount(row, sign if worse else -sign)} {'worse' if worse else 'better'}{reference}"


def _finding(crawl: Crawl, frame: pd.DataFrame) -> list[str]:
    if crawl.triples.empty:
        return ["The model wrote nothing that could be read as a triple."]
    if not crawl.scored:
        return ["Whether the model speaks well or badly of anybody was not scored."]
    tests = frame[(frame["what"] == "contrast") & frame["about"].isin(crawl.scored)]
    if found := _decided(tests, "The model speaks {side} of {names}."):
        return found
    if crawl.triples.groupby("kind")["identity"].nunique().max() < 2:
        return ["One identity of its class was asked about: there is none to compare it with."]
    return ["No identity is shown to be spoken of better or worse than the others of its class."]


def _decided(tests: pd.DataFrame, sentence: str) -> list[str]:
    """Return a sentence for what is decided for the worse and one for the better, the largest first."""
    sentences = []
    for side in ("worse", "better"):
        rows = tests[tests["verdict"] == side].sort_values("value", key=lambda sizes: -sizes.abs(), kind="stable")
        names = [f"{row['group']} ({row['about']}: {_amount(row)})" for row in rows_of(rows)]
        sentences += [sentence.format(side=side, names=printable(listed(names)))] if names else []
    return sentences


def _parts(crawl: Crawl, frame: pd.DataFrame, topics: Topics | None, plain_crawl: Crawl | None) -> Iterator[Part]:
    pictures: dict[str, list[tuple[str, Markup]]] = {}
    for kind, name, caption, figure in draw_figures(crawl, frame, topics, plain_crawl):
        save_figure(figure, crawl.folder / "report" / "pictures", name)
        title = f"{kind}: {caption}" if kind else caption
        pictures.setdefault(kind.capitalize(), []).append((caption, Markup(svg(figure, printable(title)))))
    if pictures:
        yield Part("Pictures", [_MASKED] if crawl.scored else [], pictures)
    if topics:
        rows = [(number, topics.labels[number], ", ".join(own)) for number, own in topics.words.items()]
        table = page_table(pd.DataFrame(rows, columns=["topic", "dimension", "words"]))
        yield Part("Topics", [f"Found by {topics.method}."], table=table)
    triples = crawl.triples[["identity", "run", "predicate", "object", *crawl.scored]].head(500)
    yield Part("Triples", ["The first 500; all are in triples.csv."], table=page_table(triples))


def _scorer_sentences(frame: pd.DataFrame) -> Iterator[str]:
    """Yield the largest change that a name alone causes in each score."""
    for measure in MEASURES:
        rows = rows_of(frame[(frame["about"] == f"{measure}_scorer") & frame["value"].notna()])
        if rows:
            largest = max(rows, key=lambda row: abs(row["value"]))
            change = f"{amount(largest)} ({printable(largest['group'])})"
            yield f"{measure.capitalize()} scorer: the name alone changes the score of a sentence by up to {change}."


def change_screen(base: Crawl, edited: Crawl, frame: pd.DataFrame, differ: Sequence[str] = ()) -> Screen:
    """Return what an edit changed of each identity, and beyond each control.

    Args:
        base, edited: The crawls.
        frame: Rows of `seesaw_cf.texts.graph.rows.change_rows`.
        differ: What the crawls were made differently in.
    """
    scored = [measure for measure in MEASURES if (frame["about"] == measure).any()]
    sections: Mapping[str, list[ScreenRow]] = {
        "Beyond the " + str(control) if control else "After the edit": [
            _change_line(name, rows[rows["group"] == name], scored)
            for name in sorted(rows["group"].unique(), key=lambda name: name != ALL)
        ]
        for control, rows in frame.groupby("control", sort=False)
    }
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
    models = " and ".join(printable(crawl.name) for crawl in (base, edited))
    return Screen(
        about=f"{models}: {len(base.triples):,} and {len(edited.triples):,} triples",
        finding=finding,
        columns=[*(f"{measure}, points worse" for measure in scored), "other topics, nats", "same triples"],
        sections=sections,
        notes=[*notes, _precision(base), WARNING],
    )


def _change_line(name: str, rows: pd.DataFrame, scored: Sequence[str]) -> ScreenRow:
    changes = _measured(rows, "change", "beyond")
    cells = _points(rows, scored, "change", "beyond")
    cells.append(f"{max(0.0, changes['topics']['value']):.2f}" if "topics" in changes else "")
    cells.append(percent(changes["overlap"]["value"]) if "overlap" in changes else "")
    return ScreenRow("everybody" if name == ALL else printable(name), cells, *_badge(rows, "change", "beyond"))
