"""`edits.parquet`: what became of every edit of a run, and whether the first ones spoil the model."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from seesaw_cf.base.errors import EditError
from seesaw_cf.base.tables import write_table
from seesaw_cf.base.types import Case, Cloze, TableRow
from seesaw_cf.effects.answers import LEAST_LOCAL, knowledge, locality
from seesaw_cf.effects.success import edit_numbers
from seesaw_cf.run.store import Key, Store
from seesaw_cf.stats.simple import above, tolerance

log = logging.getLogger(__name__)

ASKED_ONLY = "asked only"
"""Status of a case that no model is known to be edited for, so that no efficacy is claimed."""
MADE = ("ok", "zero delta", ASKED_ONLY)
"""Statuses of cases that were scored after the edit; an edit of any other status was not made."""
MOST_CANDIDATES = 32
"""Candidates of one edit, its two targets among them. Each costs its own tokens once, before any edit."""

# logprobs: nats of the edit's own prompt. raised: p(target_new) rose. success: p(target_new) > p(target_true) after;
# both by more than the run's noise, see `seesaw_cf.stats.simple`. candidates: answers scored before the edit, the
# true target first, candidates_pre their logprobs; the rest: `seesaw_cf.effects.answers.knowledge` of them.
EDITS: pa.Schema = pa.schema(
    [
        ("editor", pa.string()),
        ("case_id", pa.int64()),
        *(
            (name, pa.string())
            for name in ("relation_id", "effect_relation_id", "subject", "target_true", "target_new")
        ),
        ("status", pa.string()),
        *((name, pa.float64()) for name in ("delta_norm", "new_pre", "true_pre", "new_post", "true_post")),
        ("raised", pa.bool_()),
        ("success", pa.bool_()),
        ("candidates", pa.list_(pa.string())),
        ("candidates_pre", pa.list_(pa.float64())),
        ("n_candidates", pa.int32()),
        ("true_rank", pa.int32()),
        ("true_share", pa.float64()),
        ("known", pa.bool_()),
    ]
)


def write_edits(file: Path, rows: Iterable[TableRow], nats: float = 0.0, schema: pa.Schema = EDITS) -> None:
    """Write the table.

    Args:
        file: Where to.
        rows: Of `EDITS`, without what is decided here: whether the edit raised its target and succeeded, and whether
            its fact was known before.
        nats: Differences up to this are rounding, see `seesaw_cf.stats.simple`; such an edit did neither.
        schema: `EDITS` and what else the rows have.

    Raises:
        StorageError: The disk is full.
    """
    write_table(file, pa.Table.from_pylist([_judged(row, nats) for row in rows], schema))


def _judged(row: dict[str, Any], nats: float) -> TableRow:
    """Return the row with `raised`, `success` (None where a side was not scored) and what was known before the edit."""
    for name, first, second in (("raised", "new_post", "new_pre"), ("success", "new_post", "true_post")):
        left, other = row.get(first), row.get(second)
        row[name] = None if left is None or other is None else bool(above(left, other, nats))
    if not (names := row.get("candidates")):  # no true target
        return row
    logprobs = np.array(row["candidates_pre"], dtype=np.float64)
    return {**row, **knowledge(logprobs, np.array(names) == row["target_true"], nats)}


def check_first_edits(store: Store, keys: Sequence[Key], first: int, ignore_damage: bool) -> None:
    """Stop a run when an editor spoils, by its first edits, what the model knew of other facts.

    Args:
        store: The finished units.
        keys: Of all units of the editor.
        first: How many of them are looked at, when all of these are finished.
        ignore_damage: Warn instead, as is done when no edit of the editor is left to make.

    Raises:
        EditError: See above; what is finished is kept.
    """
    if not all(map(store.has, keys[:first])):
        return
    editor, (tables, facts) = keys[0][0], zip(*map(store.read, keys[:first]), strict=True)
    single = store.manifest.protocol == "single"
    numbers = edit_numbers(pd.DataFrame([row for unit in facts for row in unit["edits"]])) if single else None
    nats, _ = tolerance(asdict(store.manifest))
    counts = locality(pa.concat_tables(tables), numbers, nats).get(editor)
    if counts is None or not counts.collapsed:
        return
    text = f"{editor}: its first {counts.local.n} edits spoil what the model knew of others: {counts}"
    if ignore_damage or all(map(store.has, keys)):
        log.warning("%s.", text)
        return
    raise EditError(
        f"{text}, expected an upper end of at least {LEAST_LOCAL:.0%}. Make smaller steps (learning_rate, clamp or "
        "max_change in --editor-config), take another editor, or repeat the command with "
        "--ignore-damage. What is finished is kept."
    )


@dataclass(frozen=True, slots=True)
class Candidates:
    """What an edit's true target is compared with.

    Attributes:
        by_relation: Relation -> answers that occur for it, at most `MOST_CANDIDATES`.
        true: (subject, relation) -> answers that the records say are true of the subject: no competitors.
    """

    by_relation: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    true: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict)

    def of(self, case: Case) -> tuple[str, ...]:
        """Return the true and the new target of a case, then the other candidates; none when either target is empty."""
        request = case.request
        own = (request.target_true.label, request.target_new.label)
        if not all(label.strip() for label in own):
            return ()
        true_names = {*own, *self.true.get((request.subject, request.relation_id), ())}
        others = (name for name in self.by_relation.get(request.relation_id, ()) if name not in true_names)
        return tuple(dict.fromkeys((*own, *others)))[:MOST_CANDIDATES]

    def clozes(self, case: Case) -> list[Cloze]:
        """Return the edit's own prompt with each of the case's candidates."""
        return [Cloze(case.request.text, name) for name in self.of(case)]


def candidates_of(cases: Iterable[Case], seed: int = 0) -> Candidates:
    """Collect the candidates that records offer.

    An answer of a relation is a target of one of its edits, or a candidate of a cross-property case that asks for it.
    zsRE's questions have no relation in common: there is nothing to take from other records.

    Args:
        cases: All records at hand, so that the candidates do not depend on how many of them are edited.
        seed: Of the draw where a relation has more than `MOST_CANDIDATES`.
    """
    answers: dict[str, set[str]] = defaultdict(set)
    true: dict[tuple[str, str], set[str]] = defaultdict(set)
    for case in cases:
        request, other = case.request, case.effect_relation_id
        answers[request.relation_id] |= {request.target_true.label, request.target_new.label}
        true[request.subject, request.relation_id].add(request.target_true.label)
        if other is not None:
            answers[other].update(case.candidates)
            true[request.subject, other].update(case.gold)
    drawn = {}
    for relation in filter(None, answers):
        names = sorted(label for label in answers[relation] if label.strip())
        places = np.random.default_rng([seed, len(names)]).permutation(len(names))[:MOST_CANDIDATES]
        drawn[relation] = tuple(names[place] for place in places)
    return Candidates(drawn, {key: frozenset(names) for key, names in true.items()})
