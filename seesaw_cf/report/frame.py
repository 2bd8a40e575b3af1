"""All numbers of a report as one long frame: a row is an estimate of something, about somebody, after an edit.

`what` says of what, `about` about whom:

- "edited_fact": "efficacy_before", "efficacy_after" (the new answer is likelier than the old one), "raised", counts of
  edits that were "refused", "zero" or "not_finite", and each number of `seesaw_cf.effects.success`, such as
  "counterfact ES".
- "other_facts" about the edited person and "other_people": "before", "after", "change", "beyond" (change minus that of
  the control on the same questions) and "turned_wrong" (of the answers that were right before). About other people
  `true_answer` says which answer of the edit is true of them; "contrast" is the change of a group minus that of
  everybody else within the same edits, "beyond" with another editor as control compares two editors.
- "other_facts" by pair of relations: "right_before", "right_after", "right_change" and their company.

Relation `ALL` and axis `ALL` pool everything: a level of the first screen is such a row of "change" and of "beyond".
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
from seesaw_cf.stats import adjust
from seesaw_cf.stats.clustered import FEW_EDITS

Row = dict[str, Any]
KEYS = (
    *("what", "about", "editor", "control", "relation", "asked", "axis", "group", "reference"),
    *("true_answer", "scale"),
)
NUMBERS = ("value", "low", "high", "p", "p_adjusted")
COLUMNS = (
    *KEYS,
    *NUMBERS,
    *("verdict", "note", "n", "n_edits", "n_people", "half_edits"),
    *("stderr", "df", "margin", "detectable", "reach", "decides", "mirror"),
    *("effective_edits", "effective_people", "tests"),
)
TRUE_ANSWERS: Mapping[str, str] = {"target_new": "new", "target_true": "old", "": ""}
"""What score tables call the answer that is true of a person -> what a report calls it."""
HARM: Mapping[tuple[str, str], int] = {("other_facts", ""): -1, ("other_people", "old"): 1, ("other_people", "new"): -1}
"""(about, true answer) -> sign of a change for the worse."""
_NAN = float("nan")


def row(what: str, about: str, estimate: Estimate, **names: Any) -> Row:
    """Return a row of the frame; keys that are not named stand for everything."""
    keys = dict.fromkeys(KEYS, "") | dict.fromkeys(("relation", "asked", "axis", "group"), ALL)
    found = estimate.columns("value", "low", "high", "p", "stderr", "df", "note")
    counts: Row = {"n": estimate.n, "n_edits": estimate.clusters.get("edit", 0)}
    counts |= {"n_people": estimate.clusters.get("person", 0), "half_edits": 0, "p_adjusted": _NAN, "verdict": ""}
    rest = {"margin": _NAN, "detectable": _NAN, "reach": _NAN, "decides": False, "mirror": False}
    return keys | found | counts | rest | {"what": what, "about": about} | names


# What is claimed: one vocabulary for levels and one for groups, the same in files and on screens.

LEVEL_VERDICTS = ("worse", "slightly_worse", "no_worse", "better", "undecided", "too_few", "no_control")
GROUP_VERDICTS = ("hit_harder", "slightly_harder", "equal", "hit_less", "undecided", "too_few")
RARE = "can miss rare harm"
"""What is said of few edits that all do nothing."""
BATCH_NOTE = "the cases of a relation are one edit"
_GROUP_WORDS: Mapping[str, str] = {
    "worse off": "hit_harder",
    "better off": "hit_less",
    "equivalent": "equal",
    "undetermined": "undecided",
    "not testable": "too_few",
}


def level_verdict(row: pd.Series, sign: int, floor: float, alpha: float) -> tuple[str, str]:
    """Return the verdict on a level beside its control, and the reason.

    Args:
        row: A row "beyond" of the frame: `value`, `p_adjusted`, `reach`, `margin`, `scale`, `n_edits`, `note`.
        sign: Of a change for the worse.
        floor: Largest difference that is noise.
        alpha: Level of the tests of an editor.
    """
    value, margin, p = row["value"], row["margin"], row["p_adjusted"]
    if not np.isfinite([value, p]).all():
        return "too_few", row["note"] or "not estimable"
    size = f"{row['scale']} {value:+.3g}, margin {margin:g}, corrected p {p:.3g}"
    real, harmful, inside = p < alpha and abs(value) > floor, value * sign > 0, row["reach"] < margin and floor < margin
    if real and abs(value) > margin:
        return ("worse" if harmful else "better"), size
    if real and harmful:
        return "slightly_worse", f"{size}: decided, and inside the margin"
    if inside and row["n_edits"] < FEW_EDITS:  # of ten edits none may be among the few that do harm
        return "undecided", f"{size}: inside the margin, but {row['n_edits']} edits {RARE} ({FEW_EDITS} needed)"
    if inside:
        return "no_worse", f"{size}: 90 % interval inside the margin"
    noise = f": within the noise floor {floor:.2g}" if p < alpha and not real else ""
    return "undecided", f"{size}{noise}"


def group_verdict(contrast: Mapping[Any, Any]) -> tuple[str, str]:
    """Return the verdict on a contrast of `seesaw_cf.effects.audit`, and the reason."""
    label = _GROUP_WORDS[contrast["verdict"]]
    decided_lower = contrast["direction"] == "below 0" and label in ("equal", "undecided")
    if decided_lower and abs(contrast["value"]) <= contrast["margin"]:
        label = "slightly_harder"
    return label, (contrast["note"] if label == "too_few" and contrast["note"] else contrast["rule"])


def decide_levels(frame: pd.DataFrame, run: RunResult, settings: AuditSettings) -> pd.DataFrame:
    """Add margins, and to the levels p over all levels of an editor (Holm) and a verdict."""
    log_odds = frame["scale"] == "log-odds"
    frame = frame.assign(margin=np.where(log_odds, settings.margin_log_odds, settings.margin))
    frame.loc[frame["scale"] == "count", "margin"] = _NAN
    if run.protocol == "batch":
        estimated = frame["what"].isin(("change", "beyond", "after", "turned_wrong"))
        frame.loc[estimated, ["low", "high", "p", "stderr", "reach"]] = _NAN
        frame.loc[estimated, "note"] = BATCH_NOTE
    everybody = (frame["relation"] == ALL) & (frame["axis"] == ALL) & frame["decides"]
    own = pd.Series([*zip(frame["editor"], frame["control"])], frame.index).isin(set(run.controls))
    levels = frame[everybody & (frame["what"] == "beyond") & own]
    for _, rows in levels.groupby("editor"):
        frame.loc[rows.index, "p_adjusted"] = adjust(rows["p"].to_numpy(np.float64))
    alone = everybody & (frame["what"] == "change") & ~frame["editor"].isin([name for name, _ in run.controls])
    frame.loc[alone & ~frame["editor"].map(is_control).astype(bool), "verdict"] = "no_control"
    floors = {scale: run.floor.zero_limit(scale) for scale in ("probability", "log-odds", "share")}
    for index in levels.index:
        level = frame.loc[index]
        sign = HARM[level["about"], level["true_answer"]]
        frame.loc[index, ["verdict", "note"]] = level_verdict(level, sign, floors[level["scale"]], settings.alpha)
        if against := _against(frame, level, floors):
            frame.loc[index, "note"] += f"; {against}"
    return frame


def _against(frame: pd.DataFrame, level: pd.Series, floors: Mapping[str, float]) -> str:
    """Return how the scale that does not decide speaks against a verdict; "" where it does not."""
    names = [name for name in KEYS if name != "scale"]
    alike = (frame[names] == level[names]).all(axis=1) & (frame["scale"] != level["scale"])
    for _, other in frame[alike].iterrows():
        if other["low"] * other["high"] <= 0 or abs(other["value"]) <= floors[other["scale"]]:
            continue
        if level["verdict"] in ("worse", "better", "slightly_worse"):
            return f"in {other['scale']} the other way" if level["value"] * other["value"] < 0 else ""
        if abs(other["value"]) > other["margin"] and level["verdict"] in ("no_worse", "undecided"):
            return f"in {other['scale']} it changed by {other['value']:+.3g}, beyond the margin of {other['margin']:g}"
    return ""


def contrast_rows(table: pd.DataFrame) -> Iterator[Row]:
    """Yield the contrasts of groups, below 0 where a group came out worse, and their value on the other scale."""
    if "verdict" not in table:
        return
    tests = {name: independent_tests(rows) for name, rows in table.groupby("family")}
    for own in table.to_dict("records"):
        names = {name: own[name] for name in ("editor", "relation", "axis", "group", "reference", "mirror")}
        names |= {"true_answer": TRUE_ANSWERS[own["holds"]], "n": own["n"]}
        for dimension, plural in (("edit", "edits"), ("person", "people")):
            names |= {f"n_{plural}": own["clusters"].get(dimension, 0)}
            names |= {f"effective_{plural}": own["effective"].get(dimension, _NAN)}
        verdict, note = group_verdict(own)
        decided = {name: own[name] for name in (*NUMBERS, "stderr", "df", "margin", "detectable", "scale")}
        decided |= {"verdict": verdict, "note": note, "decides": True, "tests": tests[own["family"]]}
        yield row("contrast", "other_people", Estimate(_NAN), **names) | decided
        other = "probability" if own["scale"] == "log-odds" else "log-odds"
        yield row("contrast", "other_people", Estimate(own[other.replace("-", "_")]), scale=other, **names)
