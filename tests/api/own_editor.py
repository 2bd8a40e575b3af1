"""An editor of somebody else: one step of gradient descent on one weight."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch.func import functional_call

from seesaw_cf.models import WeightDelta, model_parts
from seesaw_cf.scoring import encode_cloze
from seesaw_cf.types import Cloze


@dataclass(frozen=True)
class OneStepConfig:
    layer: int
    step: float = 0.05

    @classmethod
    def for_model(cls, model: Any) -> Self:
        return cls(layer=model_parts(model).n_layers - 1)


@dataclass(frozen=True)
class OneStep:
    config_class: ClassVar[type[OneStepConfig]] = OneStepConfig
    config: OneStepConfig
    corpus: Sequence[str] | None = None

    def fit(self, model: Any, tokenizer: Any) -> Self:
        return self

    def edit(self, model: Any, tokenizer: Any, requests: Any) -> WeightDelta:
        name = model_parts(model).weight_name(self.config.layer)
        weight = model.get_parameter(name).detach().clone().requires_grad_()
        with torch.enable_grad():
            loss = sum(self._loss(model, tokenizer, name, weight, request) for request in requests)
        (gradient,) = torch.autograd.grad(torch.as_tensor(loss), [weight])
        return WeightDelta({name: -self.config.step * gradient / gradient.norm()}, {"editor": "onestep"})

    def _loss(self, model: Any, tokenizer: Any, name: str, weight: torch.Tensor, request: Any) -> torch.Tensor:
        encoded = encode_cloze(tokenizer, Cloze(request.text, request.target_new.label))
        ids = torch.tensor([encoded.ids])
        logits = functional_call(model, {name: weight}, (ids,)).logits[0, encoded.start - 1 : -1]
        return torch.nn.functional.cross_entropy(logits, ids[0, encoded.start :])
