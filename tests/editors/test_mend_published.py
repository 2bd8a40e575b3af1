"""MEND networks as their authors saved them: the same numbers, and nothing in the file is run."""

import os
from collections import OrderedDict
from pathlib import Path

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from seesaw_cf.editors.mend import MEND, MENDConfig
from seesaw_cf.editors.mend.network import MENDNetwork, NetworkShape, load_published, matrices_of
from seesaw_cf.errors import RecordError, StorageError
from tests.fakes import tiny_tokenizer

# The order of the authors' configuration of GPT-2 (index.json of the golden arrays has it, too).
NAMES = [f"transformer.h.{layer}.mlp.{name}.weight" for layer in (0, 1) for name in ("c_proj", "c_fc")]


class Evil:
    """An object that calls something where a pickle is loaded carelessly."""

    def __init__(self, *call: object) -> None:
        self.call = call

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return self.call[0], self.call[1:]


@pytest.fixture
def model() -> GPT2LMHeadModel:
    torch.manual_seed(0)
    vocabulary = len(tiny_tokenizer())
    return GPT2LMHeadModel(GPT2Config(n_embd=8, n_layer=2, n_head=2, vocab_size=vocabulary, n_positions=32)).eval()


def trained(model: GPT2LMHeadModel) -> MENDNetwork:
    network = MENDNetwork(NetworkShape(matrices_of(NAMES, model), rank=3, hidden=1))
    torch.manual_seed(1)
    for tensor in [*network.parameters(), *network.buffers()]:
        tensor.data.copy_(torch.rand_like(tensor))
    return network


def save(file: Path, model: GPT2LMHeadModel, prefix: str = "mend.", **more: object) -> MENDNetwork:
    """What the authors' trainer writes: a state dict with the language model's configuration, and optimisers."""
    network = trained(model)
    state: dict[str, object] = OrderedDict(
        (name.replace("mend.", prefix), value) for name, value in network.state_dict().items()
    )
    state["model_config"] = model.config
    optimiser = torch.optim.Adam(network.parameters()).state_dict()
    stats = {"loss/total_edit_val": 0.1, "step": 5000}
    torch.save({"model": state, "opt": optimiser, "lr_opt": None, "val_stats": stats, "step": 5000, **more}, file)
    return network


@pytest.mark.parametrize("prefix", ["mend.", "gtn."])
def test_the_network_is_read_bit_for_bit(prefix: str, model: GPT2LMHeadModel, tmp_path: Path) -> None:
    network = save(tmp_path / "mend.pt", model, prefix)
    editor = MEND(MENDConfig(layers=(0, 1), weights=str(tmp_path / "mend.pt"))).fit(model, tiny_tokenizer())
    assert editor.network is not None
    read, saved = editor.network.state_dict(), network.state_dict()
    assert list(read) == list(saved)
    assert all(torch.equal(read[name], saved[name]) for name in saved)
    found = [matrix.name for matrix in editor.network.shape.matrices]
    assert found == NAMES, "step sizes belong to the published order"


def touch(mark: Path) -> None:
    """An object of the authors' program that this one does not have."""
    mark.touch()


def test_nothing_in_the_file_is_run_or_made(model: GPT2LMHeadModel, tmp_path: Path) -> None:
    file, mark = tmp_path / "mend.pt", tmp_path / "mark"
    network = save(file, model, maker=Evil(touch, mark))
    assert torch.equal(load_published(file, NAMES, model).edit_lrs, network.edit_lrs)
    save(file, model, evil=Evil(os.system, f"touch {mark}"))
    with pytest.raises(RecordError, match="holds commands"):
        load_published(file, NAMES, model)
    assert not mark.exists()
    torch.load(file, weights_only=False)
    assert mark.exists(), "the file is one that careless loading runs"


@pytest.mark.parametrize(
    "state",
    [
        None,
        {"weight": torch.ones(2)},
        {"edit_lrs": torch.ones(1), "mend.(8, 32).mlp.layers.0.u": torch.ones(3)},
        {"edit_lrs": torch.ones(1), "mend.(8, 32).mlp.layers.x.u": torch.ones(3, 3)},
        {"edit_lrs": torch.ones(1), "mend.(8, 32).mlp.layers.900000000.u": torch.ones(3, 3)},
    ],
)
def test_other_files_are_refused(model: GPT2LMHeadModel, tmp_path: Path, state: dict[str, torch.Tensor] | None) -> None:
    file = tmp_path / "mend.pt"
    if state is None:
        file.write_bytes(b"not a file of torch")
    else:
        torch.save({"model": state}, file)
    with pytest.raises(RecordError, match="no MEND network"):
        load_published(file, NAMES, model)


def test_a_network_of_other_weights_is_refused(model: GPT2LMHeadModel, tmp_path: Path) -> None:
    save(tmp_path / "mend.pt", model)
    with pytest.raises(RecordError, match="weights that it was trained for"):
        load_published(tmp_path / "mend.pt", NAMES[:2], model)
    with pytest.raises(StorageError, match="no such file"):
        MEND(MENDConfig(layers=(0, 1), weights=str(tmp_path / "none.pt"))).fit(model, tiny_tokenizer())
