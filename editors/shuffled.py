"""The negative control `shuffled`: the same training on another request's answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch
from transformers import PreTrainedModel

from seesaw_cf.base.arguments import check_public
from seesaw_cf.base.types import Case, EditRequest, Entity
from seesaw_cf.editors.controls import POOL, ControlEditor
from seesaw_cf.models.editor import Editor
from seesaw_cf.models.weights import WeightDelta


@dataclass(frozen=True)
class ShuffledControl(ControlEditor):
    """Edits the answer of another request of the same relation in: the same prompt and training, another aim.

    The answer is drawn from (seed, requests), never the request's own new one. It may be the true one by chance, as
    among shuffled training data.

    Attributes:
        pool: Requests whose answers are drawn: those of the run and those that it leaves over. Of a relation without
            another answer there, the answers of `POOL`.
    """

    pool: Sequence[EditRequest] = ()

    def learn(self, cases: Iterable[Case]) -> Self:
        """Return this control with the requests of `cases` in its pool, too."""
        return replace(self, pool=(*self.pool, *(case.request for case in cases)))

    def avoid(self, cases: Iterable[Case]) -> Self:
        """Return this control with the requests of the run in its pool, too."""
        return self.learn(cases)

    def _prepared(
        self, model: PreTrainedModel, groups: Sequence[Sequence[EditRequest]]
    ) -> tuple[Editor, list[Sequence[EditRequest]]]:
        shuffled: list[Sequence[EditRequest]] = [
            [replace(request, target_new=self.answer(request)) for request in group] for group in groups
        ]
        return self._lenient_editor(model), shuffled

    def answer(self, request: EditRequest) -> Entity:
        """Return the answer that is edited in, in place of the request's new one."""
        every = [other.target_new for other in self.pool if other.relation_id == request.relation_id]
        own = request.target_new.label
        others = [answer for answer in every if answer.label != own]
        others = others or [fact.target_new for fact in POOL if fact.target_new.label != own]
        return others[int(torch.randint(len(others), (1,), generator=self._generator([request])))]

    def _from(self, delta: WeightDelta, requests: Sequence[EditRequest]) -> WeightDelta:
        return self._control_delta("shuffled", delta.updates, requests, delta)


check_public(globals())
