"""What a comparison of logs found, as a first screen: items left out, the form of answers, then what is decided."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from seesaw_cf.base.terminal import quantity
from seesaw_cf.effects.groups import ALL
from seesaw_cf.logs.differences import CORPUS, GROUPS, LOGS, SCORES
from seesaw_cf.logs.pairing import SIDES, PairedItems
from seesaw_cf.logs.settings import LOGLIK, MARGIN
from seesaw_cf.report.rows import Row, rows_of
from seesaw_cf.report.screen import ScreenRow
from seesaw_cf.report.words import and_list, capital, minus
from seesaw_cf.stats import mcnemar
from seesaw_cf.stats.simple import BOUNDS

POOLED = "mean of "
BADGES: Mapping[str, str] = {
    "fell": "FELL",
    "slightly_fell": "fell a little",
    "rose": "ROSE",
    "slightly_rose": "rose a little",
    "equal": "no change that matters",
    "undecided": "not decided",
    "too_few": "too few to tell",
    "same": "unchanged",
}
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

    @property
    def tasks(self) -> list[Row]:
        """Rows of single tasks and all their items."""
        return rows_of(self.rows[(self.rows["axis"] == ALL) & ~self.rows["relation"].str.startswith(POOLED)])

    @property
    def scores(self) -> list[Row]:
        """Rows of the scores that are tested, means of several tasks among them."""
        return rows_of(self.rows[self.rows["family"] == SCORES])

    @property
    def tested_forms(self) -> list[Row]:
        """The form of answers of the tasks that are tested."""
        tested = {row["relation"] for row in self.scores}
        return [row for row in rows_of(self.forms) if row["task"] in tested]

    @property
    def same_scores(self) -> bool:
        """Whether no score or log-probability of an item changed, by more than rounding."""
        moved = [
            (row["moved_most"], BOUNDS["float32"] if row["scale"] in ("nats", "score", "nats a word") else 0.0)
            for row in self.tasks
            if math.isfinite(row["moved_most"])
        ]
        return bool(moved) and all(most <= rounding for most, rounding in moved) and not self.alarms

    @property
    def alarms(self) -> list[Row]:
        """Tasks whose answers changed their form."""
        return [row for row in self.tested_forms if row["alarm"]]

    @property
    def largest(self) -> float:
        """The largest change of an item's log-probability, nats; NaN without any."""
        return float(self.rows.loc[self.rows["asked"].isin((MARGIN, LOGLIK)), "moved_most"].max())

    def decided(self, family: str) -> list[Row]:
        """Return rows of a family in which something changed, apart from tasks with another form; largest first."""
        changed = {row["task"] for row in self.alarms}
        rows = [row for row in rows_of(self.rows[self.rows["family"] == family]) if row["verdict"] in _DECIDED]
        return sorted(
            (row for row in rows if row["relation"] not in changed), key=lambda row: -abs(row["value"] / row["margin"])
        )


def answer_forms(pairs: PairedItems) -> pd.DataFrame:
    """Return one row per task with answers.

    Returns:
        `task`, `n`; `invalid_before`, `invalid_after` (shares without an answer); `common_before`, `common_after` (the
        most frequent answer) with their `share_before`, `share_after`; `other_answer` (share that is another one after
        the change); `alarm` (whether the form changed), `constant_before`, `constant_after` (whether nearly every item
        has one answer).
    """
    rows = []
    for task, own in pairs.frame.groupby("task", observed=True, sort=False):
        answers = [own[f"answer/{side}"].astype("str").fillna("") for side in SIDES]
        if not any((answer != "").any() for answer in answers):
            continue
        before, after = (own[f"invalid/{side}"].to_numpy(float) > 0.5 for side in SIDES)
        row: dict[str, Any] = {"task": task, "n": len(own), "other_answer": float((answers[0] != answers[1]).mean())}
        for when, answer, invalid in (("before", answers[0], before), ("after", answers[1], after)):
            counts, none = answer.value_counts(), float(invalid.mean())
            share = float(counts.iloc[0]) / len(own)
            row |= {f"invalid_{when}": none, f"common_{when}": str(counts.index[0]), f"share_{when}": share}
            row[f"constant_{when}"] = share >= _SAME and len(own) >= _FEWEST and none < _SAME
        more, fewer = int((after & ~before).sum()), int((before & ~after).sum())
        row["alarm"] = abs(more - fewer) >= _ALARM * len(own) and mcnemar(more, fewer) < _ALARM_P
        rows.append(row)
    return pd.DataFrame(
        rows, columns=["task", "alarm", *(name for name in (rows[0] if rows else ()) if name not in ("task", "alarm"))]
    )


