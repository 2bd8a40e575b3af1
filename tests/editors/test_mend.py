"""MEND: laws of the network, chunks and the published switches, files, training that resumes, clear refusals."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from seesaw_cf.editors.mend import MEND, MENDConfig
from seesaw_cf.editors.mend.factors import added, batch_of, capture
from seesaw_cf.editors.mend.network import MENDNetwork, NetworkShape, load_network, matrices_of, save_network
from seesaw_cf.editors.mend.training import MENDTraining, TrainingEdit, examples_from_texts, train
from seesaw_cf.editors.tensor_files import load_tensors, save_tensors
from seesaw_cf.errors import EditError, StorageError
from seesaw_cf.models.hooks import frozen
from seesaw_cf.models.identity import fingerprint
from seesaw_cf.models.weights import LowRank, applied
from seesaw_cf.types import Cloze
from tests.fakes import REQUESTS, request, tiny_model, tiny_texts, tiny_tokenizer

TOKENIZER = tiny_tokenizer()
NAMES = {
    "gpt2": ("transformer.h.2.mlp.c_fc.weight", "transformer.h.2.mlp.c_proj.weight"),
    "gptj": ("transformer.h.2.mlp.fc_in.weight", "transformer.h.2.mlp.fc_out.weight"),
    "llama": ("model.layers.2.mlp.up_proj.weight", "model.layers.2.mlp.down_proj.weight"),
    "opt": ("model.decoder.layers.2.fc1.weight", "model.decoder.layers.2.fc2.weight"),
    "mistral": ("model.layers.2.mlp.up_proj.weight", "model.layers.2.mlp.down_proj.weight"),
}
CLOZES = [Cloze(r.text, r.target_new.label) for r in REQUESTS]


def network_for(model: Any, names: tuple[str, ...], *, step: float = -0.05, seed: int = 0) -> MENDNetwork:
    """A network with random weights and statistics of the three requests; a negative step makes it descend."""
    network = MENDNetwork(NetworkShape(matrices_of(names, model), rank=4), edit_lr=step, seed=seed)
    with frozen(model), torch.no_grad():
        network(capture(model, names, batch_of(TOKENIZER, CLOZES)), observe=True)
    return network.eval()


def editor_for(kind: str, **changes: Any) -> tuple[MEND, Any]:
    model = tiny_model(kind)
    config = MENDConfig(**{"layers": (2,), "rank": 4, **changes})
    return MEND(config, network=network_for(model, NAMES[kind])).fit(model, TOKENIZER), model


@pytest.mark.parametrize("kind", NAMES)
def test_captured_factors_are_the_gradient_of_the_weight(kind: str) -> None:
    """By definition of a linear layer: dL/dW = sum over tokens of outer(input, dL/d output)."""
    model, names = tiny_model(kind, dtype=torch.float64), NAMES[kind]
    batch = batch_of(TOKENIZER, CLOZES)
    with frozen(model):
        factors = capture(model, names, batch)
    logits = model(input_ids=batch.ids, attention_mask=batch.mask).logits
    loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), batch.labels[:, 1:].flatten())
    for name, matrix in zip(names, matrices_of(names, model), strict=True):
        wanted = torch.autograd.grad(loss, model.get_parameter(name), retain_graph=True)[0]
        x, delta = factors[name]
        found = torch.einsum("bti,bto->io", x, delta)
        assert found.shape == (matrix.inputs, matrix.outputs)
        torch.testing.assert_close(found if wanted.shape == found.shape and kind == "gpt2" else found.T, wanted)


def test_rows_on_their_own_are_as_if_edited_alone() -> None:
    model, names = tiny_model("llama"), NAMES["llama"]
    with frozen(model):
        together = capture(model, names, batch_of(TOKENIZER, CLOZES), each_row=True)
        for row, cloze in enumerate(CLOZES):
            alone = capture(model, names, batch_of(TOKENIZER, [cloze]))
            for name in names:
                length = alone[name][1].shape[1]
                torch.testing.assert_close(together[name][1][row, :length], alone[name][1][0], rtol=1e-4, atol=1e-7)
                assert not together[name][1][row, length:].any()


@pytest.mark.parametrize("kind", ["gpt2", "llama", "opt"])
def test_changes_added_by_hooks_equal_changed_weights(kind: str) -> None:
    model, names = tiny_model(kind), NAMES[kind]
    network = network_for(model, names)
    batch = batch_of(TOKENIZER, CLOZES)
    delta = MEND(MENDConfig(layers=(2,), rank=4), network=network).edit(model, TOKENIZER, REQUESTS)
    with frozen(model), torch.no_grad():
        changes = network(capture(model, names, batch))
        joint = {name: (u.flatten(0, 1)[None], v.flatten(0, 1)[None]) for name, (u, v) in changes.items()}
        with added(model, joint):
            hooked = model(input_ids=batch.ids, attention_mask=batch.mask).logits
        with applied(model, delta):
            written = model(input_ids=batch.ids, attention_mask=batch.mask).logits
    torch.testing.assert_close(hooked, written, rtol=1e-4, atol=1e-4)


def test_every_chunk_counts() -> None:
    editor, model = editor_for("llama", chunk_size=2)
    first, last = (editor.edit(model, TOKENIZER, part) for part in (REQUESTS[:2], REQUESTS[2:]))
    both = editor.edit(model, TOKENIZER, REQUESTS)
    for name in both.updates:
        torch.testing.assert_close(both.dense(name), first.dense(name) + last.dense(name), rtol=1e-4, atol=1e-6)


def test_scale_and_form_of_the_change() -> None:
    editor, model = editor_for("llama")
    doubled = replace(editor, config=replace(editor.config, scale=2.0))
    one, two = (e.edit(model, TOKENIZER, REQUESTS[:1]) for e in (editor, doubled))
    for name, update in one.updates.items():
        torch.testing.assert_close(two.dense(name), 2 * one.dense(name))
        assert isinstance(update, LowRank)  # few tokens
    many = [request(subject=f"Person {k}", prompt="{} was born in the town of") for k in range(20)]
    assert not any(isinstance(u, LowRank) for u in editor.edit(model, TOKENIZER, many).updates.values())


def test_files_round_trip_and_damage_is_named(tmp_path: Path) -> None:
    editor, _ = editor_for("gpt2")
    network = editor.network
    assert network is not None
    file = tmp_path / "net.safetensors"
    save_network(network, file, {"note": 1})
    again = load_network(file)
    assert again.shape == network.shape
    assert all(
        torch.equal(a, b) for a, b in zip(network.state_dict().values(), again.state_dict().values(), strict=True)
    )
    tensors, facts = load_tensors(file)
    for wrong in ({**facts, "rank": 3}, {"rank": 4}):
        save_tensors(file, tensors, wrong)
        with pytest.raises(StorageError, match=r"net\.safetensors: no MEND network"):
            load_network(file)
    save_network(network, file)
    data = file.read_bytes()
    file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(StorageError, match="damaged or changed after it was written"):
        load_network(file)
    with pytest.raises(StorageError, match="could not be read"):
        load_network(tmp_path / "nowhere.safetensors")


def test_refusals(tmp_path: Path) -> None:
    model, config, requests = tiny_model("llama"), MENDConfig(layers=(2,)), REQUESTS[:1]
    editor, spoiled = editor_for("llama")[0], tiny_model("llama")
    blank = MENDNetwork(NetworkShape(matrices_of(NAMES["llama"], model), 4))
    with torch.no_grad():
        spoiled.get_parameter("model.norm.weight").fill_(float("nan"))
    calls: dict[str, Callable[[], object]] = {
        "neither weights nor texts nor examples": lambda: MEND(config).fit(model, TOKENIZER),
        "called before fit": lambda: MEND(config).edit(model, TOKENIZER, requests),
        r"come from 0 token\(s\)": lambda: MEND(config, network=blank).edit(model, TOKENIZER, requests),
        "trained for another model": lambda: editor.edit(tiny_model("gpt2"), TOKENIZER, requests),
        "chunk_size is 0": lambda: MENDConfig(layers=(2,), chunk_size=0),
        "batch is 0": lambda: MENDTraining(batch=0),
        "give no made-up edit": lambda: examples_from_texts(["Only one was in here."]),
        "3 training examples, expected at least 10": lambda: train(
            untrained(model), model, TOKENIZER, training_examples()[:3], FAST, cache=tmp_path
        ),
        r"training loss is nan at step 0.*Lower": lambda: train(
            untrained(spoiled), spoiled, TOKENIZER, training_examples(), FAST, cache=tmp_path
        ),
    }
    for message, call in calls.items():
        with pytest.raises(EditError, match=message):
            call()


def test_examples_from_texts_exchange_ends_after_the_same_word() -> None:
    examples = examples_from_texts(["Ada was born in London. The river lies in Peru.", "Bo is fond of tea."])
    assert {(e.edit.context, e.edit.target) for e in examples} == {
        ("Ada was born in", "Peru"),
        ("The river lies in", "London"),
    }
    assert all(e.outer.context.endswith(e.edit.context) and e.outer.target == e.edit.target for e in examples)
    assert examples == examples_from_texts(["Ada was born in London. The river lies in Peru.", "Bo is fond of tea."])


def training_examples() -> list[TrainingEdit]:
    towns = ["London", "Polish", "Kraków", "physics"]
    return [
        TrainingEdit(
            Cloze(f"Person {k} was born in", towns[k % 4]),
            Cloze(f"I think so. Person {k} was born in", towns[k % 4]),
            t,
        )
        for k, t in zip(range(24), tiny_texts(), strict=False)
    ]


FAST = MENDTraining(steps=6, batch=3, learning_rate=1e-3, step_size_rate=1e-2, validate_every=2, patience=50)


def untrained(model: Any, edit_lr: float = 1e-3) -> MENDNetwork:
    """Of a block's three matrices, two of which have the same input."""
    names = [f"model.layers.2.mlp.{name}_proj.weight" for name in ("gate", "up", "down")]
    return MENDNetwork(NetworkShape(matrices_of(names, model), 4), edit_lr)


