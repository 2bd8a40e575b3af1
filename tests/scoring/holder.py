"""Work that processes share by a cache. `python -m tests.scoring.holder KIND FOLDER` begins it and never ends."""

import functools
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from seesaw_cf.base.files import cache_folder
from seesaw_cf.editors.locate.moments import second_moments
from seesaw_cf.editors.mend.network import MENDNetwork, NetworkShape, matrices_of
from seesaw_cf.editors.mend.training import MENDTraining, TrainingEdit, train
from seesaw_cf.models.architectures import model_parts
from seesaw_cf.scoring import TrieScorer
from seesaw_cf.scoring.pre_scores import blocks, pre_scores
from seesaw_cf.types import Cloze
from tests.fakes import tiny_model, tiny_texts, tiny_tokenizer


def scores(model: PreTrainedModel) -> Tensor:
    """Log-probabilities of two blocks, in the order of the clozes."""
    asked = [Cloze(f"{text} was born in", "London") for text in tiny_texts()[:8]]
    scorer = TrieScorer(model, tiny_tokenizer())
    found = {cloze: score for part in pre_scores(scorer, blocks(asked, 4), {}) for cloze, score in part.items()}
    return torch.tensor([found[cloze].logprob for cloze in asked])


def moments(model: PreTrainedModel) -> Tensor:
    """The second moment of a layer."""
    return second_moments(model_parts(model), tiny_tokenizer(), [1], tiny_texts())[1].matrix


def network(model: PreTrainedModel) -> Tensor:
    """The step sizes of a trained MEND network."""
    examples = [
        TrainingEdit(Cloze(text, "London"), Cloze(f"I think so. {text}", "London"), text) for text in tiny_texts()[:20]
    ]
    matrices = matrices_of(["model.layers.2.mlp.down_proj.weight"], model)
    settings = MENDTraining(steps=2, batch=2, validate_every=1)
    return train(MENDNetwork(NetworkShape(matrices, 2)), model, tiny_tokenizer(), examples, settings).edit_lrs.detach()


SHARED: dict[str, Callable[[PreTrainedModel], Tensor]] = {"scores": scores, "moments": moments, "network": network}


def main(kind: str, folder: str) -> None:
    """Says where the work is and stops for ever at the first forward pass that the cache would have saved."""
    model = tiny_model("llama")

    kind_of_model: Any = type(model)
    forward = kind_of_model.forward

    @functools.wraps(forward)
    def stop(*args: object, **options: object) -> object:
        if any(cache_folder().rglob("*.lock")):
            Path(folder).touch()
            time.sleep(600)
        return forward(*args, **options)

    kind_of_model.forward = stop  # of the class: with a hook nothing of the model would be cached
    SHARED[kind](model)


if __name__ == "__main__":
    main(*sys.argv[1:])
