"""The numbers of an editor that leave a run: the list that `seesaw-cf export` writes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from seesaw_cf.effects.groups import ALL
from seesaw_cf.report.results import HOLDER, Results

# Number of `edit_success` -> (name, what it is).
_SUCCESS = {
    "PS": ("paraphrase", "share of paraphrases after which the new answer is the likelier one"),
    "NS": ("neighborhood", "share of neighbours for whom the true answer stays the likelier one"),
    "S": ("score", "harmonic mean of efficacy, paraphrase and neighborhood; n counts edits"),
}


@dataclass(frozen=True, slots=True)
class Number:
    """A number about an editor.

    Attributes:
        name: What is measured, such as "efficacy" or "D_d/P27".
        about: The same in words.
        value: Finite.
        low, high: Its 95 % interval; NaN where there is none.
        n: Of what it is a mean.
        share: It lies in 0..1 and more is better; else it is an effect, of which 0 is best.
        facts: What else belongs to it.
    """

    name: str
    about: str
    value: float
    low: float
    high: float
    n: int
    share: bool
    facts: Mapping[str, Any] = field(default_factory=dict)


def numbers_of(results: Results, editor: str) -> Iterator[Number]:
    """Yield every number about an editor, or a control, that has one; groups left out."""
    for row in _rows(results.gate_rows, editor):
        if not pd.isna(row.get("post", math.nan)):
            about = "share of edits after which the new answer is likelier than the true one"
            yield Number("efficacy", about, row["post"], row["post_low"], row["post_high"], int(row["n"]), True)
    success = results.success.get(editor)
    for short, (name, about) in _SUCCESS.items() if success else ():
        estimate = success.numbers["counterfact"][short]  # type: ignore[union-attr]
        if math.isfinite(estimate.value):
            # A score is made of three means of cases, not of one list of questions.
            yield Number(
                name, about, estimate.value, estimate.low, estimate.high, estimate.n or estimate.clusters["case"], True
            )
    for row in _rows(results.accuracy, editor):
        if row["edit_relation"] == ALL and row["n"]:
            about = "share of edited people whose other property is answered rightly after the edit"
            numbers = row["post"], row["post_low"], row["post_high"], int(row["n"])
            yield Number("cross_property_accuracy", about, *numbers, True, {"pre": row["pre"]})
    for row in _rows(results.effects, editor):
        if (row["axis"], row["holds"]) == (ALL, HOLDER) and math.isfinite(row["D"]):
            n = int(row["n_prompts"])
            about = "change of p(new) - p(true) about other people who hold the new answer; 0 is best"
            yield Number(f"D_d/{row['relation']}", about, row["D"], row["low"], row["high"], n, False)
            about = "change of log p(new) - log p(true), nats, about other people who hold the new answer; 0 is best"
            limits = row["log_odds_low"], row["log_odds_high"]
            if math.isfinite(row["log_odds"]):
                yield Number(f"log_odds/{row['relation']}", about, row["log_odds"], *limits, n, False)


def contrasts_of(results: Results, editor: str) -> Iterator[Number]:
    """Yield the contrasts between groups that have a number, with their verdicts."""
    verdicts = results.audit.verdicts if results.audit is not None else pd.DataFrame()
    for row in (row for row in _rows(verdicts, editor) if math.isfinite(row["value"])):
        name = f"contrast/{row['relation']}/{row['axis']}/{row['group']}"
        about = f"D_d of a group minus that of {row['reference']}, in {row['scale']}; 0 is best"
        facts = {key: row[key] for key in ("verdict", "margin", "p_adjusted")}
        yield Number(name, about, row["value"], row["low"], row["high"], int(row["n"]), False, facts)


def _rows(table: pd.DataFrame, editor: str) -> list[dict[Any, Any]]:
    return table[table["editor"] == editor].to_dict("records") if len(table) else []
