"""What a comparison of logs found, as a first screen: items left out, the form of answers, then what is decided."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from seesaw_cf.base.terminal import quantity
from seesaw_cf.effects.groups import ALL
from seesaw_cf.logs.differences import CORPUS, GROUPS, LOGS, SCORES, SUMS
from seesaw_cf.logs.pairing import SIDES, PairedItems
from seesaw_cf.logs.settings import LOGLIK, MARGIN
from seesaw_cf.report.rows import Row, rows_of
from seesaw_cf.report.screen import ScreenRow
from seesaw_cf.report.words import minus
from seesaw_cf.stats import mcnemar
from seesaw_cf.stats.simple import BOUNDS

POOLED = "mean of "
BADGES: Mapping[str, tuple[str, str]] = {
    "fell": ("FELL", "bad"),
    "slightly_fell": ("fell a little", "bad"),
    "rose": ("ROSE", "good"),
    "slightly_rose": ("rose a little", "good"),
    "equal": ("no change that matters", "same"),
    "same": ("unchanged", "same"),
    "undecided": ("not decided", "open"),
    "too_few": ("too few to tell", "open"),
    "": ("", "open"),
}
"""Verdict on a change -> words and how they look; of a perplexity bad and good change places."""
_DECIDED = ("fell", "rose", "hit_harder", "hit_less")
_ALARM, _ALARM_P = 0.1, 0.01  # from this change of the share of invalid answers their form is named before any score
_SAME, _FEWEST = 0.95, 20  # one answer to so many items, at least 20, is no answer to any of them
_NEARLY_ALL = 0.9  # of the texts
_NAMED, _LISTED = 2, 6  # tasks or groups in a sentence; rows of a section


@dataclass(frozen=True, eq=False)
class ModelChange:
    """What is known of one changed model.

    Attributes:
        name, base: Of the changed model, and of the model before.
        rows: Of `seesaw_cf.logs.differences.differences`.
        forms: Of `answer_forms`.
        counts: `PairedItems.counts`.
    """

    name: str
    base: str
    rows: pd.DataFrame
    forms: pd.DataFrame
    counts: pd.DataFrame

    def family(self, name: str) -> list[Row]:
        """Return the tests of a family, those that changed most first."""
        rows = rows_of(self.rows[self.rows["family"] == name])
        return sorted(rows, key=lambda row: (row["verdict"] not in _DECIDED, -abs(row["value"] / row["margin"])))

    @property
    def tasks(self) -> list[Row]:
        """Rows of single tasks and all their items."""
        return rows_of(self.rows[(self.rows["axis"] == ALL) & ~self.rows["relation"].str.startswith(POOLED)])

    @property
    def tested_forms(self) -> list[Row]:
        """The form of answers of the tasks that are tested, those with most other answers first."""
        tested = {row["relation"] for row in self.family(SCORES)}
        return sorted(
            (row for row in rows_of(self.forms) if row["task"] in tested or not tested),
            key=lambda row: -row["other_answer"],
        )

    @property
    def alarms(self) -> dict[str, Row]:
        """Tasks whose answers changed their form."""
        return {row["task"]: row for row in self.tested_forms if row["alarm"]}

    @property
    def same_scores(self) -> bool:
        """Whether no score or log-probability of an item changed, by more than rounding."""
        moved = [row for row in self.tasks if math.isfinite(row["moved_most"])]
        limits = [0.0 if row["scale"] == "share" else BOUNDS["float32"] for row in moved]
        return bool(moved) and all(row["moved_most"] <= most for row, most in zip(moved, limits)) and not self.alarms

    def decided(self, family: str) -> list[Row]:
        """Return rows of a family in which something changed, apart from tasks with another form; largest first."""
        return [row for row in self.family(family) if row["verdict"] in _DECIDED and row["relation"] not in self.alarms]


def answer_forms(pairs: PairedItems) -> pd.DataFrame:
    """Return one row per task with answers.

    Returns:
        `task`, `n`; `invalid_before`, `invalid_after` (shares without an answer); `common_before`, `common_after` (the
        most frequent answer) with their `share_before`, `share_after`; `other_answer` (share that is another one after
        the change); `alarm` (whether the form changed).
    """
    rows = []
    for task, own in pairs.frame.groupby("task", observed=True, sort=False):
        answers = [own[f"answer/{side}"].astype("str").fillna("") for side in SIDES]
        if not any((answer != "").any() for answer in answers):
            continue
        before, after = (own[f"invalid/{side}"].to_numpy(float) > 0.5 for side in SIDES)
        row: dict[str, Any] = {"task": task, "n": len(own), "other_answer": float((answers[0] != answers[1]).mean())}
        for when, answer, invalid in (("before", answers[0], before), ("after", answers[1], after)):
            counts = answer.value_counts()
            row |= {f"invalid_{when}": float(invalid.mean()), f"common_{when}": str(counts.index[0])}
            row[f"share_{when}"] = float(counts.iloc[0]) / len(own)
        more, fewer = int((after & ~before).sum()), int((before & ~after).sum())
        row["alarm"] = abs(more - fewer) >= _ALARM * len(own) and mcnemar(more, fewer) < _ALARM_P
        rows.append(row)
    return pd.DataFrame(rows)


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
    return minus(percent(value) if row["scale"] == "share" else f"{value:.{3 if row['note'] == CORPUS else 2}f}")


def change_text(row: Row, ends: bool = True) -> str:
    """Return a change, with its interval: of shares in points, of log-probabilities in nats."""
    factor, digits = {"share": (100, 1), SUMS: (1, 3)}.get(row["scale"], (1, 2))
    unit = {"share": " points", "score": ""}.get(row["scale"], f" {row['scale']}")
    value, low, high = (round(round(factor * float(row[name]), 9), digits) + 0.0 for name in ("value", "low", "high"))
    interval = f" [{low:+.{digits}f}, {high:+.{digits}f}]" if ends and math.isfinite(low) else ""
    return minus(f"{value:+.{digits}f}{unit}{interval}") if math.isfinite(value) else "\u2013"


def what_changed(row: Row) -> str:
    """Return which metric went from what to what: "winobias acc fell from 66.2 % to 46.2 %"."""
    verb = "rose" if row["value"] > 0 else "fell"
    where = "the " * row["relation"].startswith(POOLED) + row["relation"]
    return f"{where} {row['asked']} {verb} from {level_text(row, 'before')} to {level_text(row, 'after')}"


def group_text(row: Row) -> str:
    """Return which group lost more than the others, or of two groups than the other one, and by how much."""
    own, other, more = row["group"], row["reference"] or "the others", row["verdict"] == "hit_harder"
    if row["reference"] and not more:  # name the group that lost
        own, other, more, row = other, own, True, {**row, "value": -row["value"]}
    words = f"lost {'more' if more else 'less'} {row['asked']} than {other}"
    return f"{row['relation']} {row['axis']} {own} {words} ({change_text(row, ends=False)})"


def first_ones(words: Sequence[str], joined: str, named: int = _NAMED) -> str:
    """Return the first of some phrases, and how many more there are."""
    return joined.join(words[:named]) + f"; and {len(words) - named} more" * (len(words) > named)


# Sentences.


def missing(model: ModelChange) -> str:
    """Return which items do not count, before any share of the others; "" where all do."""
    first = {row["relation"]: row for row in reversed(model.tasks) if row["family"] == SCORES}
    counts = model.counts[model.counts["task"].isin(set(first)) | (model.counts["paired"] == 0)]
    total = {str(name): int(counts[name].sum()) for name in counts if name not in ("task", "changed")}
    total |= {
        f"unscored_{when}": sum(row[f"unscored_{when}"] for row in first.values()) for when in ("before", "after")
    }
    words = {
        "unscored": "have no score",
        "errored": "ended with an error",
        "wrong": "have no score and count as wrong",
        "partial": "have a score in some of their epochs only",
    }
    sides = [(total[f"{name}_before"], total[f"{name}_after"], text) for name, text in words.items()]
    parts = [f"{before:,} before and {after:,} after {text}" for before, after, text in sides if before or after]
    alone = {"only_base": f"only in {model.base}", "only_changed": f"only in {model.name}"}
    parts += [
        f"{total[name]:,} are {text}" for name, text in ({"invalidated": "invalidated"} | alone).items() if total[name]
    ]
    size, scored = (
        total["paired"] + sum(total[name] for name in ("invalidated", *alone)),
        sum(row["n"] for row in first.values()),
    )
    found = [f"Of {quantity(size, 'item')} {scored:,} are scored in both logs: {', '.join(parts)}."] * bool(parts)
    others = [row for row in model.tasks if row["family"] != SCORES and row["unscored_before"] != row["unscored_after"]]
    found += [
        f"Of {row['asked']} in {row['relation']} {row['unscored_before']:,} before and {row['unscored_after']:,} after "
        "have no score."
        for row in others[:_NAMED]
    ]
    return " ".join(found)


def finding(model: ModelChange) -> Iterator[str]:
    """Yield what changed in one model: form of answers, scores, log-probabilities, groups."""
    if model.same_scores:
        yield _no_score_changed(model)
        return
    forms = list(_forms(model))
    yield from forms
    logs = model.decided(LOGS)
    if scores := model.decided(SCORES):
        yield f"In {first_ones([f'{what_changed(row)} ({change_text(row)})' for row in scores], '; in ')}."
    elif logs:
        yield f"No score is known to have changed, yet in {first_ones(list(map(what_changed, logs)), '', 1)}."
    elif not forms:
        yield _nothing_decided(model.family(SCORES))
    for row in [row for row in model.tasks if row["note"] == CORPUS and row["moved_most"]][:_NAMED]:
        yield f"{what_changed(row)}, which is not tested."
    if groups := model.decided(GROUPS):
        yield f"Groups differ: in {first_ones(list(map(group_text, groups)), '; in ')}."


def _no_score_changed(model: ModelChange) -> str:
    if others := [row for row in model.tested_forms if row["other_answer"]]:
        shares = [f"{percent(row['other_answer'])} of the answers in {row['task']}" for row in others]
        return f"No score changed, yet {first_ones(shares, ' and ')} are other ones."
    largest = float(model.rows.loc[model.rows["asked"].isin((MARGIN, LOGLIK)), "moved_most"].max())
    moved = f", and log-probabilities moved by up to {largest:.1g} nats" if largest >= 0 else ""
    start = ("No item that both logs score changed", "these") if missing(model) else ("Nothing changed", "all items")
    return f"{start[0]}: {model.name} answers {start[1]} as {model.base} does{moved}."


def _nothing_decided(scores: Sequence[Row]) -> str:
    """Return what is known of the scores where none changed by more than the margin."""
    if little := [row for row in scores if row["verdict"].startswith("slightly_")]:
        return f"A small change is certain, below what was declared to matter: in {what_changed(little[0])}."
    if not scores:
        return "No metric is a number of each item, so no change of a score is tested."
    verdicts = {row["verdict"] for row in scores}
    if verdicts <= {"equal", "same"}:
        return "No score changed by as much as was declared to matter."
    if verdicts == {"too_few"}:
        return f"Too few to tell: {scores[0]['note']}."
    return "No change of a score is shown, and these items cannot rule one out."


def _forms(model: ModelChange) -> Iterator[str]:
    scores = {row["relation"]: row for row in model.family(SCORES)}
    tasks: dict[tuple[str, str], list[str]] = {}
    for task, row in model.alarms.items():
        before, after = (percent(row[f"invalid_{when}"]) for when in ("before", "after"))
        none = "No answer any more" if row["invalid_after"] >= _NEARLY_ALL else "Fewer answers"
        score, lead = scores[task], none if row["invalid_after"] > row["invalid_before"] else "More answers"
        words = f"{after} of {model.name}'s texts hold none, {before} of {model.base}'s, and {score['asked']} went"
        levels = f"from {level_text(score, 'before')} to {level_text(score, 'after')} with it"
        tasks.setdefault((lead, f"{words} {levels}"), []).append(task)
    for (lead, words), alike in list(tasks.items())[:_NAMED]:
        yield f"{lead} in {first_ones(alike, ' and ')}: {words}."
    lost = [row for row in model.tasks if "have no score" in row["note"]]
    yield from (f"Of {row['asked']} in {row['relation']} nothing is known: {row['note']}." for row in lost[:1])


# Sections of the first screen.


def sections(model: ModelChange) -> dict[str, list[ScreenRow]]:
    """Return the lines of numbers of one model, by title."""
    logs = [row for row in model.family(LOGS) if not row["relation"].startswith(POOLED)]
    found = {
        "Scores": _changes(model.family(SCORES)),
        "Log-probability of the right answer, nats": _changes([row for row in logs if row["asked"] == LOGLIK]),
        "The same minus that of the best other answer": _changes([row for row in logs if row["asked"] == MARGIN]),
        "Of whole tasks, not tested": _changes([row for row in model.tasks if row["note"] == CORPUS]),
        "Form of answers": [] if model.same_scores else list(_form_rows(model)),
        "Groups": [] if model.same_scores else list(_group_rows(model)),
    }
    return {title: rows for title, rows in found.items() if rows}


def badge(row: Row) -> tuple[str, str]:
    """Return the words of a verdict, and how they look."""
    words, look = BADGES.get(str(row["verdict"]), (str(row["verdict"]).replace("_", " "), "open"))
    return words, {"bad": "good", "good": "bad"}.get(look, look) if row["scale"] == SUMS else look


def _changes(rows: Sequence[Row]) -> list[ScreenRow]:
    """Return a line for each row; of many tasks the first ones and a count of the others."""
    lines = []
    for row in rows[:_LISTED]:
        p = f"corrected p {row['p_adjusted']:.3g}; " if math.isfinite(row["p_adjusted"]) else ""
        detail = f"{change_text(row)}; {p}{quantity(row['n'], 'item')} in {quantity(row['clusters'], 'cluster')}"
        detail += f"; {row['note']}" if row["verdict"] in ("", "too_few") else ""
        cells = [level_text(row, "before"), level_text(row, "after")]
        lines.append(ScreenRow(f"{row['relation']} {row['asked']}", cells, *badge(row), f"{detail}."))
    counts = Counter(badge(row)[0] for row in rows[_LISTED:])
    rest = ", ".join(f"{count} {words}" for words, count in counts.most_common())
    return lines + [ScreenRow(f"and {len(rows) - _LISTED} more: {rest}")] * bool(rest)


def _form_rows(model: ModelChange) -> Iterator[ScreenRow]:
    for row in model.tested_forms:
        if row["alarm"]:
            cells = [percent(row[f"invalid_{when}"]) for when in ("before", "after")]
            yield ScreenRow(f"{row['task']}, texts without an answer", cells, "CHANGED", "bad")
        for name, when in ((model.base, "before"), (model.name, "after")):
            if row[f"share_{when}"] >= _SAME > row[f"invalid_{when}"] and row["n"] >= _FEWEST:
                share = f"\u201c{row[f'common_{when}']}\u201d to {percent(row[f'share_{when}'])} of {row['task']}"
                yield ScreenRow(f"{name} gives {share}, so its score there says little about what it knows")


def _group_rows(model: ModelChange) -> Iterator[ScreenRow]:
    rows = model.family(GROUPS)
    # Of two groups one lost more where the other lost less.
    verdicts = Counter(
        "hit_harder" if row["verdict"] == "hit_less" and row["reference"] else row["verdict"] for row in rows
    )
    few, harder, less = verdicts["too_few"], verdicts["hit_harder"] + verdicts["slightly_harder"], verdicts["hit_less"]
    if rows:
        words = f"{len(rows) - few} compared with the others, {harder} lost more"
        words += f", {less} lost less" * bool(less) + f"; {few} have too few" * bool(few)
        differ = bool(model.decided(GROUPS))
        label = "GROUPS DIFFER" if differ else "too few to tell" if few == len(rows) else "none shown"
        yield ScreenRow(words, badge=label, severity="bad" if differ else "open")


def notes(model: ModelChange) -> Iterator[str]:
    """Yield how many items were paired and how, and how many would find a change as large as the margin."""
    counts, tasks = model.counts, int((model.counts["paired"] > 0).sum())
    words = {
        "renumbered": "paired by content",
        "other_content": "paired by id though the content differs",
        "epochs_differ": "with other numbers of epochs",
        "repeated": "repeated, of which the last counts",
    }
    parts = [f"{quantity(float(counts['paired'].sum()), 'item')} paired in {quantity(tasks, 'task')}"]
    yield (
        ", ".join([*parts, *(f"{counts[name].sum():,} {text}" for name, text in words.items() if counts[name].any())])
        + "."
    )
    rows = [row for row in model.family(SCORES) if row["verdict"] == "undecided" and math.isfinite(row["detectable"])]
    for row in [row for row in rows if not row["relation"].startswith(POOLED)][:_NAMED]:
        size = f"{100 * row['margin']:g} points" if row["scale"] == "share" else f"{row['margin']:g}"
        needed = math.ceil(float(row["n"] * (row["detectable"] / row["margin"]) ** 2))
        what = f"A change of {size} of {row['asked']} in {row['relation']}"
        yield f"{what} takes {needed:,} items like these, {row['n']:,} are there."
