"""Second moments: the definition, one pass for all layers, the cache, resuming, and damaged files."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch
from transformers import PreTrainedModel

from seesaw_cf.editors.locate.moments import MomentOptions, SecondMoment, load_moments, second_moments
from seesaw_cf.editors.tensor_files import save_tensors
from seesaw_cf.errors import EditError, StorageError
from seesaw_cf.models.architectures import model_parts
from seesaw_cf.models.hooks import hooked, watch
from tests.fakes import TINY, tiny_model, tiny_texts, tiny_tokenizer
from tests.scoring.test_head import Gpu


def compute(
    kind: str, folder: Path, layers: tuple[int, ...] = (0, 2), on_batch: Any = None, **options: Any
) -> dict[int, SecondMoment]:
    """Moments of a tiny model; `on_batch` is called with the number of texts before each forward pass."""
    dtype = options.pop("dtype", torch.float32)
    texts = options.pop("texts", tiny_texts())
    model = tiny_model(kind, dtype=dtype)
    with counted(model, on_batch or (lambda _: None)):
        return second_moments(model_parts(model), tiny_tokenizer(), layers, texts, MomentOptions(**options), folder)


def counted(model: PreTrainedModel, on_batch: Any) -> Any:
    """Of a class, not by a hook: nothing is kept of a model with hooks."""
    kind: Any = type(model)
    forward = kind.forward

    def counting(self: PreTrainedModel, *args: Any, **fed: Any) -> Any:
        on_batch(len(fed["input_ids"]))
        return forward(self, *args, **fed)

    return patch.object(kind, "forward", counting)


@pytest.mark.slow
@pytest.mark.parametrize("kind", TINY)
def test_equals_the_definition_text_by_text(kind: str, tmp_path: Path) -> None:
    model = tiny_model(kind, dtype=torch.float64)
    parts = model_parts(model)
    found = compute(kind, tmp_path, dtype=torch.float64, batch_tokens=64)
    for layer, moment in found.items():
        total, count = torch.zeros(48, 48, dtype=torch.float64), 0
        for text in tiny_texts():
            seen: dict[str, torch.Tensor] = {}
            with torch.no_grad(), hooked(watch(seen, {"k": parts.mlp_out(layer)})):
                model(torch.tensor([tiny_tokenizer()(text)["input_ids"]]))
            keys = seen["k"].reshape(-1, 48)
            total += keys.T @ keys
            count += len(keys)
        assert moment.n_tokens == count
        assert moment.n_texts == len(tiny_texts())
        assert torch.allclose(moment.matrix, total / count, rtol=1e-10, atol=1e-12)


def test_a_device_that_adds_in_float32_takes_keys_of_half_precision_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = compute("llama", tmp_path / "widened", dtype=torch.bfloat16, batch_tokens=64)
    monkeypatch.setattr("seesaw_cf.models.tensors.adds_in_float32", lambda tensor: tensor.dtype == torch.bfloat16)
    with Gpu() as gpu:
        found = compute("llama", tmp_path / "as they are", dtype=torch.bfloat16, batch_tokens=64)
    assert gpu.products > 0
    for layer, moment in found.items():
        torch.testing.assert_close(moment.matrix, expected[layer].matrix, rtol=1e-5, atol=1e-6)


def test_found_again_under_a_key_of_everything_that_matters(tmp_path: Path) -> None:
    first = compute("llama", tmp_path)
    run: list[int] = []
    again = compute("llama", tmp_path, on_batch=run.append)
    assert not run
    assert all(torch.equal(first[layer].matrix, again[layer].matrix) for layer in first)
    for other in (
        {"texts": tiny_texts()[1:]},
        {"sample_size": 10},
        {"max_length": 5},
        {"dtype": torch.float64},
        {"layers": (0, 1)},
    ):
        run.clear()
        compute("llama", tmp_path, on_batch=run.append, **other)
        assert run


@pytest.mark.slow
def test_of_workers_that_start_together_one_runs_the_texts(tmp_path: Path) -> None:
    alone = compute("llama", tmp_path / "alone")
    meeting, run = threading.Barrier(2, timeout=1), dict[int, int]()

    def moments(model: PreTrainedModel) -> dict[int, SecondMoment]:
        return second_moments(model_parts(model), tiny_tokenizer(), (0, 2), tiny_texts(), None, tmp_path)

    def count(texts: int) -> None:
        if threading.get_ident() not in run:
            with suppress(threading.BrokenBarrierError):  # the other one is not in the pass
                meeting.wait()
        run[threading.get_ident()] = run.get(threading.get_ident(), 0) + texts

    models = [tiny_model("llama"), tiny_model("llama")]
    with counted(models[0], count), ThreadPoolExecutor(2) as pool:
        found = list(pool.map(moments, models))
    assert list(run.values()) == [len(tiny_texts())]
    for moment in found:
        assert all(torch.equal(moment[layer].matrix, alone[layer].matrix) for layer in alone)


def dying(after: int, folder: Path, **options: Any) -> None:
    """Starts a pass that writes a checkpoint after every batch and is killed after some of them."""
    left = iter(range(after))

    def dies(_: int) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compute("llama", folder, on_batch=dies, checkpoint_seconds=0.0, **options)


@pytest.mark.parametrize("after", [4, 9])
def test_a_killed_pass_goes_on_from_its_checkpoint(after: int, tmp_path: Path) -> None:
    whole = compute("llama", tmp_path / "whole", batch_tokens=64, chunk=10)
    dying(after, tmp_path / "killed", batch_tokens=64, chunk=10)
    run: list[int] = []
    rest = compute("llama", tmp_path / "killed", on_batch=run.append, batch_tokens=64, chunk=10)
    assert len(tiny_texts()) - sum(run) in (10, 20, 30, 40)
    for layer in whole:
        assert torch.equal(rest[layer].matrix, whole[layer].matrix)
        assert (rest[layer].n_tokens, rest[layer].n_texts) == (whole[layer].n_tokens, whole[layer].n_texts)
    assert not list((tmp_path / "killed").rglob("partial*"))


def test_killed_between_two_layers_the_sums_of_others_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, saved = compute("llama", tmp_path / "whole", chunk=10), list[str]()

    def once(path: Path, *contents: Any) -> None:
        if path.name.startswith("layer"):
            saved.append(path.name)
        if len(saved) == 2:
            raise KeyboardInterrupt
        save_tensors(path, *contents)

    monkeypatch.setattr("seesaw_cf.editors.locate.moments.save_tensors", once)
    with pytest.raises(KeyboardInterrupt):
        compute("llama", tmp_path / "killed", chunk=10, checkpoint_seconds=0.0)
    monkeypatch.undo()
    assert [file.name for file in (tmp_path / "killed").rglob("layer-*")] == ["layer-0.safetensors"]
    run: list[int] = []
    rest = compute("llama", tmp_path / "killed", on_batch=run.append, chunk=10)
    assert not run
    assert not list((tmp_path / "killed").rglob("partial*"))
    assert all(torch.equal(rest[layer].matrix, whole[layer].matrix) for layer in whole)


def test_sums_that_are_not_finite_leave_no_files(tmp_path: Path) -> None:
    model = tiny_model("llama")
    with torch.no_grad():
        model.get_parameter("model.layers.0.mlp.up_proj.weight").fill_(float("inf"))
    options = MomentOptions(chunk=10, checkpoint_seconds=0.0)
    with pytest.raises(EditError, match="second moment of layer 0 is not finite"):
        second_moments(model_parts(model), tiny_tokenizer(), (0,), tiny_texts(), options, tmp_path)
    assert not [*tmp_path.rglob("*.safetensors")]


def test_damaged_and_foreign_files_are_errors(tmp_path: Path) -> None:
    first = compute("llama", tmp_path)
    file = first[0].file
    other = compute("llama", tmp_path / "texts", texts=tiny_texts()[1:])
    for content, message in (
        (file.read_bytes()[:2000], "could not be read.*Delete the file"),
        (compute("gpt2", tmp_path / "other")[0].file.read_bytes(), r"is of another model: \w{16}, expected \w{16}\."),
        (first[2].file.read_bytes(), "is of another layer: 2, expected 0"),
        (other[0].file.read_bytes(), "is of another texts"),
    ):
        file.write_bytes(content)
        with pytest.raises(StorageError, match=rf"layer-0\.safetensors {message}"):
            compute("llama", tmp_path)


def test_a_changed_byte_is_an_error(tmp_path: Path) -> None:
    first = compute("llama", tmp_path)
    file = first[0].file
    good = file.read_bytes()
    data = 8 + int.from_bytes(good[:8], "little")
    for place in (data, data + 1001, len(good) - 1, good.index(b"n_tokens") + 12, good.index(b"matrix")):
        file.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        with pytest.raises(StorageError, match=r"layer-0\.safetensors has SHA-256 .*damaged or changed.*Delete"):
            compute("llama", tmp_path)
    file.write_bytes(good)
    assert torch.equal(compute("llama", tmp_path)[0].matrix, first[0].matrix)


def test_a_matrix_of_another_size_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "layer-1.safetensors"
    save_tensors(file, {"matrix": torch.eye(4)}, {"layer": 1, "n_tokens": 9, "n_texts": 3})
    with pytest.raises(StorageError, match=r"a matrix \(4, 4\), expected finite numbers \(48, 48\)"):
        load_moments(tmp_path, model_parts(tiny_model("llama")), [1], {})


def test_texts_must_be_texts(tmp_path: Path) -> None:
    with pytest.raises(EditError, match="got 2 without one visible"):
        compute("llama", tmp_path, texts=["", " "])
    with pytest.raises(EditError, match="got one string without"):
        compute("llama", tmp_path, texts="Marie Curie")
