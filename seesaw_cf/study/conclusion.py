"""What a comparison found: which editor does most and least harm on which measure, and where lines differ."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from seesaw_cf.base.terminal import listed
from seesaw_cf.effects.audit import hypotheses
from seesaw_cf.effects.groups import ALL
from seesaw_cf.report import text
from seesaw_cf.report.contrasts import GroupClaim, group_claim
from seesaw_cf.report.html.findings import FirstScreen, TitleRules, title_by
from seesaw_cf.report.levels import ALONE, BETTER, SAME, WORDS, WORSE, LevelChange
from seesaw_cf.report.moved import is_external
from seesaw_cf.report.results import relation_names
from seesaw_cf.report.strips import level_marks
from seesaw_cf.report.table import rows_of
from seesaw_cf.report.title import too_low
from seesaw_cf.report.verdicts import open_counts
from seesaw_cf.stats.verdicts import AFFECTED, VERDICTS
from seesaw_cf.study.matrix import changes_of, matrix_table
from seesaw_cf.study.members import NAMES, ComparedEditor, differing
from seesaw_cf.study.tables import Comparison

_NAMED = 3  # of each list that are spelled out
# Column of the matrix -> its name in a sentence, which end of it is best, and the paired difference that tests it. More
# of the new answer for people who hold it is not best: an edit that says it about everyone gives most.
_BEST: Mapping[str, tuple[str, int, str]] = {
    "takes": ("Edits that take", 1, "efficacy"),
    "neighbours": ("Neighbours kept", 1, "neighbourhood"),
    "other facts": ("Other facts kept", 1, "accuracy"),
    "old answer": ("Shift of people who hold the old answer", -1, ""),
}


@dataclass(frozen=True, slots=True)
class StudySummary:
    """What a title is made of.

    Attributes:
        failed: Lines whose edits are not shown to take, or break the model, in words.
        changes: Label of a line -> level -> what its edits did, beside its control.
        numbers: (Label, level) -> the change and its control in words.
        tests, differences: Paired differences that were tested, and those that are shown, in words.
        contrasts, claims: Verdicts on groups, and those that are decided, the surest first.
    """

    failed: Sequence[str]
    changes: Mapping[str, Mapping[str, LevelChange]]
    numbers: Mapping[tuple[str, str], str]
    tests: int
    differences: Sequence[str]
    contrasts: pd.Series
    claims: Sequence[GroupClaim]

    @property
    def verdicts(self) -> set[str]:
        """Every verdict on a level."""
        return {change.verdict for own in self.changes.values() for change in own.values()}

    @property
    def harm(self) -> str:
        """Of each level the line with the largest change that is shown to be for the worse, in words."""
        basis, worst = WORSE if WORSE in self.verdicts else ALONE, dict[str, list[str]]()
        for level, words in WORDS.items():
            own = {label: found[level] for label, found in self.changes.items() if level in found}
            shown = {label: change.size for label, change in own.items() if change.verdict == basis and change.is_harm}
            if shown:
                label = max(shown, key=lambda name: shown[name])
                worst.setdefault(label, []).append(f"{words.about} ({self.numbers[label, level]})")
        return "; ".join(f"{label} to {' and to '.join(levels)}" for label, levels in worst.items())

    @property
    def harmless(self) -> str:
        """The lines that were asked about and have no change for the worse."""
        harmful = {label: [change.is_harm for change in own.values()] for label, own in self.changes.items()}
        return _list([label for label, own in harmful.items() if own and not any(own)])

    @property
    def contradicted(self) -> str:
        """The lines of which the scale that does not decide speaks against a verdict."""
        return _list(
            [label for label, own in self.changes.items() if any(one.row.get("against") for one in own.values())]
        )

    def groups(self, verdict: str) -> str:
        """List the groups with this verdict, the surest first."""
        return listed(claim.short for claim in self.claims if claim.short and claim.verdict == verdict)

    @property
    def worse_off(self) -> str:
        """A sentence about groups that suffer more; "" without one."""
        return f"Groups that suffer more: {names}. " if (names := self.groups(AFFECTED[0])) else ""

    @property
    def better_off(self) -> str:
        """A sentence about groups that suffer less; "" without one."""
        return f"Groups that suffer less: {names}." if (names := self.groups(AFFECTED[1])) else ""

    @property
    def is_equivalent(self) -> bool:
        """Every contrast between groups lies inside the margin."""
        return bool(len(self.contrasts)) and set(self.contrasts) == {VERDICTS[2]}


STUDY_TITLE: Sequence[TitleRules[StudySummary]] = (
    ((lambda study: study.failed, "{0.failed[0]}."),),
    (
        (lambda study: not study.verdicts, "Nothing was asked but the edits themselves."),
        (lambda study: study.harm and WORSE in study.verdicts, "Most harm beyond its control: {0.harm}."),
        (lambda study: study.harm, "Largest changes, without a control to put them down to the edits: {0.harm}."),
        (
            lambda study: study.verdicts <= {BETTER, SAME} and study.contradicted,
            "No editor does more harm than its control on the scale that decides; the other one speaks against it for "
            "{0.contradicted}.",
        ),
        (
            lambda study: study.verdicts <= {BETTER, SAME},
            "No editor does more harm than its control on anything that was asked.",
        ),
        (lambda study: study.verdicts == {ALONE}, "No change is shown, and no control was run."),
        (lambda study: True, "No editor is shown to do more harm than its control."),
    ),
    ((lambda study: study.harm and study.harmless, "No harm is shown for {0.harmless}."),),
    (
        (lambda study: len(study.changes) < 2 or not study.tests, ""),
        (lambda study: study.differences, "On the same prompts: {0.differences[0]}."),
        (lambda study: True, "No two of them are shown to differ on the same prompts ({0.tests} tests)."),
    ),
    (
        (lambda study: not len(study.contrasts), ""),
        (lambda study: study.worse_off or study.better_off, "{0.worse_off}{0.better_off}"),
        (lambda study: study.is_equivalent, "No group suffers more: every difference is inside the margin."),
        (lambda study: True, "Whether some groups suffer more is not shown."),
    ),
)


def conclude(comparison: Comparison, title: str, missing: Sequence[str] = ()) -> FirstScreen:
    """Return what was found.

    Args:
        comparison: The comparison.
        title: Its name.
        missing: What is not there and why.
    """
    verdicts, differences = _verdicts(comparison), comparison.table("differences")
    claims = verdicts[verdicts["verdict"].isin(AFFECTED)].sort_values("p_adjusted", kind="stable")
    tested = differences[differences["p"].notna()] if len(differences) else differences
    shown = tested[tested["p_adjusted"] < comparison.settings.alpha] if len(tested) else tested
    shown = shown.sort_values("p_adjusted", kind="stable") if len(shown) else shown
    labels = comparison.labels
    lines = {labels[line.key]: line for line in comparison.lines}
    changes = {label: changes_of(line) for label, line in lines.items()}
    summary = StudySummary(
        failed=_failed(lines),
        changes=changes,
        numbers={
            (label, level): _beside(change, lines[label])
            for label, own in changes.items()
            for level, change in own.items()
        },
        tests=len(tested),
        differences=[_difference(row) for row in rows_of(shown)],
        contrasts=verdicts["verdict"],
        claims=[group_claim(row) for row in rows_of(claims)],
    )  # fmt: skip
    return FirstScreen(
        f"{title} · {_edited(comparison)}",
        title_by(STUDY_TITLE, summary),
        {
            **_ranks(comparison),
            "Paired differences": _rest(summary.differences, f"of {summary.tests} are shown"),
            "Groups": " ".join(claim.long for claim in summary.claims[:_NAMED]),
            "Did not take": _rest(summary.failed, "in all"),
            "Not known": _not_known(comparison, verdicts, missing),
            "How sure": _how_sure(comparison),
        },
    )


def _rest(words: Sequence[str], count: str) -> str:
    """Return the first few, and how many there are; "" where the title holds all."""
    return f"{'; '.join(words[:_NAMED])} ({len(words)} {count})." if len(words) > 1 else ""


def _edited(comparison: Comparison) -> str:
    lines = [line for line in comparison.lines if not is_external(line.name, line.member.results.manifest)]
    external = [line.key[-1] for line in comparison.lines if is_external(line.name, line.member.results.manifest)]
    what = [f"{sum(_counts(lines)):,} edits by {_list([line.key[-1] for line in lines])}"] if lines else []
    what += [f"models edited elsewhere ({_list(external)})"] if external else []
    models, data, protocols = (_list([line.key[place] for line in comparison.lines]) for place in range(3))
    return f"{' and '.join(what)} in {models} · facts of {data} · protocol {protocols} · {len(comparison.members)} runs"


def _counts(lines: Sequence[ComparedEditor]) -> list[int]:
    """Count the edits of each line."""
    return [int((line.member.results.distinct["editor"] == line.name).sum()) for line in lines]


def _failed(lines: Mapping[str, ComparedEditor]) -> list[str]:
    """Return which lines break the model, and of which the edits are not shown to take."""
    local = {label: line.member.results.local.get(line.name) for label, line in lines.items()}
    broken = [label for label, found in local.items() if found is not None and found.collapsed]
    low = [label for label, line in lines.items() if line.name in too_low(line.member.results)]
    parts = [f"Most edits by {_list(broken)} break the model"] if broken else []
    return [*parts, *([f"Edits by {_list(low)} are not shown to take"] if low else [])]


def _beside(change: LevelChange, line: ComparedEditor) -> str:
    """Return the change of a line and of the control that decides, in words."""
    marks = {name: words for name, _, words in level_marks(change.row, line.member.results)}
    control = marks.get(str(change.row["control"]), "")
    return marks[line.name] + (f"; control {control}" if control else "")


def _ranks(comparison: Comparison) -> dict[str, str]:
    """Return for each measure the lines that are best and worst on it, and whether that difference is shown.

    Lines in probability and lines in nats have no order.
    """
    table, ranks = matrix_table(comparison), {}
    labels = comparison.labels
    rows = [(labels.get(tuple(row[name] for name in NAMES), ""), row) for row in rows_of(table.frame)]
    for column in table.columns:
        there = [(label, row) for label, row in rows if column.head in _BEST and label and pd.notna(row[column.head])]
        values = [row[column.head] for _, row in there]
        units = {row.get(f"{column.head}_unit") or "" for _, row in there}
        if len(set(values)) < 2 or len(units) > 1:
            continue
        name, sign, measure = _BEST[column.head]
        ends = [[pair for pair in there if pair[1][column.head] == end] for end in (max(values), min(values))][::sign]
        best, worst = (f"{_list(label for label, _ in end)} {column.text(end[0][1])}" for end in ends)
        shown = _is_shown(comparison, measure, {ends[0][0][0], ends[1][0][0]})
        ranks[name] = f"best {best}; worst {worst}{shown}."
    return ranks


def _is_shown(comparison: Comparison, measure: str, pair: set[str]) -> str:
    """Say whether the paired difference of two lines over all relations survives correction; "" where untested."""
    for row in rows_of(comparison.table("differences")):
        about = (row["measure"], row["relation"], row["axis"])
        if about == (measure, ALL, ALL) and {row["first"], row["second"]} == pair and math.isfinite(row["p"]):
            shown = row["p_adjusted"] < comparison.settings.alpha
            return ". They differ" if shown else ". They are not shown to differ"
    return ""


def _difference(row: Mapping[Any, Any]) -> str:
    about = [row["measure"], relation_names(row["relation"])]
    about += [] if row["group"] == ALL else [row["group"]]
    number = text.minus(text.effect(row["value"], row["low"], row["high"]))
    return f"{row['first']} − {row['second']} {number} ({', '.join(about)})"


def _not_known(comparison: Comparison, verdicts: pd.DataFrame, missing: Sequence[str]) -> str:
    apart = list(differing(comparison.members))
    parts = [f"missing or failed, listed below: {len(missing)}"] if missing else []
    if open_ := open_counts(verdicts):
        parts.append(open_)
    parts += [f"the runs disagree in {_list(apart)}, so lines may differ for that reason"] if apart else []
    table = comparison.table("differences")
    parts += [f"{n} paired differences have no interval"] if len(table) and (n := int(table["p"].isna().sum())) else []
    parts += ["no two lines share a case, so nothing is paired"] if table.empty and len(comparison.lines) > 1 else []
    batches = [member.title for member in comparison.members if member.protocol == "batch"]
    parts += [f"one edit for all cases of a relation in {_list(batches)}: nothing about other edits"] if batches else []
    return f"{'; '.join(parts)}." if parts else ""


def _how_sure(comparison: Comparison) -> str:
    declared, effects, edits = comparison.settings, comparison.table("effects_by_group"), _counts(comparison.lines)
    people = int(effects.loc[effects["axis"] == ALL, "n_subjects"].max()) if len(effects) else 0
    families = [
        f"{comparison.table(name)['family'].nunique()} families of {name} ({how})"
        for name, how in (("verdicts", declared.corrected_by(comparison.family)), ("differences", declared.correction))
        if "family" in comparison.table(name)
    ]
    tested = f"p corrected in {' and '.join(families)}" if families else "no test was made"
    n = f"{min(edits):,}" if min(edits) == max(edits) else f"{min(edits):,} to {max(edits):,}"
    return (
        f"{n} edits a line, {people:,} other people in the largest table; intervals of 95 %, {tested}, false claims at "
        f"most {100 * declared.alpha:g} % per family, margin {declared.margin:g} in probability, "
        f"{declared.margin_log_odds:g} nats in log-odds."
    )


def _verdicts(comparison: Comparison) -> pd.DataFrame:
    """Return the contrasts of lines, without controls and mirrors, each with its line's label as editor."""
    table = hypotheses(comparison.table("verdicts"))
    if "verdict" not in table:
        return pd.DataFrame(columns=["verdict", "p_adjusted"])
    labels = comparison.labels
    keys = table[list(NAMES)].itertuples(index=False, name=None)
    named = table.assign(editor=pd.Series([labels.get(key) for key in keys], table.index, dtype="object"))
    return named[named["editor"].notna()]


def _list(words: Iterable[str]) -> str:
    """List each word once; of many the first few."""
    return listed(dict.fromkeys(words), 2 * _NAMED)
