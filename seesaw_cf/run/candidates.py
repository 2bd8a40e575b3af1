"""The answers among which an edit's true target is ranked before the edit: a bounded number for each relation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from seesaw_cf.base.types import Case, Cloze

MOST_CANDIDATES = 32
"""Candidates of one edit, its two targets among them. Each costs its own tokens once, before any edit."""


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
        request = case.request
        answers[request.relation_id] |= {request.target_true.label, request.target_new.label}
        true[request.subject, request.relation_id].add(request.target_true.label)
        if case.effect_relation_id is not None:
            answers[case.effect_relation_id].update(case.candidates)
            true[request.subject, case.effect_relation_id].update(case.gold)
    drawn = {name: _drawn(names, seed) for name, names in answers.items() if name}
    return Candidates(drawn, {key: frozenset(names) for key, names in true.items()})


def _drawn(labels: set[str], seed: int) -> tuple[str, ...]:
    names = sorted(label for label in labels if label.strip())
    rng = np.random.default_rng([seed, len(names)])
    return tuple(names[index] for index in rng.permutation(len(names))[:MOST_CANDIDATES])
