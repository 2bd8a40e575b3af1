"""A small Llama model and its tokenizer in a GGUF file, written tensor by tensor as llama.cpp stores them."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers.pre_tokenizers import ByteLevel
from transformers import LlamaConfig, LlamaForCausalLM

__all__ = ["llama", "write_gguf"]

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
WORDS = ("th", "the", "an", "in")  # each made of the two before, or of two bytes
MERGES = ("t h", "th e", "a n", "i n")
VOCABULARY = (*SPECIAL, *sorted(ByteLevel.alphabet()), *WORDS)

# The file's name -> that of transformers; "{}" is the layer.
NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "blk.{}.attn_norm.weight": "model.layers.{}.input_layernorm.weight",
    "blk.{}.attn_q.weight": "model.layers.{}.self_attn.q_proj.weight",
    "blk.{}.attn_k.weight": "model.layers.{}.self_attn.k_proj.weight",
    "blk.{}.attn_v.weight": "model.layers.{}.self_attn.v_proj.weight",
    "blk.{}.attn_output.weight": "model.layers.{}.self_attn.o_proj.weight",
    "blk.{}.ffn_norm.weight": "model.layers.{}.post_attention_layernorm.weight",
    "blk.{}.ffn_gate.weight": "model.layers.{}.mlp.gate_proj.weight",
    "blk.{}.ffn_up.weight": "model.layers.{}.mlp.up_proj.weight",
    "blk.{}.ffn_down.weight": "model.layers.{}.mlp.down_proj.weight",
}


def llama(layers: int = 2, width: int = 16) -> LlamaForCausalLM:
    """Random weights, tied head, grouped heads."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=2,
        initializer_range=0.3,
    )
    return LlamaForCausalLM(config).eval()


def write_gguf(model: LlamaForCausalLM, file: Path, architecture: str = "llama", *, adds_bos: bool = False) -> Path:
    """The file; weights as float32, so that nothing is lost."""
    config = model.config
    key_heads = int(config.num_key_value_heads or config.num_attention_heads)
    writer = gguf.GGUFWriter(file, architecture)
    writer.add_name("tiny")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(key_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(10_000.0)
    writer.add_vocab_size(config.vocab_size)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(list(VOCABULARY))
    writer.add_token_types([3] * len(SPECIAL) + [1] * (len(VOCABULARY) - len(SPECIAL)))
    writer.add_token_merges(list(MERGES))
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(adds_bos)
    writer.add_chat_template("{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}")
    weights = model.state_dict()
    for stored, name in NAMES.items():
        for layer in range(config.num_hidden_layers if "{}" in stored else 1):
            array = weights[name.format(layer)].numpy().astype(np.float32)
            if "attn_q" in stored or "attn_k" in stored:
                array = _interleaved(array, config.num_attention_heads if "attn_q" in stored else key_heads)
            writer.add_tensor(stored.format(layer), array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def _interleaved(array: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Rows of queries and keys in llama.cpp's order: the two halves of a head's rotary pairs side by side."""
    rows, columns = array.shape
    return array.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)
