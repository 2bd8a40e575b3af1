"""The first line of a report: what was found, put together from verdicts by tables of sentence parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from seesaw_cf.base.terminal import listed, quantity
from seesaw_cf.editors.control_names import is_control
from seesaw_cf.effects.audit import MARGIN, MARGIN_LOG_ODDS
from seesaw_cf.report import text
from seesaw_cf.report.contrasts import BETTER_OFF, WORSE_OFF, GroupCounts
from seesaw_cf.report.levels import ALONE, BETTER, OPEN, SAME, UNTESTABLE, WORDS, WORSE, LevelChange
from seesaw_cf.report.moved import is_external
from seesaw_cf.report.results import Results
from seesaw_cf.report.rows import EfficacyRow, number_of, records

Parts = Sequence[tuple[float, str]]  # least size -> words, the largest size first

# How a sentence about an editor begins, and who its facts are about.
_LEADS: Mapping[str, tuple[str, str]] = {
    "single": ("after one {editor} edit the model", "that person"),
    "batch": ("after all {editor} edits together the model", "the edited people"),
    "given": ("the model {editor}", "the people of the records"),
}
# Level -> what it means to be worse than a control. Sizes: part of the right answers, change of probability (nats by
# their margin). A shift of 1 in probability puts the new answer ahead, whatever was ahead before.
_HARM: Mapping[str, Parts] = {
    "other_facts": (
        (0.9, "forgets nearly all other facts about {person}"),
        (0.5, "forgets most other facts about {person}"),
        (0.1, "forgets some other facts about {person}"),
        (0.0, "forgets a few other facts about {person}"),
    ),
    "target_true": (
        (1.0, "also gives the new answer for people who hold the old one"),
        (0.1, "loses much of its confidence about people who hold the old answer"),
        (0.0, "is less sure about people who hold the old answer"),
    ),
    "target_new": (
        (0.1, "loses much of its confidence about people who hold the new answer"),
        (0.0, "is less sure about people who hold the new answer"),
    ),
}
# Level -> a change below 0 and one above, that no control accounts for.
_CHANGE: Mapping[str, tuple[str, str]] = {
    "other_facts": ("has {after} of the other facts about {person} right, {before} before",) * 2,
    "target_true": (
        "gained {size} of confidence about people who hold the old answer",
        "lost {size} of its confidence about people who hold the old answer",
    ),
    "target_new": (
        "lost {size} of its confidence about people who hold the new answer",
        "gained {size} of confidence about people who hold the new answer",
    ),
}
# Verdict on levels of which none is worse -> what is said about them.
_REST: Mapping[str, str] = {
    BETTER: "does less harm than its control to {levels}",
    SAME: "does no more harm than its control to {levels}",
    OPEN: "is not known to do more harm than its control to {levels}",
    UNTESTABLE: "cannot be compared with its control on {levels}",
}
_SUBJECTS = {"single": "one {editor} edit", "batch": "the {editor} batch", "given": "the model {editor}"}
_BROKEN = {
    "single": "most edits by {editor} break the model",
    "batch": "the {editor} batch breaks the model",
    "given": "the model {editor} is broken",
}
_NOTHING = "{subject} is not shown to change anything that was asked by more than the margin"
_NO_HARM = {
    True: "no {kind} of {n} is shown to do more harm than its control",
    False: "no {kind} of {n} is shown to make anything that was asked worse by more than the margin",
}
# Sentence about editors that are not the worst: the first that holds of each.
_OTHERS: Sequence[tuple[Callable[[Sequence[LevelChange]], bool], str]] = (
    (lambda changes: any(change.verdict == WORSE for change in changes), "harm is shown of {}, too"),
    (lambda changes: any(change.is_harm for change in changes), "changed for the worse, too: {}"),
    (lambda changes: all(change.verdict in (SAME, BETTER) for change in changes), "no more than its control: {}"),
    (lambda changes: True, "not known of {}"),
)
_LARGE = 5  # margins: an undecided change of that size is said with its size
_NO_CONTROL = "without a control it is not known whether any change of that size does the same"
_GROUPS: Sequence[tuple[Callable[[GroupCounts], bool], str]] = (
    (lambda counts: not counts.total, "Groups were not compared."),
    (lambda counts: not counts.tested, "Whether some groups suffer more: not testable with these people."),
    (lambda counts: counts.equivalent == counts.total, "No group suffers more: every difference is inside the margin."),
    (lambda counts: True, "Whether some groups suffer more: not shown."),
)
_NAMED = 2  # groups in a title


def title_of(results: Results, changes: Sequence[LevelChange], groups: GroupCounts) -> str:
    """Return what a run found, in a few sentences of plain words: what must be known first stands first.

    Models that are damaged as a whole and edits that did not take come first, then every level on which an editor is
    worse than its control (the largest first; of several editors the worst, then the others by what is known of them),
    then doubts, then groups.
    """
    editors = [name for name in results.editors if not is_control(name)]
    if not editors:
        clauses = [clause for clause in _levels(results, results.editors, changes) if clause != _NO_CONTROL]
        made = f"only control edits were made, {len(results.distinct)}"
        return " ".join(_sentence(part) for part in (f"{made}: {clauses[0]}", *clauses[1:]))
    doubts, levels = _doubts(results, editors), [*_levels(results, editors, changes)]
    # A group that is named says more than levels on which nothing is.
    ordered = [*levels, *doubts[False], _groups(groups)]
    if any(claim.short for claim in groups.claims) and not any(change.is_harm for change in changes):
        ordered = [_groups(groups), *levels, *doubts[False]]
    return " ".join(map(_sentence, [*_broken(results), *doubts[True], *ordered]))


def too_low(results: Results) -> list[str]:
    """Return the editors that do not pass the audit's efficacy gate."""
    return [str(gate["editor"]) for gate in results.gates if gate["gate"] == "edits took" and not gate["passed"]]


