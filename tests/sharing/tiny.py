"""Tiny models of four architectures and random deltas for them; no downloads."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from seesaw_cf.models.weights import LowRank, WeightDelta
from tests.fakes import tiny_model

VOCABULARY = 61
# Architecture -> the MLP matrices that deltas below touch.
ARCHITECTURES = {
    "gpt2": ("transformer.h.0.mlp.c_proj.weight", "transformer.h.1.mlp.c_fc.weight"),
    "gptj": ("transformer.h.0.mlp.fc_out.weight", "transformer.h.1.mlp.fc_in.weight"),
    "llama": ("model.layers.0.mlp.down_proj.weight", "model.layers.1.mlp.gate_proj.weight"),
    "mistral": ("model.layers.0.mlp.down_proj.weight", "model.layers.1.mlp.up_proj.weight"),
}


def changing(name: str, **changes: Any) -> Callable[[Path], None]:
    """What changes values of a JSON file in a folder."""

    def change(folder: Path) -> None:
        facts = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps(facts | changes))

    return change


def tiny(name: str, seed: int = 0, dtype: torch.dtype = torch.float32) -> PreTrainedModel:
    """A random model in eval mode; the caller's random state is left alone."""
    return tiny_model(name, seed, dtype, vocab_size=VOCABULARY)


def low_rank_delta(model: PreTrainedModel, name: str, ranks: tuple[int, ...] = (3, 1), seed: int = 1) -> WeightDelta:
    """A low-rank change of two matrices, of different ranks, large enough to move logits by tenths."""
    generator = torch.Generator().manual_seed(seed)
    updates = {}
    for parameter, rank in zip(ARCHITECTURES[name], ranks, strict=True):
        rows, columns = model.get_parameter(parameter).shape
        left = torch.randn(rows, rank, generator=generator) * 0.3
        updates[parameter] = LowRank(left, torch.randn(rank, columns, generator=generator) * 0.3)
    requests = [{"prompt": "{} is a citizen of", "subject": "Ada", "target_new": "France", "target_true": "Peru"}]
    return WeightDelta(updates, {"editor": "memit", "config": {"layers": (0, 1)}, "requests": requests, "loss": [0.5]})


def logits(model: Any) -> torch.Tensor:
    """Logits of fixed input, (2, 9, vocabulary)."""
    ids = torch.arange(18).reshape(2, 9) % VOCABULARY
    with torch.inference_mode():
        return model(input_ids=ids).logits.clone()
