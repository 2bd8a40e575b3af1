"""One edit, from request to restored weights, and the efficacy gate: an edit that did nothing is shown, not hidden."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.errors import EditError, PromptError
from seesaw_cf.questions import Question
from seesaw_cf.scoring import Scorer
from seesaw_cf.types import Case, Cloze, ClozeScore
from seesaw_cf.weights import Editor, WeightDelta, applied, parameter_hashes

__all__ = ["Outcome", "edit_and_score"]

Asked = Sequence[tuple[Case, Sequence[Question]]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an edit of one unit led to.

    Attributes:
        scores: Score of every question after the edit; unscorable when the edit was refused.
        status: Case number -> "ok", "zero delta", "non-finite delta" or "refused: ...".
        delta_norm: Frobenius norm over all changed parameters; NaN without a delta.
        delta: The edit itself; None when it was refused or not finite.
    """

    scores: Mapping[Cloze, ClozeScore]
    status: Mapping[int, str]
    delta_norm: float
    delta: WeightDelta | None = None

    def edit_rows(self, editor: str, asked: Asked, before: Mapping[Cloze, ClozeScore]) -> list[dict[str, Any]]:
        """One row of `seesaw_cf.shards.EDITS` for each case."""
        return [self._row(editor, case, qs, before) for case, qs in asked]

    def _row(
        self, editor: str, case: Case, qs: Sequence[Question], before: Mapping[Cloze, ClozeScore]
    ) -> dict[str, Any]:
        own = {q.role: q.cloze for q in qs if q.kind == "efficacy"}
        new_pre, true_pre, new_post, true_post = (
            _logprob(table[own[role]]) if role in own else None
            for table in (before, self.scores)
            for role in ("target_new", "target_true")
        )
        return {
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
            "raised": None if new_pre is None or new_post is None else new_post > new_pre,
            "success": None if true_post is None or new_post is None else new_post > true_post,
        }


def edit_and_score(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    scorer: Scorer,
    editor: Editor,
    cases: Sequence[Case],
    asked: Asked,
    hashes: Mapping[str, str],
) -> Outcome:
    """Edits the cases together, scores every question, restores the weights and checks that they are the same bytes.

    Args:
        model: The model; unchanged afterwards.
        tokenizer: Its tokenizer.
        scorer: Scores with `model`.
        editor: A fitted editor.
        cases: One or more cases, edited in one go. Of two that contradict each other the first is edited.
        asked: The cases' questions.
        hashes: `parameter_hashes(model)` before any edit.

    Raises:
        EditError: The weights after the edit are not those from before.
    """
    kept, status = _consistent(cases)
    wanted = [q.cloze for _, qs in asked for q in qs]
    delta: WeightDelta | None = None
    try:
        delta = editor.edit(model, tokenizer, [case.request for case in kept])
    except (EditError, PromptError) as error:
        status.update({case.case_id: f"refused: {error}" for case in kept})
    if delta is not None and not delta.is_finite():
        status.update({case.case_id: "non-finite delta" for case in kept})
        delta = None
    if delta is None:
        reason = next(iter(status.values()))
        return Outcome(dict.fromkeys(wanted, ClozeScore(math.nan, 0, False, reason)), status, math.nan)
    if delta.is_zero():
        status.update({case.case_id: "zero delta" for case in kept})
    moved = {cloze: Cloze(delta.context + cloze.context, cloze.target) for cloze in dict.fromkeys(wanted)}
    with applied(model, delta):
        scores = scorer.score(list(moved.values()))
    _check_restored(model, delta, hashes)
    norm = math.sqrt(sum(value**2 for value in delta.norms().values()))
    return Outcome(dict(zip(moved, scores, strict=True)), status, norm, delta)


def _consistent(cases: Sequence[Case]) -> tuple[list[Case], dict[int, str]]:
    """Drops cases that ask another target for a fact already in the batch; says which case they contradict."""
    first: dict[tuple[str, str], Case] = {}
    kept, status = [], {}
    for case in cases:
        earlier = first.setdefault((case.request.subject, case.request.relation_id), case)
        if earlier.request.target_new.label == case.request.target_new.label:
            kept.append(case)
            status[case.case_id] = "ok"
        else:
            status[case.case_id] = f"refused: contradicts case {earlier.case_id} of the same batch"
    return kept, status


def _check_restored(model: PreTrainedModel, delta: WeightDelta, hashes: Mapping[str, str]) -> None:
    now = parameter_hashes(model, delta.updates)
    changed = [name for name, value in now.items() if hashes[name] != value]
    if changed:
        raise EditError(
            f"the weights {changed} are not the same bytes as before the edit: an editor wrote to the model outside "
            "its delta. Nothing scored since the last shard can be trusted; run again with a correct editor."
        )


def _logprob(score: ClozeScore) -> float | None:
    return score.logprob if score.status == "ok" else None
