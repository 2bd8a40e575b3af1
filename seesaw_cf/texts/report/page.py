"""`report.html` of a long-form run: what edited models wrote, and what it tells about facts that were not edited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import pandas as pd

from seesaw_cf.base.errors import RunFolderError
from seesaw_cf.base.text import read_json
from seesaw_cf.report import text
from seesaw_cf.report.forms import findings_report
from seesaw_cf.report.html.findings import Findings, FirstScreen, Folded, Legend, PageSection, Part, title_by
from seesaw_cf.report.html.forest import key_colours
from seesaw_cf.report.html.texts import Pair, Texts
from seesaw_cf.report.provenance import repeat_command
from seesaw_cf.report.rows import Manifest
from seesaw_cf.report.table import Table
from seesaw_cf.texts.report.page_measures import TITLE, measure_plots, text_summary, took
from seesaw_cf.texts.report.page_texts import written_pairs
from seesaw_cf.texts.report.tables import NONE, draw_pictures, edit_counts, findings_of, passage_counts
from seesaw_cf.texts.report.values import BASELINE
from seesaw_cf.texts.runs import RunTexts
from seesaw_cf.texts.write.writing import EDITS

NOT_MEASURED = (
    "This annotator comes without held-out figures. docs/instruments.md has those of those that were measured; "
    "measure yours with `seesaw-cf leme train-annotator`."
)
_RATINGS = (
    "Ratings go from 1 (strongly disagree) to 7 (strongly agree). Raters called baseline were not measured against "
    "people: they check the pipeline and are no findings."
)
_WARNING = (
    "Below are texts that language models wrote about people. What they say is often false, and some of it may be "
    "offensive. Open to read"
)
_METHOD = (
    "The same model writes before an edit (none) and after it, with the same seeds. Numbers are means of case means "
    "with 95 % intervals clustered by case; an interval that is missing has its reason in the table.",
    _RATINGS,
    "Claims are what is recorded about the people: the edited fact, what it replaced, and facts that the edit does not "
    "touch (ground truth).",
)


def leme_findings(folder: Path, sections: Sequence[Table]) -> Findings:
    """Return what the page shows.

    Args:
        folder: A finished run.
        sections: Its tables, see `seesaw_cf.texts.report.tables.longform_sections`.

    Raises:
        RunFolderError: Not the folder of a finished run.
    """
    run = RunTexts(folder)
    manifest, passages = run.manifest, run.passages
    edits = EDITS.empty_table() if run.edits is None else run.edits
    frames = {section.name: section.frame for section in sections}
    quality = annotator_lines(folder)
    colours = key_colours([BASELINE, *edits["editor"].to_pylist()])
    counts = passage_counts(passages)
    written = int(counts.loc[counts["status"] == "ok", "n"].sum())
    screen = FirstScreen(
        _edited(manifest, edit_counts(edits), counts),
        title_by(TITLE, text_summary(written, frames)),
        {
            "Do the texts say the new fact": took(frames),
            "Not known": _not_known(counts, frames),
            "How sure": _sure(quality, frames),
        },
    )
    return findings_of(
        screen,
        measure_plots(frames.get("labels"), frames.get("survey"), colours, " ".join(quality[:1])),
        [_texts(written_pairs(passages, run.annotations, run.ratings, edits.to_pandas()), " ".join(quality[:2]))],
        sections,
        [*_METHOD, *quality],
        manifest,
        repeat_command(cast(Manifest, manifest), "leme run"),
    )


def annotator_lines(folder: Path) -> list[str]:
    """Return how good the annotator of a run is on texts it has not seen, as sentences."""
    file = folder / "annotator.json"
    annotator = read_json(file, error=RunFolderError) if file.exists() else {}
    if figures := annotator.get("report", {}).get("figures"):
        own, constant = figures["trained"]["all"], figures["constant"]["all"]["accuracy"]
        recall = own["contradicts"]
        return [
            f"On {own['n']} claims of {own['n_groups']} samples that it was not trained on the annotator is right "
            f"about {_interval(own['accuracy'])}, always the commonest label about {_interval(constant)}.",
            f"It finds {recall['recall']:.2f} of the {recall['support']:.0f} contradictions there.",
        ]
    return [NOT_MEASURED] if annotator else []


def _interval(share: Mapping[str, float | None]) -> str:
    return text.estimate(share["value"], share["low"], share["high"], ".2f")


def write_leme_report(folder: Path, out: Path, sections: Sequence[Table], *, pictures: bool = False) -> str:
    """Write the report of a finished run; see `seesaw_cf.report.forms.Report` for its files.

    Args:
        folder: A finished run.
        out: Where the report goes.
        sections: See `leme_findings`.
        pictures: Draw pictures too; needs matplotlib.

    Returns:
        Plain text for a terminal.

    Raises:
        RunFolderError, MissingExtraError, StorageError: A file cannot be read or written.
    """
    manifest = RunTexts(folder).manifest
    settings = manifest["settings"]
    drawn = ", ".join(f"{name} {value}" for name, value in settings["sampling"].items() if value)
    name = text.escape(settings["generation"])
    lines = [
        f"{NONE} {_RATINGS}",
        f"Generation settings *{name}*: {text.escape(drawn)}; {settings['samples']} per prompt.",
        *map(text.escape, annotator_lines(folder)),
    ]
    report = findings_report(leme_findings(folder, sections), "\n\n".join(lines), partial(draw_pictures, sections))
    return report.write(out, pictures=pictures)


def _edited(manifest: Mapping[str, Any], edits: pd.DataFrame, passages: pd.DataFrame) -> str:
    counts = "; ".join(
        f"{rows['n'].sum()} by {name}" + _statuses(rows) for name, rows in edits.groupby("editor", sort=False)
    )
    model, samples = manifest["model"].get("id"), manifest["settings"].get("samples", 1)
    written = passages.loc[passages["status"] == "ok", "n"].sum()
    return (
        f"{model} · {counts or 'no edit'} · {written:,} of {passages['n'].sum():,} texts written, before and after "
        f"({samples} per prompt)"
    )


def _statuses(rows: pd.DataFrame) -> str:
    failures = [f"{n} {status[:60]}" for status, n in zip(rows["status"], rows["n"]) if status != "ok"]
    return f" ({', '.join(failures[:2])})" if failures else ""


def _not_known(passages: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> str:
    counts = {
        "texts are empty": passages["n_empty"].sum(),
        "texts end at the length limit": passages["n_cut"].sum(),
        "ratings could not be read": frames["unrated"]["n"].sum() if "unrated" in frames else 0,
    }
    parts = [f"{n} {words}" for words, n in counts.items() if n]
    parts += [] if "survey" in frames else ["nobody rated these texts (--judge)"]
    parts += [] if "labels" in frames else ["no claims were annotated (--annotator)"]
    return f"{'; '.join(parts)}." if parts else ""


def _sure(quality: Sequence[str], frames: Mapping[str, pd.DataFrame]) -> str:
    counted = [frame["n_cases"].max() for frame in frames.values() if "n_cases" in frame and len(frame)]
    most = int(max(counted)) if counted else 0
    sentences = [
        f"Up to {most} cases in a table; 95 % intervals clustered by case, tests adjusted by Holm.",
        *quality[:1],
    ]
    return " ".join(sentences)


def _texts(written: tuple[list[Pair], int], quality: str) -> PageSection | None:
    pairs, total = written
    if not pairs:
        return None
    extent = f"{len(pairs)} of {total}" if total > len(pairs) else f"all {total}"
    about = f"{extent} edits with their texts, side by side; those whose untouched facts lost most support come first."
    note = (
        "Struck through: words that only the text before the edit has. Underlined: words that only the one after has. "
        "✓ and a solid line: sentences that support a claim, with its number; ✗ and a dashed line: that contradict one."
    )
    accuracy = f" How often ✓ and ✗ are right: {quality}" if quality else ""
    parts: list[Part] = [Legend((), note + accuracy), Texts(pairs)]
    return PageSection("texts", "The texts", [Folded(f"{_WARNING} {len(pairs)} edits.", parts, warning=True)], (about,))