def _validation(tmp_path: Path, edit: float, locality: float) -> float:
    """The loss of the held-out examples with these weights of its two terms; the step before it changes nothing."""
    model = tiny_model("llama", initializer_range=0.3)
    still = replace(FAST, steps=1, learning_rate=1e-30, step_size_rate=1e-30)
    weighted = replace(still, edit_weight=edit, locality_weight=locality)
    network = MENDNetwork(NetworkShape(matrices_of(NAMES["llama"], model), 4), edit_lr=0.05)
    folder = tmp_path / f"{edit} {locality}"
    train(network, model, TOKENIZER, training_examples(), weighted, cache=folder)
    (file,) = folder.glob("mend/*.safetensors")
    return float(load_tensors(file)[1]["facts"]["best"])


@pytest.mark.slow
def test_the_loss_is_the_weighted_sum_of_its_terms(tmp_path: Path) -> None:
    loss = {weights: _validation(tmp_path, *weights) for weights in [(1, 0), (1, 1), (1, 3), (2, 2)]}
    locality = loss[1, 1] - loss[1, 0]
    assert locality > 0.01 * loss[1, 0] > 0, "or nothing is tested"
    assert loss[1, 3] - loss[1, 0] == pytest.approx(3 * locality, rel=1e-4)
    assert loss[2, 2] == pytest.approx(2 * loss[1, 1], rel=1e-5)


