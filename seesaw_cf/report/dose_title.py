"""What a dose run found, in sentences: who broke the model, how far the score fell, whether other people moved."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
from scipy import stats

from seesaw_cf.base.terminal import listed, quantity
from seesaw_cf.effects.dose import BAND, no_band
from seesaw_cf.report import text
from seesaw_cf.report.html.findings import FirstScreen, TitleRules, title_by
from seesaw_cf.report.results import relation_name
from seesaw_cf.report.rows import DoseRow, number_of, with_limits
from seesaw_cf.report.table import Row

_NAMED = 2  # lines that a sentence spells out
MEASURES: Mapping[str, tuple[str, str]] = {
    "S": ("Score", "harmonic mean of the three below; 1 is best"),
    "ES": ("Efficacy", "edits after which the new target is likelier"),
    "PS": ("Generalisation", "the same after paraphrases"),
    "NS": ("Specificity", "neighbours whose true target is likelier"),
    "D": ("D_d of other people", "0 is best; below 0: less confident in what is right about them"),
    "perplexity": ("Perplexity", "of fixed texts; dashed: the unedited model"),
    "entropy": ("Entropy of answers", "nats, to fixed questions; dashed: the unedited model"),
}
POSSIBLE: Mapping[str, tuple[float, float]] = dict.fromkeys(("S", "ES", "PS", "NS"), (0.0, 1.0)) | {
    "D": (-1.0, 1.0),
    "perplexity": (1.0, math.inf),
    "entropy": (0.0, math.inf),
}
"""Values of the measures that there can be."""


def mix_name(mix: str) -> str:
    """Return the papers' words for the relations of a mix, or of the average of two."""
    return " + ".join(" ".join(map(relation_name, part.split())) for part in mix.split("+"))


def dose_lines(rows: Sequence[DoseRow]) -> Iterator[tuple[str, list[DoseRow]]]:
    """Yield each editor and mix, by name, with its doses."""
    keys = dict.fromkeys((row["editor"], row["mix"]) for row in rows)
    for editor, mix in keys:
        yield f"{editor}, {mix_name(mix)}", [row for row in rows if (row["editor"], row["mix"]) == (editor, mix)]


def _edited(rows: Sequence[DoseRow], model: str) -> str:
    if not rows:
        return model
    doses = sorted({row["dose"] for row in rows})
    mixes = list(dict.fromkeys(mix_name(row["mix"]) for row in rows if "average of" not in row["mix"]))
    samples = sorted({row["repeats"] for row in rows})
    between = " to ".join(map(str, dict.fromkeys((samples[0], samples[-1]))))
    editors = ", ".join(dict.fromkeys(row["editor"] for row in rows))
    return (
        f"{model} · {', '.join(f'{dose:,}' for dose in doses)} facts edited together by {editors} · "
        f"{', '.join(mixes)} · {between} sample{'s' if samples[-1] > 1 else ''} of each"
    )


@dataclass(frozen=True, slots=True)
class DoseLine:
    """An editor and a mix of properties, from its smallest to its largest dose that has the measure."""

    who: str
    measure: str
    first: DoseRow
    last: DoseRow

    def __str__(self) -> str:
        """Return both ends in words."""
        ends = [f"{dose_value(row, self.measure)} with {_count(row['dose'])}" for row in (self.first, self.last)]
        return f"{' and '.join(dict.fromkeys(ends))} ({self.who})"

    @property
    def worsening(self) -> float:
        """How far the measure fell from the smallest to the largest dose."""
        return number_of(self.first, self.measure) - number_of(self.last, self.measure)

    def band(self, row: DoseRow, lines: int) -> tuple[float, float]:
        """Return the band of a dose, for as many lines together (Bonferroni); NaN where its samples do not differ."""
        value, _, high = with_limits(row, self.measure)
        one, together = (stats.t.isf((1 - BAND) / 2 / n, row["repeats"] - 1) for n in (1, lines))
        half = (high - value) * together / one if high > value else math.nan
        return value - half, value + half

    def falls(self, lines: int) -> bool:
        """Return whether the band of the largest dose lies below that of the smallest, for as many lines together."""
        return self.band(self.last, 2 * lines)[1] < self.band(self.first, 2 * lines)[0]


@dataclass(frozen=True, slots=True)
class DoseSummary:
    """What a title is made of.

    Attributes:
        rows: Cells of mixes that were edited.
        alarms: Of each line with a collapse alarm its name and the smallest dose that has one.
        scores: Every line with a score, the largest fall first.
        people: Every line with D of other people at its largest dose without an alarm, the largest size first.
    """

    rows: Sequence[DoseRow]
    alarms: Sequence[tuple[str, DoseRow]]
    scores: Sequence[DoseLine]
    people: Sequence[DoseLine]

    @property
    def first_alarm(self) -> str:
        """The smallest dose with an alarm, and of which lines; "" where there is none."""
        if not self.alarms:
            return ""
        least = min(row["dose"] for _, row in self.alarms)
        names = [who for who, row in self.alarms if row["dose"] == least]
        return f"from {_count(least)} on ({listed(names, _NAMED, joined='; ')})"

    @property
    def moved(self) -> str:
        """The largest D of other people with a band that excludes 0; "" where there is none."""
        bands = [(line, line.band(line.last, len(self.people))) for line in self.people]
        rows = [line for line, (low, high) in bands if low > 0 or high < 0]
        return f"{dose_value(rows[0].last, 'D')} with {_count(rows[0].last['dose'])} ({rows[0].who})" if rows else ""


