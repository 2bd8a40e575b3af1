"""MEND against arrays computed by the original authors' program (../shared/reference/editing_golden)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from seesaw_cf.editors.hooks import untouched
from seesaw_cf.editors.mend import MEND, MENDConfig
from seesaw_cf.editors.mend_factors import Batch, batch_of, capture, outer_losses, target_nll
from seesaw_cf.editors.mend_network import MENDNetwork, NetworkShape, matrices_of
from seesaw_cf.types import Cloze
from tests.golden.reference import error, load, log_probabilities, read, requests

RUNS = {"r1": (1,), "b4": (0, 1, 2, 3)}
TIGHT = 1e-5  # the README's tolerance for MEND


@dataclass(frozen=True)
class Golden:
    root: Path
    name: str
    model: Any
    tokenizer: Any
    arrays: Any
    names: tuple[str, ...]

    def batch(self, run: str, kind: str = "") -> Batch:
        return Batch(*(torch.tensor(self.arrays[f"{run}/{kind}{what}"]).long() for what in _BATCH))

    def network(self) -> MENDNetwork:
        """A network with the stored weights, statistics and step sizes."""
        network = MENDNetwork(NetworkShape(matrices_of(self.names, self.model), rank=8))
        state = {f"mend.{key.split('/')[1]}": key for key in self.arrays.files if key.startswith("editor_")}
        tensors = {name: torch.tensor(self.arrays[key]) for name, key in state.items()}
        network.load_state_dict({**tensors, "edit_lrs": torch.tensor(self.arrays["edit_lrs"])})
        return network.eval()


_BATCH = ("input_ids", "attention_mask", "labels")


@pytest.fixture(scope="module", params=["gpt2", "llama"])
def golden(request: pytest.FixtureRequest, reference: Callable[..., Path]) -> Golden:
    root = reference("editing_golden")
    model, tokenizer = load(root, request.param)
    arrays = np.load(root / "results" / request.param / "mend.npz")
    names = read(root / "results" / request.param / "index.json")["mend"]["inner_params"]
    return Golden(root, request.param, model, tokenizer, arrays, tuple(names))


@pytest.mark.parametrize("run", RUNS)
def test_requests_are_encoded_as_published(golden: Golden, run: str) -> None:
    clozes = [Cloze(r.text, r.target_new.label) for r in requests(golden.root, RUNS[run])]
    ours, theirs = batch_of(golden.tokenizer, clozes), golden.batch(run)
    assert torch.equal(ours.mask, theirs.mask)
    assert torch.equal(ours.ids * ours.mask, theirs.ids * theirs.mask)
    assert torch.equal(ours.labels, theirs.labels)


@pytest.mark.parametrize("run", RUNS)
def test_captured_factors_and_loss(golden: Golden, run: str) -> None:
    batch = golden.batch(run)
    with untouched(golden.model):
        factors = capture(golden.model, golden.names, batch)
        with torch.no_grad():
            loss = target_nll(golden.model(input_ids=batch.ids, attention_mask=batch.mask).logits, batch.labels)
    assert float(loss) == pytest.approx(golden.arrays[f"{run}/edit_loss"].item(), rel=1e-5)
    stored = [key.split("/")[2] for key in golden.arrays.files if key.startswith(f"{run}/x/")]
    assert stored
    for name in stored:
        mask = batch.mask[..., None].numpy()  # inputs at padding depend on the padding token and are never used
        assert error(factors[name][0].numpy() * mask, golden.arrays[f"{run}/x/{name}"] * mask) < TIGHT
        assert error(factors[name][1], golden.arrays[f"{run}/delta/{name}"]) < TIGHT


@pytest.mark.parametrize("run", RUNS)
def test_transformed_factors(golden: Golden, run: str) -> None:
    with untouched(golden.model), torch.no_grad():
        factors = capture(golden.model, golden.names, golden.batch(run))
        network = golden.network()
        found = network(factors)
    stored = [key.split("/")[2] for key in golden.arrays.files if key.startswith(f"{run}/x_transformed/")]
    assert stored
    for name in stored:
        x, delta = factors[name]
        kept = (x != 0).any(-1) & (delta != 0).any(-1)
        step = network.edit_lrs[golden.names.index(name)]
        assert error(found[name][0][kept], golden.arrays[f"{run}/x_transformed/{name}"]) < TIGHT
        assert error(found[name][1][kept] / step, golden.arrays[f"{run}/delta_transformed/{name}"]) < TIGHT


@pytest.mark.parametrize("run", RUNS)
def test_weight_change_and_log_probabilities_after_the_edit(golden: Golden, run: str) -> None:
    layers = tuple(range(golden.model.config.num_hidden_layers))[-2:]
    editor = MEND(MENDConfig(layers=layers, rank=8), network=golden.network()).fit(golden.model, golden.tokenizer)
    delta = editor.edit(golden.model, golden.tokenizer, requests(golden.root, RUNS[run]))
    assert set(delta.updates) == set(golden.names)
    stored = [key.split("/")[2] for key in golden.arrays.files if key.startswith(f"{run}/weight_delta/")]
    for name in stored:
        assert error(delta.dense(name), golden.arrays[f"{run}/weight_delta/{name}"]) < TIGHT
    after = log_probabilities(golden.root, golden.model, golden.tokenizer, delta)
    np.testing.assert_allclose(after, golden.arrays[f"{run}/logp_post"], atol=2e-4)


@pytest.mark.parametrize("run", RUNS)
def test_outer_losses_and_their_gradients(golden: Golden, run: str) -> None:
    network = golden.network()
    with untouched(golden.model), torch.enable_grad():
        changes = network(capture(golden.model, golden.names, golden.batch(run)))
        joint = {
            name: (u.reshape(1, -1, u.shape[-1]), v.reshape(1, -1, v.shape[-1])) for name, (u, v) in changes.items()
        }
        outer, loc = golden.batch(run, "outer_"), golden.batch(run, "loc_")
        edit, locality = outer_losses(joint, golden.model, outer, loc, each_row=False)
        total = 0.1 * edit + locality
        total.backward()
    wanted = golden.arrays[f"{run}/outer_losses"]
    np.testing.assert_allclose(
        [float(x.detach()) for x in (edit, locality, total)], wanted, rtol=1e-5, atol=2e-8
    )  # KL is 1e-5
    stored = [key for key in golden.arrays.files if key.startswith(f"{run}/outer_grad/")]
    assert bool(stored) == (run == "b4")
    gradients = dict(network.named_parameters())
    for key in stored:
        name = key.split("/")[2]
        found = gradients[name if name == "edit_lrs" else f"mend.{name}"].grad
        assert error(found, golden.arrays[key]) < 3 * TIGHT, name


def test_running_statistics_of_six_training_passes(golden: Golden) -> None:
    network = MENDNetwork(NetworkShape(matrices_of(golden.names, golden.model), rank=8))
    for asked in requests(golden.root, range(6)):
        batch = batch_of(golden.tokenizer, [Cloze(asked.text, asked.target_new.label)])
        with untouched(golden.model), torch.no_grad():
            network(capture(golden.model, golden.names, batch), observe=True)
    for key in [key for key in golden.arrays.files if key.startswith("editor_buffer/")]:
        name = f"mend.{key.split('/')[1]}"
        assert error(dict(network.named_buffers())[name], golden.arrays[key]) < TIGHT, name
