"""Numbers and pictures of README and of the site's first pages, from the demo's run and from the study's tables.

`make demo`, then `python -m docs.tools.first_page` writes the pictures in `docs/assets`, `benchmarks/results/demo.json`
and what stands between two marks in README.md.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from PIL import Image

from seesaw_cf.base.terminal import markdown_table
from seesaw_cf.records import load_cases
from seesaw_cf.report import Report, report
from seesaw_cf.report.figures import COLOURS, CONTROL_COLOUR, Panel, draw_panels, level_figures, save_figure, style
from seesaw_cf.report.figures import WIDTH as READABLE
from seesaw_cf.report.sentences import contrasts_of
from seesaw_cf.report.words import percent

ROOT = Path(__file__).resolve().parents[2]
README, ASSETS = ROOT / "README.md", ROOT / "docs" / "assets"
DEMO = ROOT / "benchmarks" / "results" / "demo.json"
STUDY = ROOT / "benchmarks" / "study" / "results" / "tables"
SEQUENCES = STUDY.parent / "sequences" / "sequences"
MARKS = re.compile(r"(?<=<!-- (\w{4}) -->\n)((?:(?!<!--).)*?)(?=\n<!-- end -->)", re.DOTALL)
_LEVELS = {
    ("other_facts", ""): "other facts about the edited person still right",
    ("other_people", "old"): "answers turned wrong about people for whom the old answer is true",
    ("other_people", "new"): "answers turned wrong about people for whom the new answer is true",
}
_ON_PICTURE = {"alphaedit": "AlphaEdit", "memit": "MEMIT", "rome": "ROME", "ft": "FT", "lora": "LoRA"}
_LOOK = "edits1+edits2+edits3"
_IN_ORDER, _IN_A_ROW = ("memit", "alphaedit", "ft"), 50
WIDTH = 128
_EDIT = """Edit one fact: *{edit}* ~~{old}~~ **{new}**. Then ask about *{person}*, whom nobody edited: before, {right}
({before}); after, **{wrong} ({after})**. The demo moves no answer more; a toy model, MEMIT."""
_DEMO = """{edits} facts about people, edited one at a time with MEMIT, each beside a random change of the same size:

