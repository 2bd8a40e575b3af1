"""MEND against arrays computed by the original authors' program (../shared/reference/editing_golden).

Computed here in float64, there in float32 (their float64 values are not stored): what is left is the authors' own gap,
see `tests.golden.reference.limit`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from seesaw_cf.editors.mend import MEND, MENDConfig
from seesaw_cf.editors.mend.factors import Batch, batch_of, capture, divergence, outer_loss, target_nll
from seesaw_cf.editors.mend.network import MENDNetwork, NetworkShape, matrices_of
from seesaw_cf.models.hooks import frozen
from seesaw_cf.types import Cloze
from tests.golden.reference import error, limit, load, log_probabilities, read, requests

RUNS = {"r1": (1,), "b4": (0, 1, 2, 3)}


@dataclass(frozen=True)
class Golden:
    root: Path
    name: str
    model: Any
    tokenizer: Any
    arrays: Any
    names: tuple[str, ...]
    rank: int

    def batch(self, run: str, kind: str = "") -> Batch:
        return Batch(*(torch.tensor(self.arrays[f"{run}/{kind}{what}"]).long() for what in _BATCH))

    def network(self) -> MENDNetwork:
        """A network with the stored weights, statistics and step sizes, in float64."""
        network = self.untrained()
        state = {f"mend.{key.split('/')[1]}": key for key in self.arrays.files if key.startswith("editor_")}
        tensors = {name: torch.tensor(self.arrays[key]) for name, key in state.items()}
        network.load_state_dict({**tensors, "edit_lrs": torch.tensor(self.arrays["edit_lrs"])})
        return network.eval().double()

    def untrained(self) -> MENDNetwork:
        return MENDNetwork(NetworkShape(matrices_of(self.names, self.model), rank=self.rank))

    def near(self, got: Any, array: str) -> None:
        """`got` is a stored array but for the authors' rounding."""
        if isinstance(got, torch.Tensor):
            got = got.detach().numpy()
        assert error(got, self.arrays[array]) < limit(self.root, self.name, "mend", array), array

    def stored(self, what: str) -> list[str]:
        """The parameters for which the set stores `what`."""
        found = [key.split("/")[2] for key in self.arrays.files if key.startswith(f"{what}/")]
        assert found
        return found


_BATCH = ("input_ids", "attention_mask", "labels")


@pytest.fixture(scope="module", params=["gpt2", "llama"])
def golden(request: pytest.FixtureRequest, reference: Callable[..., Path]) -> Golden:
    root = reference("editing_golden")
    model, tokenizer = load(root, request.param, double=True)
    arrays = np.load(root / "results" / request.param / "mend.npz")
    index = read(root / "results" / request.param / "index.json")["mend"]
    return Golden(root, request.param, model, tokenizer, arrays, tuple(index["inner_params"]), index["rank"])


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
    with frozen(golden.model):
        factors = capture(golden.model, golden.names, batch)
        with torch.no_grad():
            loss = target_nll(golden.model, batch)
    golden.near(loss, f"{run}/edit_loss")
    for name in golden.stored(f"{run}/x"):
        mask = batch.mask[..., None].numpy()  # inputs at padding depend on the padding token and are never used
        inputs, stored = factors[name][0].numpy() * mask, golden.arrays[f"{run}/x/{name}"] * mask
        assert error(inputs, stored) < limit(golden.root, golden.name, "mend", f"{run}/x/{name}")
        golden.near(factors[name][1], f"{run}/delta/{name}")


@pytest.mark.parametrize("run", RUNS)
def test_transformed_factors(golden: Golden, run: str) -> None:
    with frozen(golden.model), torch.no_grad():
        factors = capture(golden.model, golden.names, golden.batch(run))
        network = golden.network()
        found = network(factors)
    for name in golden.stored(f"{run}/x_transformed"):
        x, delta = factors[name]
        kept = (x != 0).any(-1) & (delta != 0).any(-1)
        step = network.edit_lrs[golden.names.index(name)]
        golden.near(found[name][0][kept], f"{run}/x_transformed/{name}")
        golden.near(found[name][1][kept] / step, f"{run}/delta_transformed/{name}")


@pytest.mark.parametrize("run", RUNS)
def test_weight_change_and_log_probabilities_after_the_edit(golden: Golden, run: str) -> None:
    layers = tuple(sorted({int(part) for name in golden.names for part in name.split(".") if part.isdigit()}))
    editor = MEND(MENDConfig(layers=layers, rank=golden.rank), network=golden.network()).fit(
        golden.model, golden.tokenizer
    )
    delta = editor.edit(golden.model, golden.tokenizer, requests(golden.root, RUNS[run]))
    assert set(delta.updates) == set(golden.names)
    for name in golden.stored("r1/weight_delta") if run == "r1" else []:
        golden.near(delta.dense(name), f"{run}/weight_delta/{name}")
    golden.near(log_probabilities(golden.root, golden.model, golden.tokenizer, delta), f"{run}/logp_post")


@pytest.mark.parametrize("run", RUNS)
def test_outer_losses_and_their_gradients(golden: Golden, run: str) -> None:
    network = golden.network()
    with frozen(golden.model), torch.enable_grad():
        changes = network(capture(golden.model, golden.names, golden.batch(run)))
        joint = {
            name: (u.reshape(1, -1, u.shape[-1]), v.reshape(1, -1, v.shape[-1])) for name, (u, v) in changes.items()
        }
        outer, loc = golden.batch(run, "outer_"), golden.batch(run, "loc_")
        edit = outer_loss(joint, golden.model, outer, each_row=False)
        locality = divergence(joint, golden.model, loc, each_row=False)
        total = 0.1 * edit + locality
        total.backward()
    golden.near(torch.stack([edit, locality, total]), f"{run}/outer_losses")
    gradients = dict(network.named_parameters())
    for name in golden.stored("b4/outer_grad") if run == "b4" else []:  # the KL, 1e-5 itself, counts fully here
        golden.near(gradients[name if name == "edit_lrs" else f"mend.{name}"].grad, f"b4/outer_grad/{name}")


def test_running_statistics_of_six_training_passes(golden: Golden) -> None:
    network = golden.untrained()
    for asked in requests(golden.root, range(6)):
        batch = batch_of(golden.tokenizer, [Cloze(asked.text, asked.target_new.label)])
        with frozen(golden.model), torch.no_grad():
            network(capture(golden.model, golden.names, batch), observe=True)
    for key in [key for key in golden.arrays.files if key.startswith("editor_buffer/")]:
        golden.near(dict(network.named_buffers())[f"mend.{key.split('/')[1]}"], key)
