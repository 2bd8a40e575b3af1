"""Reports about texts as files: a page, JSON, CSV tables of rows, and pictures. Graphs have such reports, too.

The pictures are LEME's Figures 3 to 7 and the flaws of SEESAW-CF's Table 6: intervals below each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa

from seesaw_cf.base.errors import RecordError, RunFolderError
from seesaw_cf.base.tables import SCORES, read_table
from seesaw_cf.base.terminal import interval, printable
from seesaw_cf.base.text import read_json
from seesaw_cf.base.types import JsonObject
from seesaw_cf.effects.instruments import flaw_title
from seesaw_cf.report.figures import COLOURS, CONTROL_COLOUR, Panel, draw_panels, save_figure, svg
from seesaw_cf.report.rows import repeat_command, rows_of
from seesaw_cf.report.screen import Part, Screen, render_page, write_files
from seesaw_cf.report.words import relation_name
from seesaw_cf.run.manifest import RunFolder
from seesaw_cf.texts.released import collect
from seesaw_cf.texts.report.leme import leme_frame
from seesaw_cf.texts.report.people import failure_examples, people_frame
from seesaw_cf.texts.report.rows import frame_of, table_of
from seesaw_cf.texts.report.screen import people_screen, run_screen
from seesaw_cf.texts.tables import BASELINE, PASSAGES, RunTexts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LABELS = {"supports": (-0.2, "#15803d"), "neutral": (0.0, CONTROL_COLOUR), "contradicts": (0.2, "#b91c1c")}
_FLAWS = "Mean rating of every flaw; right of 0: more after the edit"
_CLAIMS = "Claims that texts support (green), leave open (grey), contradict (red) (LEME Figure 4)"
_KINDS = "difference from the other edits"
_BY_RATER, _BY_TEXT = ["dataset", "rater"], ["dataset", "rater", "about"]
# Numbers, caption, label of the axis, column of the lines, columns with a panel for every value.
PICTURES: Sequence[tuple[str, str, str, str, Sequence[str]]] = (
    ("flaw_these_raters", _FLAWS, "mean rating, −1 to 1", "asked", ["relation"]),
    ("rating", "Mean rating of every statement (LEME Figure 3)", "rating, 1 to 7", "asked", _BY_RATER),
    ("claims", _CLAIMS, "share of claims", "asked", _BY_TEXT),
    ("contradicted", "Claims that texts contradict (LEME Figure 5)", "share of claims", "asked", _BY_TEXT),
    ("by_kind", "Ratings by kind of edit (LEME Figure 6)", _KINDS, "reference", [*_BY_RATER, "asked"]),
    ("short_by_kind", "Short form by kind of edit (LEME Figure 7)", _KINDS, "reference", ["dataset", "asked"]),
)

TABLES: Mapping[str, tuple[str, Sequence[str]]] = {
    "counts": ("How many edits and texts there are, and what is missing and why.",
               ("edits", "texts", "unrated", "equal_answers", "reflected")),
    "flaws": ("Flaws by edited property and by editor (SEESAW-CF Tables 6, 19): 1 is more after the edit, −1 before.",
              ("flaw", "flaw_these_raters", "flaw_by_editor")),
    "ratings": ("Ratings from 1 to 7, and whether they fall (LEME Tables 1 and 10 to 13, Figure 3).",
                ("rating", "rating_by_type", "rating_together", "lower", "lower_by_type")),
    "claims": ("What texts support and contradict (LEME Figures 4 and 5, Tables 2 and 3).",
               ("claims", "contradicted_more", "support_lost", "labels_differ", "claim_share")),
    "failures": ("Failure modes that people find (LEME section 5.6, Table 20).", ("failure",)),
    "failure_examples": ("One text of each failure mode.", ()),
    "short_form": ("The short form, kinds of edits, and what they predict (LEME Tables 14 to 18, Figures 6 and 7).",
                   ("edit_kind", "by_kind", "short_form", "short_by_kind", "correlation")),
    "measures": ("Measures without people (LEME Table 19), and their rank correlation with people's ratings.",
                 ("measure", "measure_correlation")),
    "judges": ("Judges beside people and a constant, and answers given twice (SEESAW-CF Table 20, LEME Table 9).",
               ("judge_right", "judge_kappa", "beside_people", "same_again", "order_turned", "order_stuck",
                "first_text")),
    "agreement": ("Agreement of people (SEESAW-CF Table 21, LEME Table 5).", ("percent", "kappa", "alpha", "fleiss")),
}  # fmt: skip
"""CSV file -> what it holds, and the numbers in it."""
_UNKNOWN = "It is not known how often the annotator of these claims is right: measure it with `texts train`."
_SAME = ("fingerprint", "dtype")  # of the models of two runs
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
    from seesaw_cf.texts.report.measures import run_measures

    run = RunTexts(folder)
    short = _short_form(scores, run) if scores else None
    factual = {record["case_id"] for record in run.coupled if record["kind"] == "factual"}
    tables = {name: run.table(name) for name in ("ratings", "annotations", "edits")}
    simple = run_measures(run, measures, references)
    frame = leme_frame(run.passages, **tables, scores=short, simple=simple, factual=factual)
    settings = run.manifest["settings"]
    screen = run_screen(
        frame, str(run.manifest["model"].get("id")), settings.get("samples", 1), annotator_lines(folder)
    )
    drawn = ", ".join(f"{name} {value}" for name, value in settings["sampling"].items() if value)
    foot = [f"Generation settings {settings['generation']}: {drawn}."]
    command = repeat_command(run.manifest, "texts write")
    return _write(out or folder / "report", screen, frame, pictures, facts=run.manifest, foot=foot, command=command)


def report_people(
    places: Sequence[Path], out: Path, run: Path | None = None, *, judges: Sequence[str] = (), pictures: bool = False
) -> str:
    """Write the report of answers by people and judges, and return its first screen.

    Args:
        places: Folders and Parquet files of ratings, claims, failure modes and flaws, and CSV files as the authors of
            the papers released them.
        out: Where the report goes.
        run: The run that the texts are from: its raters, annotators and measures are compared with people.
        judges: Which raters of flaws are models.
        pictures: Write every picture as a file too.
    """
    people = collect(places, ("flaws", "ratings", "annotations", "failures"))
    judged = collect([run], ["passages"]) if run else {}
    frame = people_frame(people, judged, judges)
    if run and "ratings" in people:
        from seesaw_cf.texts.report.measures import measure_correlations

        frame = pd.concat([frame, frame_of(measure_correlations(RunTexts(run), people["ratings"]))], ignore_index=True)
    facts: JsonObject = {"files": [place.name for place in places], "judges": list(judges)}
    passages = people.get("passages", judged.get("passages", PASSAGES.empty_table().to_pandas()))
    examples = failure_examples(people["failures"], passages) if "failures" in people else None
    screen = people_screen(frame, people, judges)
    return _write(out, screen, frame, pictures, facts=facts, examples=examples)


def _short_form(folder: Path, run: RunTexts) -> pa.Table:
    """Read the score table of a run, and check that it is of the same model and edits as the long texts."""
    short: Mapping[str, Any] = RunFolder.open(folder, "audit", ("scores.parquet",)).manifest
    one, other = ({name: own.get("model", {}).get(name) for name in _SAME} for own in (run.manifest, short))
    if one != other:
        raise RunFolderError(
            f"{folder}: its model has {other}, that of the long texts {one}; expected one model. Run `seesaw-cf audit` "
            "with the same --model, --revision and --dtype."
        )
    table = read_table(folder / "scores.parquet", SCORES)
    scored, written = (set(zip(own["editor"].to_pylist(), own["case_id"].to_pylist())) for own in (table, run.passages))
    if not scored & written:
        editors = sorted({editor for editor, _ in scored})
        raise RecordError(
            f"scores: no edit by the same editor is in both runs; the scores are of {editors}, or of other cases. Run "
            "`seesaw-cf audit` with --config, --limit, --seed and --editor of the long texts."
        )
    return table


def annotator_lines(folder: Path) -> list[str]:
    """Return how good the annotator of a run is on texts it has not seen, as sentences."""
    file = folder / "annotator.json"
    annotator = read_json(file, error=RunFolderError) if file.exists() else {}
    if not (figures := annotator.get("report", {}).get("figures")):
        return [_UNKNOWN] if annotator else []
    own, constant = figures["trained"]["all"], figures["constant"]["all"]["accuracy"]["value"]
    right, recall = own["accuracy"], own["contradicts"]
    ends = interval(right["low"], right["high"], spec=".2f").strip("-")
    share = f"{right['value']:.2f} {ends}".strip()
    return [
        f"On {own['n']} claims of {own['n_groups']} samples that it was not trained on the annotator is right about "
        f"{share}, always the commonest label about {constant:.2f}.",
        f"It finds {recall['recall']:.2f} of the {recall['support']:.0f} contradictions there.",
    ]


def _write(
    folder: Path,
    screen: Screen,
    frame: pd.DataFrame,
    pictures: bool,
    *,
    facts: JsonObject,
    command: str = "",
    foot: Sequence[str] = (),
    examples: pd.DataFrame | None = None,
) -> str:
    tables = {name: table_of(frame, whats) for name, (_, whats) in TABLES.items()}
    tables |= {"failure_examples": examples} if examples is not None else {}
    tables = {name: table for name, table in tables.items() if len(table)}
    figures = list(figures_of(frame))
    drawn = {caption: [("", svg(figure, caption))] for _, caption, figure in figures}
    parts = [Part("Pictures", ["Means or shares with 95 % intervals."], drawn)] if drawn else []
    for name, own in tables.items():
        parts.append(Part(name.replace("_", " ").capitalize(), [TABLES[name][0]], table=page_table(_page_rows(own))))
    for name, _, figure in figures if pictures else ():
        save_figure(figure, folder / "pictures", name)
    about = {name: words for name, (words, _) in TABLES.items()}
    record = {"facts": facts, "tables": list(tables)}
    return write_report(folder, screen, parts, tables, record, about=about, foot=[_METHOD, *foot], command=command)


def _page_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Return what and whom a number is about in one column, then the number, its interval, corrected p, n, reason."""
    numbers = [name for name in ("value", "low", "high", "p_adjusted", "n", "note") if name in table]
    words = table.drop(columns=[*numbers, "scale"], errors="ignore").select_dtypes(exclude="number")
    cells = words.fillna("").astype(str).to_numpy().tolist()
    about = [" · ".join(filter(None, own)).replace("_", " ") for own in cells]
    return pd.concat([pd.Series(about, name="number"), table[numbers]], axis=1)


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
        if by := [name for name in columns if rows[name].notna().any()]:
            groups = rows.groupby(by, sort=False)
            yield what, caption, draw_panels([_panel(own, key, label, across, colours) for key, own in groups])


