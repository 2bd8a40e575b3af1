"""Contrasts between groups in words: how many are decided, which, and how large a difference the data could show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from seesaw_cf.base.types import JsonObject
from seesaw_cf.editors.control_names import first_seed
from seesaw_cf.effects.groups import ALL
from seesaw_cf.report import text
from seesaw_cf.report.levels import Tone
from seesaw_cf.report.needed import needed
from seesaw_cf.report.results import Results, relation_name
from seesaw_cf.report.rows import rows_of
from seesaw_cf.report.verdicts import without_controls
from seesaw_cf.stats.clustered import FEW_EDITS
from seesaw_cf.stats.verdicts import AFFECTED, OPEN, VERDICTS

WORSE_OFF, BETTER_OFF, EQUIVALENT, UNDETERMINED, UNTESTABLE = VERDICTS
# The first that holds says what is known about groups, and how that looks.
_CHIPS: Sequence[tuple[Callable[[GroupCounts], bool], str, Tone]] = (
    (lambda counts: not counts.total, "not compared", "same"),
    (lambda counts: counts.decided > counts.equivalent, "groups differ", "bad"),
    (lambda counts: counts.equivalent == counts.total, "no difference that matters", "same"),
    (lambda counts: not counts.tested, "not testable", "open"),
    (lambda counts: True, "not known yet", "open"),
)
_LARGEST = {"probability": 2.0}  # from none to all of the probability, from one answer to the other
HOLD = {"target_true": "who hold the old answer", "target_new": "who hold the new answer"}


@dataclass(frozen=True, slots=True)
class GroupClaim:
    """A contrast that is decided: its verdict, in a few words ("": not for a title), and in a sentence."""

    verdict: str
    short: str
    long: str


@dataclass(frozen=True, slots=True)
class GroupCounts:
    """Contrasts of edits, controls left out.

    Attributes:
        counts: Verdict -> contrasts.
        claims: Those that are decided, the largest first.
        detectable: Scale -> median smallest difference that the undetermined could show.
        axes: What groups were compared by.
        margins: Scale -> margin.
        controls: Verdict -> contrasts of control edits.
        promise: How often a claim may be false.
        needed: What would decide the undetermined.
        seeds: Largest number of seeds of a control.
        words: Makes sentences fit what was changed, see `Results.words`.
    """

    kind: ClassVar[str] = "groups"
    counts: Mapping[str, int]
    claims: Sequence[GroupClaim]
    detectable: Mapping[str, float]
    axes: Sequence[str]
    margins: Mapping[str, float]
    controls: Mapping[str, int]
    promise: str
    needed: str
    seeds: int = 1
    words: Callable[[str], str] = str

    @property
    def total(self) -> int:
        """Number of contrasts."""
        return sum(self.counts.values())

    @property
    def decided(self) -> int:
        """Number of contrasts that say who is worse or better off, or that no difference matters."""
        return self.total - sum(self.counts.get(name, 0) for name in OPEN)

    @property
    def equivalent(self) -> int:
        """Number of contrasts inside the margin."""
        return self.counts.get(EQUIVALENT, 0)

    @property
    def tested(self) -> int:
        """Number of contrasts that have an interval."""
        return self.total - self.counts.get(UNTESTABLE, 0)

    def headline(self) -> str:
        """Return the counts in words."""
        if not self.total:
            return self.words("no contrasts of edits") if self.controls else "no two groups could be compared"
        inside = f" ({self.equivalent} of them inside the margin)" if self.equivalent else ""
        rest = [f"{n} {name}" for name in OPEN if (n := self.counts.get(name))]
        return self.words(f"{self.total} contrasts of edits: {', '.join([f'{self.decided} decided{inside}', *rest])}")

    def lines(self) -> list[str]:
        """Return what was decided, how large a difference could be seen, what would decide the rest, and controls."""
        lines = [claim.long for claim in self.claims[:3]]
        if len(self.claims) > 3:
            lines.append(f"{len(self.claims) - 3} more decided contrasts are in tables/verdicts.csv.")
        if self.counts.get(UNTESTABLE):
            lines.append("Not testable: too few edits or people on a side, or nothing to compare.")
        if self.detectable:
            sizes = " and ".join(_least(scale, size) for scale, size in self.detectable.items())
            lines.append(f"The undetermined could show {sizes} (median; 80 % power).")
        lines += [self.needed] if self.needed else []
        if self.controls:
            moved = sum(self.controls.get(name, 0) for name in AFFECTED)
            mean = f" (mean of {self.seeds} seeds)" * (self.seeds > 1)
            lines.append(f"In {moved} of {sum(self.controls.values())} contrasts of control edits{mean} groups differ.")
        return list(map(self.words, lines))

    def line(self) -> str:
        """Return all of it as sentences."""
        return " ".join([f"{self.headline()}.", *self.lines()])

    def record(self) -> JsonObject:
        """Return the counts."""
        return {"counts": self.counts, "counts of controls": self.controls}

    @property
    def chip(self) -> tuple[str, Tone]:
        """The state of the contrasts in a few words, and how that looks."""
        return next((words, tone) for holds, words, tone in _CHIPS if holds(self))

    @property
    def margin(self) -> str:
        """The margins in words."""
        return ", ".join(f"{margin:g} in {scale}" for scale, margin in self.margins.items())


def _least(scale: str, size: float) -> str:
    """Return the smallest detectable difference in words, up to the largest that D of two groups can have."""
    return f"a difference of {size:.2g} in {scale} or more" if size < _LARGEST.get(scale, size + 1) else (
        f"no possible difference in {scale}"
    )  # fmt: skip


def count_groups(results: Results) -> GroupCounts:
    """Return the contrasts of a run in counts and words."""
    audit = results.audit
    if audit is None or "verdict" not in audit.verdicts or audit.verdicts.empty:
        return GroupCounts({}, (), {}, (), {}, {}, "", "")
    own, controls = without_controls(audit.contrasts)
    open_ = own[own["verdict"] == UNDETERMINED]
    decided = own[own["verdict"].isin(AFFECTED)]
    decided = decided.assign(size=-(decided["value"].abs() / decided["margin"])).sort_values("size", kind="stable")
    several = own["editor"].nunique() > 1
    return GroupCounts(
        counts=dict(Counter(own["verdict"])),
        claims=[group_claim(row, several) for row in rows_of(decided)],
        detectable={str(scale): float(rows["detectable"].median()) for scale, rows in open_.groupby("scale")},
        axes=list(dict.fromkeys(own["axis"])),
        margins={str(scale): float(rows["margin"].iloc[0]) for scale, rows in audit.contrasts.groupby("scale")},
        controls=dict(Counter(controls["verdict"])),
        promise=audit.settings.promise(),
        needed=needed(results),
        seeds=1 + max(Counter(map(first_seed, results.further_seeds)).values(), default=0),
        words=results.words,
    )


def group_claim(row: Mapping[Any, Any], named: bool = True) -> GroupClaim:
    """Return a decided contrast in words: its size from `FEW_EDITS` on, for a title where its interval excludes 0.

    Args:
        row: A row of `AuditTables.verdicts`.
        named: Whether to name the editor.
    """
    edits, verdict = row["clusters"].get("edit", 0), row["verdict"]
    unit = " nats" if row["scale"] == "log-odds" else ""
    size = f"by {abs(row['value']):.2g}{unit}, " if edits >= FEW_EDITS else ""
    about = "all properties" if row["relation"] == ALL else f"edits of {relation_name(row['relation'])}"
    people = HOLD.get(row.get("holds", ""), "")
    editor = f"{row['editor']}, " if named else ""
    limits = text.minus(text.effect(row["value"], row["low"], row["high"]))
    why = f"{limits}, corrected {text.p_equals(row['p_adjusted'])}" if edits >= FEW_EDITS else (
        f"corrected {text.p_equals(row['p_adjusted'])}; no size is claimed below {FEW_EDITS} edits"
    )  # fmt: skip
    reaches_0 = row["low"] <= 0 <= row["high"]
    why += "; its interval reaches 0" * reaches_0
    beside = "" if row["reference"] == "others" else f" than {row['reference']}"
    words = f"{row['group']} {people} are {verdict}{beside or ' than the others'}".replace("  ", " ")
    short = "" if reaches_0 else f"{row['group']} ({size}{editor}{about})"
    return GroupClaim(verdict, short, f"{words} ({editor}{about}, {edits} edits: {why}).")