def _broken(results: Results) -> Iterable[str]:
    """Yield a clause on each model that edits damage as a whole."""
    for editor, local in results.local.items():
        if local.collapsed and not is_control(editor):
            shares = f"{local.others} right {local.before:.0%} before, {local.after:.0%} after"
            yield f"{_BROKEN[_kind(editor, results)].format(editor=editor)}: {shares}"


def _doubts(results: Results, editors: Sequence[str]) -> Mapping[bool, Sequence[str]]:
    """Return whether most edits failed -> sentences on edits that did not take, or are not shown to."""
    low = too_low(results)
    rows = {row["editor"]: row for row in records(results.gate_rows, EfficacyRow)}
    doubts: dict[bool, list[str]] = {True: [], False: []}
    for editor in editors:
        share = number_of(rows[editor], "post") if editor in rows else float("nan")
        if math.isnan(share) and is_external(editor, results.manifest):
            continue
        if math.isnan(share):
            doubts[False].append(f"whether {_subject(editor, results)} took was not measured")
        elif editor in low:
            failed = "did not take" if number_of(rows[editor], "post_high") <= 0.5 else "are not shown to take"
            counts = f"{text.percent(share)} of {number_of(rows[editor], 'n'):.0f}"
            doubts[share <= 0.5].append(f"edits by {editor} {failed} ({counts})")
    return doubts


def _levels(results: Results, editors: Sequence[str], changes: Sequence[LevelChange]) -> Iterable[str]:
    """Yield what happened whatever the group: of one editor, or of the worst of several and then of the others."""
    own = {name: [change for change in changes if change.editor == name] for name in editors}
    asked = [name for name in editors if own[name]]
    if not asked:
        yield "nothing was asked but the edits themselves"
        return
    worst, *others = sorted(asked, key=lambda name: -_harm(own[name]))
    kind = "model" if all(_kind(name, results) == "given" for name in asked) else "editor"
    alone = any(change.verdict == ALONE and change.changed for change in changes)
    if not others:
        yield from _clauses(worst, own[worst], results)
    elif not _harm(own[worst]):
        largest = max(asked, key=lambda name: _largest(own[name]))
        yield from _undecided(largest, results, changes) if alone or _largest(own[largest]) >= _LARGE else ()
        yield _NO_HARM[any(change.row["control"] for change in changes)].format(kind=kind, n=len(asked))
    else:
        first, *more = _clauses(worst, own[worst], results)
        yield from (f"worst of {len(asked)} {kind}s: {first}", *more)
        phrases = {name: next(words for holds, words in _OTHERS if holds(own[name])) for name in others}
        for _, words in _OTHERS:
            if names := [name for name in others if phrases[name] == words]:
                yield words.format(_and(names))
    if alone:
        yield _NO_CONTROL


def _harm(changes: Sequence[LevelChange]) -> float:
    """Return the largest shown change for the worse, in margins."""
    return max((change.size for change in changes if change.is_harm), default=0.0)


