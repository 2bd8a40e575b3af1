"""Tiny random causal language models of every architecture that the editors know, and some that reject tries."""

from typing import Any

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel

from tests.fakes import tiny_config

_COMMON = {"vocab_size": 500, "initializer_range": 0.15, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
_GPT2 = {"n_embd": 32, "n_layer": 3, "n_head": 2, "n_positions": 128}
_WIDE = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "max_position_embeddings": 128}
_LLAMA = {**_WIDE, "intermediate_size": 48, "num_key_value_heads": 2, "head_dim": 8}
_NEO = {"hidden_size": 32, "num_layers": 2, "num_heads": 2, "window_size": 64, "max_position_embeddings": 128}
_HEADS = {**_LLAMA, "num_key_value_heads": 4}

# Model type (and a suffix) -> (config fields, layout expected with the library's default attention).
CONFIGS: dict[str, tuple[dict[str, Any], str]] = {
    "gpt2": (_GPT2, "packed"),
    "gptj": ({**_GPT2, "rotary_dim": 8}, "padded"),
    "gpt_neo": ({**_NEO, "attention_types": [[["global", "local"], 1]]}, "padded"),
    "gpt_neox": ({**_HEADS, "rotary_pct": 0.5}, "packed"),
    "llama": (_LLAMA, "packed"),
    "mistral": ({**_LLAMA, "sliding_window": 48}, "packed"),
    "qwen2": (_LLAMA, "packed"),
    "qwen3": (_LLAMA, "packed"),
    "gemma": (_LLAMA, "packed"),
    "gemma2": ({**_LLAMA, "sliding_window": 48, "query_pre_attn_scalar": 8}, "padded"),
    "gemma3_text": ({**_LLAMA, "sliding_window": 48, "query_pre_attn_scalar": 8}, "packed"),
    "gemma3": ({**_LLAMA, "sliding_window": 48, "query_pre_attn_scalar": 8}, "packed"),
    "olmo2": (_LLAMA, "packed"),
    "phi": ({**_HEADS, "partial_rotary_factor": 0.5}, "packed"),
    "phi3": (_LLAMA, "packed"),
    "opt": ({**_WIDE, "ffn_dim": 48, "word_embed_proj_dim": 16}, "packed"),
    "falcon": ({**_WIDE, "alibi": False}, "padded"),
    "falcon_alibi": ({**_WIDE, "alibi": True}, "plain"),
    "bloom": ({"hidden_size": 32, "n_layer": 2, "n_head": 4}, "plain"),
    "mpt": ({"d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 128}, "plain"),
}


def make(kind: str, *, attention: str | None = None, dtype: torch.dtype = torch.float32, **changes: Any) -> Any:
    """A random model whose biases and norms are random too, so that leaving one out would show."""
    config = tiny_config(kind.removesuffix("_alibi"), {**_COMMON, **CONFIGS.get(kind, (_LLAMA, ""))[0], **changes})
    torch.manual_seed(0)
    model: PreTrainedModel = AutoModelForCausalLM.from_config(config, attn_implementation=attention)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(0.1 * torch.randn_like(parameter))
    torch.nn.Module.to(model, dtype)
    return model.eval()
