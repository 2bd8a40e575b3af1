"""One edit, from request to restored weights; an edit that did nothing is shown, not hidden."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.checks import instance
from seesaw_cf.base.errors import EditError, PromptError
from seesaw_cf.base.types import Case, Cloze, ClozeScore, EditRequest, TableRow
from seesaw_cf.editors.contract import state_of
from seesaw_cf.models.editor import Editor, EditsEach
from seesaw_cf.models.weights import WeightDelta, checksum, parameter_hashes
from seesaw_cf.run.edit_table import MADE, Candidates
from seesaw_cf.run.questions import CaseQuestions, Question
from seesaw_cf.run.units import Unit
from seesaw_cf.scoring import Scorer, score_each


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the change of a model led to in one unit.

    Attributes:
        scores: Score of every question after the change; unscorable when no edit was made.
        status: Case number -> "ok", "zero delta", "asked only", "non-finite delta" or "refused: ...".
        delta_norm: Frobenius norm over all changed parameters; NaN when unknown.
        delta: The edit itself; None when it was refused or not finite, and of a model changed elsewhere.
    """

    scores: Mapping[Cloze, ClozeScore]
    status: Mapping[int, str]
    delta_norm: float
    delta: WeightDelta | None = None

    def after(self, case: Case, asked: Sequence[Question]) -> dict[Cloze, ClozeScore]:
        """Return the scores of a case's questions after the change: none when the case's own edit was not made."""
        status = self.status.get(case.case_id, "ok")
        if status in MADE:
            return {q.cloze: self.scores[q.cloze] for q in asked}
        return dict.fromkeys((q.cloze for q in asked), ClozeScore(math.nan, 0, False, status))

    def edit_rows(
        self, editor: str, cases: CaseQuestions, before: Mapping[Cloze, ClozeScore], candidates: Candidates
    ) -> list[TableRow]:
        """Return one row of `EDITS` for each case, without what `write_edits` decides by the run's noise.

        Args:
            editor: Its name.
            cases: The cases of the unit with their questions.
            before: Scores before any edit, of the candidates too.
            candidates: What the true target is ranked among.
        """
        rows: list[TableRow] = []
        for case, asked in cases:
            own = {q.role: q.cloze for q in asked if q.kind == "efficacy"}
            new_pre, true_pre, new_post, true_post = (
                _logprob(table[own[role]]) if role in own else None
                for table in (before, self.after(case, asked))
                for role in ("target_new", "target_true")
            )
            rows.append(
                {
                    "editor": editor,
                    "case_id": case.case_id,
                    "relation_id": case.request.relation_id,
                    "effect_relation_id": case.effect_relation_id,
                    "subject": case.request.subject,
                    "target_true": case.request.target_true.label,
                    "target_new": case.request.target_new.label,
                    "status": self.status[case.case_id],
                    "delta_norm": None if math.isnan(self.delta_norm) else self.delta_norm,
                    "new_pre": new_pre,
                    "true_pre": true_pre,
                    "new_post": new_post,
                    "true_post": true_post,
                    "candidates": list(candidates.of(case)),
                    "candidates_pre": [_logprob(before[cloze]) for cloze in candidates.clozes(case)],
                }
            )
        return rows


@dataclass(frozen=True, slots=True)
class UnitEdit:
    """The edit of one unit.

    Attributes:
        delta: None when it was refused or not finite.
        status: What became of each of its cases.
        zero: The delta changes nothing, so the edited model is the model as it was.
    """

    delta: WeightDelta | None
    status: Mapping[int, str]
    zero: bool = False


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


@contextlib.contextmanager
def no_exit(editor: Editor) -> Iterator[None]:
    """Make it an error of an editor that it ends the program.

    Raises:
        EditError: It called `sys.exit`.
    """
    try:
        yield
    except SystemExit as error:
        raise EditError(
            f"{type(editor).__name__}: it ended the program (sys.exit({error.code!r})), expected an edit or an "
            "exception. Correct it."
        ) from error


def edit_units(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, editor: Editor, groups: Sequence[Sequence[Case]]
) -> list[UnitEdit]:
    """Make one delta for each group of cases; the model is untouched.

    Groups of one request go through the editor's `edit_each` when it has one, which optimises them together. Of two
    cases of a group that contradict each other the first is edited; cases of one request are edited once.

    Args:
        model: The unedited model.
        tokenizer: Its tokenizer.
        editor: A fitted editor.
        groups: Cases that are edited together; the result depends on the groups given, not on what ran before.
    """
    plans = [_consistent(cases) for cases in groups]
    requests = [_requests(group) for group, _ in plans]
    with no_exit(editor):
        if isinstance(editor, EditsEach) and len(plans) > 1 and all(len(own) == 1 for own in requests):
            # One request that cannot be edited must not take the others with it: then each is tried alone, below.
            with contextlib.suppress(EditError, PromptError):
                deltas = editor.edit_each(model, tokenizer, [own for (own,) in requests])
                return [_checked(delta, status) for delta, (_, status) in zip(deltas, plans, strict=True)]
        return [_edit_one(model, tokenizer, editor, group, status) for group, status in plans]


