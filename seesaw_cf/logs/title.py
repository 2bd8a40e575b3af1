"""What a comparison of logs found, in sentences: a change of form before any score, then what is decided."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from seesaw_cf.base.terminal import quantity
from seesaw_cf.logs.differences import GROUPS, LOGS, SCORES
from seesaw_cf.logs.judging import DECIDED
from seesaw_cf.logs.log import LOGLIK, MARGIN
from seesaw_cf.logs.tables import change_text, level_text
from seesaw_cf.report import text
from seesaw_cf.report.table import Row, rows_of
from seesaw_cf.stats.simple import BOUNDS

_NEARLY_ALL = 0.9  # of the texts
_NAMED = 2  # tasks or groups of one kind in a title
POOLED = "mean of "
_SAME = ("no item changed", "no scored item changed")
_LITTLE = "too little to matter"


@dataclass(frozen=True, eq=False)
class ChangeFacts:
    """What is known of one changed model.

    Attributes:
        name: Of the changed model.
        base: Of the model before.
        rows: Of `differences`, about it.
        answers: Of `answer_forms`, about it.
        counts: `PairedItems.counts`.
    """

    name: str
    base: str
    rows: pd.DataFrame
    answers: pd.DataFrame
    counts: pd.DataFrame

    @property
    def own(self) -> pd.DataFrame:
        """Rows of single tasks and all their items."""
        return self.rows[(self.rows["field"] == "") & ~self.rows["task"].str.startswith(POOLED)]

    @property
    def unscored_counts(self) -> list[str]:
        """How many items have no score of what is tested, of each task that has such items."""
        rows = rows_of(self.own[self.own["family"] == SCORES])
        return [
            f"of {row['task']} {row['unscored_before']:,} without a score before, {row['unscored_after']:,} after"
            for row in rows
            if row["unscored_before"] or row["unscored_after"]
        ]

    @property
    def left_out(self) -> list[str]:
        """Sentences about items that have no score in both logs, before any share of the others."""
        first = self.own[self.own["family"] == SCORES].drop_duplicates("task")
        counts = self.counts[self.counts["task"].isin(set(first["task"])) | (self.counts["paired"] == 0)]
        total = {name: int(counts[name].sum()) for name in counts if name not in ("task", "changed")}
        unscored = [int(first[f"unscored_{when}"].sum()) for when in ("before", "after")]
        errors = [total["errored_before"], total["errored_after"]]
        parts = [f"{unscored[0]:,} before and {unscored[1]:,} after have no score"] if any(unscored) else []
        parts += [f"{errors[0]:,} before and {errors[1]:,} after ended with an error"] if any(errors) else []
        parts += [f"{total['invalidated']:,} are invalidated"] if total["invalidated"] else []
        parts += [f"{total['only_base']:,} are only in {self.base}"] if total["only_base"] else []
        parts += [f"{total['only_changed']:,} are only in {self.name}"] if total["only_changed"] else []
        size = sum(total[name] for name in ("paired", "invalidated", "only_base", "only_changed"))
        lead = f"Of {quantity(size, 'item')} {int(first['n'].sum()):,} are scored in both logs"
        others = self.own[(self.own["family"] != SCORES) & (self.own["unscored_before"] != self.own["unscored_after"])]
        return [f"{lead}: {', '.join(parts)}"] * bool(parts) + [
            f"Of {row['metric']} in {row['task']} {row['unscored_before']:,} before and {row['unscored_after']:,} "
            "after have no score"
            for row in rows_of(others)[:_NAMED]
        ]

    @property
    def tasks(self) -> list[str]:
        """Tasks that are tested: not those that score the same answers in another way."""
        return list(self.rows.loc[self.rows["family"] == SCORES, "task"])

    @property
    def forms(self) -> list[Row]:
        """The form of answers of these tasks."""
        return rows_of(self.answers[self.answers["task"].isin(self.tasks)])

    @property
    def alarms(self) -> list[Row]:
        """Tasks whose answers changed their form."""
        return [row for row in self.forms if row["alarm"]]

    @property
    def unscored(self) -> list[Row]:
        """Metrics that the change left without a score for many items."""
        rows = self.rows[self.rows["note"].str.contains("have no score") & (self.rows["field"] == "")]
        return rows_of(rows.drop_duplicates(["task"]))

    @property
    def other_answers(self) -> list[Row]:
        """Tasks with other answers than before, those with most of them first."""
        return sorted((row for row in self.forms if row["other_answer"]), key=lambda row: -row["other_answer"])

    @property
    def same_scores(self) -> bool:
        """Whether no score or log-probability of an item changed, by more than rounding."""
        own = self.own
        rounding = own["floor"].where((own["family"] != "") | own["is_share"], BOUNDS["float32"])
        moved = own["moved_most"].to_numpy(float)
        return not self.alarms and bool(np.isfinite(moved).any()) and not bool((moved > rounding).any())

    @property
    def same(self) -> bool:
        """Whether no item changed: its score, its log-probabilities or its answer."""
        return self.same_scores and not self.other_answers

    @property
    def largest(self) -> float:
        """Largest move of an item's log-probability, nats; NaN without any."""
        return float(self.rows.loc[self.rows["metric"].isin((MARGIN, LOGLIK)), "moved_most"].max())

    def decided(self, family: str) -> list[Row]:
        """Return rows of a family in which something changed, apart from tasks with another form; largest first."""
        rows = self.rows[(self.rows["family"] == family) & self.rows["verdict"].isin(DECIDED)]
        rows = rows[~rows["task"].isin({row["task"] for row in self.alarms})]
        size = (rows["value"] / rows["margin"]).abs()
        return rows_of(rows.loc[size.sort_values(ascending=False, kind="stable").index])

    def with_verdict(self, words: str) -> list[Row]:
        """Return rows of scores with these words in their verdict."""
        rows = self.rows[(self.rows["family"] == SCORES) & self.rows["verdict"].str.contains(words, regex=False)]
        return rows_of(rows)


