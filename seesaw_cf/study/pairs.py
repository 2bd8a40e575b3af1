"""Differences between editors, models and protocols, on the cases that both were scored on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations

import pandas as pd
import pyarrow as pa

from seesaw_cf.base.tables import SCORES, read_table
from seesaw_cf.base.types import Estimate, TableRow
from seesaw_cf.effects.accuracy import answers, mark, paired_shares
from seesaw_cf.effects.audit import AuditSettings
from seesaw_cf.effects.estimands import estimate_groups
from seesaw_cf.effects.groups import ALL, clusters_of
from seesaw_cf.effects.prompts import prompt_effects
from seesaw_cf.effects.success import edit_numbers
from seesaw_cf.report.audit import paired_differences
from seesaw_cf.report.rows import rows_of
from seesaw_cf.stats import adjust_families
from seesaw_cf.stats.case_means import case_mean
from seesaw_cf.stats.simple import above, tolerance
from seesaw_cf.study.members import NAMES, ComparedEditor, varying

FAMILY = ("first", "second", "measure")
_CASE = ["case_id", "relation_id", "effect_relation_id", "subject", "target_true", "target_new"]
_PROMPT = ["kind", "case_id", "prompt_id", "edit_relation", "prompt", "target_new", "target_true"]
_SIDES = ("first", "second")
_BATCH = dict.fromkeys(("low", "high", "p"), float("nan")) | {"note": "the cases of a batch are one edit"}
_SHARES = {"paraphrase": ("post_new", "post_true"), "neighborhood": ("post_true", "post_new")}


def pairs_of(lines: Sequence[ComparedEditor], *, every: bool = False) -> list[tuple[ComparedEditor, ComparedEditor]]:
    """Return the pairs of lines to compare: those that differ in one name only.

    Args:
        lines: Of a comparison, without controls.
        every: All, where none differs in one name only.
    """
    pairs = list(combinations(lines, 2))
    near = [pair for pair in pairs if sum(a != b for a, b in zip(pair[0].key, pair[1].key)) == 1]
    return near or (pairs if every else [])


def label_of(line: ComparedEditor, lines: Sequence[ComparedEditor]) -> str:
    """Return the names of a line that are not the same in all lines, joined as in the name of its cell."""
    mark = ", " if any("/" in name for other in lines for name in other.key) else "/"  # models may be Hub ids
    return mark.join(line.names[name] for name in varying(lines)) or line.key[-1]


def differences(
    pairs: Sequence[tuple[ComparedEditor, ComparedEditor]], lines: Sequence[ComparedEditor], settings: AuditSettings
) -> pd.DataFrame:
    """Return first minus second of every pair, on shared cases.

    Args:
        pairs: What is compared.
        lines: Of the comparison, for the labels.
        settings: The correction, over the relations and groups of each measure of a pair.

    Returns:
        One row for each pair, measure, relation, axis and group: `differs` (in which name), `first`, `second`,
        `measure` ("D", "log-odds", "efficacy", "paraphrase", "neighbourhood", "accuracy"), `value` with `low`, `high`,
        `p`, `n` and `note`, and the columns of `seesaw_cf.stats.adjust_families`. Empty when nothing is shared.
    """
    rows = []
    for first, second in pairs:
        kinds = [name for name, a, b in zip(NAMES, first.key, second.key) if a != b]
        names = {"differs": " and ".join(kinds), "first": label_of(first, lines), "second": label_of(second, lines)}
        rows += [names | row for row in _pair(first, second, settings)]
    return adjust_families(pd.DataFrame(rows), FAMILY, settings.correction) if rows else pd.DataFrame()


def _pair(first: ComparedEditor, second: ComparedEditor, settings: AuditSettings) -> list[TableRow]:
    """Return the rows of two lines, without their names."""
    batch = "batch" in (first.member.protocol, second.member.protocol)
    shares = [*_shares(first, second), *_efficacy(first, second), *_accuracy(first, second)]
    return [*_effects(first, second, settings), *(row | (_BATCH if batch else {}) for row in shares)]


def _own_scores(line: ComparedEditor, kind: str) -> pa.Table:
    chosen = [("kind", "==", kind), ("editor", "==", line.name)]
    return read_table(line.member.folder / "scores.parquet", SCORES, filters=chosen)


def prompts_of(line: ComparedEditor, kind: str = "cross_subject") -> pd.DataFrame:
    """Return rows of `seesaw_cf.effects.prompt_effects` of a line; empty where nothing of this kind was asked.

    Args:
        line: An editor of a run.
        kind: Of prompts.
    """
    table, results = _own_scores(line, kind), line.member.results
    nats, _ = tolerance(results.manifest)
    return prompt_effects(table, score=results.score, kind=kind, nats=nats) if table.num_rows else pd.DataFrame()


def _edits(line: ComparedEditor, *, once: bool = False) -> pd.DataFrame:
    """Return the line's rows of the edit table; `once`: a row for each edit, also where several cases ask about it."""
    edits = line.member.results.distinct if once else line.member.results.edits
    return edits[edits["editor"] == line.name]


