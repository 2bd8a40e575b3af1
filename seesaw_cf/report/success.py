"""Paraphrases, neighbours, consequences and the papers' scores of a run: a table for each way of counting."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from seesaw_cf.effects.success import Success
from seesaw_cf.io.terminal import column_table, wrap
from seesaw_cf.report import text
from seesaw_cf.report.results import Results
from seesaw_cf.types import Estimate

_HEADS = ("edit", "paraphrases", "neighbours", "consequences", "score")
# Way of counting -> where each column's number is: protocol and name in `seesaw_cf.effects.edit_success`.
_WAYS: Mapping[str, tuple[tuple[str, str] | None, ...]] = {
    "likelier": (*(("counterfact", name) for name in ("ES", "PS", "NS")), None, ("counterfact", "S")),
    "tokens": (
        *(("zsre", name) for name in ("efficacy", "paraphrase", "specificity")),
        ("easyedit", "portability"),
        ("zsre", "score"),
    ),
    "unchanged": (None, None, ("easyedit", "locality"), None, None),
    "whole": (*(("generation", name) for name in ("rewrite", "paraphrase", "neighborhood", "portability")), None),
}
_ABOUT = """Shares, with 95 % Wilson intervals worth as many cases as the edits allow, and n = edits. likelier: the
wanted one of two answers is more probable (CounterFact's ES, PS, NS and S); tokens: share of the wanted answer's
tokens that are the model's first choice after the true ones before them (zsRE's efficacy, paraphrase and specificity;
EasyEdit's portability); unchanged: share of them at which the first choice, right or wrong, is that from before
(EasyEdit's locality); whole: all of them are, so that greedy writing gives the answer. Score: harmonic mean of the
first three, its ends those of theirs. Wanted after the edit's own prompt and its paraphrases is the new answer, of
neighbours the old one, of consequences what follows from the edit.
unedited: the model before any edit."""


def success_table(found: Mapping[str, Success]) -> pd.DataFrame:
    """One row per editor, protocol and number of `edit_success`: value, low, high, n_prompts, n_cases, note."""
    return pd.DataFrame(
        {"editor": editor, "protocol": protocol, "number": name}
        | estimate.columns("value", "low", "high")
        | {"n_prompts": estimate.n or None, "n_cases": estimate.clusters["case"], "note": estimate.note}
        for editor, success in found.items()
        for protocol, numbers in success.numbers.items()
        for name, estimate in numbers.items()
        if estimate.clusters["case"]
    )


def success_text(results: Results) -> str:
    """The section for a terminal; "" for a run that asked about nothing but the edits' own prompts."""
    heads, rows = _rows(results)
    if len(heads) < 4:
        return ""
    return f"HOW FAR THE EDITS REACH\n{wrap(' '.join(_ABOUT.split()))}\n{column_table(heads, rows, left=2)}"


def success_markdown(results: Results) -> list[str]:
    """The section for Markdown."""
    heads, rows = _rows(results)
    shown = [[text.escape(row[0]), *map(text.minus, row[1:])] for row in rows]
    if len(heads) < 4:
        return []
    return [f"### How far the edits reach\n\n{_ABOUT}\n\n{text.markdown_table(heads, shown, left=2)}"]


def _rows(results: Results) -> tuple[list[str], list[list[str]]]:
    """Heads and rows; columns that no editor has a number for are left out."""
    rows = [
        [editor, way, *(_cell(success.numbers[at[0]][at[1]]) if at else "-" for at in places)]
        for editor, success in results.success.items()
        for way, places in _WAYS.items()
    ]
    rows = [row for row in rows if any(cell != "-" for cell in row[2:])]
    kept = [0, 1, *(place for place in range(2, 7) if any(row[place] != "-" for row in rows))]
    heads = ["editor", "counted", *_HEADS]
    return [heads[place] for place in kept], [[row[place] for place in kept] for row in rows]


def _cell(found: Estimate) -> str:
    shown = text.percent_interval(found.value, found.low, found.high)
    return shown if shown == "-" else f"{shown} n={found.clusters['case']}"