# Numbers in words.


def percent(value: float) -> str:
    """Return a share in per cent with one decimal; sums in any order show the same: ties are exact."""
    return f"{round(100 * value, 9):.1f} %"


def level_text(row: Row, when: str) -> str:
    """Return a value before or after: shares in per cent, a perplexity or bits instead of nats a word."""
    value = float(row[when])
    if math.isnan(value):
        return "\u2013"
    if row["scale"] == "nats a word":
        bits = str(row["asked"]).startswith("bits")
        return f"{value / math.log(2) if bits else math.exp(min(value, 700)):.4g}"
    if row["scale"] == "share":
        return minus(percent(value))
    return minus(f"{value:.3g}" if row["note"] == CORPUS else f"{value:.2f}")


def change_text(row: Row) -> str:
    """Return a change with its interval: of shares in points, of log-probabilities in nats."""
    factor, digits = {"share": (100, 1), "nats a word": (1, 3)}.get(row["scale"], (1, 2))
    unit = {"share": " points", "score": ""}.get(row["scale"], f" {row['scale']}")
    value, low, high = (round(round(factor * float(row[name]), 9), digits) + 0.0 for name in ("value", "low", "high"))
    ends = f" [{low:+.{digits}f}, {high:+.{digits}f}]" if math.isfinite(low) else ""
    return minus(f"{value:+.{digits}f}{unit}{ends}") if math.isfinite(value) else "\u2013"


def what_changed(row: Row) -> str:
    """Return which metric went from what to what: "winobias acc fell from 66.2 % to 46.2 %"."""
    where = "the " * row["relation"].startswith(POOLED) + row["relation"]
    return (
        f"{where} {row['asked']} {'rose' if row['value'] > 0 else 'fell'} from {level_text(row, 'before')} to "
        f"{level_text(row, 'after')}"
    )


def group_text(row: Row) -> str:
    """Return which group lost more than the others, or of two groups than the other one, and by how much."""
    own, other, size = row["group"], row["reference"] or "the others", change_text(row).partition(" [")[0]
    more = row["verdict"] in ("hit_harder", "slightly_harder")
    if row["reference"] and not more:  # name the group that lost
        own, other, more = other, own, True
        size = change_text({**row, "value": -row["value"]}).partition(" [")[0]
    return (
        f"{row['relation']} {row['axis']} {own} lost {'more' if more else 'less'} {row['asked']} than {other} ({size})"
    )


def more_text(rows: Sequence[object], named: int = _NAMED) -> str:
    """Return how many rows are not named."""
    return f"; and {len(rows) - named} more" if len(rows) > named else ""


# Sentences.


def missing(model: ModelChange) -> str:
    """Return which items do not count, before any share of the others; "" where all do."""
    first = {row["relation"]: row for row in reversed(model.scores) if not row["relation"].startswith(POOLED)}
    counts = model.counts[model.counts["task"].isin(set(first)) | (model.counts["paired"] == 0)]
    total = {str(name): int(counts[name].sum()) for name in counts if name not in ("task", "changed")}
    unscored = [sum(row[f"unscored_{when}"] for row in first.values()) for when in ("before", "after")]
    pairs = (
        (unscored[0], unscored[1], "have no score"),
        (total["errored_before"], total["errored_after"], "ended with an error"),
        (total["partial_before"], total["partial_after"], "have a score in some of their epochs only"),
    )
    parts = [f"{before:,} before and {after:,} after {words}" for before, after, words in pairs if before or after]
    parts += [f"{total['invalidated']:,} are invalidated"] * (total["invalidated"] > 0)
    parts += [f"{total['only_base']:,} are only in {model.base}"] * (total["only_base"] > 0)
    parts += [f"{total['only_changed']:,} are only in {model.name}"] * (total["only_changed"] > 0)
    size = sum(total[name] for name in ("paired", "invalidated", "only_base", "only_changed"))
    scored = sum(row["n"] for row in first.values())
    sentences = [f"Of {quantity(size, 'item')} {scored:,} are scored in both logs: {', '.join(parts)}."] * bool(parts)
    sentences += [
        f"Of {row['asked']} in {row['relation']} {row['unscored_before']:,} before and {row['unscored_after']:,} after "
        "have no score."
        for row in model.tasks
        if row["family"] != SCORES and row["unscored_before"] != row["unscored_after"]
    ][:_NAMED]
    return " ".join(sentences)


