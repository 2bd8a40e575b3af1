"""LoRA adapters: peft loads them with equal logits on every architecture."""

import copy
import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from seesaw_cf.errors import DeltaMismatchError, EditError
from seesaw_cf.models.adapters import factorise
from seesaw_cf.models.identity import fingerprint
from seesaw_cf.models.weights import LowRank, WeightDelta, applied
from seesaw_cf.sharing import to_peft

from .tiny import ARCHITECTURES, logits, low_rank_delta, tiny

peft = pytest.importorskip("peft", reason="peft is not installed")
# peft asks transformers by an old name.
pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize("ranks", [(1, 1), (3, 1)])
def test_peft_loads_it_with_equal_logits(name: str, ranks: tuple[int, int], tmp_path: Path) -> None:
    model = tiny(name)
    before, plain = fingerprint(model), logits(model)
    delta = low_rank_delta(model, name, ranks)
    to_peft(delta, model, tmp_path / "adapter")
    assert fingerprint(model) == before
    with applied(model, delta):
        wanted = logits(model)
    assert float((wanted - plain).abs().max()) > 0.01  # the edit is visible, so equality below means something
    adapted = peft.PeftModel.from_pretrained(copy.deepcopy(model), tmp_path / "adapter")
    torch.testing.assert_close(logits(adapted), wanted, atol=1e-4, rtol=0)
    torch.testing.assert_close(logits(adapted.merge_and_unload()), wanted, atol=1e-4, rtol=0)
    assert json.loads((tmp_path / "adapter" / "seesaw_cf.json").read_text())["editor"] == "memit"


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize("rank", [None, 8])
def test_every_module_has_one_rank_and_scale_one(name: str, rank: int | None, tmp_path: Path) -> None:
    """What vLLM reads: `r` alone; the zeros that fill smaller updates add nothing."""
    model = tiny(name)
    delta = low_rank_delta(model, name, (3, 1))
    to_peft(delta, model, tmp_path / "adapter", rank=rank)
    config = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    wanted = rank or 3
    assert (config["r"], config["lora_alpha"], config["use_rslora"]) == (wanted, wanted, False)
    assert not config["rank_pattern"]
    assert not config["alpha_pattern"]
    tensors = load_file(tmp_path / "adapter" / "adapter_model.safetensors")
    for parameter, update in delta.updates.items():
        assert isinstance(update, LowRank)
        key = f"base_model.model.{parameter.removesuffix('.weight')}.lora"
        a, b = tensors[f"{key}_A.weight"], tensors[f"{key}_B.weight"]
        assert (a.shape[0], b.shape[1]) == (wanted, wanted)
        used = update.left.shape[1]
        assert not a[used:].any()
        assert not b[:, used:].any()
        product = (b @ a).T if name == "gpt2" else b @ a
        # Sums over `wanted` products in any order differ by at most that many roundings of the largest sum.
        bound = wanted * torch.finfo(torch.float32).eps * float((b.abs() @ a.abs()).max())
        torch.testing.assert_close(product, delta.dense(parameter), atol=bound, rtol=0)


@pytest.mark.parametrize("rank", [2, 0, -1])
def test_a_rank_that_is_too_small_is_refused(rank: int, tmp_path: Path) -> None:
    model = tiny("llama")
    with pytest.raises(EditError, match=f"got {rank}, but an update of this delta has rank 3"):
        to_peft(low_rank_delta(model, "llama"), model, tmp_path / "adapter", rank=rank)
    assert not (tmp_path / "adapter").exists()


def test_a_dense_delta_of_low_rank_is_exported_exactly(tmp_path: Path) -> None:
    model = tiny("llama")
    delta = low_rank_delta(model, "llama")
    dense = WeightDelta({name: delta.dense(name) for name in delta.updates})
    to_peft(dense, model, tmp_path / "adapter")
    with applied(model, dense):
        wanted = logits(model)
    adapted = peft.PeftModel.from_pretrained(copy.deepcopy(model), tmp_path / "adapter")
    torch.testing.assert_close(logits(adapted), wanted, atol=1e-4, rtol=0)
    assert json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())["r"] == 3


def test_factorise_finds_the_rank_and_gives_up_when_it_would_not_pay() -> None:
    generator = torch.Generator().manual_seed(0)
    product = torch.randn(20, 4, generator=generator) @ torch.randn(4, 30, generator=generator)
    found = factorise(product)
    assert found is not None
    assert found.left.shape == (20, 4)
    torch.testing.assert_close(found.dense(), product, atol=1e-5, rtol=1e-5)
    assert factorise(torch.randn(20, 30, generator=generator)) is None
    zero = factorise(torch.zeros(4, 5))
    assert zero is not None
    assert not zero.dense().any()


@pytest.mark.parametrize(
    ("delta", "words"),
    [
        (WeightDelta({}, {}, "Q: a? A: b\n"), "text put before prompts.*--form delta"),
        (WeightDelta(), "changes nothing"),
        (WeightDelta({"transformer.h.0.mlp.c_proj.bias": torch.ones(32)}), "no weight matrix.*checkpoint"),
        (WeightDelta({"transformer.h.0.mlp.c_proj.weight": torch.randn(48, 32)}), "not of low rank.*checkpoint"),
        (WeightDelta({"transformer.wte.weight": torch.ones(61, 32)}), "not a linear layer"),
    ],
)
def test_what_no_adapter_can_hold_is_refused_with_the_remedy(delta: WeightDelta, words: str, tmp_path: Path) -> None:
    with pytest.raises(EditError, match=words):
        to_peft(delta, tiny("gpt2"), tmp_path / "adapter")
    assert not (tmp_path / "adapter").exists()


def test_a_wrong_model_is_refused(tmp_path: Path) -> None:
    delta = low_rank_delta(tiny("llama"), "llama")
    with pytest.raises(DeltaMismatchError, match="model it was made on"):
        to_peft(delta, tiny("gpt2"), tmp_path / "adapter")
