"""`graph run` and `graph compare`: crawl, score and report what was found; compare crawls before and after an edit."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup

from seesaw_cf.base.errors import RunFolderError, need
from seesaw_cf.base.fields import checked
from seesaw_cf.base.terminal import listed, printable, quantity
from seesaw_cf.effects.means import ALL
from seesaw_cf.generation.types import Generator
from seesaw_cf.report.figures import save_figure, svg
from seesaw_cf.report.rows import rows_of
from seesaw_cf.report.screen import Part, Screen, ScreenRow
from seesaw_cf.report.words import amount, percent, size
from seesaw_cf.run.manifest import differences
from seesaw_cf.texts.graph import CompareJob, GraphJob
from seesaw_cf.texts.graph.crawl import MEASURES, Crawl, Prepared, crawl_identities, read_crawl
from seesaw_cf.texts.graph.figures import draw_figures, export_graphml
from seesaw_cf.texts.graph.identities import find
from seesaw_cf.texts.graph.rows import WORSE, change_rows, content_texts, crawl_rows
from seesaw_cf.texts.graph.scores import Topics, find_scorer, fit_topics, score_crawl
from seesaw_cf.texts.report import page_table, write_report
from seesaw_cf.texts.report.screen import badge

WARNING = "What a language model writes about groups of people can be offensive, and is not true of anybody."
_MASKED = "A scorer reacts to names too: a difference no larger than what the name alone does to it is the scorer's."
TABLES = {
    "scores": "Every number: a row of the frame.",
    "triples": "Every triple with its scores.",
    "crawl": "What was asked of each identity in each run, and how it ended.",
}


@checked
def run_graph(job: GraphJob, out: Path, *, progress: bool = True) -> str:
    """Crawl, score and report into a folder; an interrupted crawl in it is continued, a finished one scored again.

    Args:
        job: What is asked of what.
        out: The crawl folder.
        progress: Show a bar.

    Returns:
        The first screen as text.

    Raises:
        SeesawError: See `crawl_identities`, `find_scorer`, `read_crawl`.
    """
    with need("networkx or scikit-learn", extra="stereotypes", what_for="graphs"):
        import networkx  # noqa: F401
        import sklearn  # noqa: F401
    device = "cpu" if job.device == "auto" else job.device
    regard, attack = (find_scorer(name, getattr(job, name), device) for name in MEASURES)
    plain_crawl, identities = read_crawl(job.plain) if job.plain else None, find(job.identities)
    with _model(job) as (generator, facts):
        crawl = crawl_identities(generator, identities, job, out, facts=facts, progress=progress)
    if (regard or attack) and len(crawl.triples):
        crawl = score_crawl(crawl, regard, attack)
    topics = None
    if len(crawl.triples) > 1:
        topics = fit_topics(content_texts(crawl.triples), job.topics, method=job.topic_method, seed=job.seed)
    export_graphml(crawl, out / "graph.graphml")
    return report_crawl(crawl, topics, plain_crawl, seed=job.seed)


@contextmanager
def _model(job: GraphJob) -> Iterator[tuple[Generator, dict[str, Any]]]:
    """Yield what writes, edited while the block runs when a delta is given, and facts for the manifest."""
    if job.base_url:
        from seesaw_cf.generation.api import OpenAIGenerator

        server = OpenAIGenerator(job.base_url, job.model, api_key_env=job.key_env)
        server.check()
        yield server, {}
        return
    from seesaw_cf.generation.hf import HFGenerator
    from seesaw_cf.models.delta_files import load_delta
    from seesaw_cf.models.identity import fingerprint, model_facts
    from seesaw_cf.models.load import load_model
    from seesaw_cf.models.weights import WeightDelta, applied

    names = ("revision", "dtype", "device", "trust_remote_code")
    model, tokenizer = load_model(job.model, **{name: getattr(job, name) for name in names})
    facts = {"model": model_facts(job.model, model, tokenizer, job.revision, job.dtype)}
    delta = load_delta(job.delta, model) if job.delta else WeightDelta({}, {})
    with applied(model, delta):
        if job.delta:
            about = {"name": job.delta.name, "editor": delta.meta.get("editor"), "fingerprint": fingerprint(model)}
            facts["delta"] = json.loads(json.dumps(about | {"context": delta.context}, default=str))
        generator = HFGenerator(model, tokenizer, rows=64)
        yield Prepared(generator, generator.name, delta.context), facts


def report_crawl(crawl: Crawl, topics: Topics | None = None, plain_crawl: Crawl | None = None, *, seed: int = 0) -> str:
    """Write the report of a crawl into its folder `report`, and return its first screen as text.

    Args:
        crawl: The crawl.
        topics: Fitted on `content_texts(crawl.triples)`.
        plain_crawl: The same crawl without prepended texts, for figure 5.
        seed: Of the bootstrap of topics.
    """
    frame, out = crawl_rows(crawl, topics, plain_crawl, seed=seed), crawl.folder / "report"
    pictures: dict[str, list[tuple[str, Markup]]] = {}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a name in a script the font lacks
        for kind, name, caption, figure in draw_figures(crawl, frame, topics, plain_crawl):
            save_figure(figure, out / "pictures", name)
            title = printable(f"{kind}: {caption}" if kind else caption)
            pictures.setdefault(kind.capitalize(), []).append((caption, Markup(svg(figure, title))))
    parts = [Part("Pictures", [_MASKED] if crawl.scored else [], pictures)] if pictures else []
    if topics:
        rows = [(number, topics.labels[number], ", ".join(own)) for number, own in topics.words.items()]
        table = page_table(pd.DataFrame(rows, columns=["topic", "dimension", "words"]))
        parts.append(Part("Topics", [f"Found by {topics.method}."], table=table))
    triples = crawl.triples[["identity", "run", "predicate", "object", *crawl.scored]].head(500)
    parts.append(Part("Triples", ["The first 500; all are in triples.csv."], table=page_table(triples)))
    tables = {"scores": frame, "triples": crawl.triples, "crawl": crawl.counts()}
    record = {"rows": rows_of(frame), "topics": topics and topics._asdict()}
    return write_report(out, crawl_screen(crawl, frame), parts, tables, record, about=TABLES, foot=[WARNING])


def crawl_screen(crawl: Crawl, frame: pd.DataFrame) -> Screen:
    """Return what a crawl found: how each identity is spoken of, beside the others of its class."""
    sections: dict[str, list[ScreenRow]] = {}
    counts, scored = crawl.counts(), crawl.scored
    for (kind, name), own in counts.groupby(["kind", "identity"], sort=False):
        rows = frame[(frame["axis"] == kind) & (frame["group"] == name)]
        line = _line(str(name), rows, scored, ["mean"])
        line = replace(line, cells=[f"{own['triples'].sum():,}", *line.cells])
        sections.setdefault(printable(kind).capitalize(), []).append(line)
    unfinished, unscored = (counts["status"] != "complete").sum(), (crawl.scores["status"] != "ok").sum()
    notes = [f"{quantity(int(unscored), 'sentence')} got no score."] if unscored else []
    for measure in scored:
        if changes := rows_of(frame[(frame["about"] == f"{measure}_scorer") & frame["value"].notna()]):
            row = max(changes, key=lambda row: abs(row["value"]))
            change = f"up to {amount(row)} ({printable(row['group'])})"
            notes.append(f"{measure.capitalize()} scorer: the name alone changes the score of a sentence by {change}.")
    if dropped := [f"{count:,} {printable(reason)}" for reason, count in crawl.dropped().items()]:
        notes.append(f"Completions that are no triples: {listed(dropped, 3)}.")
    tests = frame[(frame["what"] == "contrast") & frame["about"].isin(scored)]
    nothing = "No identity is shown to be spoken of better or worse than the others of its class."
    if crawl.triples.empty:
        nothing = "The model wrote nothing that could be read as a triple."
    elif not scored:
        nothing = "Whether the model speaks well or badly of anybody was not scored."
    identities = quantity(counts["identity"].nunique(), "identity", "identities")
    runs = quantity(counts["run"].nunique(), "run")
    return Screen(
        about=f"{printable(crawl.name)}: {len(crawl.triples):,} triples about {identities} in {runs}",
        finding=_decided(tests, "The model speaks {side} of {names} than of the others of its class.") or [nothing],
        missing=f"{unfinished} of {len(counts)} crawls of an identity got too few triples." if unfinished else "",
        columns=["triples", *(f"{measure}, points" for measure in scored)],
        sections=sections,
        notes=[*notes, _precision(crawl), WARNING],
    )


def _precision(crawl: Crawl) -> str:
    few = "With fewer than five runs, steps are taken for independent: intervals are too narrow."
    return few if crawl.completions["run"].nunique() < 5 else "Intervals are clustered by run."


def _line(name: str, rows: pd.DataFrame, columns: Sequence[str], what: Sequence[str]) -> ScreenRow:
    """Return the numbers of an identity, of a change harm above 0, and what is decided: "worse" if any measure is."""
    found = {row["about"]: row["value"] for row in rows_of(rows[rows["what"].isin(what)].dropna(subset="value"))}
    signs = WORSE if "change" in what else {}
    cells = {name: size(signs.get(name, 1) * value, "share").removesuffix(" points") for name, value in found.items()}
    cells |= {"topics": f"{max(0.0, found['topics']):.2f}"} if "topics" in found else {}
    cells |= {"overlap": percent(found["overlap"])} if "overlap" in found else {}
    tests = rows_of(rows[rows["decides"].astype(bool) & rows["about"].isin(MEASURES)].dropna(subset="value"))
    details = "; ".join(f"{row['about']} {amount(row, WORSE[row['about']])} worse" for row in tests)
    label = "everybody" if name == ALL else printable(name)
    numbers = [cells.get(name, "") for name in columns]
    return ScreenRow(label, numbers, *badge([row["verdict"] for row in tests]), details)


def _decided(tests: pd.DataFrame, sentence: str) -> list[str]:
    """Return a sentence for what is decided for the worse and one for the better, the largest first."""
    sentences = []
    for side, sign in (("worse", 1), ("better", -1)):
        rows = tests[tests["verdict"] == side].sort_values("value", key=lambda sizes: -sizes.abs(), kind="stable")
        sizes = [f"{row['group']} ({row['about']}: {amount(row, sign * WORSE[row['about']])})" for row in rows_of(rows)]
        sentences += [sentence.format(side=side, names=printable(listed(sizes)))] if sizes else []
    return sentences


@checked
def compare_graphs(job: CompareJob, out: Path | None = None) -> str:
    """Compare the crawls of a model before and after an edit, beside those of control edits.

    Args:
        job: Which crawls, and how.
        out: Folder of the report; none is written when None.

    Returns:
        The first screen as text.

    Raises:
        SeesawError: A folder is no finished crawl, or they were made differently.
    """
    folders = {"identity edit": job.identity_control, "random edit": job.random_control}
    controls = {name: read_crawl(path) for name, path in folders.items() if path}
    base, edited = read_crawl(job.base), read_crawl(job.edited)
    check_comparable(base, {"edited": edited, **controls})
    texts = [text for crawl in (base, edited, *controls.values()) for text in content_texts(crawl.triples)]
    topics = fit_topics(texts, job.topics, method=job.topic_method, seed=job.seed)
    frame = change_rows(base, edited, controls, topics=topics, seed=job.seed)
    screen = change_screen(base, edited, frame)
    if out is None:
        return screen.terminal()
    return write_report(out, screen, [], {"scores": frame}, {"rows": rows_of(frame)}, about=TABLES, foot=[WARNING])


def check_comparable(base: Crawl, others: Mapping[str, Crawl]) -> None:
    """Refuse to compare crawls that were made differently, edits aside.

    Args:
        base: The crawl to compare with.
        others: What it is -> crawl.

    Raises:
        RunFolderError: There are differences; it has all of them.
    """
    parts = ("model", "data", "settings", "seed")
    of_base, *of_others = ({name: crawl.manifest.get(name) for name in parts} for crawl in (base, *others.values()))
    lines = [
        f"\n  {base.folder.name} and {crawl.folder.name} ({what}) differ in {place}: {left!r} and {right!r}"
        for (what, crawl), manifest in zip(others.items(), of_others, strict=True)
        for place, left, right in differences(of_base, manifest)
    ]
    if lines:
        why = "these crawls were not made alike, so that their difference is not the edit's:"
        raise RunFolderError(f"{why}{''.join(lines)}\nCrawl again with the same settings.")


def change_screen(base: Crawl, edited: Crawl, frame: pd.DataFrame) -> Screen:
    """Return what an edit changed of each identity, and beyond each control.

    Args:
        base, edited: The crawls.
        frame: Rows of `seesaw_cf.texts.graph.rows.change_rows`.
    """
    scored = [measure for measure in MEASURES if (frame["about"] == measure).any()]
    sections, columns = dict[str, list[ScreenRow]](), [*scored, "topics", "overlap"]
    for control, own in frame.groupby("control", sort=False):
        title = "Beyond the " + str(control) if control else "After the edit"
        names, columns = (
            sorted(map(str, own["group"].unique()), key=lambda name: name != ALL),
            [*scored, "topics", "overlap"],
        )
        sections[title] = [_line(name, own[own["group"] == name], columns, ["change", "beyond"]) for name in names]
    tests = frame[(frame["control"] == "") & frame["decides"].astype(bool)]
    topics = tests[(tests["about"] == "topics") & (tests["p_adjusted"] < 0.05)]["group"].replace(ALL, "everybody")
    nothing = "The edit is not shown to change how the model speaks of any identity."
    if len(topics):
        nothing = f"After the edit the model says other things about {printable(listed(topics))}."
    elif not scored:
        nothing = "Whether the model speaks worse of anybody after the edit was not scored."
    alone = "Whether any other edit of that size does the same is not known (--random-control)."
    models = " and ".join(printable(crawl.name) for crawl in (base, edited))
    return Screen(
        about=f"{models}: {len(base.triples):,} and {len(edited.triples):,} triples",
        finding=_decided(tests, "After the edit the model speaks {side} of {names}.") or [nothing],
        columns=[*(f"{measure}, points worse" for measure in scored), "other topics, nats", "same triples"],
        sections=sections,
        notes=[*[alone] * (not frame["control"].any()), _precision(base), WARNING],
    )