def finding(model: ModelChange) -> Iterator[str]:
    """Yield what changed in one model: form of answers, scores, log-probabilities, groups."""
    others = sorted((row for row in model.tested_forms if row["other_answer"]), key=lambda row: -row["other_answer"])
    if model.same_scores and others:
        shares = [f"{percent(row['other_answer'])} of the answers in {row['task']}" for row in others]
        yield f"No score changed, yet {and_list(shares[:_NAMED])}{more_text(shares)} are other ones."
        return
    if model.same_scores:
        moved = f", and log-probabilities moved by up to {model.largest:.1g} nats" if model.largest >= 0 else ""
        start = (
            ("No item that both logs score changed", "these") if missing(model) else ("Nothing changed", "all items")
        )
        yield f"{start[0]}: {model.name} answers {start[1]} as {model.base} does{moved}."
        return
    forms = list(_forms(model))
    yield from forms
    if scores := model.decided(SCORES):
        changes = [f"{what_changed(row)} ({change_text(row)})" for row in scores]
        yield f"In {'; in '.join(changes[:_NAMED])}{more_text(changes)}."
    elif logs := model.decided(LOGS):
        yield f"No score is known to have changed, yet in {what_changed(logs[0])}{more_text(logs, 1)}."
    elif not forms:
        yield _nothing_decided(model.scores)
    for row in [row for row in model.tasks if row["note"] == CORPUS and row["moved_most"]][:_NAMED]:
        yield f"{what_changed(row)}, which is not tested."
    if groups := model.decided(GROUPS):
        yield f"Groups differ: in {'; in '.join(map(group_text, groups[:_NAMED]))}{more_text(groups)}."


def _nothing_decided(scores: Sequence[Row]) -> str:
    """Return what is known of the scores where none changed by more than the margin."""
    if little := [row for row in scores if row["verdict"].startswith("slightly_")]:
        return f"A small change is certain, below what was declared to matter: in {what_changed(little[0])}."
    verdicts = {row["verdict"] for row in scores}
    if verdicts and verdicts <= {"equal", "same"}:
        return "No score changed by as much as was declared to matter."
    if verdicts == {"too_few"}:
        return f"Too few to tell: {scores[0]['note']}."
    return "No change of a score is shown, and these items cannot rule one out."


def _forms(model: ModelChange) -> Iterator[str]:
    scores = {row["relation"]: row for row in model.scores}
    tasks: dict[tuple[str, str], list[str]] = {}
    for row in model.alarms:
        before, after = (percent(row[f"invalid_{when}"]) for when in ("before", "after"))
        none = "No answer any more" if row["invalid_after"] >= _NEARLY_ALL else "Fewer answers"
        score, lead = scores[row["task"]], none if row["invalid_after"] > row["invalid_before"] else "More answers"
        words = f"{after} of {model.name}'s texts hold none, {before} of {model.base}'s, and {score['asked']} went"
        levels = f"from {level_text(score, 'before')} to {level_text(score, 'after')}"
        tasks.setdefault((lead, f"{words} {levels} with it."), []).append(row["task"])
    for (lead, words), alike in list(tasks.items())[:_NAMED]:
        yield f"{lead} in {' and '.join(alike[:_NAMED])}{more_text(alike)}: {words}"
    lost = [row for row in model.tasks if "have no score" in row["note"]]
    yield from (f"Of {row['asked']} in {row['relation']} nothing is known: {row['note']}." for row in lost[:1])


# Sections of the first screen.


def sections(model: ModelChange) -> dict[str, list[ScreenRow]]:
    """Return the lines of numbers of one model, by title."""
    logs = [row for row in model.tasks if row["family"] == LOGS]
    corpora = [row for row in model.tasks if row["note"] == CORPUS]
    found = {
        "Scores": _changes(model.scores),
        "Log-probability of the right answer, nats": _changes([row for row in logs if row["asked"] == LOGLIK]),
        "The same minus that of the best other answer": _changes([row for row in logs if row["asked"] == MARGIN]),
        "Of whole tasks, not tested": _changes(corpora),
        "Form of answers": list(_form_rows(model)),
        "Groups": list(_group_rows(model)),
    }
    return {title: rows for title, rows in found.items() if rows}


def _changes(rows: Sequence[Row]) -> list[ScreenRow]:
    """Return a line for each row, those that changed first; of many tasks the first ones and a count of the others."""
    order = sorted(rows, key=lambda row: (row["verdict"] not in _DECIDED, -abs(row["value"] / row["margin"])))
    lines = [
        ScreenRow(
            f"{row['relation']} {row['asked']}",
            [level_text(row, "before"), level_text(row, "after")],
            BADGES.get(row["verdict"], ""),
            severity(row),
            detail(row),
        )
        for row in order[:_LISTED]
    ]
    counts = Counter(BADGES[row["verdict"]] for row in order[_LISTED:])
    rest = ", ".join(f"{count} {words}" for words, count in counts.most_common())
    return lines + [ScreenRow(f"and {len(order) - _LISTED} more: {rest}")] * bool(rest)


