"""The page of a search for an editor's settings: what was tried, what came out, what it was found on."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from seesaw_cf.base.errors import RunFolderError
from seesaw_cf.base.files import write_text
from seesaw_cf.base.terminal import printable, wrap
from seesaw_cf.base.text import read_json
from seesaw_cf.report import text
from seesaw_cf.report.table import Column, Row, Table

_PARTS = {"efficacy": "takes", "paraphrase": "paraphrases", "neighborhood": "neighbours", "fluency": "fluency"}
_words = partial(Column, words=True)


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
    trials = _trials(search)
    final = trials.frame[trials.frame["round"] == "final"]
    about = "All on the same edits."
    finalists = replace(trials, title="Finalists", about=about, columns=trials.columns[2:], frame=final)
    editor, model = search["editor"], printable(search["model"]["id"])
    settings = json.dumps({editor: search["settings"]}, ensure_ascii=False)
    return "\n".join(
        [
            f"SETTINGS FOR {editor} ON {model}",
            finalists.terminal(),
            wrap(f"Best: {printable(settings)}"),
            wrap("Its numbers are those it was chosen by, so a little too good. On other people's edits:"),
            f"  seesaw-cf run --model {model} --editor {editor} --leave-out-tuned --out RUN \\",
            f"      --editor-config {printable(out / 'settings.json')}",
            f"Written to {printable(out)}: settings.json, tune.json, tune.md",
        ]
    )


def _page(search: Mapping[str, Any]) -> str:
    plan = search["plan"]
    space = [{"setting": name, "values": json.dumps(values)} for name, values in plan["space"].items()]
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
        _trials(search).markdown(),
        Table("space", "Space", "", [_words("setting"), _words("values")], pd.DataFrame(space)).markdown(),
    ]
    return "\n\n".join(facts) + "\n"


def _trials(search: Mapping[str, Any]) -> Table:
    """Return every trial: its score and the parts of the objective with their intervals and numbers of prompts."""
    columns = [
        _words("round"),
        _words(
            "settings",
            lambda row: ", ".join(f"{name} {json.dumps(value)}" for name, value in row["settings"].items()) or None,
        ),
        _words("trial", lambda row: row["trial"] or "preset"),
        Column("score"),
        *(Column(head, partial(_part, name)) for name, head in _PARTS.items()),
        Column("edits", "n"),
        Column("refused", lambda row: sum(row["refused"].values())),
    ]
    rows = sorted(search["trials"], key=lambda row: (row["round"], -row["score"], row["trial"]))
    return Table("trials", "Trials", "", columns, pd.DataFrame(rows))


def _part(name: str, row: Row) -> str:
    part = row[name]
    count = "" if part["value"] is None else f" (n={part['n']})"
    return text.estimate(part["value"], part["low"], part["high"]) + count
