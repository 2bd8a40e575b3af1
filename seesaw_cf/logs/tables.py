"""Tables of a comparison of logs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from seesaw_cf.logs.differences import SCORES
from seesaw_cf.logs.judging import POWER
from seesaw_cf.logs.log import LOGLIK, MARGIN
from seesaw_cf.report import text
from seesaw_cf.report.table import Column, Row, Table, word_column

_FREQUENT = 0.5  # a choice that is given more rarely says nothing about the form of answers


def comparison_tables(differences: pd.DataFrame, answers: pd.DataFrame, counts: pd.DataFrame) -> list[Table]:
    """Return every table that has rows.

    Args:
        differences: Rows of `seesaw_cf.logs.differences.differences` with `changed`.
        answers: Rows of `seesaw_cf.logs.answers.answer_forms` with `changed`.
        counts: `PairedItems.counts` with `changed`.
    """
    overall = differences[differences["field"] == ""]
    scale = overall["metric"].isin((MARGIN, LOGLIK)) & (overall["family"] != SCORES)
    first = overall["family"] == SCORES
    model = [word_column("model", "changed")] if differences["changed"].nunique() > 1 else []
    tables = [
        _scores(overall[first], model),
        _answers(answers, model),
        _logs(overall[scale], model),
        _groups(differences[differences["field"] != ""], model),
        _others(overall[~first & ~scale], model),
        _pairs(counts, model),
    ]
    return [table for table in tables if len(table.frame)]


def shown_scale(row: Row) -> int:
    """Return what numbers are multiplied by where people see them: shares are points."""
    return 100 if row["is_share"] else 1


def level_base(row: Row) -> int | None:
    """Return 0 for a perplexity, 2 for bits, None for metrics that are no sum of nats."""
    if not row.get("is_sum"):
        return None
    return 2 * str(row["metric"]).startswith("bits")


def change_text(row: Row) -> str:
    """Return a change with its interval: of shares in points, of log-probabilities in nats."""
    is_sum = level_base(row) is not None
    unit = " points" if row["is_share"] else " nats" if row["metric"] in (MARGIN, LOGLIK) or is_sum else ""
    digits = 1 if row["is_share"] else 3 if is_sum else 2
    sizes = [round(float(shown_scale(row) * row[name]), 9) for name in ("value", "low", "high")]  # ties are exact
    rounded = [round(size, digits) + 0.0 for size in sizes]  # no -0.0
    return text.estimate(rounded[0], rounded[1], rounded[2], f"+.{digits}f", unit)


def level_text(row: Row, name: str) -> str:
    """Return a value before or after: shares in percent."""
    value, base = float(row[name]), level_base(row)
    if value != value:
        return "-"
    if base is not None:
        return f"{value / math.log(2) if base else math.exp(min(value, 700)):.4g}"
    return text.percent(value) if row["is_share"] else f"{value:.2f}"


_TASK = word_column("task")
_METRIC = word_column("metric")
_LEVELS = (
    Column("before", lambda row: level_text(row, "before")),
    Column("after", lambda row: level_text(row, "after")),
)
_CHANGE = Column("change", change_text)
_P = Column("p", lambda row: text.p_value(row["p_adjusted"]))
_P_ALONE = Column("p alone", lambda row: text.p_value(row["p"]))
_N = Column("items (clusters)", lambda row: f"{row['n']:,} ({row['clusters']:,})")


def _verdict(row: Row) -> str:
    note = row["note"] if row["verdict"] == "not testable" else ""
    return f"{row['verdict']} ({note})" if note else str(row["verdict"])


_VERDICT = word_column("verdict", _verdict)
_DISCORDANT = (
    Column(
        "lost : gained", lambda row: "-" if pd.isna(row.get("lost")) else f"{row['lost']:.0f} : {row['gained']:.0f}"
    ),
    Column("McNemar p", lambda row: text.p_value(row.get("p_mcnemar"))),
)


def needed_text(row: Row) -> str:
    """Return how many items would find a change as large as the margin."""
    return "-" if pd.isna(row["needed"]) else f"{row['needed']:,.0f}"


def _scores(frame: pd.DataFrame, model: Sequence[Column]) -> Table:
    about = (
        "Mean of each task after minus before the change, on the same items, with 95 % intervals and p that keep items "
        "of a cluster together; p is corrected over this table. McNemar's exact test takes items as independent and "
        f"decides nothing. Needed: items that find the margin with power {POWER:.0%}."
    )
    columns = (
        *(*model, _TASK, _METRIC, _VERDICT, *_LEVELS, _CHANGE, _P, *_DISCORDANT, _N),
        Column("needed", needed_text),
    )
    return Table("scores", "Scores", about, columns, frame)


def _logs(frame: pd.DataFrame, model: Sequence[Column]) -> Table:
    about = (
        "Nats, after minus before: loglik, the answer that the task counts as right; margin, that answer against the "
        "best other one. They move where no answer flips. Of an item: how far it moved, median and largest."
    )
    columns = (
        *(*model, _TASK, _METRIC, _VERDICT, *_LEVELS, _CHANGE, _P),
        *(Column("median move", "moved", digits=2), Column("largest", "moved_most", digits=2), _N),
    )
    return Table("log_probabilities", "Log-probabilities", about, columns, frame)


def _groups(frame: pd.DataFrame, model: Sequence[Column]) -> Table:
    """Return changes of groups, each beside its contrast with the rest, largest claims first."""
    keys = ["changed", "task", "metric", "field", "group"]
    own, against = frame[~frame["contrast"].astype(bool)], frame[frame["contrast"].astype(bool)]
    names = {name: f"rest_{name}" for name in ("value", "low", "high", "p", "p_adjusted", "verdict", "rule", "note")}
    against = against[[*keys, *names]].rename(columns=names)
    frame = own.drop(columns=["verdict"]).merge(against, on=keys, how="left")
    frame = frame.sort_values("rest_p_adjusted", kind="stable", na_position="last", ignore_index=True)

    def rest(row: Row) -> str:
        return change_text({**row, **{name: row[f"rest_{name}"] for name in ("value", "low", "high")}})

    def words(row: Row) -> str:
        note = row["rest_note"]
        judged: str = "" if pd.isna(row["rest_verdict"]) else str(row["rest_verdict"])
        return judged + (f" ({text.short_note(note)})" if isinstance(note, str) and note else "")

    columns = (
        *(*model, _TASK, _METRIC, word_column("group", lambda row: f"{row['field']}={row['group']}")),
        word_column("verdict", words),
        *(_CHANGE, Column("against the rest", rest), Column("p", lambda row: text.p_value(row["rest_p_adjusted"])), _N),
    )
    about = (
        "Change of each group, and minus that of all others: a difference between groups needs a test, which the "
        "groups' intervals are not. p is corrected over this table; where a field has two groups their contrast is one."
    )
    return Table("groups", "Groups", about, columns, frame)


def _others(frame: pd.DataFrame, model: Sequence[Column]) -> Table:
    about = "Further metrics of the same answers; they are no further tests, and p is not corrected."
    columns = (*model, _TASK, _METRIC, *_LEVELS, _CHANGE, _P_ALONE, *_DISCORDANT, _N)
    return Table("other_metrics", "Other metrics", about, columns, frame, brief=False)


def _answers(frame: pd.DataFrame, model: Sequence[Column]) -> Table:
    def share(name: str) -> Column:
        return Column(f"invalid {name}", lambda row: text.percent(row[f"invalid_{name}"]))

    def common(name: str) -> Column:
        def cell(row: Row) -> str:
            return f"{row[f'common_{name}'][:24] or '(empty)'}: {text.percent(row[f'share_{name}'])}"

        return word_column(f"most frequent {name}", cell)

    columns = (
        *(*model, _TASK, common("before"), common("after"), Column("items", "n")),
        *(share("before"), share("after"), Column("other answer", lambda row: text.percent(row["other_answer"]))),
    )
    given = frame[["share_before", "share_after"]].max(axis=1) >= _FREQUENT if len(frame) else pd.Series(dtype=bool)
    missing = frame[["invalid_before", "invalid_after"]].max(axis=1) > 0
    frame = frame[given | missing]
    about = "Whether there is an answer at all, and which is given most: a score changes with the form of answers too."
    return Table("answers", "Form of answers", about, columns, frame)


def _pairs(frame: pd.DataFrame, model: Sequence[Column]) -> Table:
    heads = {
        "paired": "paired",
        "only_base": "only in base",
        "only_changed": "only in changed",
        "renumbered": "by content",
        "other_content": "other content",
        "epochs_differ": "other epochs",
        "repeated": "repeated",
        "invalidated": "invalidated",
        "errored_before": "errors before",
        "errored_after": "errors after",
    }
    columns = (*model, _TASK, *(Column(head, name) for name, head in heads.items()))
    about = "Items of both logs, paired by id with equal content, or by content where ids differ; what is left out."
    return Table("items", "Items", about, columns, frame)