def severity(row: Row) -> str:
    """Return how the verdict of a row looks: a perplexity that rises is a loss."""
    if row["verdict"] in ("equal", "same"):
        return "same"
    if row["verdict"] not in ("fell", "rose", "slightly_fell", "slightly_rose"):
        return "open"
    return "good" if row["verdict"].endswith("rose") != (row["scale"] == "nats a word") else "bad"


def detail(row: Row) -> str:
    """Return a change with p, counts, and how many items would find a change as large as the margin."""
    parts = [change_text(row)] if row["note"] != CORPUS else ["recomputed from the samples"]
    if math.isfinite(row["p_adjusted"]):
        parts.append(f"corrected p {row['p_adjusted']:.3g}")
    parts.append(f"{quantity(row['n'], 'item')} in {quantity(row['clusters'], 'cluster')}")
    if row["verdict"] == "too_few":
        parts.append(row["note"])
    if row["verdict"] == "undecided" and math.isfinite(row["detectable"]):
        parts.append(f"a change of {_margin(row)} takes {_needed(row):,} items like these")
    return "; ".join(parts) + "."


def _needed(row: Row) -> int:
    return math.ceil(float(row["n"] * (row["detectable"] / row["margin"]) ** 2))


def _margin(row: Row) -> str:
    return f"{100 * row['margin']:g} points" if row["scale"] == "share" else f"{row['margin']:g}"


def _form_rows(model: ModelChange) -> Iterator[ScreenRow]:
    for row in [] if model.same_scores else model.tested_forms:
        if row["alarm"]:
            cells = [percent(row[f"invalid_{when}"]) for when in ("before", "after")]
            yield ScreenRow(f"{row['task']}, texts without an answer", cells, "CHANGED", "bad")
        for name, when in ((model.base, "before"), (model.name, "after")):
            if row[f"constant_{when}"]:
                share = f"\u201c{row[f'common_{when}']}\u201d to {percent(row[f'share_{when}'])} of {row['task']}"
                yield ScreenRow(f"{name} gives {share}, so its score there says little about what it knows")


def _group_rows(model: ModelChange) -> Iterator[ScreenRow]:
    verdicts = Counter(model.rows.loc[model.rows["family"] == GROUPS, "verdict"])
    few, harder = verdicts["too_few"], verdicts["hit_harder"] + verdicts["slightly_harder"]
    if verdicts and not model.same_scores:
        words = f"{verdicts.total() - few} compared with the others, {harder} lost more"
        words += f", {verdicts['hit_less']} lost less" * bool(verdicts["hit_less"]) + f"; {few} have too few" * bool(
            few
        )
        differ = bool(model.decided(GROUPS))
        badge = "GROUPS DIFFER" if differ else "too few to tell" if few == verdicts.total() else "none shown"
        yield ScreenRow(words, badge=badge, severity="bad" if differ else "open")


def to_decide(model: ModelChange) -> Iterator[str]:
    """Yield how many items would find a change as large as the margin, of the scores that are not decided."""
    rows = [row for row in model.scores if row["verdict"] == "undecided" and math.isfinite(row["detectable"])]
    for row in [row for row in rows if not row["relation"].startswith(POOLED)][:_NAMED]:
        what = f"A change of {_margin(row)} of {row['asked']} in {row['relation']}"
        yield f"{what} takes {_needed(row):,} items like these, {row['n']:,} are there."


def item_counts(models: Iterable[ModelChange]) -> str:
    """Return how many items were paired, and how."""
    counts = pd.concat([model.counts for model in models]).drop_duplicates("task")
    words: Mapping[str, Callable[[int], str]] = {
        "renumbered": lambda count: f"{count:,} paired by content",
        "other_content": lambda count: f"{count:,} paired by id though the content differs",
        "epochs_differ": lambda count: f"{count:,} with other numbers of epochs",
        "repeated": lambda count: f"{count:,} repeated, of which the last counts",
    }
    tasks = int((counts["paired"] > 0).sum())
    parts = [f"{quantity(float(counts['paired'].sum()), 'item')} paired in {quantity(tasks, 'task')}"]
    parts += [form(int(counts[name].sum())) for name, form in words.items() if counts[name].any()]
    return capital(f"{', '.join(parts)}.")