@pytest.mark.parametrize("start", [-1e-4, 1e-4])
def test_the_loss_on_unrelated_texts_is_learned_from(start: float, tmp_path: Path) -> None:
    """Almost alone it asks for shorter steps, whatever their sign; the edit's loss asks for one sign."""
    model = tiny_model("llama", initializer_range=0.3)
    one = replace(FAST, steps=1, step_size_rate=1e-5, edit_weight=1e-9)
    rates = train(untrained(model, start), model, TOKENIZER, training_examples(), one, cache=tmp_path).edit_lrs
    assert (rates.detach().abs() < abs(start)).all()


@pytest.mark.slow
def test_training_learns_leaves_the_model_alone_and_is_kept(tmp_path: Path) -> None:
    model = tiny_model("llama")
    before, random_state = fingerprint(model), torch.get_rng_state()
    long = replace(FAST, steps=40, validate_every=10, step_size_rate=3e-2)
    network = train(untrained(model), model, TOKENIZER, training_examples(), long, cache=tmp_path)
    assert fingerprint(model) == before
    assert torch.equal(torch.get_rng_state(), random_state)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert float(network.edit_lrs.detach().max()) < 1e-3  # it has learned to step down the gradient
    assert sorted(path.suffix for path in (tmp_path / "mend").iterdir()) == [".lock", ".safetensors"]
    kept = train(untrained(model), model, TOKENIZER, training_examples(), long, cache=tmp_path)
    assert all(
        torch.equal(a, b) for a, b in zip(kept.state_dict().values(), network.state_dict().values(), strict=True)
    )


@pytest.mark.slow
@pytest.mark.parametrize("left", [1, 3])
def test_killed_and_resumed_training_gives_the_same_bytes(
    left: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed in the last of its losses, and two before."""
    model = tiny_model("llama")
    passes: list[int] = []
    last: list[int] = []

    def dies(*args: Any, **options: Any) -> Any:
        passes.append(1)
        if len(passes) in last:
            raise KeyboardInterrupt
        return capture(*args, **options)

    monkeypatch.setattr("seesaw_cf.editors.mend.training.capture", dies)  # a hook would be part of the model's identity
    whole = train(untrained(model), model, TOKENIZER, training_examples(), FAST, cache=tmp_path / "a")
    last.append(2 * len(passes) - left)
    with pytest.raises(KeyboardInterrupt):
        train(untrained(model), model, TOKENIZER, training_examples(), FAST, cache=tmp_path / "b")
    begun = len(passes)
    resumed = train(untrained(model), model, TOKENIZER, training_examples(), FAST, cache=tmp_path / "b")
    for name, tensor in whole.state_dict().items():
        assert torch.equal(tensor, resumed.state_dict()[name]), name
    assert len(passes) - begun < begun / 4, "it went on where it was"


def test_presets_take_the_last_three_blocks() -> None:
    config = MENDConfig.for_model(tiny_model("gpt2"))
    assert config.layers == (1, 2, 3)
    assert config.training == MENDTraining.for_width(128)
    steps = [MENDTraining.for_width(width).steps for width in (128, 256, 576, 1599, 1600)]
    assert steps == [600, 600, 300, 300, 100_000]
