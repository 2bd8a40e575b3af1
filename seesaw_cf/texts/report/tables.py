"""The report of a long-form run: the papers' tables as pages, Markdown, CSV files and pictures."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

import pandas as pd
import pyarrow as pa

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import JsonObject
from seesaw_cf.effects.groups import need_columns
from seesaw_cf.effects.survey_items import SCALE, TYPES
from seesaw_cf.report.forms import Report
from seesaw_cf.report.html.findings import Findings, FirstScreen, Folded, PageSection, Part
from seesaw_cf.report.provenance import recorded
from seesaw_cf.report.rows import Manifest
from seesaw_cf.report.table import Table, table_of
from seesaw_cf.texts.report import values as analyses
from seesaw_cf.texts.report.collected import Collected
from seesaw_cf.texts.report.comparisons import chi_square_tests, correlations, wilcoxon_tests
from seesaw_cf.texts.report.edit_kinds import edit_kinds, kind_differences, kind_shares
from seesaw_cf.texts.report.flaws import flaw_sections

# The report of long texts: one page and one Markdown file from a list of tables.


def findings_of(
    screen: FirstScreen,
    first: Sequence[Part],
    parts: Sequence[PageSection | None],
    sections: Sequence[Table],
    method: Sequence[str],
    facts: JsonObject,
    command: str = "",
) -> Findings:
    """Return a page: the parts that exist, then every table, folded and to download.

    Args:
        screen, first: What was found, and the figures that show it.
        parts: What stands before the tables.
        sections: The tables.
        method: Sentences about how it was measured.
        facts: What was recorded.
        command: What repeats it.
    """
    about = "none is the unedited model; an empty interval has its reason beside it." if sections else (
        "There are no tables."
    )  # fmt: skip
    folded = [Folded(table.title, [replace(table, about=table.about.replace("`", ""))]) for table in sections]
    tables = PageSection("tables", "The papers' tables", folded, (about,))
    existing = [part for part in (*parts, tables) if part is not None]
    return Findings(screen, existing, method, command, recorded(cast(Manifest, dict(facts))), sections, first)


def longform_sections(
    passages: pa.Table,
    ratings: pa.Table | None = None,
    annotations: pa.Table | None = None,
    flaws: pa.Table | None = None,
    *,
    scores: pa.Table | None = None,
    simple: pd.DataFrame | None = None,
    factual: Collection[int] = (),
    edits: pa.Table | None = None,
) -> list[Table]:
    """Return every table that the given tables allow.

    Args:
        passages, ratings, annotations, flaws, scores, simple, factual: See `write_longform_report`.
        edits: `edits.parquet` of a run.
    """
    sections = [] if edits is None else [table_of("edits", "Edits", _EDITS, edit_counts(edits))]
    datasets = datasets_of(edits)
    passages, ratings, annotations = (
        table if table is None else analyses.apart(table, datasets) for table in (passages, ratings, annotations)
    )
    about = "How many texts there are, how many are empty or end at the length limit, and why others are missing."
    sections.append(table_of("passages", "Passages", about, passage_counts(passages)))
    scores = scores if scores is not None and scores.num_rows else None
    kinds = _kinds(scores, annotations, factual)
    kinds = kinds if kinds is None else analyses.apart(kinds, datasets)
    sections += _survey(ratings, kinds, scores) if ratings is not None and ratings.num_rows else []
    sections += _claims(annotations) if annotations is not None and annotations.num_rows else []
    if kinds is not None:
        shares = kind_shares(kinds)
        about = f"By {kinds['criterion'].iloc[0]}: what the unedited model held. Wilson intervals."
        sections.append(table_of("kinds", "Kinds of edits (Table 14)", about, shares))
    if scores is not None:
        sections += _short(analyses.apart(analyses.short_values(scores), datasets), kinds)
    if simple is not None and len(simple):
        means = analyses.means(analyses.apart(simple, datasets))
        sections.append(table_of("simple", "Simple metrics (Table 19)", _MEANS, means, "method", 3))
    sections += flaw_sections(Collected({"flaws": flaws})) if flaws is not None and flaws.num_rows else []
    return [section for section in sections if len(section.frame)]


def datasets_of(edits: pa.Table | None) -> dict[int, str]:
    """Return case_id -> data set of a run's edits; nothing where there is one, or where it is not known."""
    rows = [] if edits is None else zip(edits["case_id"].to_pylist(), edits["dataset"].to_pylist())
    datasets = {case: name for case, name in rows if name}
    return datasets if len(set(datasets.values())) > 1 else {}


