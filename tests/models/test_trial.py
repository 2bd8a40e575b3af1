"""What is loaded can be asked: causal, finite, with an embedding for each token, a first one where it is needed."""

import logging
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from seesaw_cf.errors import UnsupportedModelError
from seesaw_cf.models import load_model, model_parts
from seesaw_cf.models.trial import check_model, warn_without_bos
from tests.fakes import tiny_model
from tests.scoring.models import CONFIGS, make
from tests.tokenizer_styles import byte_level


def _model(kind: str, **values: Any) -> Any:
    torch.manual_seed(0)
    sizes = {"vocab_size": 500, "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 48}
    return AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **sizes, num_attention_heads=4, **values)).eval()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", CONFIGS)
def test_every_architecture_passes(kind: str, dtype: torch.dtype) -> None:
    check_model(make(kind, dtype=dtype), byte_level(bos=False))


@pytest.mark.parametrize("width", [0.02, 0.2])
def test_a_model_that_sees_later_tokens_is_refused(width: float) -> None:
    """An untrained one of BERT's own width moves by 2e-3 of what it may, 20 times the limit; a trained one by .3."""
    message = r"model 'BertLMHeadModel': BertLMHeadModel is not causal: .* by \S+, expected 0\. .*is_decoder true"
    with pytest.raises(UnsupportedModelError, match=message):
        check_model(_model("bert", initializer_range=width), byte_level(bos=False))
    check_model(_model("bert", initializer_range=width, is_decoder=True), byte_level(bos=False))


@pytest.mark.parametrize("name", ["embed_tokens", "layers.1.mlp.up_proj", "layers.1.self_attn.q_proj"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused(value: float, name: str) -> None:
    model = make("llama")
    with torch.no_grad():
        model.get_parameter(f"model.{name}.weight")[0, 0] = value
    with pytest.raises(
        UnsupportedModelError, match=rf"model 'Llama.*': weights \['model.{name}.weight'\] are not finite.*again"
    ):
        check_model(model, byte_level(bos=False))


def test_a_chat_tokenizer_beside_a_base_model_is_refused_before_anything_is_scored(tmp_path: Path) -> None:
    tokenizer = byte_level(bos=False)
    model = make("llama", vocab_size=len(tokenizer))
    tokenizer.add_tokens(["<|im_start|>", "<|im_end|>"], special_tokens=True)
    tokenizer.chat_template = "{{ '<|im_start|>' }}"
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    message = rf"2 have ids of {len(tokenizer) - 2} or more \(\['<\|im_end\|>', '<\|im_start\|>'\]\), expected .*chat"
    with pytest.raises(UnsupportedModelError, match=message):
        load_model(str(tmp_path), device="cpu")


def test_a_token_that_no_text_needs_may_be_beyond(caplog: pytest.LogCaptureFixture) -> None:
    tokenizer = byte_level(bos=False)
    model = make("llama", vocab_size=len(tokenizer))
    tokenizer.add_tokens(["<image>"], special_tokens=True)
    with caplog.at_level(logging.WARNING):
        check_model(model, tokenizer)
    assert "no embedding for 1 tokens of its tokenizer (['<image>'])" in caplog.text


@pytest.mark.parametrize("kind", ["gemma", "gemma2", "gemma3_text", "llama", "gpt2"])
def test_gemma_without_its_first_token_is_warned_of_once(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    model, tokenizer, gemma = tiny_model(kind), byte_level(bos=False), kind.startswith("gemma")
    assert not warn_without_bos(tiny_model(kind, bos_token_id=1), byte_level(bos=True))
    assert warn_without_bos(model, tokenizer) == warn_without_bos(model, tokenizer) == gemma
    assert ["add_bos_token=True" in message for message in caplog.messages] == [True] * gemma


@pytest.mark.parametrize("kind", ["gpt2", "llama", "opt"])
@pytest.mark.parametrize("layer", [-1, 4, 10**9])
@pytest.mark.parametrize("method", ["block", "mlp_out", "weight_name", "weight", "key_size"])
def test_a_block_that_is_not_there(kind: str, layer: int, method: str) -> None:
    """The tiny models have four blocks."""
    parts = model_parts(tiny_model(kind))
    with pytest.raises(UnsupportedModelError, match=rf"layer {layer}: \w+ has blocks 0 to 3\."):
        getattr(parts, method)(layer)


@pytest.mark.parametrize("layers", [[], [-1], [0, 4], [1, 1], [True], [0.5], ["1"], [None], [torch.tensor(1)], [[1]]])
def test_layers_that_cannot_be_edited(layers: list[Any]) -> None:
    parts = model_parts(tiny_model("llama"))
    with pytest.raises(UnsupportedModelError, match=r"expected different numbers from 0 to 3 \(LlamaForCausalLM has 4"):
        parts.check_layers(iter(layers), "ROMEConfig")
    parts.check_layers(iter([2, 0]), "ROMEConfig")
