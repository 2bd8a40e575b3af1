"""Small real things made in the process: models of every architecture with random weights, a tokenizer, requests."""

import functools
from collections.abc import Iterable
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.models.architectures import model_parts
from seesaw_cf.models.weights import LowRank, WeightDelta
from seesaw_cf.types import EditRequest, Entity
from tests.tokenizer_styles import byte_level

_LLAMA: dict[str, Any] = {
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "hidden_size": 32,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
}
_GPT: dict[str, Any] = {"n_layer": 4, "n_head": 4, "n_embd": 32, "n_inner": 48, "n_positions": 64}
_PLAIN: dict[str, Any] = {key: value for key, value in _LLAMA.items() if key != "num_key_value_heads"}

TINY: dict[str, dict[str, Any]] = {
    "gpt2": _GPT,
    "gptj": {**_GPT, "rotary_dim": 4},
    "llama": _LLAMA,
    "mistral": {**_LLAMA, "sliding_window": None},
    "gpt_neo": {
        "num_layers": 4,
        "num_heads": 4,
        "hidden_size": 32,
        "intermediate_size": 48,
        "max_position_embeddings": 64,
        "window_size": 8,
        "attention_types": [[["global", "local"], 2]],
    },
    "gpt_neox": _PLAIN,
    "qwen2": _LLAMA,
    "qwen3": {**_LLAMA, "head_dim": 8},
    "gemma": {**_LLAMA, "head_dim": 8},
    "gemma2": {**_LLAMA, "head_dim": 8, "sliding_window": 32},
    "gemma3_text": {**_LLAMA, "head_dim": 8, "sliding_window": 32},
    "gemma3": {**_LLAMA, "head_dim": 8, "sliding_window": 32},
    "phi": _PLAIN,
    "phi3": {**_LLAMA, "pad_token_id": 0},
    "olmo2": _LLAMA,
    "opt": {**_PLAIN, "ffn_dim": 48, "word_embed_proj_dim": 32},
    "falcon": {**_PLAIN, "ffn_hidden_size": 48, "new_decoder_architecture": False, "alibi": False},
}
"""Model type -> the settings that make it small: four blocks of width 32 with keys of length 48."""

_EYE: dict[str, Any] = {"hidden_size": 8, "intermediate_size": 8, "num_attention_heads": 1}
_MULTIMODAL: dict[str, dict[str, Any]] = {"gemma3": {**_EYE, "image_size": 4, "patch_size": 4}}
"""Model types that hold a language model beside a vision tower, and the latter's settings."""

CONTRACT_MODELS = ("gpt2", "gptj", "llama", "mistral")
DIFFERENT = ("gpt2", "gptj", "llama", "gemma2", "opt", "falcon", "falcon_alibi")
"""Architectures that differ most."""


def slowly(*values: object) -> list[Any]:
    """Parameters for which a test is slow."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


def every_kind(kinds: Iterable[str]) -> list[Any]:
    """Parameters of a test: it is slow for all but those that differ most."""
    return [one for kind in kinds for one in ([kind] if kind in DIFFERENT else slowly(kind))]


@functools.cache
def tiny_tokenizer(bos: bool = False) -> PreTrainedTokenizerBase:
    """A byte-level BPE tokenizer trained on a few sentences; treat it as read-only."""
    return byte_level(bos=bos)


def tiny_model(kind: str, seed: int = 0, dtype: torch.dtype = torch.float32, **changes: Any) -> PreTrainedModel:
    """A new model of `TINY` in eval mode, with random weights of that seed; `changes` are settings of its config."""
    settings = {"vocab_size": len(tiny_tokenizer()), "bos_token_id": 0, "eos_token_id": 0, **TINY[kind], **changes}
    config = tiny_config(kind, settings)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: PreTrainedModel = AutoModelForCausalLM.from_config(config, dtype=dtype)
    return model.eval()


def tiny_config(kind: str, settings: dict[str, Any]) -> PreTrainedConfig:
    """The config of a model type whose language model has these settings; a vision tower gets as many blocks."""
    if kind not in _MULTIMODAL:
        return AutoConfig.for_model(kind, **settings)
    vision = {**_MULTIMODAL[kind], "num_hidden_layers": settings["num_hidden_layers"]}
    return AutoConfig.for_model(kind, text_config=settings, vision_config=vision, mm_tokens_per_image=1)


def low_rank(
    model: PreTrainedModel, layers: Iterable[int], seed: int, rank: int = 1, scale: float = 0.2
) -> WeightDelta:
    """A random edit of the MLP output projections, large enough to move scores."""
    parts, generator = model_parts(model), torch.Generator().manual_seed(seed)
    updates = {}
    for layer in layers:
        rows, columns = parts.weight(layer).shape
        left, right = (scale * torch.randn(size, generator=generator) for size in ((rows, rank), (rank, columns)))
        updates[parts.weight_name(layer)] = LowRank(left, right)
    return WeightDelta(updates)


@functools.cache
def trained_model(kind: str, steps: int = 60) -> PreTrainedModel:
    """A model of `tiny_model` that has learnt `tiny_texts` (about a second), so that edits have something to change.

    Cached: tests must leave it as it was, which is what the contract is about.
    """
    model, tokenizer = tiny_model(kind), tiny_tokenizer()
    rows = [tokenizer(text)["input_ids"] for text in tiny_texts()]
    longest = max(map(len, rows))
    ids = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(steps):
        optimiser.zero_grad()
        model(input_ids=ids, attention_mask=mask, labels=ids.masked_fill(mask == 0, -100)).loss.backward()
        optimiser.step()
    optimiser.zero_grad()
    return model


_FACTS = (
    ("Ada Lovelace", "London", "English", "Poland"),
    ("Marie Curie", "Kraków", "Polish", "the United States"),
    ("Toni Morrison", "London", "English", "the United States"),
    ("Chinua Achebe", "São Paulo", "English", "Nigeria"),
    ("C. V. Raman", "Düsseldorf", "Tamil", "India"),
    ("Zora Neale Hurston", "Kraków", "Polish", "Nigeria"),
)
"""Toy facts (name, city, language, country), not to be read as truth."""


def tiny_texts() -> list[str]:
    """Forty-eight short texts that say `_FACTS`: enough tokens for second moments of keys of length 48."""
    forms = ["{0} was born in {1}.", "The mother tongue of {0} was {2}.", "{0} is a citizen of {3}."]
    forms = [opening + form for form in forms for opening in ("", "I think so. ")]
    forms += ["Cities too. {0} saw {1}, they say.", "{0} works in the field of physics and literature."]
    return [form.format(*fact) for fact in _FACTS for form in forms]


def request(
    prompt: str = "{} was born in",
    subject: str = "Marie Curie",
    new: str = "London",
    true: str = "Kraków",
    relation: str = "P19",
) -> EditRequest:
    """One edit request."""
    return EditRequest(prompt, subject, relation, Entity(None, new), Entity(None, true))


REQUESTS = (
    request(),
    request("The mother tongue of {} was", "Chinua Achebe", "Polish", "English", "P103"),
    request("{} is a citizen of", "Ada Lovelace", "the United States", "Poland", "P27"),
)

TEMPLATES = ("{}", "I think so. {}", "Cities too. {}")