"""
_REAL = """SmolLM2-135M, 400 false facts written one at a time, {asked:,} questions about people for whom the old
answer is true. Beyond a random change of the same size, MEMIT multiplies the odds of the false answer by
{memit_odds:.1f}, FT by {ft_odds:.1f}, LoRA by {lora_odds:.1f}. That is small: these answers are improbable, so
it is {memit_points:.1f} points of probability for MEMIT, {lora_points:.1f} for LoRA, and {ft_points:.1f} the
other way for FT. IKE moves {ike_points:.0f} points, MEND {mend_points:.0f}."""
_MANY = """[{edits} edits in a row](docs/sequences.md) cost people for whom the new answer is true {ft:.0f} points
with FT and {memit:.0f} with MEMIT, as many random changes of the same sizes {random_ft:.0f} and {random_memit:.0f}
(the toy model)."""
_RATE = """With permuted labels {largest:.0f} % of reports name a group wrongly ([measured](docs/statistics.md)), in
the study {most:.1f} % at most."""


def demo_facts(made: Report, with_example: bool = True) -> dict[str, Any]:
    """Return what README says of the demo: the answer that moved most, counts beside the control, groups."""
    rows = [[f"{words}, of {n:,}", *counts] for words, n, *counts in (_counts(made, key) for key in _LEVELS)]
    contrasts = contrasts_of(made.frame, made.run)
    missed = re.search(r"Gaps under (\S+ \w+)", made.screen.title)
    facts: dict[str, Any] = {
        "edits": int(made.run.distinct["case_id"].nunique()),
        "levels": rows,
        "compared": int((contrasts["verdict"] != "too_few").sum()),
        "harder": int(contrasts["verdict"].isin(("hit_harder", "slightly_harder")).sum()),
        "missed": missed[1] if missed else "",
    }
    return facts | ({"example": _example(made)} if with_example else {})


def _counts(made: Report, key: tuple[str, str]) -> tuple[str, int, str, str]:
    """Return the words, the number asked, and the counts after the editor and after its control."""
    frame: Any = made.frame
    found = []
    own = frame[(frame["what"] == "turned_wrong") & (frame["relation"] == "all") & (frame["axis"] == "all")]
    own = own[(own["about"] == key[0]) & (own["true_answer"] == key[1])].set_index("editor")
    for editor in (made.run.audited[0], made.run.control_of(made.run.audited[0])):
        share = own.loc[editor, "value"] if key[1] else 1 - own.loc[editor, "value"]
        found.append(f"{round(share * own.loc[editor, 'n']):,}")
    return _LEVELS[key], int(own["n"].iloc[0]), found[0], found[1]


def _example(made: Report) -> dict[str, Any]:
    people = made.answers[(made.answers["about"] == "other_people") & made.answers["turned_wrong"]]
    row = people.sort_values(["loss", "case_id"], ascending=[False, True], kind="stable").iloc[0]
    (case,) = [case for case in load_cases("sample", "cross_subject") if case.case_id == row["case_id"]]
    return {
        "case": int(row["case_id"]),
        "edit": case.request.text,
        "old": case.request.target_true.label,
        "new": case.request.target_new.label,
        "person": row["person"],
        "right": row["right"],
        "wrong": row["wrong"],
        "before": percent(row["right_before"]),
        "after": percent(row["wrong_after"]),
    }


def study_rows() -> pd.DataFrame:
    """Return what each editor of the study did beyond its control to people for whom the old answer is true."""
    table: Any = pd.read_csv(STUDY / "levels.csv")
    own = table[(table["model"] == "smollm2") & (table["records"] == _LOOK) & (table["level"] == "target_true")]
    values = ["difference", "difference_low", "difference_high", "n"]
    rows = own[own["control"].notna()].pivot(index="editor", columns="scale", values=values)
    named: pd.DataFrame = rows.set_axis([f"{name} {scale}" for name, scale in rows.columns], axis=1)
    return named


def blocks(demo: Mapping[str, Any]) -> dict[str, str]:
    """Return mark -> text of README."""
    told = demo["example"]
    groups = f"{demo['harder'] or 'none shown'}"
    missed = f"; differences under {demo['missed']} could be missed" if demo["missed"] else ""
    last = [f"groups hit harder, of {demo['compared']} comparisons", groups + missed, ""]
    counts = markdown_table(["", "after MEMIT", "after a random change"], [*demo["levels"], last], left=3)
    return {
        "edit": _wrapped(_EDIT, told),
        "demo": _DEMO.format(**demo) + counts,
        "real": _study_text(),
        "many": _wrapped(_MANY, _lost_in_a_row(_IN_A_ROW)),
        "rate": _false_claims(),
    }


def _wrapped(text: str, numbers: Mapping[str, object]) -> str:
    return fill(text.format(**numbers), WIDTH, break_long_words=False, break_on_hyphens=False)


def _study_text() -> str:
    rows: Any = study_rows()
    numbers: dict[str, object] = {"asked": int(rows["n log-odds"].iloc[0])}
    for name in rows.index:
        points = 100 * rows.loc[name, "difference probability"]
        numbers |= {f"{name}_odds": math.exp(rows.loc[name, "difference log-odds"]), f"{name}_points": points}
    return _wrapped(_REAL, numbers | {"ft_points": -100 * rows.loc["ft", "difference probability"]})


def _in_a_row() -> Any:
    """Return what edits one after another changed about people who hold the new answer, as probabilities."""
    table: Any = pd.read_csv(SEQUENCES / "levels.csv")
    return table[(table["what"] == "change") & (table["true_answer"] == "new") & (table["scale"] == "probability")]


def _lost_in_a_row(count: int) -> dict[str, object]:
    """Return the points that people who hold the new answer lost after so many edits, by editor."""
    own = _in_a_row()
    lost = -100 * own[own["checkpoint"] == count].set_index("editor")["value"]
    return {"edits": count} | {name.replace("(", "_").rstrip(")"): value for name, value in lost.items()}


def sequence_figure() -> Figure:
    """Return what edits one after another cost people who hold the new answer, beside random changes."""
    own = _in_a_row()
    curve: Any = pd.read_csv(SEQUENCES / "curve.csv")
    fallen, counts = curve[curve["alarm"].notna()], sorted(set(curve["checkpoint"]))
    with style():
        figure = Figure(figsize=(2 * READABLE, 2.3), layout="constrained")
        axes = figure.subplots(1, len(_IN_ORDER), sharey=True)
        for ax, name, colour in zip(axes, _IN_ORDER, COLOURS):
            for editor, ink, line in ((f"random({name})", CONTROL_COLOUR, "--"), (name, colour, "-")):
                orders, rows = fallen[fallen["editor"] == editor], own[own["editor"] == editor].set_index("checkpoint")
                rows = rows[rows.index < orders["checkpoint"].min()] if len(orders) else rows
                ax.plot(rows.index, -100 * rows["value"], f"{line}o", color=ink, markersize=4.5)
                ax.fill_between(rows.index, -100 * rows["low"], -100 * rows["high"], color=ink, alpha=0.2, linewidth=0)
                white = {"color": ink, "markerfacecolor": "white", "markersize": 4.5}
                ax.plot(orders["checkpoint"], -100 * orders["D_new"], "o", **white)
            ax.set_title(_ON_PICTURE[name])
            ax.set_xscale("log")
            ax.set_xticks(counts, map(str, counts))
            ax.minorticks_off()
        axes[0].set_ylabel("points lost")
        axes[-1].set_xlabel("edits in a row; grey: random changes; hollow: orders that collapsed")
    return figure


def _false_claims() -> str:
    null = pd.read_csv(STUDY / "null.csv")
    level = json.loads((ROOT / "benchmarks" / "results" / "report_level.json").read_text(encoding="utf-8"))["paper"]
    shares = [100 * level["labels permuted"][scale]["one_editor"]["value"] for scale in ("probability", "log-odds")]
    most = 100 * (null["false"] / null["reports"]).max()
    return _wrapped(_RATE, {"largest": max(shares), "most": most})


def study_figure() -> Figure:
    """Return the odds of the false answer beyond a random change, editor by editor."""
    rows = study_rows()
    names = [name for name in _ON_PICTURE if name in rows.index]
    ends = rows[[f"difference{end} log-odds" for end in ("", "_low", "_high")]].loc[names].to_numpy(float)
    marks: list[Any] = [(float(at), *map(float, own), COLOURS[0]) for at, own in enumerate(ends)]
    labels = [*(_ON_PICTURE[name] for name in names), "random change"]
    marks.append((float(len(names)), 0.0, math.nan, math.nan, CONTROL_COLOUR))
    title = "Old answer true: odds of the false answer, times"
    figure = draw_panels([Panel(title, labels, marks, 0.1, "worse \u2192")])
    ticks = [1, 2, 3, 4]
    figure.axes[0].set_xticks(np.log(ticks), [f"\u00d7 {tick}" for tick in ticks])
    return figure


def levels_figure(made: Report) -> Figure:
    """Return what the demo did to everybody, as its page shows it."""
    return next(level_figures(made.frame, made.run))[-1]


def reading_figure(made: Report) -> Figure:
    """Return the demo's levels with numbers that `docs/reading.md` explains."""
    figure = levels_figure(made)
    ax = figure.axes[0]
    lines: list[Any] = [line.get_xydata() for line in ax.lines]
    dots, ends = ([own for own in lines if len(own) == size] for size in (1, 2))
    ((value, y),), ((_, below),) = dots[:2]
    end, control = (max(own[:, 0]) for own in ends[:2])
    places = [
        (value, y, 0, -15),
        (end, y, 0, -15),
        (control, below, 14, 0),
        (-1.5, y, -18, 0),
        (0, (y + below) / 2, 0, 0),
    ]
    for number, (x, at, right, up) in enumerate(places, 1):
        box: dict[str, Any] = {"boxstyle": "circle,pad=0.15", "facecolor": "white", "edgecolor": COLOURS[1]}
        line = {"arrowstyle": "-", "color": COLOURS[1], "linewidth": 0.8, "shrinkA": 0, "shrinkB": 0}
        how: dict[str, Any] = {
            "arrowprops": line,
            "textcoords": "offset points",
            "ha": "center",
            "va": "center",
            "fontsize": 8,
            "annotation_clip": False,
        }
        ax.annotate(str(number), (x, at), (right, up), color=COLOURS[1], bbox=box, **how)
    return figure


def filled(text: str, parts: Mapping[str, str]) -> str:
    """Return README with the text between its marks put in."""
    return MARKS.sub(lambda found: parts[found[1]], text)


def small_picture(file: Path) -> None:
    """Write a picture again with a palette: a third of the bytes, and no colour that is missed."""
    with Image.open(file) as picture:
        reduced = picture.convert("RGB").quantize(64)
    reduced.save(file, optimize=True)


def main(run: Path) -> None:
    """Write README's numbers and the pictures from a run of `make demo`."""
    made = report(run)
    demo = demo_facts(made)
    DEMO.write_text(json.dumps(demo, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    README.write_text(filled(README.read_text(encoding="utf-8"), blocks(demo)), encoding="utf-8")
    pictures = {"demo": levels_figure(made), "reading": reading_figure(made), "study": study_figure()}
    for name, figure in (pictures | {"sequences": sequence_figure()}).items():
        (file,) = save_figure(figure, ASSETS, name)
        small_picture(file)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "runs" / "demo")
