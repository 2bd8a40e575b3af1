"""LoRA adapters: peft loads them with equal logits on every architecture, and they come back as deltas."""

from __future__ import annotations

import copy
import json
import tempfile
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from seesaw_cf.errors import DeltaMismatchError, EditError, RecordError, StorageError
from seesaw_cf.models.adapters import factorise
from seesaw_cf.models.identity import fingerprint
from seesaw_cf.models.weights import LowRank, WeightDelta, applied
from seesaw_cf.sharing import from_peft, to_peft

from .tiny import ARCHITECTURES, logits, low_rank_delta, tiny

peft = pytest.importorskip("peft", reason="peft is not installed")
# peft asks transformers by an old name.
pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize("ranks", [(1, 1), (3, 1)])
def test_peft_loads_it_with_equal_logits_and_it_comes_back(name: str, ranks: tuple[int, int], tmp_path: Path) -> None:
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
    back = from_peft(tmp_path / "adapter", model)
    assert back.updates.keys() == delta.updates.keys()
    for parameter in delta.updates:
        assert torch.equal(back.dense(parameter), delta.dense(parameter))
    assert back.meta["editor"] == "memit"


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
    back = from_peft(tmp_path / "adapter", model)
    for parameter, update in delta.updates.items():
        found = back.updates[parameter]
        assert isinstance(found, LowRank)
        assert isinstance(update, LowRank)
        assert torch.equal(found.left, update.left)  # bit for bit, without the zeros
        assert torch.equal(found.right, update.right)


@given(ranks=st.tuples(st.integers(1, 6), st.integers(1, 6)), more=st.integers(0, 4))
@settings(max_examples=15, deadline=None)
def test_any_mixture_of_ranks_comes_back_bit_for_bit(ranks: tuple[int, int], more: int) -> None:
    model = tiny("gpt2")
    delta = low_rank_delta(model, "gpt2", ranks)
    with tempfile.TemporaryDirectory() as folder:
        to_peft(delta, model, folder, rank=max(ranks) + more)
        back = from_peft(folder, model)
    for parameter, update in delta.updates.items():
        found = back.updates[parameter]
        assert isinstance(found, LowRank)
        assert isinstance(update, LowRank)
        assert torch.equal(found.left, update.left)
        assert torch.equal(found.right, update.right)


@pytest.mark.parametrize("rank", [2, 0, -1])
def test_a_rank_that_is_too_small_is_refused(rank: int, tmp_path: Path) -> None:
    model = tiny("llama")
    with pytest.raises(EditError, match=f"got {rank}, but an update of this delta has rank 3"):
        to_peft(low_rank_delta(model, "llama"), model, tmp_path / "adapter", rank=rank)
    assert not (tmp_path / "adapter").exists()


@pytest.mark.parametrize("name", ["gpt2", "llama"])
@pytest.mark.parametrize("options", [{}, {"use_rslora": True}, {"alpha_pattern": {"c_proj|down_proj": 5}}])
def test_adapters_made_by_peft_are_read_with_their_scale(name: str, options: dict[str, object], tmp_path: Path) -> None:
    model = tiny(name)
    targets = [parameter.removesuffix(".weight") for parameter in ARCHITECTURES[name][2]]
    config = peft.LoraConfig(
        r=2, lora_alpha=3, target_modules=targets, fan_in_fan_out=name == "gpt2", init_lora_weights=False, **options
    )
    with torch.random.fork_rng():
        torch.manual_seed(3)
        adapted = peft.get_peft_model(copy.deepcopy(model), config).eval()
    adapted.save_pretrained(tmp_path / "adapter")
    with applied(model, from_peft(tmp_path / "adapter", model)):
        torch.testing.assert_close(logits(model), logits(adapted), atol=1e-4, rtol=0)


def test_a_dense_delta_of_low_rank_is_exported_exactly(tmp_path: Path) -> None:
    model = tiny("llama")
    delta = low_rank_delta(model, "llama")
    dense = WeightDelta({name: delta.dense(name) for name in delta.updates})
    to_peft(dense, model, tmp_path / "adapter")
    back = from_peft(tmp_path / "adapter", model)
    for parameter, rank in zip(delta.updates, (3, 1), strict=True):
        torch.testing.assert_close(back.dense(parameter), dense.dense(parameter), atol=1e-6, rtol=1e-5)
        assert back.updates[parameter].left.shape[1] == rank  # type: ignore[union-attr]


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
        (WeightDelta({}, {}, "Q: a? A: b\n"), "text put before prompts.*--as delta"),
        (WeightDelta(), "changes nothing"),
        (WeightDelta({"transformer.h.0.mlp.c_proj.bias": torch.ones(16)}), "not a weight matrix.*checkpoint"),
        (WeightDelta({"transformer.h.0.mlp.c_proj.weight": torch.randn(64, 16)}), "not of low rank.*checkpoint"),
        (WeightDelta({"transformer.wte.weight": torch.ones(61, 16)}), "not a linear layer"),
    ],
)
def test_what_no_adapter_can_hold_is_refused_with_the_remedy(delta: WeightDelta, words: str, tmp_path: Path) -> None:
    with pytest.raises(EditError, match=words):
        to_peft(delta, tiny("gpt2"), tmp_path / "adapter")
    assert not (tmp_path / "adapter").exists()


def test_wrong_model_is_refused_both_ways(tmp_path: Path) -> None:
    model = tiny("llama")
    delta = low_rank_delta(model, "llama")
    with pytest.raises(DeltaMismatchError, match="model the edit was made on"):
        to_peft(delta, tiny("gpt2"), tmp_path / "adapter")
    to_peft(delta, model, tmp_path / "adapter")
    with pytest.raises(DeltaMismatchError, match="model the edit was made on"):
        from_peft(tmp_path / "adapter", tiny("gpt2"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"peft_type": "IA3"}, "expected 'LORA'"),
        ({"use_dora": True}, "use_dora"),
        ({"bias": "all"}, "'bias': 'all'"),
        ({"modules_to_save": ["lm_head"]}, "lm_head"),
        ({"layer_replication": [[0, 2]]}, "layer_replication"),
        ({"init_lora_weights": "pissa_niter_4"}, "pissa_niter_4.*Merge the adapter into its base"),
    ],
)
def test_adapters_that_are_more_than_low_rank_updates_are_refused(
    change: dict[str, object], words: str, tmp_path: Path
) -> None:
    model = tiny("llama")
    to_peft(low_rank_delta(model, "llama"), model, tmp_path / "adapter")
    file = tmp_path / "adapter" / "adapter_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(RecordError, match=words):
        from_peft(tmp_path / "adapter", model)


def test_damaged_adapter_files_are_named(tmp_path: Path) -> None:
    model = tiny("llama")
    to_peft(low_rank_delta(model, "llama"), model, tmp_path / "adapter")
    file = tmp_path / "adapter" / "adapter_model.safetensors"
    whole = load_file(file)
    save_file({key: value for key, value in whole.items() if "lora_B" not in key}, file)
    with pytest.raises(RecordError, match=r"only factor \['A'\]"):
        from_peft(tmp_path / "adapter", model)
    save_file({**whole, "base_model.model.lm_head.weight": torch.zeros(1)}, file)
    with pytest.raises(RecordError, match="no LoRA factor"):
        from_peft(tmp_path / "adapter", model)
    file.write_bytes(file.read_bytes()[:20])
    with pytest.raises(RecordError, match="damaged"):
        from_peft(tmp_path / "adapter", model)
    file.unlink()
    with pytest.raises(StorageError, match="missing"):
        from_peft(tmp_path / "adapter", model)