_TITLE: Sequence[TitleRules[DoseSummary]] = (
    (
        (lambda dose: not dose.rows, "Nothing was edited."),
        (lambda dose: not any(row["edits"] for row in dose.rows), "Every edit was refused: nothing was changed."),
        (lambda dose: dose.alarms, "Facts edited together break the model: {0.first_alarm}."),
    ),
    (
        (lambda dose: not any(row["edits"] for row in dose.rows), ""),
        (lambda dose: not dose.scores, "Whether the edits took was not asked."),
        (lambda dose: dose.scores[0].falls(len(dose.scores)), "The score falls: {0.scores[0]}."),
        (lambda dose: dose.scores[0].first is dose.scores[0].last, "One number of facts was tried: {0.scores[0]}."),
        (lambda dose: dose.scores[0].worsening > 0, "That the score falls with more facts is not shown."),
        (lambda dose: True, "The score does not fall with more facts."),
    ),
    (
        (lambda dose: not dose.people or not any(row["edits"] for row in dose.rows), ""),
        (lambda dose: dose.moved, "Answers about other people move: D_d {0.moved}."),
        (lambda dose: True, "Answers about other people are not shown to move."),
    ),
)  # fmt: skip


def dose_screen(rows: Sequence[DoseRow], groups: pd.DataFrame, model: str) -> FirstScreen:
    """Return what was found.

    Args:
        rows: Of `summarise_curves`.
        groups: Of `group_doses`.
        model: Its name.
    """
    edited = [row for row in rows if "average of" not in row["mix"]]
    lines = [(who, own) for who, own in dose_lines(edited)]
    alarms = [(who, first) for who, own in lines for first in [row for row in own if row["collapsed"]][:1]]
    healthy = [(who, [row for row in own if not row["collapsed"]]) for who, own in lines]
    scored = list(_with("S", lines))
    scores = sorted(scored, key=lambda line: (not line.falls(len(scored)), -line.worsening))
    people = sorted(_with("D", healthy), key=lambda line: -abs(number_of(line.last, "D")))
    answers = {
        "Collapse alarm": _listed([f"{who}, {_count(row['dose'])}: {row['alarm']}" for who, row in alarms]),
        "Score, 1 is best": _listed(list(map(str, scores))),
        "D_d of other people, 0 is best": _listed(list(map(str, people))),
        "Not known": _not_known(edited, groups),
        "How sure": _sure(edited),
    }
    return FirstScreen(_edited(rows, model), title_by(_TITLE, DoseSummary(edited, alarms, scores, people)), answers)


def _count(dose: int) -> str:
    return f"{dose:,} fact{'s' if dose != 1 else ''}"


def _with(measure: str, lines: Sequence[tuple[str, Sequence[DoseRow]]]) -> list[DoseLine]:
    """Return the lines that have this measure."""
    measured = [(who, [row for row in own if math.isfinite(number_of(row, measure))]) for who, own in lines]
    return [DoseLine(who, measure, own[0], own[-1]) for who, own in measured if own]


def _listed(words: Sequence[str]) -> str:
    rest = [f"{len(words) - _NAMED} more in the table"] if len(words) > _NAMED else []
    return f"{'; '.join([*words[:_NAMED], *rest])}." if words else ""


def _not_known(rows: Sequence[DoseRow], groups: pd.DataFrame) -> str:
    parts = []
    if refused := sum(int(dict(row).get("refused", 0)) for row in rows):  # type: ignore[call-overload]
        parts.append(f"refused: {quantity(refused, 'edit')}")
    bare = sum(all(math.isnan(number_of(row, f"{name}_low")) for name in MEASURES) for row in rows)
    if bare:
        parts.append(
            f"{bare} of {len(rows)} cells have no band: one sample, or samples that share facts (--repeats 3 or more, "
            "and more facts than are edited together, would give one)"
        )
    parts += ["no prompt was about a person with a recorded group"] if groups.empty and rows else []
    return f"{'; '.join(parts)}." if parts else ""


def _sure(rows: Sequence[DoseRow]) -> str:
    n = sum(row["repeats"] for row in rows)
    bands = f"{BAND:.0%} bands over samples, without correction for many of them: no band is a test"
    return f"{n} samples in {len(rows)} cells; {bands}." if rows else ""


def banded(row: Row, name: str) -> tuple[float, float, float]:
    """Return a mean and its band, which is cut to possible values: bands of few samples are wide."""
    value, low, high = with_limits(row, name)
    least, most = POSSIBLE[name]
    return value, max(low, least) if math.isfinite(low) else low, min(high, most) if math.isfinite(high) else high


def dose_value(row: Row, name: str) -> str:
    """Return a mean with its band, or why there is none."""
    return text.minus(text.estimate(*banded(row, name), ".3g", missing=f"({no_band(row['repeats'])})"))