_MEANS = (
    "Means of case means, plus or minus the standard deviation over samples, with 95 % intervals clustered by case."
)


_EDITS = (
    "How many edits ended how. In-context edits are shown demonstrations: `n_demonstrated` edits, the `fewest` and the "
    "`most`. An edit without any is the zero-shot variant."
)


def edit_counts(edits: pa.Table) -> pd.DataFrame:
    """Return (data set,) editor, status, n, and n_demonstrated, fewest and most demonstrations of one edit."""
    frame = edits.to_pandas()
    frame["demonstrations"] = pd.to_numeric(frame["demonstrations"])
    by = ["dataset"] if datasets_of(edits) else []
    groups = frame.groupby([*by, "editor", "status"], sort=False)["demonstrations"]
    counts: pd.DataFrame = groups.agg(n="size", n_demonstrated="count", fewest="min", most="max")
    return counts.reset_index()


def passage_counts(passages: pa.Table) -> pd.DataFrame:
    """Return method, passage, status, n texts, n_empty and n_cut (at the length limit)."""
    frame = analyses.as_frame(passages)
    empty = (frame["status"] == "ok") & (frame["text"].str.strip() == "")
    frame = frame.assign(n=1, n_empty=empty, n_cut=frame["finish"] == "length")
    by = [name for name in ("dataset", "method", "passage", "status") if name in frame]
    return frame.groupby(by, sort=True)[["n", "n_empty", "n_cut"]].sum().reset_index()


def _kinds(scores: pa.Table | None, annotations: pa.Table | None, factual: Collection[int]) -> pd.DataFrame | None:
    try:
        return edit_kinds(scores=scores, annotations=annotations, factual=factual)
    except RecordError:  # nothing is known of the unedited model: the report has no such tables
        return None


def survey_sections(values: pd.DataFrame, title: str, about: str) -> list[Table]:
    """Return the means of every item and of every type of question.

    Args:
        values: Of `survey_values`.
        title: Of the first table.
        about: What both say.
    """
    ends = (min(SCALE), max(SCALE))
    means = analyses.means(typed_values(values), ends)
    return [
        table_of("survey", title, about, analyses.means(values, ends), "metric"),
        table_of("survey_types", "Survey by type of question", about, means, "metric"),
    ]


def survey_tests(values: pd.DataFrame) -> Table:
    """Return whether ratings are lower than without an edit; `values` as in `survey_sections`."""
    about = (
        "Method minus unedited model. `p`: one-sided Wilcoxon signed rank over cases, adjusted by Holm for each rater; "
        "`p_clustered`: of the difference, two-sided."
    )
    return table_of("survey_tests", "Lower than without edit? (Table 1)", about, wilcoxon_tests(values), digits=3)


def share_tables(shares: pd.DataFrame, about: str, paper: str = "") -> list[Table]:
    """Return which labels claims have, and how many are contradicted.

    Args:
        shares: Of `label_shares`.
        about: What both say.
        paper: What headings call the paper before its figures; "" = nothing.
    """
    against = shares[shares["label"] == "contradicts"].drop(columns="label")
    return [
        table_of("labels", f"Labels of claims ({paper}Figure 4)", about, shares, "label"),
        table_of("contradicted", f"Contradicted claims ({paper}Figure 5)", about, against, "claim_kind"),
    ]


def drift_table(annotations: pa.Table | pd.DataFrame) -> Table:
    """Return how much more untouched facts are contradicted after edits than before."""
    about = (
        "Share of untouched facts that are contradicted, after minus before, within cases; `lost`: of those supported "
        "before. Adjusted by Holm."
    )
    return table_of("drift", "Factual drift", about, analyses.factual_drift(annotations), digits=3)


def typed_values(values: pd.DataFrame) -> pd.DataFrame:
    """Return values of items as values of their types of question, each rating by itself."""
    return values.assign(metric=pd.Categorical(values["metric"].astype(str).map(analyses.METRICS), TYPES))


