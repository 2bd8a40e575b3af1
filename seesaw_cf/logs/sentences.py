"""What a comparison of logs found, as a first screen: items left out, the form of answers, then what is decided."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from seesaw_cf.base.terminal import listed, quantity
from seesaw_cf.effects.means import ALL
from seesaw_cf.logs import LOGLIK, MARGIN
from seesaw_cf.logs.differences import GROUPS, LOGS, POOLED, SCORES, SUMS
from seesaw_cf.logs.pairing import SIDES
from seesaw_cf.report.rows import Row, rows_of
from seesaw_cf.report.screen import ScreenRow
from seesaw_cf.report.words import minus
from seesaw_cf.stats.simple import BOUNDS

BADGES: Mapping[str, tuple[str, str]] = {
    "fell": ("FELL", "bad"),
    "slightly_fell": ("fell a little", "bad"),
    "rose": ("ROSE", "good"),
    "slightly_rose": ("rose a little", "good"),
    "equal": ("no change that matters", "same"),
    "same": ("unchanged", "same"),
    "undecided": ("not decided", "open"),
    "too_few": ("too few to tell", "open"),
}
"""Verdict on a change -> words and how they look; of a perplexity bad and good change places."""
_OF_ONE = {
    "unscored": "have no score",
    "errored": "ended with an error",
    "wrong": "have no score and count as wrong",
    "partial": "have a score in some of their epochs only",
}
_OF_PAIRS = {
    "renumbered": "paired by content",
    "other_content": "paired by id though the content differs",
    "epochs_differ": "with other numbers of epochs",
    "repeated": "repeated, of which the last counts",
}
_UNDECIDED = {
    "too_few": "Too few to tell: {note}.",
    "undecided": "No change of a score is shown, and these items cannot rule one out.",
    "same": "No score changed by as much as was declared to matter.",
}
_DECIDED = ("fell", "rose", "hit_harder", "hit_less")
_SAME, _FEWEST = 0.95, 20  # one answer to so many items, at least 20, is no answer to any of them
_NEARLY_ALL = 0.9  # of the texts
_LISTED = 6  # rows of a section


@dataclass(frozen=True, eq=False)
class ModelChange:
    """What is known of one changed model.

    Attributes:
        name, base: Of the changed model, and of the model before.
        frame: Of `seesaw_cf.logs.differences.differences`.
        answers: Of `seesaw_cf.logs.comparison.answer_forms`.
        counts: `PairedItems.counts`.
        log_notes: Sentences about both logs.
        left_out: Sentences about metrics that are not compared.
    """

    name: str
    base: str
    frame: pd.DataFrame
    answers: pd.DataFrame
    counts: pd.DataFrame
    log_notes: Sequence[str] = ()
    left_out: Sequence[str] = ()

    @cached_property
    def rows(self) -> list[Row]:
        """The frame as rows."""
        return rows_of(self.frame)

    @cached_property
    def forms(self) -> list[Row]:
        """The form of answers of the tasks that are tested, those with most other answers first."""
        tested = {row["relation"] for row in self.rows if row["family"] == SCORES}
        forms = [row for row in rows_of(self.answers) if row["task"] in tested or not tested]
        return sorted(forms, key=lambda row: -row["other_answer"])

    def family(self, name: str) -> list[Row]:
        """Return the tests of a family, those that changed most first."""
        rows = [row for row in self.rows if row["family"] == name]
        return sorted(rows, key=lambda row: (row["verdict"] not in _DECIDED, -abs(row["value"] / row["margin"])))

    def decided(self, family: str) -> list[Row]:
        """Return rows of a family in which something changed, apart from tasks with another form; largest first."""
        alarms = {row["task"] for row in self.forms if row["alarm"]}
        return [row for row in self.family(family) if row["verdict"] in _DECIDED and row["relation"] not in alarms]

    @property
    def tasks(self) -> list[Row]:
        """Rows of single tasks and all their items."""
        return [row for row in self.rows if row["axis"] == ALL and not row["relation"].startswith(POOLED)]

    @property
    def same_scores(self) -> bool:
        """Whether no score or log-probability of an item changed, by more than rounding."""
        moved = [
            row["moved_most"] <= (0.0 if row["scale"] == "share" else BOUNDS["float32"])
            for row in self.tasks
            if math.isfinite(row["moved_most"])
        ]
        return bool(moved) and all(moved) and not any(row["alarm"] for row in self.forms)


# Numbers in words.


def percent(value: float) -> str:
    """Return a share in per cent with one decimal; sums in any order show the same: ties are exact."""
    return f"{round(100 * value, 9):.1f} %"


def level_text(row: Row, when: str) -> str:
    """Return a value before or after: shares in per cent, a perplexity or bits instead of nats a word."""
    value = float(row[when])
    if math.isnan(value):
        return "\u2013"
    if row["scale"] == SUMS:
        bits = str(row["asked"]).startswith("bits")
        return f"{value / math.log(2) if bits else math.exp(min(value, 700)):.4g}"
    return minus(percent(value) if row["scale"] == "share" else f"{value:.2f}")


def change_text(row: Row) -> str:
    """Return a change, with its interval: of shares in points, of log-probabilities in nats."""
    factor, digits = {"share": (100, 1), SUMS: (1, 3)}.get(row["scale"], (1, 2))
    unit = {"share": " points", "score": ""}.get(row["scale"], f" {row['scale']}")
    value, low, high = (round(round(factor * float(row[name]), 9), digits) + 0.0 for name in ("value", "low", "high"))
    interval = f" [{low:+.{digits}f}, {high:+.{digits}f}]" if math.isfinite(low) else ""
    return minus(f"{value:+.{digits}f}{unit}{interval}") if math.isfinite(value) else "\u2013"


def badge(row: Row) -> tuple[str, str]:
    """Return the words of a verdict, and how they look."""
    words, look = BADGES.get(str(row["verdict"]), (str(row["verdict"]).replace("_", " "), "open"))
    return words, {"bad": "good", "good": "bad"}.get(look, look) if row["scale"] == SUMS else look


def _what_changed(row: Row) -> str:
    """Return which metric went from what to what: "winobias acc fell from 66.2 % to 46.2 %"."""
    where = "the " * row["relation"].startswith(POOLED) + row["relation"]
    went = "rose" if row["value"] > 0 else "fell"
    return f"{where} {row['asked']} {went} from {level_text(row, 'before')} to {level_text(row, 'after')}"


def _who_lost(row: Row) -> str:
    """Return which group lost more than the others, or of two groups than the other one, and by how much."""
    own, other, more = row["group"], row["reference"] or "the others", row["verdict"] == "hit_harder"
    if row["reference"] and not more:  # name the group that lost
        own, other, more, row = other, own, True, {**row, "value": -row["value"]}
    words = f"{own} lost {'more' if more else 'less'} {row['asked']} than {other}"
    return f"{row['relation']} {row['axis']} {words}, by {_size(row).partition(' [')[0]}"


def _size(row: Row) -> str:
    """Return a change without its direction: "20.0 points [5.3, 34.7]"."""
    sign = -1 if row["value"] < 0 else 1
    low, high = sorted((sign * row["low"], sign * row["high"]))
    return change_text({**row, "value": abs(row["value"]), "low": low, "high": high}).replace("+", "")


# Sentences.


def missing(model: ModelChange) -> str:
    """Return which items do not count, before any share of the others; "" where all do."""
    first = {row["relation"]: row for row in reversed(model.tasks) if row["family"] == SCORES}
    counts = model.counts[model.counts["task"].isin(first) | (model.counts["paired"] == 0)].sum(numeric_only=True)
    sides = [f"unscored_{side}" for side in SIDES]
    total = counts.astype(int).to_dict() | {name: sum(row[name] for row in first.values()) for name in sides}
    pairs = [(total[f"{name}_before"], total[f"{name}_after"], words) for name, words in _OF_ONE.items()]
    parts = [f"{before:,} before and {after:,} after {words}" for before, after, words in pairs if before or after]
    alone = {"only_base": f"only in {model.base}", "only_changed": f"only in {model.name}"}
    out = {"invalidated": "invalidated"} | alone
    parts += [f"{total[name]:,} are {words}" for name, words in out.items() if total[name]]
    size, scored = total["paired"] + sum(total[name] for name in out), sum(row["n"] for row in first.values())
    found = [f"Of {quantity(size, 'item')} {scored:,} are scored in both logs: {', '.join(parts)}."] if parts else []
    others = [row for row in model.tasks if row["family"] != SCORES and row[sides[0]] != row[sides[1]]][:2]
    found += [
        f"Of {row['asked']} in {row['relation']} {row[sides[0]]:,} before and {row[sides[1]]:,} after have no score."
        for row in others
    ]
    return " ".join(found)


def finding(model: ModelChange) -> Iterator[str]:
    """Yield what changed in one model: form of answers, scores, log-probabilities, groups."""
    if model.same_scores:
        yield _no_score_changed(model)
        return
    forms, tested, logs = list(_forms(model)), model.family(SCORES), model.decided(LOGS)
    yield from forms
    if scores := model.decided(SCORES):
        yield f"In {listed([f'{_what_changed(row)}, by {_size(row)}' for row in scores], joined='; in ')}."
    elif logs:
        yield f"No score is known to have changed, yet in {listed(map(_what_changed, logs), 1)}."
    elif little := [row for row in tested if row["verdict"].startswith("slightly_")]:
        yield f"A small change is certain, below what was declared to matter: in {_what_changed(little[0])}."
    elif not tested:
        yield "No metric is a number of each item, so no change of a score is tested."
    elif not forms:
        verdicts = {row["verdict"].replace("equal", "same") for row in tested}
        yield _UNDECIDED[verdicts.pop() if len(verdicts) == 1 else "undecided"].format(note=tested[0]["note"])
    if groups := model.decided(GROUPS):
        yield f"Groups differ: in {listed(map(_who_lost, groups), joined='; in ')}."


def _no_score_changed(model: ModelChange) -> str:
    if others := [row for row in model.forms if row["other_answer"]]:
        shares = [f"{percent(row['other_answer'])} of the answers in {row['task']}" for row in others]
        return f"No score changed, yet {listed(shares, joined=' and ')} are other ones."
    moved = [row["moved_most"] for row in model.rows if row["asked"] in (MARGIN, LOGLIK)]
    most = f", and log-probabilities moved by up to {max(moved):.1g} nats" if moved else ""
    are_all = not missing(model) and not model.left_out
    start = ("Nothing changed", "all items") if are_all else ("No item that both logs score changed", "these")
    return f"{start[0]}: {model.name} answers {start[1]} as {model.base} does{most}."


def _forms(model: ModelChange) -> Iterator[str]:
    scores = {row["relation"]: row for row in model.family(SCORES)}
    for row in [row for row in model.forms if row["alarm"]][:2]:
        before, after = (row[f"invalid_{side}"] for side in SIDES)
        lead = "More answers" if after < before else "No answer any more" if after >= _NEARLY_ALL else "Fewer answers"
        words = f"{percent(after)} of {model.name}'s texts hold none, {percent(before)} of {model.base}'s"
        score = scores[row["task"]]
        went = f"{score['asked']} went from {level_text(score, 'before')} to {level_text(score, 'after')} with it"
        yield f"{lead} in {row['task']}: {words}, and {went}."
    lost = [row for row in model.tasks if "have no score" in row["note"]]
    yield from (f"Of {row['asked']} in {row['relation']} nothing is known: {row['note']}." for row in lost[:1])


# Sections of the first screen.


def sections(model: ModelChange) -> dict[str, list[ScreenRow]]:
    """Return the lines of numbers of one model, by title."""
    found = {
        "Scores": _changes(model.family(SCORES)),
        "Log-probabilities of the right answer, and minus the best other one": _changes(model.family(LOGS)),
        "Form of answers": [] if model.same_scores else list(_form_rows(model)),
        "Groups": [] if model.same_scores else list(_group_rows(model)),
    }
    return {title: rows for title, rows in found.items() if rows}


def _changes(rows: Sequence[Row]) -> list[ScreenRow]:
    """Return a line for each row; of many tasks the first ones and a count of the others."""
    lines = []
    for row in rows[:_LISTED]:
        p = f"corrected p {row['p_adjusted']:.3g}; " if math.isfinite(row["p_adjusted"]) else ""
        detail = f"{change_text(row)}; {p}{quantity(row['n'], 'item')} in {quantity(row['clusters'], 'cluster')}"
        detail += f"; {row['note']}" if row["verdict"] in ("", "too_few") else ""
        cells = [level_text(row, side) for side in SIDES]
        lines.append(ScreenRow(f"{row['relation']} {row['asked']}", cells, *badge(row), f"{detail}."))
    counts = Counter(badge(row)[0] for row in rows[_LISTED:])
    rest = ", ".join(f"{count} {words}" for words, count in counts.most_common())
    return lines + [ScreenRow(f"and {len(rows) - _LISTED} more: {rest}")] * bool(rest)


def _form_rows(model: ModelChange) -> Iterator[ScreenRow]:
    for row in model.forms:
        if row["alarm"]:
            cells = [percent(row[f"invalid_{side}"]) for side in SIDES]
            yield ScreenRow(f"{row['task']}, texts without an answer", cells, "CHANGED", "bad")
        for name, side in zip((model.base, model.name), SIDES):
            if row[f"share_{side}"] >= _SAME > row[f"invalid_{side}"] and row["n"] >= _FEWEST:
                share = f"\u201c{row[f'common_{side}']}\u201d to {percent(row[f'share_{side}'])} of {row['task']}"
                yield ScreenRow(f"{name} gives {share}, so its score there says little about what it knows")


def _group_rows(model: ModelChange) -> Iterator[ScreenRow]:
    if rows := model.family(GROUPS):
        differ, few = len(model.decided(GROUPS)), sum(row["verdict"] == "too_few" for row in rows)
        label = "GROUPS DIFFER" if differ else "too few to tell" if few == len(rows) else "none shown"
        words = f"{len(rows) - few} compared with the others, {differ} differ" + f"; {few} have too few" * bool(few)
        yield ScreenRow(words, badge=label, severity="bad" if differ else "open")


def notes(model: ModelChange) -> Iterator[str]:
    """Yield how many items were paired and how, and how many would find a change as large as the margin."""
    total, tasks = model.counts.sum(numeric_only=True), int((model.counts["paired"] > 0).sum())
    parts = [f"{quantity(float(total['paired']), 'item')} paired in {quantity(tasks, 'task')}"]
    yield ", ".join([*parts, *(f"{total[name]:,} {words}" for name, words in _OF_PAIRS.items() if total[name])]) + "."
    rows = [row for row in model.family(SCORES) if row["verdict"] == "undecided" and math.isfinite(row["detectable"])]
    for row in [row for row in rows if not row["relation"].startswith(POOLED)][:2]:
        size = f"{100 * row['margin']:g} points" if row["scale"] == "share" else f"{row['margin']:g}"
        needed = math.ceil(float(row["n"] * (row["detectable"] / row["margin"]) ** 2))
        what = f"A change of {size} of {row['asked']} in {row['relation']}"
        yield f"{what} takes {needed:,} items like these, {row['n']:,} are there."
