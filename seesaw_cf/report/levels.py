"""What edits did whatever the group: to other facts, and to people who hold either answer, each beside its control."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from seesaw_cf.editors.control_names import is_control, split_control
from seesaw_cf.effects.levels import LEVEL_VERDICTS
from seesaw_cf.report import text
from seesaw_cf.report.results import Results
from seesaw_cf.report.rows import Row, rows_of

Tone = str  # "bad", "good", "same" or "open": how a chip looks


@dataclass(frozen=True, slots=True)
class LevelWords:
    """Words for a level.

    Attributes:
        head: Its short name in a table.
        title: Its name on the first screen.
        measure: What its numbers are.
        harm: What a change for the worse is called.
        sign: Of a change for the worse.
        better: How the opposite of harm looks. More confidence in the new answer also comes of an edit that says it
            about everyone.
    """

    head: str
    title: str
    measure: str
    harm: str
    sign: int
    better: Tone = "good"

    @property
    def about(self) -> str:
        """The people or facts, inside a sentence."""
        return self.title[:1].lower() + self.title[1:]


WORDS: Mapping[str, LevelWords] = {
    "other_facts": LevelWords(
        "Other facts",
        "Other facts about the edited person",
        "share still answered rightly, {before} before",
        "damage",
        -1,
    ),
    "target_true": LevelWords(
        "Old answer",
        "People who hold the old answer",
        "what the new answer, false about them, gained on the right one; {unit}",
        "loss",
        1,
    ),
    "target_new": LevelWords(
        "New answer",
        "People who hold the new answer",
        "change of confidence in it, the papers' D_d; {unit}",
        "loss",
        -1,
        "same",
    ),
}
WORSE, BETTER, SAME, OPEN, UNTESTABLE, ALONE = LEVEL_VERDICTS
UNITS = {"probability": "probability", "log-odds": "nats of log-odds", "share": ""}
# Which control decides where an editor has several.
_ORDER = ("random", "unrelated", "identity")


@dataclass(frozen=True, slots=True)
class LevelChange:
    """What one editor did on one level, beside the control that decides.

    Attributes:
        row: The row of `Results.levels`.
        verdict: One of the verdicts on a level.
        size: The change beyond the control (without one: the change) in margins, positive = for the worse.
        changed: The interval of the change itself excludes 0, beyond the margin.
    """

    row: Row
    verdict: str
    size: float
    changed: bool

    @property
    def is_shown(self) -> bool:
        """Whether it is worse than its control; without a control, whether it changed."""
        return self.verdict == WORSE or (self.verdict == ALONE and self.changed)

    @property
    def is_harm(self) -> bool:
        """Whether it is shown, and for the worse."""
        return self.is_shown and self.size > 0

    @property
    def level(self) -> str:
        """Name of the level."""
        return str(self.row["level"])

    @property
    def editor(self) -> str:
        """Name of the editor."""
        return str(self.row["editor"])


def level_changes(results: Results) -> list[LevelChange]:
    """Return what every editor did on every level, on the scale that decides; controls alone where there is no other.

    Where an editor has several controls the first of random, unrelated and identity decides.
    """
    editors = [name for name in results.editors if not is_control(name)] or results.editors
    rows = [row for row in rows_of(results.levels) if row["decides"] and row["editor"] in editors]
    rows = [row for row in rows if math.isfinite(row["value"])]
    rows.sort(key=lambda row: _ORDER.index(split_control(row["control"])[0]) if row["control"] else len(_ORDER))
    first: dict[tuple[str, str], Row] = {}
    for row in rows:
        first.setdefault((row["level"], row["editor"]), row)
    order = [(level, editor) for level in WORDS for editor in results.editors]
    return [_change(first[key]) for key in order if key in first]


def _change(row: Row) -> LevelChange:
    margin = row["margin"]
    value = row["difference"] if row["control"] else row["value"]
    changed = (row["low"] > 0 or row["high"] < 0) and abs(row["value"]) > margin
    size = WORDS[row["level"]].sign * float(value) / margin
    return LevelChange(row, row["verdict"], size if math.isfinite(size) else 0.0, bool(changed))


def level_verdict(row: Row) -> str:
    """Return the verdict on a level, and why there is no interval."""
    reason = row["difference_note"] if row["control"] else ""
    return f"{row['verdict'] or '-'}" + (f" (no interval: {text.short_note(reason)})" if reason else "")