def _survey(ratings: pa.Table, kinds: pd.DataFrame | None, scores: pa.Table | None) -> list[Table]:
    values, by_type = (analyses.survey_values(ratings, by_type=flag) for flag in (False, True))
    frame = ratings.to_pandas()
    by = [name for name in ("dataset", "rater", "status") if name in frame]
    unrated = frame[frame["status"] != "ok"].groupby(by).size().rename("n").reset_index()
    sections = [
        *survey_sections(values, "Survey (Tables 1, 10-13)", f"1 to 7. {_MEANS}"),
        survey_tests(values),
        replace(survey_tests(typed_values(values)), name="survey_type_tests", title="The same by type of question"),
        table_of("unrated", "Ratings without a value", "By reason.", unrated),
    ]
    if "dataset" in values:
        together = analyses.means(values.drop(columns="dataset"), (min(SCALE), max(SCALE)))
        sections.append(
            table_of("survey_together", "Survey, data sets together (Table 1)", f"1 to 7. {_MEANS}", together, "metric")
        )
    if kinds is not None:
        about = "Mean rating of the first kind minus that of the other edits; adjusted by Holm."
        frame = kind_differences(by_type[by_type["metric"].isin(["edit", "factual"])], kinds)
        sections.append(table_of("kind_differences", "Injection against updating (Figure 6)", about, frame, digits=3))
    if scores is not None:
        frame = correlations(by_type, analyses.short_values(scores))
        about = "Spearman over methods and cases, each case one cluster; adjusted by Holm over the whole table."
        sections.append(table_of("correlations", "Long form against short form (Table 15)", about, frame, digits=3))
    return sections


def _claims(annotations: pa.Table) -> list[Table]:
    about = "Share of claims, with 95 % intervals clustered by case."
    return [
        *share_tables(analyses.label_shares(annotations), about),
        drift_table(annotations),
        table_of(
            "label_tests",
            "Do methods differ in labels? (chi-square)",
            "`p` from exchanging methods within cases, adjusted by Holm; `p_paper` takes every claim for independent.",
            chi_square_tests(annotations),
            digits=3,
        ),
    ]


def _short(values: pd.DataFrame, kinds: pd.DataFrame | None) -> list[Table]:
    sections = [
        table_of("short", "Short form (Tables 16-18)", f"Shares. {_MEANS}", analyses.means(values, (0, 1)), "metric")
    ]
    if kinds is not None:
        frame = kind_differences(values, kinds)
        about = "Difference of shares between kinds of edits; adjusted by Holm."
        sections.append(table_of("short_differences", "Short form by kind of edit (Figure 7)", about, frame, digits=3))
    return sections


_NEEDED = {
    "flaws": ("pair_id", "editor", "case_id", "relation", "flaw", "rater", "change"),
    "scores": ("case_id", "kind", "phase", "status", "role", "greedy"),
    "simple": ("method", "case_id", "metric", "value"),
}


def write_longform_report(
    folder: str | os.PathLike[str],
    passages: pa.Table,
    ratings: pa.Table | None = None,
    annotations: pa.Table | None = None,
    flaws: pa.Table | None = None,
    *,
    scores: pa.Table | None = None,
    simple: pd.DataFrame | None = None,
    factual: Collection[int] = (),
    **forms: bool,
) -> Path:
    """Write `report.md`, and in the folder `tables` a CSV file of every table.

    Args:
        folder: Where to; made when it is not there.
        passages, ratings, annotations, flaws: Tables of `seesaw_cf.texts.tables`; what is None or empty has no part.
        scores: Score table of the same edits, for short-form metrics and kinds of edits.
        simple: Simple metrics: method, case_id, metric, value.
        factual: case_ids of edits with a true new fact.
        **forms: `pictures` and `full`, see `seesaw_cf.report.forms.Report.write`.

    Returns:
        The Markdown file.

    Raises:
        RecordError: A table is not what its name promises.
        MissingExtraError: Pictures without matplotlib.
        StorageError: A file cannot be written.
    """
    for name, table in (("flaws", flaws), ("scores", scores), ("simple", simple)):
        if table is not None and len(table):
            need_columns(name, pd.DataFrame(columns=list(getattr(table, "column_names", table))), _NEEDED[name])
    sections = longform_sections(passages, ratings, annotations, flaws, scores=scores, simple=simple, factual=factual)
    folder = Path(folder)
    head = "# What the edited models write\n\n" + NONE
    Report(head, "", sections, draw=partial(draw_pictures, sections)).write(folder, **forms)
    return folder / "report.md"


NONE = '"none" is the unedited model. An empty interval has its reason beside it.'


def draw_pictures(sections: Sequence[Table], folder: Path) -> Mapping[str, str]:
    """Draw what there are numbers for; return file name -> what it shows."""
    from seesaw_cf.texts.report.plots import draw

    return draw({section.name: section.frame for section in sections}, folder)
