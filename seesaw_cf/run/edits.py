"""Scores before any edit; then one edit, from request to restored weights. An edit that did nothing is shown."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.checks import instance
from seesaw_cf.base.errors import EditError, PromptError
from seesaw_cf.base.retrying import Bar
from seesaw_cf.base.types import Case, Cloze, ClozeScore, EditRequest, TableRow
from seesaw_cf.editors.contract import state_of
from seesaw_cf.models.editor import Editor, EditsEach
from seesaw_cf.models.weights import WeightDelta, checksum, parameter_hashes
from seesaw_cf.run.questions import (
    MOST_CANDIDATES,
    MOST_IN_MEMORY,
    Candidates,
    CaseRows,
    case_rows,
    count_questions,
    find_indistinct,
)
from seesaw_cf.run.store import EDITS, MADE
from seesaw_cf.run.units import Unit
from seesaw_cf.scoring import Scorer, score_each
from seesaw_cf.scoring.pre_scores import blocks, pre_scores


@dataclass(frozen=True)
class Scores:
    """Scores before any edit.

    Attributes:
        scores: Of every question, and of the other candidates of the edits.
        indistinct: Answers that no score tells from another answer of their question, with the reason; these have no
            score in `scores` either.
    """

    scores: Mapping[Cloze, ClozeScore]
    indistinct: Mapping[Cloze, ClozeScore]
    # by the identity of the case, and how it is asked
    _rows: dict[tuple[int, int], CaseRows] = field(default_factory=dict, init=False, compare=False)

    def rows(self, block: Sequence[Unit]) -> list[list[CaseRows]]:
        """Return the rows of each unit as far as they are known, made once for all editors, and for all states that
        ask about the same cases."""
        cases = [list(zip(unit.all_cases, _keys(unit))) for unit in block]
        if not any(key in self._rows for own in cases for _, key in own):
            self._rows.clear()
        for unit, own in zip(block, cases, strict=True):
            for case, key in own:
                if key not in self._rows:
                    self._rows[key] = case_rows(case, unit.questions_of(case), self.scores)
        return [[self._rows[key] for _, key in own] for own in cases]


def _keys(unit: Unit) -> list[tuple[int, int]]:
    own: list[tuple[int, int]] = [(id(case), case.case_id in unit.asked_only) for case in unit.cases]
    # the case of probes is made anew each time
    return [*own, (id(unit.cases[0]), id(unit.probes))] if unit.probes else own


@dataclass(frozen=True)
class ScoresBefore:
    """The scores of a run's questions before any edit: of all, or of one block where all would fill the memory.

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
        forms = max((sum(not kinds for kinds in unit.forms.values()) for unit in self.units), default=1)
        cases = (case for unit in self.units for case in unit.cases)
        return forms * sum(count_questions(case) + MOST_CANDIDATES for case in cases) <= MOST_IN_MEMORY

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
        asked = (q.cloze for unit in units for _, own in unit.questions() for q in own if q.kind != "text")
        if units[0] is self.units[0] and scores and not any(scores[cloze].status == "ok" for cloze in asked):
            first = next(score.status for score in scores.values() if score.status != "ok")
            why = f"none of the {len(scores):,} questions can be scored, so nothing is edited"
            raise PromptError(f"{why}; ask others, or another model. First: {first}")
        cases = (case for unit in units for case in unit.questions())
        indistinct = find_indistinct(self.tokenizer, cases, scores)
        return Scores({**scores, **indistinct}, indistinct)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The change of a model in one unit, and what it led to.

    Attributes:
        status: Case number -> "ok", "zero delta", "asked only", "non-finite delta" or "refused: ...".
        delta: The edit itself; None when it was refused or not finite, and of a model changed elsewhere.
        norm: Frobenius norm over all changed parameters; NaN when unknown.
        scores: Score of every question after the change; {} when no edit was made.
        steps: Case number -> norm of its own step, NaN where it was not made, of edits made one after another. What is
            asked about a case whose edit was refused is scored there all the same.
    """

    status: Mapping[int, str]
    delta: WeightDelta | None = None
    norm: float = math.nan
    scores: Mapping[Cloze, ClozeScore] = field(default_factory=dict)
    steps: Mapping[int, float] = field(default_factory=dict)

    @property
    def is_zero(self) -> bool:
        """The delta changes nothing, so the edited model is the model as it was."""
        return "zero delta" in self.status.values() and "ok" not in self.status.values()

    def after(self, rows: CaseRows) -> Mapping[Cloze, ClozeScore]:
        """Return the scores of a case's questions after the change: none when the case's own edit was not made."""
        status = self.status.get(rows.case.case_id, "ok" if self.scores else next(iter(self.status.values())))
        none = ClozeScore(math.nan, 0, False, status)
        return self.scores if status in MADE or self.steps else dict.fromkeys(rows.clozes, none)

    def edit_row(self, editor: str, rows: CaseRows, among: Candidates) -> TableRow:
        """Return the row of `EDITS` of a case, without what `write_edits` decides by the run's noise.

        Args:
            editor: Its name.
            rows: Of a case of the unit, with the scores of the candidates too.
            among: What the true target is ranked among.
        """
        case, asked, before = rows.case, rows.asked, rows.before
        form = next((q.form for q in asked), None)
        own = {q.role: q.cloze for q in asked if q.kind == "efficacy" and q.form == form}
        sides, request = (own.get("target_new"), own.get("target_true")), case.request
        known = [_logprob(table[side]) if side else None for table in (before, self.after(rows)) for side in sides]
        targets = (request.target_true.label, request.target_new.label)
        about = (request.relation_id, case.effect_relation_id, request.subject, *targets, self.status[case.case_id])
        norm = self.steps.get(case.case_id, math.nan) if self.steps else self.norm
        row = dict(zip(EDITS.names, (editor, case.case_id, *about, None if math.isnan(norm) else norm, *known)))
        logprobs = [_logprob(before[cloze]) for cloze in among.clozes(case)]
        return {**row, "candidates": list(among.of(case)), "candidates_pre": logprobs, "form": form}


def _logprob(score: ClozeScore) -> float | None:
    return score.logprob if score.status == "ok" else None


@contextlib.contextmanager
def no_side_effects(editor: str, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Iterator[None]:
    """Refuse edits, made inside the block, that changed more of the model than its weights, or the tokenizer.

    Raises:
        EditError: Names what changed.
    """
    before = state_of(model, tokenizer)
    yield
    after = state_of(model, tokenizer)
    if changed := [part for part, value in before.items() if value != after[part]]:
        raise EditError(
            f"{editor}: its first edit left other {', '.join(changed)} than before, so what is scored afterwards is "
            "another model. Correct the editor; `seesaw-cf check` says what an edit must leave as it was."
        )


def edit_units(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, editor: Editor, groups: Sequence[Sequence[Case]]
) -> list[Outcome]:
    """Make one delta for each group of cases; the model is untouched, and nothing is scored yet.

    Groups of one request go through the editor's `edit_each` when it has one, which optimises them together. Of two
    cases of a group that contradict each other the first is edited; cases of one request are edited once.

    Args:
        model: The unedited model.
        tokenizer: Its tokenizer.
        editor: A fitted editor.
        groups: Cases that are edited together; the result depends on the groups given, not on what ran before.
    """
    plans = [consistent(cases) for cases in groups]
    if isinstance(editor, EditsEach) and len(plans) > 1 and all(len(requests) == 1 for requests, _ in plans):
        # One request that cannot be edited must not take the others with it: then each is tried alone, below.
        with contextlib.suppress(EditError, PromptError):
            deltas = editor.edit_each(model, tokenizer, [request for (request,), _ in plans])
            return [_checked(delta, status) for delta, (_, status) in zip(deltas, plans, strict=True)]
    outcomes = []
    for requests, status in plans:
        try:
            outcomes.append(_checked(editor.edit(model, tokenizer, requests), status))
        except (EditError, PromptError) as error:
            refused = f"refused: {error}"
            outcomes.append(Outcome({case: refused if text == "ok" else text for case, text in status.items()}))
    return outcomes


def consistent(cases: Sequence[Case]) -> tuple[list[EditRequest], dict[int, str]]:
    """Drop cases that ask another target for a fact already in the batch; say which case they contradict."""
    first: dict[tuple[str, str], Case] = {}
    requests, status = dict[EditRequest, None](), {}
    for case in cases:
        earlier = first.setdefault((case.request.subject, case.request.relation_id), case)
        if earlier.request.target_new.label == case.request.target_new.label:
            requests[case.request] = None
            status[case.case_id] = "ok"
        else:
            status[case.case_id] = f"refused: contradicts case {earlier.case_id} of the same batch"
    return list(requests), status


def _checked(delta: WeightDelta, status: Mapping[int, str]) -> Outcome:
    """Check the delta itself: one that is not finite is dropped, one that is zero is kept and marked."""
    remedy = "a WeightDelta; `seesaw-cf check` says which of its promises an editor breaks"
    instance("edit: what the editor returned", delta, WeightDelta, remedy)
    finite = delta.is_finite()
    verdict = "non-finite delta" if not finite else "zero delta" if delta.is_zero() else "ok"
    status = {case_id: verdict if text == "ok" else text for case_id, text in status.items()}
    norm = math.sqrt(sum(norm**2 for norm in delta.norms().values())) if finite else math.nan
    return Outcome(status, delta if finite else None, norm)


def score_edits(
    model: PreTrainedModel,
    scorer: Scorer,
    edits: Sequence[Outcome],
    asked: Sequence[Sequence[Cloze]],
    before: Mapping[Cloze, ClozeScore],
    hashes: Mapping[str, str],
) -> list[Outcome]:
    """Score every question of each edit with its own edited model, then check that the weights are the same bytes.

    Low-rank edits are scored in one batch where that is cheaper, see `seesaw_cf.scoring.score_each`. An edit that
    changes nothing is not scored: its scores are those from before, to the last bit.

    Args:
        model: The model; unchanged afterwards.
        scorer: Scores with `model`.
        edits: One edit for each unit.
        asked: The distinct questions of each unit.
        before: Scores of all of them before any edit.
        hashes: `parameter_hashes(model, hash_of=checksum)` before any edit.

    Raises:
        EditError: The weights after the edits are not those from before.
    """
    jobs = [
        (edit.delta, _behind(edit.delta.context, clozes))
        for edit, clozes in zip(edits, asked, strict=True)
        if edit.delta is not None and not edit.is_zero
    ]
    scores = iter(score_each(scorer, model, jobs, keep=True))
    now = parameter_hashes(model, {name for delta, _ in jobs for name in delta.updates}, checksum)
    if changed := [name for name, value in now.items() if hashes[name] != value]:
        raise EditError(
            f"the weights {changed} are not the same bytes as before the edit: an editor wrote to the model outside "
            "its delta. Nothing scored since the last shard can be trusted; run again with a correct editor."
        )
    outcomes = []
    for edit, clozes in zip(edits, asked, strict=True):
        own = [] if edit.delta is None else [before[cloze] for cloze in clozes] if edit.is_zero else next(scores)
        outcomes.append(replace(edit, scores=dict(zip(clozes, own))))
    return outcomes


def _behind(text: str, clozes: Sequence[Cloze]) -> Sequence[Cloze]:
    """Return clozes with a text before each of them."""
    return [cloze._replace(context=text + cloze.context) for cloze in clozes] if text else clozes


def distinct(*units: Unit) -> Iterable[Cloze]:
    """Return the distinct questions of units, in their order."""
    return dict.fromkeys(q.cloze for unit in units for _, asked in unit.questions() for q in asked)