def _edit_one(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    editor: Editor,
    cases: Sequence[Case],
    status: dict[int, str],
) -> UnitEdit:
    try:
        return _checked(editor.edit(model, tokenizer, _requests(cases)), status)
    except (EditError, PromptError) as error:
        return UnitEdit(None, {**status, **{case.case_id: f"refused: {error}" for case in cases}})


def _requests(cases: Sequence[Case]) -> list[EditRequest]:
    return list(dict.fromkeys(case.request for case in cases))


def _checked(delta: WeightDelta, status: Mapping[int, str]) -> UnitEdit:
    """Check the delta itself: one that is not finite is dropped, one that is zero is kept and marked."""
    instance(
        "edit: what the editor returned",
        delta,
        WeightDelta,
        "a WeightDelta; `seesaw-cf check` says which of its promises an editor breaks",
    )
    finite, zero = delta.is_finite(), delta.is_zero()
    verdict = "non-finite delta" if not finite else "zero delta" if zero else "ok"
    status = {case_id: verdict if text == "ok" else text for case_id, text in status.items()}
    return UnitEdit(delta if finite else None, status, zero and finite)


def score_edits(
    model: PreTrainedModel,
    scorer: Scorer,
    edits: Sequence[UnitEdit],
    units: Sequence[Unit],
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
        units: What is asked.
        before: Scores before any edit of every question of `units`.
        hashes: `parameter_hashes(model, hash_of=checksum)` before any edit.

    Raises:
        EditError: The weights after the edits are not those from before.
    """
    asked = [_moved(edit.delta, unit) for edit, unit in zip(edits, units, strict=True)]
    jobs = [
        (edit.delta, list(clozes.values()))
        for edit, clozes in zip(edits, asked, strict=True)
        if edit.delta is not None and not edit.zero
    ]
    scores = iter(score_each(scorer, model, jobs))
    _check_restored(model, {name for delta, _ in jobs for name in delta.updates}, hashes)
    return [_outcome(edit, clozes, before, scores) for edit, clozes in zip(edits, asked, strict=True)]


def _moved(delta: WeightDelta | None, unit: Unit) -> dict[Cloze, Cloze]:
    """Map every distinct question to the one asked in its place, which begins with the delta's text."""
    context = delta.context if delta else ""
    clozes = dict.fromkeys(q.cloze for _, asked in unit.questions() for q in asked)
    return {cloze: Cloze(context + cloze.context, cloze.target) for cloze in clozes}


def _outcome(
    edit: UnitEdit,
    clozes: Mapping[Cloze, Cloze],
    before: Mapping[Cloze, ClozeScore],
    scores: Iterator[list[ClozeScore]],
) -> Outcome:
    """Take the next list of scores, unless nothing was scored for want of a delta that changes something."""
    if edit.delta is None:
        refused = ClozeScore(math.nan, 0, False, next(iter(edit.status.values())))
        return Outcome(dict.fromkeys(clozes, refused), edit.status, math.nan)
    if edit.zero:
        return Outcome({cloze: before[cloze] for cloze in clozes}, edit.status, 0.0, edit.delta)
    norm = math.sqrt(sum(value**2 for value in edit.delta.norms().values()))
    return Outcome(dict(zip(clozes, next(scores), strict=True)), edit.status, norm, edit.delta)


def _consistent(cases: Sequence[Case]) -> tuple[list[Case], dict[int, str]]:
    """Drop cases that ask another target for a fact already in the batch; say which case they contradict."""
    first: dict[tuple[str, str], Case] = {}
    consistent, status = [], {}
    for case in cases:
        earlier = first.setdefault((case.request.subject, case.request.relation_id), case)
        if earlier.request.target_new.label == case.request.target_new.label:
            consistent.append(case)
            status[case.case_id] = "ok"
        else:
            status[case.case_id] = f"refused: contradicts case {earlier.case_id} of the same batch"
    return consistent, status


def _check_restored(model: PreTrainedModel, names: Collection[str], hashes: Mapping[str, str]) -> None:
    now = parameter_hashes(model, names, checksum)
    changed = [name for name, value in now.items() if hashes[name] != value]
    if changed:
        raise EditError(
            f"the weights {changed} are not the same bytes as before the edit: an editor wrote to the model outside "
            "its delta. Nothing scored since the last shard can be trusted; run again with a correct editor."
        )


def _logprob(score: ClozeScore) -> float | None:
    return score.logprob if score.status == "ok" else None
