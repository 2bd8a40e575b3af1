"""Scores of a run's questions before any edit, of one span of cases at a time: those of all could fill the memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from transformers import PreTrainedTokenizerBase

from seesaw_cf.base.errors import PromptError
from seesaw_cf.base.retrying import Bar
from seesaw_cf.base.types import Case, Cloze, ClozeScore
from seesaw_cf.run.candidates import MOST_CANDIDATES, Candidates
from seesaw_cf.run.questions import MOST_IN_MEMORY, CaseQuestions, Question, find_indistinct, questions
from seesaw_cf.run.requests import Requests
from seesaw_cf.run.units import Unit
from seesaw_cf.scoring import Scorer
from seesaw_cf.scoring.pre_scores import blocks, pre_scores


class SpanScores(NamedTuple):
    """Scores of the questions of a span before any edit: of about `MOST_IN_MEMORY`, or of one task.

    Attributes:
        scores: Of every question, and of the other candidates of the edits.
        indistinct: Answers that no score tells from another answer of their question in some case of the span, with the
            reason; these have no score in `scores` either.
    """

    scores: Mapping[Cloze, ClozeScore]
    indistinct: Mapping[Cloze, ClozeScore]


@dataclass(frozen=True)
class ScoresBefore:
    """The scores of a run's questions before any edit. A question of two spans is scored in each.

    Attributes:
        scorer: Scores with the unedited model.
        tokenizer: The model's tokenizer.
        identity: What the scores depend on, see `pre_scores`.
        edited: What editors edit; nothing without an editor.
        external: What models changed elsewhere are asked about: the same, then more.
        block_size: Units of a task, which are in one span.
        requests: The cases of models changed elsewhere.
        candidates: What the true target of each case is ranked among.
        progress: Show progress bars.
    """

    scorer: Scorer
    tokenizer: PreTrainedTokenizerBase
    identity: Mapping[str, object]
    edited: Sequence[Unit]
    external: Sequence[Unit]
    block_size: int
    requests: Requests
    candidates: Candidates
    progress: bool
    _held: dict[int, SpanScores] = field(default_factory=dict, init=False)

    def of(self, units: Sequence[Unit]) -> SpanScores:
        """Return the scores of the span of a task's units; it stays in memory until another span is asked for.

        What is neither there nor in the cache is scored.

        Args:
            units: Those of a task.

        Raises:
            PromptError: No question of the first span can be scored.
        """
        if (span := self.span(units[0])) not in self._held:
            self._held.clear()
            self._held[span] = self._score(span)
        return self._held[span]

    def span(self, unit: Unit) -> int:
        """Return the number of a unit's span."""
        return self._spans[unit.cases[0].case_id]

    @cached_property
    def _spans(self) -> dict[int, int]:
        """First case of a unit -> span, the same for editors and for models changed elsewhere."""
        spans, asked = dict[int, int](), 0
        for every in (self.edited, self.external):
            for at in range(0, len(every), self.block_size):
                task = {unit.cases[0].case_id: unit for unit in every[at : at + self.block_size]}
                span = next((spans[case] for case in task if case in spans), asked // MOST_IN_MEMORY)
                new = [case for case in task if case not in spans]
                spans.update(dict.fromkeys(new, span))
                asked += sum(_estimate_questions(own) for case in new for own in task[case].cases)
        return spans

    def parts(self, span: int) -> list[list[Cloze]]:
        """Return every question of a span, then the other candidates of its edits, in the blocks that are cached."""
        clozes = {q.cloze for _, qs in self._asked(span) for q in qs}
        cases = (case for unit, _ in self._units(span) for case in unit.cases)
        more = {cloze for case in cases for cloze in self.candidates.clozes(case)} - clozes
        return blocks(clozes) + blocks(more)

    def _units(self, span: int) -> Iterator[tuple[Unit, Callable[[Unit], CaseQuestions]]]:
        """Yield the units of a span, with what makes their questions."""
        for units, ask in ((self.edited, questions_of), (self.external, self.external_questions)):
            yield from ((unit, ask) for unit in units if self.span(unit) == span)

    def _asked(self, span: int) -> Iterator[tuple[Case, Sequence[Question]]]:
        return (case for unit, ask in self._units(span) for case in ask(unit))

    def external_questions(self, unit: Unit) -> CaseQuestions:
        """Return the cases of a unit with the questions for models changed elsewhere."""
        return [(case, self.requests.questions(case)) for case in unit.cases]

    def _score(self, span: int) -> SpanScores:
        parts = self.parts(span)
        found = pre_scores(self.scorer, parts, self.identity)
        bar = Bar(found, "before any edit: score", len(parts), unit="block", disable=not self.progress)
        scores = {cloze: score for part in bar for cloze, score in part.items()}
        if span == 0 and scores and not any(score.status == "ok" for score in scores.values()):
            why = f"none of the {len(scores):,} questions can be scored, so nothing is edited"
            raise PromptError(f"{why}; ask others, or another model. First: {scores[parts[0][0]].status}")
        indistinct = find_indistinct(self.tokenizer, self._asked(span), scores)
        scores.update(indistinct)
        return SpanScores(scores, indistinct)


def _estimate_questions(case: Case) -> int:
    """Return how many questions and candidates of its edit a case has, about: 100,000 cases are counted in a moment."""
    prompts = 1 + len(case.paraphrase_prompts) + len(case.neighborhood_prompts) + len(case.attribute_prompts)
    return 2 * prompts + len(case.effect_prompts) * len(case.candidates) + MOST_CANDIDATES


def questions_of(unit: Unit) -> CaseQuestions:
    """Return the cases of a unit with their questions, made anew each time: those of all units fill the memory."""
    return [(case, list(questions(case))) for case in unit.cases]
