"""The report of people's answers about long texts: conclusion, ratings and claims as forest plots, every table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.compute as pc

from seesaw_cf.base.errors import MissingExtraError
from seesaw_cf.base.terminal import quantity
from seesaw_cf.base.types import JsonObject
from seesaw_cf.effects.leme_auto import leme_auto
from seesaw_cf.report import text
from seesaw_cf.report.forms import findings_report
from seesaw_cf.report.html.findings import Findings, FirstScreen, title_by
from seesaw_cf.report.html.forest import key_colours
from seesaw_cf.report.table import Table, table_of
from seesaw_cf.stats.plain import plain
from seesaw_cf.texts.report.collected import Collected, collect
from seesaw_cf.texts.report.page_measures import TITLE, measure_plots, text_summary, took
from seesaw_cf.texts.report.people_survey import HEAD, PLACE, people_sections
from seesaw_cf.texts.report.simple import passage_columns
from seesaw_cf.texts.report.tables import draw_pictures, findings_of
from seesaw_cf.texts.report.values import BASELINE, HUMAN
from seesaw_cf.texts.runs import RunTexts

# Kind of answers -> column of the answer, column of who gave it, what it is called.
_ANSWERS = {
    "ratings": ("rating", "rater", "ratings"),
    "annotations": ("label", "annotator", "labels of claims"),
    "failures": ("present", "rater", "answers about failure modes"),
}
_AGREEMENT = {"survey_agreement": ("type", "all", "the survey"), "claim_agreement": ("claim", "all", "claims")}
_METHOD = (
    "Means are means of case means over all people, with 95 % intervals clustered by case. none is the unedited model, "
    "human are passages that people wrote.",
    "Ratings go from 1 (strongly disagree) to 7 (strongly agree). Claims are what is recorded about the people: the "
    "edited fact, what it replaced, and facts that the edit does not touch (ground truth).",
)


def people_findings(people: Collected, sections: Sequence[Table], facts: JsonObject) -> Findings:
    """Return what the page shows.

    Args:
        people: Tables of people.
        sections: See `seesaw_cf.texts.report.people_survey.people_sections`.
        facts: What was recorded about the report.
    """
    frames = {section.name: section.frame for section in sections}
    whose = {"survey": "rater", "survey_tests": "rater", "labels": "annotator", "drift": "annotator"}
    measures = {name: frames[name].assign(**{who: "people"}) for name, who in whose.items() if name in frames}
    answers = [people.get(kind).to_pandas() for kind in _ANSWERS]
    names = [str(name) for frame in answers for name in frame["editor"]]
    colours = key_colours([BASELINE, *names])
    cases = {case for frame in answers for case in frame["case_id"]}
    texts = {key for frame in answers for key in frame[PLACE].itertuples(index=False, name=None)}
    editors = [name for name in dict.fromkeys(names) if name not in (BASELINE, HUMAN)]
    plots = measure_plots(measures.get("labels"), measures.get("survey"), colours)
    screen = FirstScreen(
        f"{len(cases)} cases, as people rate them · edits by {', '.join(editors) or 'nobody'}",
        title_by(TITLE, text_summary(len(texts), measures)),
        {
            "Do the texts say the new fact": took(measures),
            "Not known": _not_known(people),
            "How sure": _sure(people, frames),
        },
    )
    return findings_of(screen, plots, [], sections, _METHOD, facts)


def _not_known(people: Collected) -> str:
    parts = []
    for kind, (column, who, name) in _ANSWERS.items():
        table = people.get(kind)
        if not table.num_rows:
            parts.append(f"no {name}")
            continue
        parts += [f"{n} of {table.num_rows} {name} are missing"] if (n := table[column].null_count) else []
        if len(set(table[who].to_pylist())) < 2:
            parts.append(f"{name} by one person: nothing is known about agreement")
    return f"{'; '.join(parts)}." if parts else ""


def _sure(people: Collected, frames: Mapping[str, pd.DataFrame]) -> str:
    counts = []
    for kind, (column, who, name) in _ANSWERS.items():
        table = people.get(kind)
        if table.num_rows:
            n = table.num_rows - table[column].null_count
            counts.append(f"{n} {name} by {quantity(len(set(table[who].to_pylist())), 'person', 'people')}")
    agreed = [
        f"Krippendorff's alpha on {title} " + text.minus(text.estimate(row["alpha"], row["low"], row["high"]))
        for name, (by, whole, title) in _AGREEMENT.items()
        if name in frames
        for row in frames[name].to_dict("records")
        if row[by] == whole and row["alpha"] == row["alpha"]
    ]
    return f"{'; '.join([*counts, *agreed])}; 95 % intervals clustered by case."


# People's answers about long texts, alone or beside the run that the texts are from.

KINDS = ("ratings", "annotations", "failures")
_MEASURES = (
    "Spearman's rho of measures that need no model with people's mean rating of the statement that each should stand "
    "for, over texts; intervals resample whole edits."
)


def report_people(
    raters: Sequence[Path],
    out: Path,
    run: Path | None = None,
    *,
    pictures: bool = False,
    **options: Any,
) -> str:
    """Write the report of people's answers.

    Args:
        raters: Folders and Parquet files of people.
        out: Where the tables go.
        run: The run that the texts are from: its raters, annotators and simple metrics are compared with people.
        pictures: Draw pictures too; needs matplotlib.
        **options: See `people_sections`.

    Returns:
        Plain text for a terminal.

    Raises:
        SeesawError: A table that cannot be used, or a run without records.
    """
    people = collect(raters, KINDS)
    judged = collect([run], ["passages"]) if run is not None else None
    if judged is not None and "passages" not in people.tables:
        people = replace(people, tables={**people.tables, "passages": judged.get("passages")})
    sections = people_sections(people, judged, **options)
    if run is not None and people.get("ratings").num_rows:
        sections += _measures(run, people)
    facts: JsonObject = {
        "run": "" if run is None else run.name,
        **{name: str(value) for name, value in options.items()},
    }
    report = findings_report(people_findings(people, sections, facts), HEAD, partial(draw_pictures, sections))
    return report.write(out, pictures=pictures)


def _measures(run: Path, people: Collected) -> list[Table]:
    """Compare simple metrics with what people say. LEME, appendix I."""
    samples = RunTexts(run).samples
    rated = people.get("ratings").filter(pc.is_valid(people.get("ratings")["rating"])).to_pandas()
    mean = rated.groupby([*PLACE, "item"])["rating"].mean().unstack("item")
    places = pd.MultiIndex.from_tuples([tuple(getattr(one, name) for name in PLACE) for one in samples], names=PLACE)
    beside = mean.reindex(places)
    ratings = {str(item): [None if pd.isna(x) else float(x) for x in beside[item]] for item in beside}
    try:
        measures = leme_auto([sample.case_id for sample in samples], passage_columns(samples), ratings=ratings)
    except MissingExtraError as error:
        return [table_of("measures", "Simple metrics against people", str(error), pd.DataFrame())]
    rows = [{"measure": name} | plain(one) for name, one in (measures.correlations or {}).items()]
    title = "Simple metrics against people (LEME Table 19, appendix I)"
    return [table_of("measures", title, _MEASURES, pd.DataFrame(rows), digits=3)]
