"""Answers that models write to some of a unit's questions: greedily, to their end, before and after the edit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import numpy as np

from seesaw_cf.base.types import Case, Cloze, ClozeScore, TableRow
from seesaw_cf.generation import Ask, Completion, Message, Sampling
from seesaw_cf.models.weights import WeightDelta
from seesaw_cf.records.load import aliases_of
from seesaw_cf.run.edits import Outcome
from seesaw_cf.run.questions import Candidates, Question
from seesaw_cf.run.store import MADE
from seesaw_cf.run.units import Unit
from seesaw_cf.scoring.chat import make_turns

MAX_NEW_TOKENS = 48
"""A text that is longer is not finished, and counted as such."""
SAMPLING = Sampling(max_new_tokens=MAX_NEW_TOKENS, temperature=0)
KINDS = ("efficacy", "paraphrase", "cross_property", "cross_subject")
Scores = Mapping[Cloze, ClozeScore]
Write = Callable[[Sequence[tuple[WeightDelta, Sequence[Ask]]], Sampling], list[list[Completion]]]
"""Writes what is asked of several edited models, such as `HFGenerator.generate_each` does."""


@dataclass(frozen=True)
class FreeQuestion:
    """A question whose answer is written.

    Attributes:
        case: The case that asks it.
        asked: The question with each of its answers.
        is_right: Which of these answers counts as right.
    """

    case: Case
    asked: tuple[Question, ...]
    is_right: tuple[bool, ...]

    def ask(self, context: str = "") -> Ask:
        """Return what a generator is asked; an editor's context stands where it stands when the answers are scored."""
        first = self.asked[0]
        prompt = context + first.prompt.text
        if first.form == "plain":
            return Ask(prompt)
        return Ask(tuple(Message(**turn) for turn in make_turns(prompt, first.form)))

    def row(self, scores: Scores, completion: Completion, others: Sequence[str]) -> TableRow:
        """Return the row of `ANSWERS`, without editor and phase.

        Args:
            scores: Of the answers, by the model that wrote.
            completion: What it wrote.
            others: Other known answers.
        """
        first, known, request = self.asked[0], aliases_of(self.case), self.case.request
        labels = {True: dict[str, None](), False: dict[str, None]()}
        best = {True: (-math.inf, math.nan), False: (-math.inf, math.nan)}  # log p, share of tokens
        for q, is_right in zip(self.asked, self.is_right, strict=True):
            labels[is_right] |= dict.fromkeys(known.get(q.target, (q.target,)))
            score = scores[q.cloze]
            if score.status == "ok":
                share = math.nan if score.n_greedy is None else score.n_greedy / score.n_tokens
                best[is_right] = max(best[is_right], (score.logprob, share))
        right = list(labels[True])
        wrong = [name for name in dict.fromkeys((*labels[False], *others)) if name not in labels[True]]
        both, share = all(math.isfinite(value) for value, _ in best.values()), best[True][1]
        return {
            "form": first.form,
            "kind": first.kind,
            "case_id": self.case.case_id,
            "prompt_id": first.prompt_id,
            "edit_relation": request.relation_id,
            "effect_relation": self.case.effect_relation_id if first.kind == "cross_property" else request.relation_id,
            "subject_id": first.prompt.subject.id,
            "subject": first.prompt.subject.label,
            "holds": first.prompt.holds,
            "prompt": first.prompt.text,
            "right": right,
            "wrong": wrong,
            "likelier": best[True][0] > best[False][0] if both else None,
            "first_choice": None if math.isnan(share) else share,
            **{name: getattr(completion, name) for name in ("text", "finish", "status", "new_tokens")},
        }


@dataclass
class FreeAnswers:
    """What models write in a run, and what the unedited model writes to the questions of one block.

    Attributes:
        base: Writes with the unedited model.
        number: Most questions of each form and kind of a unit.
        seed: Of the draw of questions.
        among: Further known answers.
    """

    base: Write
    number: int
    seed: int
    among: Candidates
    _texts: dict[Ask, Completion] = field(default_factory=dict)

    def rows(
        self, write: Write, units: Sequence[Unit], outcomes: Sequence[Outcome], before: Scores
    ) -> Iterator[list[TableRow]]:
        """Yield for each unit the rows of its answers before and after the edit; all edited models write at once.

        Args:
            write: Writes with models of these changes.
            units: What is asked.
            outcomes: The changes, and the scores after them.
            before: Scores before any edit.
        """
        drawn = [free_questions(unit, self.number, self.seed, before) for unit in units]
        asks = list(dict.fromkeys(q.ask() for own in drawn for q in own))
        if asks != list(self._texts):  # all of a block in one go: the same bytes whatever was written before
            self._texts = dict(zip(asks, *self.base([(WeightDelta(), asks)], SAMPLING), strict=True))
        jobs, made = [], []
        for outcome, own in zip(outcomes, drawn, strict=True):
            made.append([q for q in own if outcome.scores and outcome.status.get(q.case.case_id, "ok") in MADE])
            delta = outcome.delta or WeightDelta()
            jobs.append((replace(delta, context=""), [q.ask(delta.context) for q in made[-1]]))
        for unit, outcome, own, texts in zip(units, outcomes, made, write(jobs, SAMPLING), strict=True):
            rows, edits = list[TableRow](), {case.request: case.case_id for case in reversed(unit.cases)}
            for question, text in zip(own, texts, strict=True):
                others = self.among.of(question.case) if question.asked[0].kind != "cross_property" else ()
                names = unit.labels | {"edit": edits[question.case.request]}
                first = question.row(before, self._texts[question.ask()], others)
                rows += [names | {"phase": "pre"} | first]
                rows += [names | {"phase": "post"} | question.row(outcome.scores, text, others)]
            yield rows


def free_questions(unit: Unit, number: int, seed: int, before: Scores) -> list[FreeQuestion]:
    """Return at most so many questions of each form and kind of a unit, the same in every form.

    Args:
        unit: The unit.
        number: How many: questions with a known right answer that can be scored, each text once.
        seed: Of the draw.
        before: Scores before any edit.
    """
    found: dict[tuple[str, str], dict[str, FreeQuestion]] = {}
    for case, asked in unit.questions():
        for (form, kind, _), group in groupby(asked, key=lambda q: (q.form, q.kind, q.prompt_id)):
            own = tuple(q for q in group if before[q.cloze].status == "ok")
            is_right = tuple(map(_is_right, own))
            if kind in KINDS and any(is_right):
                question = FreeQuestion(case, own, is_right)
                found.setdefault((form, kind), {}).setdefault(own[0].prompt.text, question)
    return [question for own in found.values() for question in _drawn(list(own.values()), number, seed)]


def _is_right(question: Question) -> bool:
    if question.kind == "cross_property":
        return question.gold
    return question.role == (question.prompt.holds if question.kind == "cross_subject" else "target_new")


def _drawn(questions: Sequence[FreeQuestion], number: int, seed: int) -> list[FreeQuestion]:
    places = np.random.default_rng([seed, len(questions)]).permutation(len(questions))[:number]
    return [questions[place] for place in sorted(places)]
