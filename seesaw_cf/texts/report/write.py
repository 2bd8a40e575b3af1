"""Reports about texts, written: a page, JSON, CSV tables of rows, and LEME's Figures 3 to 7."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pandas as pd
import pyarrow as pa
from markupsafe import Markup

from seesaw_cf.base.errors import MissingExtraError, RecordError, RunFolderError
from seesaw_cf.base.tables import SCORES, read_table
from seesaw_cf.base.terminal import interval
from seesaw_cf.base.text import read_json
from seesaw_cf.base.types import Estimate, JsonObject
from seesaw_cf.effects.leme_auto import leme_auto
from seesaw_cf.report.figures import save_figure, svg
from seesaw_cf.report.rows import Manifest, repeat_command
from seesaw_cf.report.screen import Part, Screen
from seesaw_cf.run.manifest import RunFolder
from seesaw_cf.texts.report.leme import leme_frame
from seesaw_cf.texts.report.measures import (
    model_measures,
    own_measures,
    passage_columns,
    read_references,
    simple_measures,
)
from seesaw_cf.texts.report.pages import figures_of, page_table, write_report
from seesaw_cf.texts.report.people import Answers, collect, failure_examples, people_frame, rows_of_kind
from seesaw_cf.texts.report.rows import PLACE, frame_of, table_of, text_row
from seesaw_cf.texts.report.screen import people_screen, run_screen
from seesaw_cf.texts.survey import survey_samples
from seesaw_cf.texts.tables import RunTexts

TABLES: Mapping[str, tuple[str, Sequence[str]]] = {
    "counts": ("How many edits and texts there are, and what is missing and why.",
               ("edits", "texts", "unrated", "equal_answers", "reflected")),
    "flaws": ("Flaws by edited property and by editor (SEESAW-CF Tables 6, 19): 1 is more after the edit, −1 before.",
              ("flaw", "flaw_these_raters", "flaw_more", "flaw_less", "flaw_by_editor")),
    "ratings": ("Ratings from 1 to 7, and whether they fall (LEME Tables 1 and 10 to 13, Figure 3).",
                ("rating", "rating_by_type", "rating_together", "lower", "lower_by_type", "rating_other_raters")),
    "claims": ("What texts support and contradict (LEME Figures 4 and 5, Tables 2 and 3).",
               ("claims", "contradicted_more", "support_lost", "labels_differ", "claim_share")),
    "failures": ("Failure modes that people find (LEME section 5.6, Table 20).", ("failure",)),
    "failure_examples": ("One text of each failure mode.", ()),
    "short_form": ("The short form, kinds of edits, and what they predict (LEME Tables 14 to 18, Figures 6 and 7).",
                   ("edit_kind", "by_kind", "short_form", "short_by_kind", "correlation")),
    "measures": ("Measures without people (LEME Table 19), and their rank correlation with people's ratings.",
                 ("measure", "measure_correlation")),
    "judges": ("Judges beside people and a constant, and answers given twice (SEESAW-CF Table 20, LEME Table 9).",
               ("judge_right", "judge_kappa", "judge_confusion", "beside_people", "same_again", "order_turned",
                "order_stuck", "first_text")),
    "agreement": ("Agreement of people (SEESAW-CF Table 21, LEME Table 5).", ("percent", "kappa", "alpha", "fleiss")),
}  # fmt: skip
"""CSV file -> what it holds, and the numbers in it."""
NOT_MEASURED = "It is not known how often the annotator of these claims is right: measure it with `texts train`."
_METHOD = (
    "The same model writes before an edit (none) and after it. Numbers of long texts are means of case means with "
    "95 % intervals clustered by case. Tests are corrected by Holm. A number without an interval has its reason beside "
    "it."
)


def report_run(
    folder: Path,
    out: Path | None = None,
    *,
    scores: Path | None = None,
    measures: Sequence[str] = (),
    references: Path | None = None,
    pictures: bool = False,
) -> str:
    """Write the report of a finished run of texts, and return its first screen.

    Args:
        folder: The run.
        out: Where the report goes; `FOLDER/report` when None.
        scores: A run folder of `seesaw-cf audit` over the same edits by the same model: the short form, kinds of edits,
            and how far the short form predicts the long one.
        measures: "NAME:MODEL" of measures that need a model; see `seesaw_cf.texts.report.measures.MEASURES`.
        references: Texts about new targets, for the reference score.
        pictures: Write every picture as a file too.

    Raises:
        RunFolderError: A folder is not that of a finished run, or the two are of other models.
        RecordError: No edit is in both runs, or the records differ from those of the run.
        SeesawError: A model or file that cannot be used.
    """
    run = RunTexts(folder)
    short = _short_form(scores, run) if scores is not None else None
    texts = read_references(references) if references is not None else {}
    samples = survey_samples(*run.couples)
    simple = [simple_measures(samples), own_measures(run.passages, run.records, texts)]
    simple += [model_measures(given, samples, run.passages) for given in measures]
    factual = {record["case_id"] for record in run.coupled if record["kind"] == "factual"}
    tables = run.passages, run.table("ratings"), run.table("annotations")
    frame = leme_frame(
        *tables, scores=short, simple=pd.concat(simple, ignore_index=True), factual=factual, edits=run.table("edits")
    )
    settings = run.manifest["settings"]
    model = str(run.manifest["model"].get("id"))
    screen = run_screen(frame, model, settings.get("samples", 1), annotator_lines(folder))
    drawn = ", ".join(f"{name} {value}" for name, value in settings["sampling"].items() if value)
    foot = [f"Generation settings {settings['generation']}: {drawn}."]
    command = repeat_command(cast(Manifest, run.manifest), "texts write")
    out = out or folder / "report"
    return _write(out, screen, frame, pictures, facts=run.manifest, foot=foot, command=command)


def report_people(
    places: Sequence[Path],
    out: Path,
    run: Path | None = None,
    *,
    judges: Sequence[str] = (),
    pictures: bool = False,
) -> str:
    """Write the report of answers by people and judges, and return its first screen.

    Args:
        places: Folders and Parquet files of ratings, claims, failure modes and flaws, and CSV files as the authors of
            the papers released them.
        out: Where the report goes.
        run: The run that the texts are from: its raters, annotators and measures are compared with people.
        judges: Which raters of flaws are models.
        pictures: Write every picture as a file too.

    Raises:
        SeesawError: A table that cannot be used, or a run without records.
    """
    people = collect(places, ("flaws", "ratings", "annotations", "failures"))
    judged = collect([run], ["passages"]) if run is not None else {}
    people = {name: own for name, own in judged.items() if name == "passages"} | people
    frame = people_frame(people, judged, judges)
    if run is not None and "ratings" in people:
        frame = pd.concat([frame, _correlated(RunTexts(run), people)], ignore_index=True)
    screen = people_screen(frame, people, judges)
    facts: JsonObject = {"files": [place.name for place in places], "judges": list(judges)}
    examples = {"failure_examples": failure_examples(people)}
    return _write(out, screen, frame, pictures, facts=facts, more=examples)


def _short_form(folder: Path, run: RunTexts) -> pa.Table:
    """Read the score table of a run, and check that it is of the same model and edits as the long texts."""
    short: Mapping[str, Any] = RunFolder.open(folder, "audit", ("scores.parquet",)).manifest
    for name in ("fingerprint", "dtype"):
        one, other = (found.get("model", {}).get(name) for found in (run.manifest, short))
        if one != other:
            raise RunFolderError(
                f"{folder}: its model has the {name} {other}, that of the long texts {one}; expected one model. "
                "Run `seesaw-cf audit` with the same --model, --revision and --dtype."
            )
    table = read_table(folder / "scores.parquet", SCORES)
    edits = [set(zip(own["editor"].to_pylist(), own["case_id"].to_pylist())) for own in (table, run.passages)]
    if not edits[0] & edits[1]:
        editors, cases = (sorted({edit[place] for edit in edits[0]}) for place in (0, 1))
        raise RecordError(
            f"scores: no edit by the same editor is in both runs; the scores are of {editors} and {len(cases)} cases "
            f"from {cases[:1]}. Run `seesaw-cf audit` with --config, --limit, --seed and --editor of the long texts."
        )
    return table


def annotator_lines(folder: Path) -> list[str]:
    """Return how good the annotator of a run is on texts it has not seen, as sentences."""
    file = folder / "annotator.json"
    annotator = read_json(file, error=RunFolderError) if file.exists() else {}
    if figures := annotator.get("report", {}).get("figures"):
        own, constant = figures["trained"]["all"], figures["constant"]["all"]["accuracy"]
        right, recall = own["accuracy"], own["contradicts"]
        right = f"{right['value']:.2f} {interval(right['low'], right['high'], spec='.2f').strip('-')}".strip()
        return [
            f"On {own['n']} claims of {own['n_groups']} samples that it was not trained on the annotator is right "
            f"about {right}, always the commonest label about {constant['value']:.2f}.",
            f"It finds {recall['recall']:.2f} of the {recall['support']:.0f} contradictions there.",
        ]
    return [NOT_MEASURED] if annotator else []


def _correlated(run: RunTexts, people: Answers) -> pd.DataFrame:
    """Return how measures without a model go with what people say, over texts: LEME Table 19, appendix I."""
    samples = survey_samples(*run.couples)
    rated = rows_of_kind(people, "ratings").dropna(subset="rating")
    mean = rated.pivot_table(index=PLACE, columns="item", values="rating")
    places = pd.MultiIndex.from_tuples([tuple(getattr(one, name) for name in PLACE) for one in samples], names=PLACE)
    ratings = {str(item): own.tolist() for item, own in mean.reindex(places).items()}
    try:
        found: Any = leme_auto(passage_columns(samples), ratings=ratings)
    except MissingExtraError as error:
        return frame_of([text_row("measure_correlation", Estimate(float("nan"), note=str(error)))])
    rows = []
    for name, own in found["correlations"].items():
        rho = Estimate(own["spearman"], **{key: own[key] for key in ("low", "high", "p", "n")})
        more = {"asked": name, "reference": own["item"], "scale": "rho", "n_edits": own["n_cases"]}
        rows.append(text_row("measure_correlation", rho, **more))
    return frame_of(rows)


def _write(
    folder: Path,
    screen: Screen,
    frame: pd.DataFrame,
    pictures: bool,
    *,
    facts: JsonObject,
    command: str = "",
    foot: Sequence[str] = (),
    more: Mapping[str, pd.DataFrame] | None = None,
) -> str:
    tables = {name: table_of(frame, whats) for name, (_, whats) in TABLES.items()} | dict(more or {})
    tables = {name: table for name, table in tables.items() if len(table)}
    figures = list(figures_of(frame))
    drawn = {caption: [("", Markup(svg(figure, caption)))] for _, caption, figure in figures}
    parts = [Part("Pictures", ["Means or shares with 95 % intervals."], drawn)] if drawn else []
    for name, own in tables.items():
        parts.append(Part(name.replace("_", " ").capitalize(), [TABLES[name][0]], table=page_table(_page_rows(own))))
    for name, _, figure in figures if pictures else ():
        save_figure(figure, folder / "pictures", name)
    record = {"facts": facts, "tables": list(tables)}
    about = {name: words for name, (words, _) in TABLES.items()}
    return write_report(folder, screen, parts, tables, record, about=about, foot=[_METHOD, *foot], command=command)


def _page_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Return what and whom a number is about in one column, then the number, its interval, corrected p, n, reason."""
    numbers = [name for name in ("value", "low", "high", "p_adjusted", "n", "note") if name in table]
    words = table.drop(columns=[*numbers, "scale"], errors="ignore").select_dtypes(exclude="number")
    cells = words.fillna("").astype(str).to_numpy().tolist()
    about = [" · ".join(filter(None, own)).replace("_", " ") for own in cells]
    return pd.concat([pd.Series(about, name="number"), table[numbers]], axis=1)
