"""Tiny models of four architectures and random deltas for them; no downloads."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    GPTJConfig,
    GPTJForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedModel,
)

from seesaw_cf.models.weights import LowRank, WeightDelta

VOCABULARY = 61
_DECODER: dict[str, Any] = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 32,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_GPT: dict[str, Any] = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32, "vocab_size": VOCABULARY}
_END: dict[str, Any] = {"bos_token_id": 0, "eos_token_id": 0}


def changing(name: str, **changes: Any) -> Callable[[Path], None]:
    """What changes values of a JSON file in a folder."""

    def change(folder: Path) -> None:
        facts = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps(facts | changes))

    return change


# architecture -> (model class, config, names of the MLP matrices that deltas below touch)
ARCHITECTURES: dict[str, tuple[Any, Any, tuple[str, ...]]] = {
    "gpt2": (
        GPT2LMHeadModel,
        GPT2Config(**_GPT, **_END),
        ("transformer.h.0.mlp.c_proj.weight", "transformer.h.1.mlp.c_fc.weight"),
    ),
    "gptj": (
        GPTJForCausalLM,
        GPTJConfig(**_GPT, **_END, rotary_dim=4),
        ("transformer.h.0.mlp.fc_out.weight", "transformer.h.1.mlp.fc_in.weight"),
    ),
    "llama": (
        LlamaForCausalLM,
        LlamaConfig(**_DECODER),
        ("model.layers.0.mlp.down_proj.weight", "model.layers.1.mlp.gate_proj.weight"),
    ),
    "mistral": (
        MistralForCausalLM,
        MistralConfig(**_DECODER, num_key_value_heads=1),
        ("model.layers.0.mlp.down_proj.weight", "model.layers.1.mlp.up_proj.weight"),
    ),
}


def tiny(name: str, seed: int = 0) -> PreTrainedModel:
    """A random model in eval mode; the caller's random state is left alone."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        kind, config, _ = ARCHITECTURES[name]
        model: PreTrainedModel = kind(config).eval()
    return model


def low_rank_delta(model: PreTrainedModel, name: str, ranks: tuple[int, ...] = (3, 1), seed: int = 1) -> WeightDelta:
    """A low-rank change of two matrices, of different ranks, large enough to move logits by tenths."""
    generator = torch.Generator().manual_seed(seed)
    updates = {}
    for parameter, rank in zip(ARCHITECTURES[name][2], ranks, strict=True):
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