def title_sentences(model: ChangeFacts, several: bool) -> Iterable[str]:
    """Yield what changed in one model: items without a score, form of answers, scores, log-probabilities, groups."""
    lead = f"{model.name}: " if several else ""
    left_out = model.left_out
    yield from (lead + sentence for sentence in left_out)
    if model.same:
        moved = f", and log-probabilities moved by up to {model.largest:.1g} nats" if model.largest >= 0 else ""
        start, items = ("No item that both score changed", "these") if left_out else ("Nothing changed", "all items")
        yield f"{start}: {model.name} answers {items} as {model.base} does{moved}"
        return
    if model.same_scores:
        others = [f"{text.percent(row['other_answer'])} of the answers in {row['task']}" for row in model.other_answers]
        more = f" and {quantity(len(others) - _NAMED, 'more task')}" if len(others) > _NAMED else ""
        yield f"{_start(lead, 'no')} score changed, yet {', '.join(others[:_NAMED])}{more} are other ones"
        return
    forms = list(_form_titles(model))
    scores, logs = model.decided(SCORES), model.decided(LOGS)
    yield from forms
    if scores:
        yield (
            f"{_start(lead, 'in')} " + "; in ".join(decided_text(row) for row in scores[:_NAMED]) + more_text(scores)
        )
    elif logs:
        words = f"is known to have changed, yet in {decided_text(logs[0])}{more_text(logs, 1)}"
        yield f"{_start(lead, 'no')} score {words}"
    elif not forms:
        yield lead + _undecided(model)
    if groups := model.decided(GROUPS):
        listed = "; in ".join(group_text(row) for row in groups[:_NAMED])
        yield f"{_start(lead, 'groups')} differ: in {listed}{more_text(groups)}"


def _undecided(model: ChangeFacts) -> str:
    """Return what is known of the scores where none changed by more than the margin."""
    if little := model.with_verdict(_LITTLE):
        return f"A change is certain and too small to matter: in {decided_text(little[0])}."
    verdicts = [row["verdict"] for row in model.with_verdict("")]
    if verdicts and all("matter" in verdict or verdict in _SAME for verdict in verdicts):
        return "No score changed by more than the margin."
    return "No change of a score is shown; these items cannot rule one out."


def _start(lead: str, word: str) -> str:
    return f"{lead}{word}" if lead else word.capitalize()


def _form_titles(model: ChangeFacts) -> Iterable[str]:
    scores = {row["task"]: row for row in rows_of(model.rows[model.rows["family"] == SCORES])}
    tasks: dict[tuple[str, str], list[str]] = {}
    for row in model.alarms:
        before, after = (text.percent(row[f"invalid_{when}"]) for when in ("before", "after"))
        worse = row["invalid_after"] > row["invalid_before"]
        none = "No answer any more" if row["invalid_after"] >= _NEARLY_ALL else "Fewer answers"
        lead = none if worse else "More answers"
        score = scores[row["task"]]
        words = f"{after} of {model.name}'s texts hold none, {before} of {model.base}'s, and {score['metric']}"
        tasks.setdefault((lead, f"{words} went from {levels_text(score)} with it"), []).append(row["task"])
    for (lead, words), alike in list(tasks.items())[:_NAMED]:
        yield f"{lead} in {' and '.join(alike[:_NAMED])}{more_text(alike)}: {words}"
    for row in model.unscored[:1]:
        yield f"Of {row['metric']} in {row['task']} nothing is known: {row['note']}"


def levels_text(row: Row) -> str:
    """Return a value before and after."""
    return f"{level_text(row, 'before')} to {level_text(row, 'after')}"


def decided_text(row: Row) -> str:
    """Return where which metric changed from what to what."""
    where = f"the {row['task']}" if row["task"].startswith(POOLED) else row["task"]
    verb = "rose" if row["value"] > 0 else "fell"
    return f"{where} {row['metric']} {verb} from {levels_text(row)}"


def group_text(row: Row) -> str:
    """Return which group lost more or less than the rest; where there are two, which lost more than the other."""
    own, other, verdict = row["group"], row["rest"] or "the rest", row["verdict"].partition(",")[0]
    if row["rest"] and row["value"] > 0:
        own, other, verdict = other, own, "lost more"
        row = {**row, "value": -row["value"], "low": -row["high"], "high": -row["low"]}
    size = text.minus(change_text(row).partition(" [")[0])
    return f"{row['task']} {row['field']} {own} {verdict} {row['metric']} than {other} ({size})"


def more_text(rows: Sequence[object], named: int = _NAMED) -> str:
    """Return how many rows are not named."""
    return f"; and {len(rows) - named} more" if len(rows) > named else ""