def _clauses(editor: str, changes: Sequence[LevelChange], results: Results) -> Sequence[str]:
    """Return what one editor did, the largest change first, and what is not known of it."""
    lead, person = _LEADS[_kind(editor, results)]
    ordered = sorted(changes, key=lambda change: -abs(change.size))
    undecided = _undecided(editor, results, changes)
    if harm := [_words(change).format(person=person) for change in ordered if change.verdict == WORSE]:
        return [f"{lead.format(editor=editor)} {_and(harm)}", *undecided]
    if undecided:
        return undecided
    subject = _subject(editor, results)
    rest = [
        words.format(levels=_and([_about(change) for change in same]) + _reason(same))
        for verdict, words in _REST.items()
        if (same := [change for change in changes if change.verdict == verdict])
    ]
    return [f"{subject} {_and(rest)}" if rest else _NOTHING.format(subject=subject) + _reason(changes)]


def _about(change: LevelChange) -> str:
    """Return who or what a level is about, and the scale of the verdict where the other one speaks against it."""
    scale = f" (in {change.row['scale']})" if change.row.get("against") else ""
    return f"{WORDS[change.level].about}{scale}"


def _is_undecided(change: LevelChange) -> bool:
    """Return whether a change is real or large, and not decided against a control."""
    return change.verdict in (ALONE, OPEN, UNTESTABLE) and (change.changed or abs(change.size) >= _LARGE)


def _largest(changes: Sequence[LevelChange]) -> float:
    return max((abs(change.size) for change in changes if _is_undecided(change)), default=0.0)


def _undecided(editor: str, results: Results, changes: Sequence[LevelChange]) -> Sequence[str]:
    """Return what changed by how much, and after the control, where no verdict says more; what is real comes first."""
    lead, person = _LEADS[_kind(editor, results)]
    own = [change for change in changes if change.editor == editor and _is_undecided(change)]
    own.sort(key=lambda change: -abs(change.size))
    sentences = []
    for real in (True, False):
        if same := [change for change in own if (change.verdict == ALONE and change.changed) is real]:
            words = f"{lead.format(editor=editor)} {_and([_changed(change, person) for change in same])}"
            reason, edits = _reason(same), quantity(same[0].row["n_edits"], "edit")
            few = f", which cannot be tested{reason}" if reason else f", in {edits}: too few to decide"
            sentences.append(words if real else words + few)
    return sentences


def _reason(changes: Sequence[LevelChange]) -> str:
    """Return why the first change has no interval, in brackets; "" without a reason."""
    row = changes[0].row
    note = text.short_note(row["difference_note"] if row["control"] else row["note"])
    return f" ({note})" if note else ""


def _words(change: LevelChange) -> str:
    """Return the part of a sentence for a level that is worse than its control, by the size of the difference."""
    row = change.row
    size = abs(row["difference"])
    size = size / row["before"] if change.level == "other_facts" and row["before"] else size
    size = size * MARGIN / MARGIN_LOG_ODDS if row["scale"] == "log-odds" else size
    parts = _HARM[change.level]
    return next(words for least, words in parts if size >= least and (row["scale"] != "log-odds" or least <= 0.1))


def _changed(change: LevelChange, person: str) -> str:
    row, (below, above) = change.row, _CHANGE[change.level]
    value, control, unit = row["value"], row["control_value"], " nats" * (row["scale"] == "log-odds")
    words = (above if value > 0 else below).format(
        after=text.percent(row["after"]),
        before=text.percent(row["before"]),
        size=text.number(abs(value)).removeprefix("+") + unit,
        person=person,
    )
    if not row["control"]:
        return words
    verb, *_ = (above if control > 0 else below).split()
    beside = text.percent(row["before"] + control) if row["scale"] == "share" else f"{verb} {abs(control):.3f}{unit}"
    return f"{words} (control: {beside})"


def _groups(counts: GroupCounts) -> str:
    """Return the groups that are worse or better off, or why none is named."""
    shown = [
        f"{head}: {listed(names, _NAMED) if len(names) > _NAMED else _and(names)}"
        for verdict, head in ((WORSE_OFF, "groups that suffer more"), (BETTER_OFF, "groups that suffer less"))
        if (names := [claim.short for claim in counts.claims if claim.short and claim.verdict == verdict])
    ]
    return "; ".join(shown) or next(words for holds, words in _GROUPS if holds(counts))


def _kind(editor: str, results: Results) -> str:
    if is_external(editor, results.manifest):
        return "given"
    return "batch" if results.manifest.get("protocol") == "batch" else "single"


def _subject(editor: str, results: Results) -> str:
    return _SUBJECTS[_kind(editor, results)].format(editor=editor)


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:] + "." * (not words.endswith("."))


def _and(words: Sequence[str]) -> str:
    *first, last = words
    return f"{', '.join(first)}{',' * (len(first) > 1)} and {last}" if first else last
