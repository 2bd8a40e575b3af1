"""`report.html` of a long-form run: what edited models wrote, and what it says about facts that were not edited."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pandas as pd

from seesaw_cf.errors import RunFolderError
from seesaw_cf.io.files import write_text
from seesaw_cf.io.text import read_json
from seesaw_cf.longform.report.page_measures import claims_plot, survey_plot, took
from seesaw_cf.longform.report.page_tables import conclusion_markdown, folded_tables
from seesaw_cf.longform.report.page_texts import written_pairs
from seesaw_cf.longform.report.sections import Section as TableSection
from seesaw_cf.longform.report.summary import LemeResults, leme_results
from seesaw_cf.longform.report.values import BASELINE
from seesaw_cf.longform.tables import ANNOTATIONS, PASSAGES, RATINGS
from seesaw_cf.longform.write.writing import EDITS
from seesaw_cf.page.findings import Findings, Folded, Legend, PageSection, Part, findings_page
from seesaw_cf.page.forest import key_colours
from seesaw_cf.page.texts import Texts
from seesaw_cf.report import text
from seesaw_cf.report.provenance import recorded, repeat_command
from seesaw_cf.report.rows import Manifest
from seesaw_cf.tables import read_table

_NAMED = 3
_WARNING = (
    "Below are texts that language models wrote about people. What they say is often false, and some of it may be "
    "offensive. Open to read"
)
_METHOD = (
    "The same model writes before an edit (none) and after it, with the same seeds. Numbers are means of case means "
    "with 95 % intervals clustered by case; an interval that is missing has its reason in the table.",
    "Ratings go from 1 (strongly disagree) to 7 (strongly agree). Raters called baseline were not measured against "
    "people: they check the pipeline and are no findings.",
    "Claims are what is recorded about the people: the edited fact, what it replaced, and facts that the edit does not "
    "touch (ground truth).",
)


def leme_findings(folder: Path, sections: Sequence[TableSection]) -> Findings:
    """What the page says.

    Args:
        folder: A finished run.
        sections: Its tables, see `seesaw_cf.longform.report.tables.longform_sections`.

    Raises:
        RunFolderError: Not the folder of a finished run.
    """
    results = leme_results(folder)
    manifest = cast(Manifest, read_json(folder / "manifest.json", error=RunFolderError))
    frames = {one.name: one.frame for one in sections}
    colours = key_colours([BASELINE, *results["edits"]])
    plots = [survey_plot(frames.get("survey"), colours), claims_plot(frames.get("labels"), colours)]
    made = [_texts(folder), *plots, folded_tables(sections)]
    return Findings(
        title=f"What {results['model'].get('id', 'a model')} writes after edits",
        said=(
            _edited(results),
            took(frames),
            _affected(frames.get("drift")),
            _not_known(results, frames),
            _sure(results, frames),
        ),
        sections=[one for one in made if one is not None],
        method=[*_METHOD, *results["annotator"]],
        command=repeat_command(manifest, "leme run"),
        facts=recorded(manifest),
        tables={one.name: one.frame for one in sections},
    )


def write_leme_page(folder: Path, out: Path, sections: Sequence[TableSection]) -> str:
    """Writes `report.html`.

    Args:
        folder: A finished run.
        out: Where the page goes.
        sections: See `leme_findings`.

    Returns:
        Its conclusion as Markdown.

    Raises:
        RunFolderError, StorageError: A file cannot be read or written.
    """
    page = leme_findings(folder, sections)
    write_text(out / "report.html", findings_page(page))
    return conclusion_markdown(page)


def _edited(results: LemeResults) -> str:
    counts = "; ".join(
        f"{sum(found.values())} by {name}" + _statuses(found) for name, found in results["edits"].items()
    )
    asked, written = (sum(row[name] for row in results["passages"]) for name in ("n", "n_ok"))
    return (
        f"{counts or 'no edit'} in {results['model'].get('id')}; {written:,} of {asked:,} texts written, before "
        f"and after ({results['generation'].get('samples', 1)} per prompt)."
    )


def _statuses(found: Mapping[str, int]) -> str:
    others = {name: n for name, n in found.items() if name != "ok"}
    return f" ({', '.join(f'{n} {name[:60]}' for name, n in list(others.items())[:2])})" if others else ""


def _affected(drift: pd.DataFrame | None) -> str:
    """Facts that the edit does not touch."""
    if drift is None or drift.empty:
        return "Nothing is known about facts that the edits do not touch: no claims were annotated."
    rows = sorted(drift.to_dict("records"), key=lambda row: (row["p_adjusted"] != row["p_adjusted"], row["p_adjusted"]))
    sure = [row for row in rows if row["p_adjusted"] < 0.05]
    said = [
        f"{row['method']}, texts about the {row['passage']}: "
        + text.minus(text.points(row["value"], row["low"], row["high"], " points"))
        + f", {text.p_equals(row['p_adjusted'])} after Holm"
        for row in (sure or rows)[:_NAMED]
        if math.isfinite(row["low"])
    ]
    head = "Facts that no edit touches are contradicted more often" if sure else (
        "No editor is shown to change how often untouched facts are contradicted"
    )  # fmt: skip
    return f"{head}: {'; '.join(said)}." if said else f"{head}; no interval could be computed."


def _not_known(results: LemeResults, frames: Mapping[str, pd.DataFrame]) -> str:
    parts = []
    empty, cut = (sum(row[name] for row in results["passages"]) for name in ("n_empty", "n_cut"))
    parts += [f"{empty} texts are empty"] if empty else []
    parts += [f"{cut} texts end at the length limit"] if cut else []
    missing = sum(results["ratings_without_value"].values())
    parts += [f"{missing} ratings could not be read"] if missing else []
    if baselines := [name for name in results["survey"] if "baseline" in name]:
        parts.append(f"the raters {', '.join(baselines)} were not measured against people")
    parts += [] if "survey" in frames else ["nobody rated these texts"]
    parts += [] if "labels" in frames else ["no claims were annotated"]
    return f"{'; '.join(parts) or 'Every text was written and every rating read'}."


def _sure(results: LemeResults, frames: Mapping[str, pd.DataFrame]) -> str:
    counted = [frame["n_cases"].max() for frame in frames.values() if "n_cases" in frame and len(frame)]
    most = int(max(counted)) if counted else 0
    quality = f" {results['annotator'][0]}" if results["annotator"] else ""
    return f"Up to {most} cases in a table; 95 % intervals clustered by case, tests adjusted by Holm.{quality}"


def _texts(folder: Path) -> PageSection | None:
    def optional(name: str, schema: Any) -> Any:
        return read_table(folder / f"{name}.parquet", schema) if (folder / f"{name}.parquet").exists() else None

    passages = read_table(folder / "passages.parquet", PASSAGES)
    edits = read_table(folder / "edits.parquet", EDITS).to_pandas()
    pairs, total = written_pairs(passages, optional("annotations", ANNOTATIONS), optional("ratings", RATINGS), edits)
    if not pairs:
        return None
    shown = f"{len(pairs)} of {total}" if total > len(pairs) else f"all {total}"
    about = f"{shown} edits with their texts, side by side; those whose untouched facts lost most support come first."
    note = (
        "Struck through: words that only the text before the edit has. Underlined: words that only the one after has. "
        "✓ and a solid line: sentences that support a claim, with its number; ✗ and a dashed line: that contradict one."
    )
    parts: list[Part] = [Legend((), note), Texts(pairs)]
    return PageSection("texts", "The texts", [Folded(f"{_WARNING} {len(pairs)} edits.", parts, warning=True)], (about,))
