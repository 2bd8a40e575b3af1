"""Sections on what the model knew before, and on effects on three scales, also among known facts alone."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas as pd

from seesaw_cf.effects.groups import ALL, UNKNOWN
from seesaw_cf.effects.knowledge import FACTS, KnowledgeRow
from seesaw_cf.io.terminal import column_table, wrap
from seesaw_cf.report import text
from seesaw_cf.report.results import HOLDER, Results, relation_name, sort_groups, sort_relations
from seesaw_cf.report.rows import AccuracyRow, EffectRow, number_of, records, with_limits

EVERY = "all"
_LIMIT = "First among candidates is less than knowledge in general."

_KNOWN = """*Known* means that, before any edit, the right answer was first among the candidates asked after the same
prompt; ties count against it. Of an edited fact the candidates are its two targets and other answers of the relation in
the records, at most 32; of a question about other people they are the two targets. *Share* is the right answer's part
of the candidates' probability. This is less than knowledge in general: an answer that was not asked, another wording or
another name of the right answer may be likelier; short and common answers can be first for everybody; of two candidates
one is first by chance half of the time. No interval: fewer than five effective edits or people, or all alike."""

_SCALES = """D_d in probability hardly moves where the answers are unlikely. *Log-odds* is the change of
log p(new) - log p(true), in nats; *share* that of p(new) / (p(new) + p(true)), the new target's share of the two
answers asked, in -1..1; the true target's share changes by as much the other way. The sign is that of D_d: below 0 the
model became less sure of what these people hold. *Edited fact known* keeps the edits whose own fact was known, *asked
fact known* the questions whose answer was ahead before. The latter were chosen for being ahead: whatever disturbs a
model can only make them lose that place, so compare them with a control edit, not with 0 alone."""

_TERMINAL = "D_d's intervals: above, and in effects_known.csv."
_SHORT = {EVERY: "all"} | dict(zip(FACTS, ("edited", "asked"), strict=True))

_ACCURACY = """Among asked facts that were known the share before is 100 % by definition, and the share after says how
many of them are still first. *Share* is the change of the right answers' part of the candidates' probability,
*log-odds* that of its odds (nats). All pairs pooled; each pair is in `accuracy.csv` and `accuracy_known.csv`."""


def knew(results: Results) -> str:
    """One sentence for the conclusion: how much of what was edited and asked the model knew."""
    said = []
    for row in records(results.known.facts, KnowledgeRow):
        if row["relation"] == ALL and row["n"]:
            median = f"median {row['median_candidates']:g} candidates, share {row['median_share']:.2g}"
            said.append(f"{_share(row)} of {row['n']} {row['facts']} ({median})")
    first = f"the right answer was first of its candidates for {'; '.join(said)}. {_LIMIT}" if said else ""
    return " ".join(filter(None, [results.known.note, first]))


def _share(row: KnowledgeRow) -> str:
    return text.percent_interval(row["known"], row["known_low"], row["known_high"])


def knowledge_markdown(results: Results) -> str:
    """How much of what is edited and asked the unedited model knew."""
    heads = ("Facts", "Property", "Known", "n", "Median rank", "Candidates", "Median share", "Not said")
    rows = [[text.escape(row[0]), f"*{text.escape(row[1])}*", *row[2:]] for row in _knowledge(results)]
    note = f"\n\n> {text.escape(results.known.note)}" if results.known.note else ""
    table = text.markdown_table(heads, rows, left=2)
    return f"## What did the model know before?\n\n{_KNOWN}{note}\n\n{table}"


def knowledge_text(results: Results) -> str:
    """The same for a terminal."""
    heads = ("facts", "relation", "known", "n", "median rank", "candidates", "median share", "not said")
    said = [wrap(" ".join([_KNOWN.replace("*", ""), results.known.note]))]
    rows = [[row[0].removeprefix("questions on holders of the "), *row[1:]] for row in _knowledge(results)]
    return "\n".join(["KNOWN BEFORE THE EDIT", *said, column_table(heads, rows, left=2)])


def _knowledge(results: Results) -> Iterator[list[str]]:
    rows = records(results.known.facts, KnowledgeRow)
    order = sort_relations(row["relation"] for row in rows)
    facts = list(dict.fromkeys(row["facts"] for row in rows))
    for row in sorted(rows, key=lambda row: (facts.index(row["facts"]), order.index(row["relation"]))):
        numbers = [_plain(row["median_rank"]), _plain(row["median_candidates"]), _plain(row["median_share"])]
        yield [
            row["facts"],
            relation_name(row["relation"]),
            _share(row),
            str(row["n"]),
            *numbers,
            str(row["n_without"]),
        ]


def _plain(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3g}"


def scales_markdown(results: Results) -> list[str]:
    """Effects on everybody and on groups, on three scales, among all and among known facts."""
    if results.mode == "paper" or results.effects.empty:
        return []
    heads = ("Property", "Method", "Facts", "D_d", "Log-odds", "Share", "n")
    rows = []
    for facts, row in _everybody(results):
        names = [f"*{text.escape(relation_name(row['relation']))}*", text.escape(row["editor"]), facts]
        scales = [_starred(_cell(row, scale, results)) for scale in ("D", "log_odds", "share")]
        rows.append([*names, *scales, "<br>".join(filter(None, [_counts(row), text.no_interval(row)]))])
    said = _SCALES.replace("_", "\\_")
    parts = ["### On three scales, and among known facts", said, text.markdown_table(heads, rows, left=3)]
    parts.append("n = prompts/people/edits, of people who hold the new target; \\* as above.")
    for axis in dict.fromkeys(results.effects["axis"]):
        if axis != ALL:
            parts += _by_axis(results, axis)
    return parts


def scales_text(results: Results) -> str:
    """Effects on everybody for a terminal, D without its interval, which is wide enough on its own."""
    if results.mode == "paper" or results.effects.empty:
        return ""
    rows = []
    for facts, row in _everybody(results):
        scales = [_cell(row, "log_odds", results), _cell(row, "share", results)]
        d = _cell(row, "D", results).split(" ")[0]
        rows.append([row["editor"], relation_name(row["relation"]), _SHORT[facts], d, *scales, _counts(row)])
    if not rows:  # nobody who holds the new target
        return ""
    heads = ("editor", "relation", "facts", "D_d", "log-odds", "share", "n")
    about = wrap(f"{_SCALES.replace('*', '')} {_TERMINAL}")
    return f"EFFECTS ON THREE SCALES, AND AMONG KNOWN FACTS\n{about}\n" + column_table(heads, rows, left=3)


def _counts(row: EffectRow) -> str:
    return f"{row['n_prompts']}/{row['n_subjects']}/{row['n_cases']}"


def _everybody(results: Results) -> Iterator[tuple[str, EffectRow]]:
    """Effects on all people, with the facts they are about."""
    frame = _with_facts(results)
    rows = records(frame[frame["axis"] == ALL], EffectRow)
    cells = {(row["relation"], row["editor"], row["facts"]): row for row in rows}
    for relation in sort_relations(frame["relation"]):
        for editor in results.editors:
            for facts in (EVERY, *FACTS):
                if (relation, editor, facts) in cells:
                    yield facts, cells[relation, editor, facts]


def _with_facts(results: Results) -> pd.DataFrame:
    """Effects on people who hold the new target, of all and of known facts, told apart by `facts`."""
    frames = [results.effects.assign(facts=EVERY), results.known.effects]
    frame = pd.concat([one for one in frames if len(one)], ignore_index=True)
    return frame[frame["holds"] == HOLDER]


def _limits(results: Results, scale: str) -> tuple[float, int]:
    """What prints as 0, and the number of decimals."""
    floor = results.floor
    return {
        "D": (floor.zero_limit(results.score), 3),
        "log_odds": (floor.zero_limit_log_odds, 2),
        "share": (floor.zero_limit_share, 2),
    }[scale]


def _cell(row: EffectRow, scale: str, results: Results) -> str:
    """A number with a star when it is marked, and its interval when it has one; ASCII."""
    prefix = "" if scale == "D" else f"{scale}_"
    zero_limit, digits = _limits(results, scale)
    value = text.number(number_of(row, scale), zero_limit, digits) + ("*" if row.get(f"{prefix}marked") else "")
    ends = text.interval(number_of(row, f"{prefix}low"), number_of(row, f"{prefix}high"), zero_limit, digits)
    return f"{value} {ends}".removesuffix(" -")


def _starred(cell: str) -> str:
    return text.minus(cell).replace("*", "\\*")


def _by_axis(results: Results, axis: str) -> list[str]:
    """Scale by group among asked facts that were known; one number with its interval in a cell."""
    asked = list(FACTS)[-1]
    frame = _with_facts(results)
    frame = frame[(frame["facts"] == asked) & frame["axis"].isin((ALL, axis))]
    if not (frame["axis"] == axis).any():
        return []
    cells = {(row["relation"], row["editor"], row["group"]): row for row in records(frame, EffectRow)}
    columns = sort_groups(axis, frame["group"])
    rows = []
    for relation in sort_relations(frame["relation"]):
        for editor in results.editors:
            names = [f"*{text.escape(relation_name(relation))}*", text.escape(editor)]
            found = [cells.get((relation, editor, group)) for group in columns]
            if any(found):
                for scale, head in (("D", "D_d"), ("log_odds", "log-odds"), ("share", "share")):
                    rows.append([*names, head, *(_group_cell(row, scale, results) for row in found)])
    titles = {ALL: "all people", UNKNOWN: "no tag"}
    heads = ("Property", "Method", "Scale", *(titles.get(group, text.escape(group)) for group in columns))
    return [f"### By {axis}, among asked facts that were known", text.markdown_table(heads, rows, left=3)]


def _group_cell(row: EffectRow | None, scale: str, results: Results) -> str:
    if row is None:
        return ""
    parts = [f"{_starred(_cell(row, scale, results))} n={row['n_cases']}", text.no_interval(row)]
    return "<br>".join(filter(None, parts))


def known_accuracy_markdown(results: Results) -> str:
    """Accuracy over all pairs, on three scales, of all and of known facts."""
    frames = [results.accuracy.assign(facts=EVERY), results.known.accuracy]
    frame = pd.concat([one for one in frames if len(one)], ignore_index=True)
    cells = {
        (row["editor"], str(row.get("facts"))): row
        for row in records(frame[frame["edit_relation"] == "all"], AccuracyRow)
    }
    rows = [
        [text.escape(editor), facts, *_accuracy(cells[editor, facts])]
        for editor in results.editors
        for facts in (EVERY, *FACTS)
        if (editor, facts) in cells
    ]
    heads = ("Method", "Facts", "Right before", "after", "Change in points", "Share", "Log-odds", "n")
    table = text.markdown_table(heads, rows, left=2)
    return f"### On three scales, and among known facts\n\n{_ACCURACY}\n\n{table}"


def _accuracy(row: AccuracyRow) -> list[str]:
    shares = [text.percent_interval(*with_limits(row, phase)) for phase in ("pre", "post")]
    points = (100 * row["change"], 100 * row["low"], 100 * row["high"])
    share, log_odds = (with_limits(row, name) for name in ("share", "log_odds"))
    return [*shares, _changed(points, 1), _changed(share, 3), _changed(log_odds, 2), str(row["n"])]


def _changed(change: tuple[float, float, float], digits: int) -> str:
    return text.minus(text.effect(*change, digits=digits))
