"""Second moments: the definition, one pass for all layers, the cache, resuming, and damaged files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from seesaw_cf.editors import moments as module
from seesaw_cf.editors.arch import model_parts
from seesaw_cf.editors.hooks import hooked, watch
from seesaw_cf.editors.moments import SecondMoment, second_moments
from seesaw_cf.errors import EditError, StorageError
from tests.fakes import tiny_model, tiny_texts, tiny_tokenizer


def compute(kind: str, folder: Path, layers: tuple[int, ...] = (0, 2), **options: Any) -> dict[int, SecondMoment]:
    dtype = options.pop("dtype", torch.float32)
    texts = options.pop("texts", tiny_texts())
    parts = model_parts(tiny_model(kind, dtype=dtype))
    return second_moments(parts, tiny_tokenizer(), layers, texts, cache=folder, **options)


@pytest.mark.parametrize("kind", ["gpt2", "llama", "opt"])
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


def test_batch_size_changes_only_rounding(tmp_path: Path) -> None:
    small, large = (compute("llama", tmp_path / str(n), batch_tokens=n)[2].matrix for n in (32, 4096))
    assert (small - large).norm() < 1e-6 * large.norm()


def test_sampling_error_is_near_the_true_one(tmp_path: Path) -> None:
    """Against the moment of many more texts of the same kind; within a factor of three."""
    import random

    words = [word for text in tiny_texts() for word in text.split()]
    draw = random.Random(0)
    many = [" ".join(draw.choices(words, k=8)) for _ in range(3000)]
    truth = compute("llama", tmp_path, (1,), texts=many)[1].matrix
    part = compute("llama", tmp_path, (1,), texts=many[:100])[1]
    real = float((part.matrix - truth).norm() / truth.norm())
    assert real / 3 < part.relative_error < real * 3


def test_found_again_under_a_key_of_everything_that_matters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = compute("llama", tmp_path)
    again = compute("llama", tmp_path)  # and a layer more does not redo the others
    assert torch.equal(first[0].matrix, again[0].matrix)
    monkeypatch.setattr(module, "_accumulate", lambda *_: pytest.fail("a cached moment was computed again"))
    assert compute("llama", tmp_path)[2].n_tokens == first[2].n_tokens
    for other in (
        {"texts": tiny_texts()[1:]},
        {"sample_size": 10},
        {"max_length": 5},
        {"dtype": torch.float64},
        {"layers": (0, 1)},
    ):
        with pytest.raises(pytest.fail.Exception, match="computed again"):
            compute("llama", tmp_path, **other)


def test_a_killed_pass_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = compute("llama", tmp_path / "whole", batch_tokens=64)
    monkeypatch.setattr(module, "CHECKPOINT_SECONDS", -1.0)
    real, seen = module._Sums.add, []

    def dies(self: Any, layer: int, keys: torch.Tensor, half: torch.Tensor) -> None:
        seen.append(layer)
        if len(seen) == 8:
            raise KeyboardInterrupt
        real(self, layer, keys, half)

    monkeypatch.setattr(module._Sums, "add", dies)
    with pytest.raises(KeyboardInterrupt):
        compute("llama", tmp_path / "killed", batch_tokens=64)
    rest = compute("llama", tmp_path / "killed", batch_tokens=64)
    assert len(seen) < 8 + len(tiny_texts()) * 2
    for layer in whole:
        assert torch.equal(rest[layer].matrix, whole[layer].matrix)
        assert rest[layer].relative_error == whole[layer].relative_error
    assert not list((tmp_path / "killed").rglob("partial*"))


def test_damaged_and_foreign_files_are_errors(tmp_path: Path) -> None:
    compute("llama", tmp_path)
    file = next(tmp_path.rglob("layer-0.safetensors"))
    good = file.read_bytes()
    file.write_bytes(good[: len(good) // 2])
    with pytest.raises(StorageError, match=r"layer-0\.safetensors could not be read.*Delete the file"):
        compute("llama", tmp_path)
    compute("gpt2", tmp_path / "other")
    foreign = next((tmp_path / "other").rglob("layer-0.safetensors"))
    file.write_bytes(foreign.read_bytes())
    with pytest.raises(StorageError, match=r"belongs to .* expected .*Delete the file"):
        compute("llama", tmp_path)


def test_texts_must_be_texts(tmp_path: Path) -> None:
    with pytest.raises(EditError, match="got 2 of which none"):
        compute("llama", tmp_path, texts=["", " "])
    with pytest.raises(EditError, match="one string, expected a sequence"):
        compute("llama", tmp_path, texts="Marie Curie")
