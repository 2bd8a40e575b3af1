"""The first screen of a comparison of logs: its title, and the answers to what a reader asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import pandas as pd

from seesaw_cf.base.terminal import quantity
from seesaw_cf.logs.differences import CORPUS, GROUPS, LOGS, SCORES
from seesaw_cf.logs.judging import DECIDED
from seesaw_cf.logs.log import LOGLIK, MARGIN
from seesaw_cf.logs.tables import change_text, needed_text
from seesaw_cf.logs.title import POOLED, ChangeFacts, group_text, levels_text, more_text, title_sentences
from seesaw_cf.report import text
from seesaw_cf.report.html.findings import FirstScreen
from seesaw_cf.report.table import Row, rows_of

_LISTED = 5  # scores on the first screen
_NAMED = 2


def first_screen(
    models: Sequence[ChangeFacts], counts: pd.DataFrame, about: str, notes: Sequence[str] = ()
) -> FirstScreen:
    """Return what was found.

    Args:
        models: Every changed model.
        counts: `PairedItems.counts` with `changed`.
        about: What was compared.
        notes: About the logs.
    """
    several = len(models) > 1
    title = " ".join(f"{part.rstrip('.')}." for model in models for part in title_sentences(model, several))
    answers = {
        "Form of answers": _joined(models, _forms),
        "Scores": _joined(models, _scores),
        "Whole tasks": _joined(models, _corpora),
        "Log-probabilities": _joined(models, _log_probabilities),
        "Groups": _joined(models, _groups),
        "Items": _items(
            counts[counts["task"].isin(set(models[0].tasks) | set(counts["task"][counts["paired"] == 0]))],
            [words for model in models for words in model.unscored_counts],
        ),
        "Logs": " ".join(notes[:_LISTED]) + more_text(notes, _LISTED),
        "To decide": _joined(models, _needed),
    }
    return FirstScreen(about, title, answers)


def _joined(models: Sequence[ChangeFacts], parts: Callable[[ChangeFacts], Iterable[str]]) -> str:
    """Return sentences about every model; where there are several, each after its name."""
    lines = []
    for model in models:
        own = ". ".join(parts(model))
        lines += [f"{model.name}: {own}" if len(models) > 1 else own] if own else []
    return ". ".join(lines) + "." if lines else ""


def _forms(model: ChangeFacts) -> Iterable[str]:
    for row in [] if model.same else model.forms:
        if row["alarm"]:
            shares = [text.percent(row[f"invalid_{when}"]) for when in ("before", "after")]
            yield f"No answer in {shares[0]} of texts of {row['task']} before, {shares[1]} after"
        for name, when in ((model.base, "before"), (model.name, "after")):
            if row[f"constant_{when}"]:
                yield (
                    f"{name} gives “{row[f'common_{when}']}” to {text.percent(row[f'share_{when}'])} of "
                    f"{row['task']}, so its score there says little about what it knows"
                )


def _scores(model: ChangeFacts) -> Iterable[str]:
    """Yield how many scores came out how, and the tasks that say most."""
    rows = [] if model.same else rows_of(model.rows[model.rows["family"] == SCORES])
    counts = Counter(row["verdict"] for row in rows)
    if len(rows) > _LISTED:
        yield ", ".join(f"{count} {words}" for words, count in counts.most_common())
    ranks = [(row["verdict"] not in DECIDED, -abs(row["value"] / row["margin"])) for row in rows]
    yield from (_score(row) for _, row in sorted(zip(ranks, rows), key=lambda pair: pair[0])[:_LISTED])


def _score(row: Row) -> str:
    p: str = "" if pd.isna(row["p_adjusted"]) else f", {text.p_equals(row['p_adjusted'])}"
    return f"{row['task']} {row['metric']} {levels_text(row)}, {text.minus(change_text(row))}{p}: {row['verdict']}"


def _corpora(model: ChangeFacts) -> Iterable[str]:
    for row in rows_of(model.rows[model.rows["note"] == CORPUS]):
        yield f"{row['task']} {row['metric']} {row['before']:.3g} to {row['after']:.3g} (not tested)"


def _log_probabilities(model: ChangeFacts) -> Iterable[str]:
    rows = rows_of(model.rows[(model.rows["family"] == LOGS) & ~model.rows["task"].str.startswith(POOLED)])
    if model.same:
        return
    for metric, name in (
        (LOGLIK, "The answer that counts as right"),
        (MARGIN, "That answer against the best other one"),
    ):
        own = [row for row in rows if row["metric"] == metric]
        if own:
            changes = ", ".join(f"{row['task']} {text.minus(change_text(row))} ({row['verdict']})" for row in own[:3])
            yield f"{name}: {changes}{more_text(own, 3)}"
    if model.largest >= 0:
        yield f"Single items move by up to {model.largest:.2g} nats"


def _groups(model: ChangeFacts) -> Iterable[str]:
    tests = rows_of(model.rows[model.rows["family"] == GROUPS])
    decided = model.decided(GROUPS)
    testable = [row for row in tests if not pd.isna(row["p_adjusted"])]
    if tests and not model.same:
        yield f"{quantity(len(decided), 'contrast')} of {len(tests)} decided, {len(tests) - len(testable)} not testable"
        yield from (f"{group_text(row)}, {text.p_equals(row['p_adjusted'])}" for row in decided[:3])


def _items(counts: pd.DataFrame, unscored: Sequence[str]) -> str:
    own = counts.drop_duplicates("task") if counts["changed"].nunique() > 1 else counts
    paired = f"{quantity(float(own['paired'].sum()), 'item')} paired in {quantity(len(own), 'task')}"
    words = {
        "only_base": "only in the base",
        "only_changed": "only in a changed log",
        "renumbered": "paired by content",
        "other_content": "paired by id though the content differs",
        "epochs_differ": "with other numbers of epochs",
        "repeated": "repeated, of which the last counts",
        "invalidated": "invalidated",
        "errored_before": "with an error before",
        "errored_after": "with an error after",
    }
    rest = [f"{int(counts[name].sum()):,} {word}" for name, word in words.items() if counts[name].any()]
    rest += unscored
    return f"{', '.join([paired, *rest] if rest else [paired, 'none left out'])}."


def _needed(model: ChangeFacts) -> Iterable[str]:
    rows = [row for row in model.with_verdict("undetermined") if not row["task"].startswith(POOLED)]
    for row in [row for row in rows if not pd.isna(row["needed"])][:_NAMED]:
        size = f"{100 * row['margin']:.3g} points" if row["is_share"] else f"{row['margin']:.3g}"
        what = f"A change of {size} of {row['metric']} in {row['task']}"
        yield f"{what} takes {needed_text(row)} items like these, {row['n']:,} are there"