def _shared(first: ComparedEditor, second: ComparedEditor, kind: str) -> list[pd.DataFrame]:
    """Return both lines' prompts on the same question under the same edit, in one order; empty where there is none."""
    cases = _edits(first)[_CASE].merge(_edits(second)[_CASE])["case_id"]
    frames = [prompts_of(line, kind) for line in (first, second)]
    if not all(map(len, frames)):
        return [pd.DataFrame(), pd.DataFrame()]
    keys = frames[0][_PROMPT].merge(frames[1][_PROMPT])
    keys = keys[keys["case_id"].isin(cases)]
    return [keys.merge(frame, on=_PROMPT, how="left") for frame in frames]


def _effects(first: ComparedEditor, second: ComparedEditor, settings: AuditSettings) -> Iterator[TableRow]:
    """Yield paired differences in D of other people, in probability and in log-odds, by group."""
    frames = [frame.assign(editor=side) for side, frame in zip(_SIDES, _shared(first, second, "cross_subject"))]
    prompts = pd.concat(frames, ignore_index=True)
    if "D" not in prompts or (prompts["holds"] == "target_new").sum() == 0:
        return
    estimates = partial(estimate_groups, clusters=clusters_of(first.member.protocol, second.member.protocol))
    table = paired_differences(prompts, [_SIDES], _SIDES, settings, estimates)
    for row in rows_of(table):
        key = {str(name): row[name] for name in ("relation", "axis", "group")}
        n = {"n": row["n"], "n_cases": row["clusters"].get("edit", 0), "note": row["note"]}
        yield {"measure": "D"} | key | {name: row[name] for name in ("value", "low", "high", "p")} | n
        scale = {"value": row["log_odds"]} | {name: row[f"log_odds_{name}"] for name in ("low", "high", "p")}
        yield {"measure": "log-odds"} | key | scale | n


def _shares(first: ComparedEditor, second: ComparedEditor) -> Iterator[TableRow]:
    """Yield paired differences in how often the wanted target wins: the new in paraphrases, the true in neighbours."""
    numbers = edit_numbers(_edits(first))
    for kind, (wins, loses) in _SHARES.items():
        frames = _shared(first, second, kind)
        if not len(frames[0]):
            continue
        usable = (frames[0]["status"] == "ok") & (frames[1]["status"] == "ok")
        won = []
        for line, frame in zip((first, second), frames):
            nats, _ = tolerance(line.member.results.manifest)
            won.append(above(frame[wins], frame[loses], nats).astype(float))
        edits = [numbers[first.name, case] for case in frames[0]["case_id"]]
        rows = frames[0].assign(change=won[0] - won[1], edit=edits)[usable.to_numpy()]
        for relation, part in _by_relation(rows, "edit_relation"):
            mean = case_mean(part["change"], part["edit"])
            name = "neighbourhood" if kind == "neighborhood" else kind
            yield _all_people(name, relation) | dict(mean)


def _by_relation(rows: pd.DataFrame, column: str) -> Iterator[tuple[str, pd.DataFrame]]:
    for relation, part in rows.groupby(column, sort=True):
        yield str(relation), part
    if len(rows):
        yield ALL, rows


def _all_people(measure: str, relation: str) -> TableRow:
    return {"measure": measure, "relation": relation, "axis": ALL, "group": ALL}


def _efficacy(first: ComparedEditor, second: ComparedEditor) -> Iterator[TableRow]:
    """Yield paired differences in efficacy: edits after which the new target is likelier than the true one."""
    rows = _edits(first, once=True).merge(_edits(second), on=_CASE, suffixes=("_first", "_second"))
    rows = rows[rows["success_first"].notna() & rows["success_second"].notna()].assign(person=rows["subject"])
    for relation, part in _by_relation(rows, "relation_id"):
        sides = (part[f"success_{side}"].to_numpy(bool) for side in ("second", "first"))
        yield _all_people("efficacy", relation) | _row(paired_shares(part, *sides), len(part))


def _accuracy(first: ComparedEditor, second: ComparedEditor) -> Iterator[TableRow]:
    """Yield paired differences in accuracy: cases with the other property still right after the edit."""
    frames = []
    for line in (first, second):
        table = _own_scores(line, "cross_property")
        if not table.num_rows:
            return
        marked = mark(answers(table), nats=tolerance(line.member.results.manifest)[0])
        frames.append(marked[marked["status"].isin(("ok", "unanswerable"))])
    keys = ["case_id", "edit_relation", "effect_relation", "prompt_pre"]
    cases = _edits(first)[_CASE].merge(_edits(second)[_CASE])["case_id"]
    rows = frames[0].merge(frames[1][[*keys, "post_correct"]], on=keys, suffixes=("_first", "_second"))
    rows = rows[rows["case_id"].isin(cases)]
    named = rows.assign(pair=rows["edit_relation"] + "/" + rows["effect_relation"])
    for pair, part in _by_relation(named, "pair"):
        sides = (part[f"post_correct_{side}"].to_numpy(bool) for side in ("second", "first"))
        yield _all_people("accuracy", pair) | _row(paired_shares(part, *sides), len(part))


def _row(estimate: Estimate, n: int) -> TableRow:
    return estimate.columns("value", "low", "high", "p") | {"n": n, "n_cases": n, "note": estimate.note}
