"""The page of a search for an editor's settings: what was tried, what came out, what it was found on."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seesaw_cf.base.errors import RunFolderError
from seesaw_cf.base.files import write_text
from seesaw_cf.base.terminal import column_table, printable, wrap
from seesaw_cf.base.text import read_json
from seesaw_cf.report import text

_PARTS = {"efficacy": "Takes", "paraphrase": "Paraphrases", "neighborhood": "Neighbours", "fluency": "Fluency"}


def write_tune_report(folder: str | os.PathLike[str]) -> str:
    """Write `tune.md` into the folder of a finished search.

    Returns:
        The finalists as plain text for a terminal, and how to use the settings.

    Raises:
        RunFolderError: Not a finished search.
        StorageError: The file could not be written.
    """
    out = Path(folder)
    if not (out / "tune.json").is_file():
        raise RunFolderError(f"{out}: there is no tune.json, expected a finished search. Run `seesaw-cf tune` again.")
    search: dict[str, Any] = read_json(out / "tune.json")
    write_text(out / "tune.md", _page(search))
    final = [row for row in search["trials"] if row["round"] == "final"]
    heads = ("trial", "score", *(name.lower() for name in _PARTS.values()), "edits", "refused")
    rows = [[*_result(row, ""), str(row["n"]), str(sum(row["refused"].values()))] for row in final]
    editor, model = search["editor"], printable(search["model"]["id"])
    settings = json.dumps({editor: search["settings"]}, ensure_ascii=False)
    return "\n".join(
        [
            f"SETTINGS FOR {editor} ON {model}: the finalists, all on the same edits",
            column_table(heads, rows, left=1),
            wrap(f"Best: {printable(settings)}"),
            wrap("Its numbers are those it was chosen by, so a little too good. On other people's edits:"),
            f"  seesaw-cf run --model {model} --editor {editor} --leave-out-tuned --out RUN \\",
            f"      --editor-config {printable(out / 'settings.json')}",
            f"Written to {printable(out)}: settings.json, tune.json, tune.md",
        ]
    )


def _page(search: Mapping[str, Any]) -> str:
    plan = search["plan"]
    facts = [
        f"# Settings for {text.escape(search['editor'])} on {text.escape(search['model']['id'])}",
        f"**Objective**: {text.escape(search['objective'])}.",
        f"**Search**: {plan['trials']} settings drawn with seed {plan['seed']} from the space below (trial 0 is the "
        f"preset), each on {plan['first_edits']} edits; the best {plan['finalists']} and the preset again on "
        f"{plan['final_edits']}. Intervals: 95 %, Wilson, over edits. The numbers of the best are "
        "those it was chosen by, so a little too good: measure it on other people's edits.",
        f"**Edits**: {len(search['subjects'])} people of {text.escape(search['data'].get('source', ''))}, who are "
        "left out of, or refused in, a run with these settings.",
        text.fence(json.dumps({search["editor"]: search["settings"]}, indent=1)),
        "## Trials",
        text.markdown_table(
            ("Round", "Settings", "Trial", "Score", *_PARTS.values(), "Edits", "Refused"),
            [
                [row["round"], _settings(row), *_result(row), str(row["n"]), str(sum(row["refused"].values()))]
                for row in sorted(search["trials"], key=lambda row: (row["round"], -row["score"], row["trial"]))
            ],
            left=2,
        ),
        "## Space",
        text.markdown_table(
            ("Setting", "Values"),
            [[text.escape(name), text.escape(json.dumps(values))] for name, values in plan["space"].items()],
            left=2,
        ),
    ]
    return "\n\n".join(facts) + "\n"


def _result(row: Mapping[str, Any], counts: str = " (n={n})") -> list[str]:
    """Trial, score and the parts of the objective with their intervals and numbers of prompts."""
    name = "preset" if row["trial"] == 0 else str(row["trial"])
    return [name, f"{row['score']:.3f}", *(_cell(row[part], counts) for part in _PARTS)]


def _settings(row: Mapping[str, Any]) -> str:
    return text.escape(", ".join(f"{name} {json.dumps(value)}" for name, value in row["settings"].items())) or "–"


def _cell(part: Mapping[str, Any], counts: str) -> str:
    if part["value"] is None:
        return "–"
    return f"{text.estimate(part['value'], part['low'], part['high'])}{counts.format(n=part['n'])}"