def _panel(rows: pd.DataFrame, key: Sequence[object], label: str, across: str, colours: Mapping[str, str]) -> Panel:
    """Return a line for every value and editor, texts before the edit first."""
    ordered = rows.assign(value_of=pd.factorize(rows[across])[0], edited=rows["editor"] != BASELINE)
    ordered = ordered.sort_values(["value_of", "edited"], kind="stable")
    lines = list(dict.fromkeys(zip(ordered[across], ordered["editor"])))
    firsts = dict(reversed(lines))
    labels = [_word(value) if firsts[value] == editor else f"after {_word(editor)}" for value, editor in lines]
    marks = []
    for row in rows_of(ordered):
        shift, colour = _LABELS[row["answer"]] if row["what"] == "claims" else (0.0, colours[row["editor"]])
        marks.append((lines.index((row[across], row["editor"])) + shift, row["value"], row["low"], row["high"], colour))
    return Panel(", ".join(map(_word, key)), labels, marks, 0.0, label)


def _word(name: object) -> str:
    """Return a name as a picture can show it: no control characters, none that its font lacks."""
    word = flaw_title(relation_name(str(name))).replace("_", " ")
    return "".join(letter if ord(letter) < 0x10000 else "\N{WHITE SQUARE}" for letter in printable(word))[:28]
