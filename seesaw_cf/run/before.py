"""Scores of a run's questions before any edit: of all together, or of one block where all would fill the memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from transformers import PreTrainedTokenizerBase

from seesaw_cf.base.errors import PromptError
from seesaw_cf.base.retrying import Bar
from seesaw_cf.base.types import Case, Cloze, ClozeScore
from seesaw_cf.run.edit_table import MOST_CANDIDATES, Candidates
from seesaw_cf.run.questions import find_indistinct
from seesaw_cf.run.units import Unit
from seesaw_cf.scoring import Scorer
from seesaw_cf.scoring.pre_scores import blocks, pre_scores

MOST_IN_MEMORY = 2**21
"""Questions that are in memory together: more than the published study has."""


class Scores(NamedTuple):
    """Scores before any edit.

    Attributes:
        scores: Of every question, and of the other candidates of the edits.
        indistinct: Answers that no score tells from another answer of their question, with the reason; these have no
            score in `scores` either.
    """

    scores: Mapping[Cloze, ClozeScore]
    indistinct: Mapping[Cloze, ClozeScore]

    def indistinct_of(self, clozes: Iterable[Cloze]) -> dict[Cloze, ClozeScore]:
        """Return those of `clozes` that are indistinct."""
        return {cloze: self.indistinct[cloze] for cloze in clozes if cloze in self.indistinct}


@dataclass(frozen=True)
class ScoresBefore:
    """The scores of a run's questions before any edit.

    Attributes:
        scorer: Scores with the unedited model.
        tokenizer: The model's tokenizer.
        identity: What the scores depend on, see `pre_scores`.
        units: All units of the run.
        candidates: What the true target of each case is ranked among.
        progress: Show progress bars.
    """

    scorer: Scorer
    tokenizer: PreTrainedTokenizerBase
    identity: Mapping[str, object]
    units: Sequence[Unit]
    candidates: Candidates
    progress: bool
    _loaded: dict[int, Scores] = field(default_factory=dict, init=False)  # by the identity of the first unit

    @cached_property
    def fits(self) -> bool:
        """Whether the scores of all questions are in memory together."""
        return sum(_estimate_questions(case) for unit in self.units for case in unit.cases) <= MOST_IN_MEMORY

    def of(self, block: Sequence[Unit]) -> Scores:
        """Return scores of all questions of a block; what is neither in memory nor in the cache is scored.

        Raises:
            PromptError: No question of the run, or of its first block, can be scored.
        """
        units = self.units if self.fits else block
        if (key := id(units[0])) not in self._loaded:
            self._loaded.clear()
            self._loaded[key] = self._score(units)
        return self._loaded[key]

    def parts(self, units: Sequence[Unit]) -> list[list[Cloze]]:
        """Return every question of units, then the other candidates of their edits, in the blocks that are cached."""
        clozes = {q.cloze for unit in units for _, asked in unit.questions() for q in asked}
        cases = (case for unit in units for case in unit.cases)
        more = {cloze for case in cases for cloze in self.candidates.clozes(case)} - clozes
        return blocks(clozes) + blocks(more)

    def _score(self, units: Sequence[Unit]) -> Scores:
        parts = self.parts(units)
        found = pre_scores(self.scorer, parts, self.identity)
        bar = Bar(found, "before any edit: score", len(parts), unit="block", disable=not self.progress)
        scores = {cloze: score for part in bar for cloze, score in part.items()}
        if units[0] is self.units[0] and scores and not any(score.status == "ok" for score in scores.values()):
            why = f"none of the {len(scores):,} questions can be scored, so nothing is edited"
            raise PromptError(f"{why}; ask others, or another model. First: {scores[parts[0][0]].status}")
        cases = (case for unit in units for case in unit.questions())
        indistinct = find_indistinct(self.tokenizer, cases, scores)
        return Scores({**scores, **indistinct}, indistinct)


def _estimate_questions(case: Case) -> int:
    """Return how many questions and candidates of its edit a case has, about: 100,000 cases are counted in a moment."""
    prompts = 1 + len(case.paraphrase_prompts) + len(case.neighborhood_prompts) + len(case.attribute_prompts)
    return 2 * prompts + len(case.effect_prompts) * len(case.candidates) + MOST_CANDIDATES
