"""All numbers of a report as one long frame: a row is an estimate of something, about somebody, after an edit.

`what` says of what, `about` about whom:

- "edited_fact": "efficacy_before", "efficacy_after" (the new answer is likelier than the old one), "raised", counts of
  edits that were "refused", "zero" or "not_finite", and each number of `seesaw_cf.effects.success`, such as
  "counterfact ES".
- "other_facts" about the edited person and "other_people": "before", "after", "change", "beyond" (change minus that of
  the control on the same questions) and "turned_wrong" (of the answers that were right before). About other people
  `true_answer` says which answer of the edit is true of them; "contrast" is the change of a group minus that of
  everybody else within the same edits, "beyond" with another editor as control compares two editors.
- "answers" that the models wrote, `asked` says to which kind of questions: the numbers of
  `seesaw_cf.effects.free_answers.summarise_answers`.
- "other_facts" by pair of relations: "right_before", "right_after", "right_change" and their company.

`form` says how it was asked, `seesaw_cf.base.types.FORMS`. Relation `ALL` and axis `ALL` pool everything: a level of
the first screen is such a row of "change" and of "beyond".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from seesaw_cf.base.types import Estimate
from seesaw_cf.editors.control_names import is_control
from seesaw_cf.effects.audit import AuditSettings, independent_tests
from seesaw_cf.effects.means import ALL
from seesaw_cf.report.pairs import RunResult
from seesaw_cf.stats.multiple import adjust
from seesaw_cf.stats.verdicts import VERDICTS, verdict

Row = dict[str, Any]
_NAN = float("nan")
# Column -> what it is where nothing is said of it.
_EMPTY: Mapping[str, Any] = {
    **dict.fromkeys(("what", "about", "editor", "control"), ""),
    **dict.fromkeys(("relation", "asked", "axis", "group"), ALL),
    **dict.fromkeys(("reference", "true_answer", "form", "scale"), ""),
    **dict.fromkeys(("value", "low", "high", "p", "p_adjusted"), _NAN),
    **dict.fromkeys(("verdict", "note"), ""),
    **dict.fromkeys(("n", "n_edits", "n_people", "half_edits"), 0),
    **dict.fromkeys(("stderr", "df", "margin", "detectable", "reach"), _NAN),
    **dict.fromkeys(("decides", "mirror"), False),
    **dict.fromkeys(("effective_edits", "effective_people", "tests"), _NAN),
}
COLUMNS = tuple(_EMPTY)
KEYS = COLUMNS[: COLUMNS.index("value")]
TRUE_ANSWERS: Mapping[str, str] = {"target_new": "new", "target_true": "old", "": ""}
"""What score tables call the answer that is true of a person -> what a report calls it."""
HARM: Mapping[tuple[str, str], int] = {("other_facts", ""): -1, ("other_people", "old"): 1, ("other_people", "new"): -1}
"""(about, true answer) -> sign of a change for the worse."""


def row(what: str, about: str, estimate: Estimate, **names: Any) -> Row:
    """Return a row of the frame; keys that are not named stand for everything."""
    found = estimate.columns("value", "low", "high", "p", "stderr", "df", "note", "n")
    counts = {"n_edits": estimate.clusters.get("edit", 0), "n_people": estimate.clusters.get("person", 0)}
    return {**_EMPTY, **found, **counts, "what": what, "about": about, **names}


# What is claimed: one vocabulary for levels and one for groups, `seesaw_cf.stats.verdicts.VERDICTS`.

_WORDS = ("worse", "slightly_worse", "no_worse", "better", "undecided", "too_few")
LEVEL_VERDICTS: Mapping[str, str] = dict(zip(VERDICTS, _WORDS, strict=True))
"""Verdict -> that on a level, which may be "no_control", too."""


def level_verdict(row: Mapping[str, Any] | pd.Series, sign: int, floor: float, alpha: float) -> tuple[str, str]:
    """Return the verdict on a level beside its control, and the reason; equal by the 90 % interval of `reach`.

    Args:
        row: A row "beyond" of the frame: `value`, `p_adjusted`, `reach`, `margin`, `n_edits`, `note`.
        sign: Of a change for the worse.
        floor: Largest difference that is noise.
        alpha: Level of the tests of an editor.
    """
    estimate = Estimate(-sign * row["value"], p=row["p_adjusted"], note=row["note"])
    same = 0.0 if row["reach"] < row["margin"] else 1.0
    limits = {"margin": row["margin"], "noise_floor": floor, "alpha": alpha}
    found = verdict(estimate, p_equivalence=same, edits=int(row["n_edits"]), **limits)
    return LEVEL_VERDICTS[found.label], found.rule


def decide_levels(frame: pd.DataFrame, run: RunResult, settings: AuditSettings) -> pd.DataFrame:
    """Add margins, and to the levels p over all levels of an editor (Holm) and a verdict."""
    log_odds = frame["scale"] == "log-odds"
    margin = pd.Series(np.where(log_odds, settings.margin_log_odds, settings.margin), frame.index)
    frame = frame.assign(margin=margin.mask(frame["scale"] == "count"))
    if run.protocol == "batch":
        estimated = frame["what"].isin(("change", "beyond", "after", "turned_wrong"))
        frame.loc[estimated, ["low", "high", "p", "stderr", "reach"]] = _NAN
        frame.loc[estimated, "note"] = "the cases of a relation are one edit"
    everybody = (frame["relation"] == ALL) & (frame["axis"] == ALL) & frame["decides"]
    own = pd.Series([*zip(frame["editor"], frame["control"])], frame.index).isin(set(run.controls))
    alone = everybody & (frame["what"] == "change") & ~frame["editor"].isin([name for name, _ in run.controls])
    frame.loc[alone & ~frame["editor"].map(is_control).astype(bool), "verdict"] = "no_control"
    floors = {scale: run.floor.zero_limit(scale) for scale in ("probability", "log-odds", "share")}
    for _, levels in frame[everybody & (frame["what"] == "beyond") & own].groupby("editor"):
        levels = levels.assign(p_adjusted=adjust(levels["p"].to_numpy(np.float64)))
        for index, level in levels.iterrows():
            sign, floor = HARM[level["about"], level["true_answer"]], floors[level["scale"]]
            word, note = level_verdict(level, sign, floor, settings.alpha)
            notes = "; ".join(filter(None, (note, _against(frame, level, word, floors))))
            frame.loc[index, ["p_adjusted", "verdict", "note"]] = level["p_adjusted"], word, notes
    return frame


def _against(frame: pd.DataFrame, level: pd.Series, word: str, floors: Mapping[str, float]) -> str:
    """Return how the scale that does not decide speaks against a verdict; "" where it does not."""
    names = [name for name in KEYS if name != "scale"]
    alike = (frame[names] == level[names]).all(axis=1) & (frame["scale"] != level["scale"])
    for _, other in frame[alike].iterrows():
        if other["low"] * other["high"] <= 0 or abs(other["value"]) <= floors[other["scale"]]:
            continue
        if word in ("worse", "better", "slightly_worse"):
            return f"in {other['scale']} the other way" if level["value"] * other["value"] < 0 else ""
        if abs(other["value"]) > other["margin"] and word in ("no_worse", "undecided"):
            return f"in {other['scale']} it changed by {other['value']:+.3g}, beyond the margin of {other['margin']:g}"
    return ""


_DECIDED = ("value", "low", "high", "p", "p_adjusted", "stderr", "df", "margin", "detectable", "scale", "verdict")


def contrast_rows(table: pd.DataFrame) -> Iterator[Row]:
    """Yield the contrasts of groups, below 0 where a group came out worse, and their value on the other scale."""
    tests = {name: independent_tests(rows) for name, rows in table.groupby("family")}
    for own in table.to_dict("records"):
        names = {name: own[name] for name in ("editor", "relation", "axis", "group", "reference", "mirror", "n")}
        names |= {"true_answer": TRUE_ANSWERS[own["holds"]]}
        for dimension, plural in (("edit", "edits"), ("person", "people")):
            names |= {f"n_{plural}": own["clusters"].get(dimension, 0)}
            names |= {f"effective_{plural}": own["effective"].get(dimension, _NAN)}
        decided = {name: own[name] for name in _DECIDED} | {"note": own["rule"], "tests": tests[own["family"]]}
        yield row("contrast", "other_people", Estimate(_NAN), decides=True, **names | decided)
        other = "probability" if own["scale"] == "log-odds" else "log-odds"
        yield row("contrast", "other_people", Estimate(own[other.replace("-", "_")]), scale=other, **names)
