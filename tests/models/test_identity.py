"""One model, one identity: whatever changes logits changes it, and a copy keeps it."""

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoConfig, PreTrainedModel

from seesaw_cf.generation import HFGenerator
from seesaw_cf.models import load_model, model_path
from seesaw_cf.models.identity import fingerprint, has_own_code, identity
from seesaw_cf.scoring import HFScorer
from seesaw_cf.scoring.pre_scores import pre_scores
from seesaw_cf.types import Cloze
from tests.scoring.models import make
from tests.tokenizer_styles import byte_level


def _logits(model: PreTrainedModel) -> torch.Tensor:
    with torch.inference_mode():
        found: torch.Tensor = model(input_ids=torch.arange(2, 22)[None], use_cache=False).logits
    return found


def _other(name: str, value: Any) -> list[Any]:
    """Other values of a field, some of which a model can be made with."""
    words = {"hidden_act": ["relu"], "activation_function": ["relu"]}
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value * 2]
    if isinstance(value, float):
        return [value * 1.5 + 0.1]
    if isinstance(value, dict):
        return [{**value, key: new} for key, old in value.items() for new in _other(key, old)]
    return words.get(name, [1, 0.3, True, "text", []] if value is None else [])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_every_field_of_a_configuration_changes_the_identity_or_no_logit(kind: str) -> None:
    model = make(kind)
    expected, own, weights = _logits(model), fingerprint(model), model.state_dict()
    tried, moved = set(), set()
    for name, value in model.config.to_dict().items():
        for new in _other(name, value):
            try:
                config = AutoConfig.for_model(**model.config.to_dict() | {name: new})
                other = type(model)(config).eval()
                other.load_state_dict(weights)
                logits = _logits(other)
            except Exception:  # no model can be made with that value and these weights
                continue
            tried.add(name)
            if logits.shape != expected.shape or not torch.equal(logits, expected):
                moved.add(name)
                assert fingerprint(other) != own, name
    assert len(tried) > 15
    known = {"llama": {"rms_norm_eps", "hidden_act", "rope_parameters"}, "gpt2": {"layer_norm_epsilon", "n_head"}}
    assert known[kind] <= moved


class Scaled(torch.nn.Linear):
    """Code of this file, with a number of its own."""

    scale: float = 2.0


def _module(model: Any, scale: float = 2.0) -> None:
    own = model.model.layers[0].mlp.down_proj
    other = Scaled(own.in_features, own.out_features, bias=False)
    other.weight, other.scale = own.weight, scale
    model.model.layers[0].mlp.down_proj = other


_MATMUL = torch.backends.cuda.matmul
_SWITCHES: dict[str, Callable[[Any], object]] = {
    "precision": lambda _: torch.set_float32_matmul_precision("medium"),
    "reduced": lambda _: setattr(_MATMUL, "allow_bf16_reduced_precision_reduction", False),
    "accumulation": lambda _: setattr(_MATMUL, "allow_fp16_accumulation", True),
    "oneDNN": lambda _: setattr(torch.backends.mkldnn, "enabled", False),
    "autocast": lambda _: torch.set_autocast_enabled("cpu", True),
    "attention kernels": lambda _: torch.backends.cuda.enable_flash_sdp(False),
    "determinism": lambda _: torch.use_deterministic_algorithms(True),
    "attention": lambda model: model.set_attn_implementation("eager"),
    "configuration": lambda model: setattr(model.config, "rms_norm_eps", 0.3),
    "module": _module,
    "buffer": lambda model: next(iter(model.buffers())).mul_(2),
    "new buffer": lambda model: model.register_buffer("scale", torch.ones(2), persistent=False),
    "weight": lambda model: next(iter(model.parameters())).data[0, 0].add_(1),
}
_OWN_CODE: dict[str, Callable[[Any], object]] = {
    "hook": lambda model: model.model.layers[0].register_forward_hook(lambda _, __, output: output),
    "pre-hook": lambda model: model.model.layers[0].mlp.register_forward_pre_hook(lambda *_: None),
    "global hook": lambda _: torch.nn.modules.module.register_module_forward_hook(lambda *_: None),
    "forward": lambda model: setattr(model.model.layers[0].mlp, "forward", model.model.layers[0].mlp.forward),
}


@contextlib.contextmanager
def _as_before() -> Iterator[None]:
    """Put back what belongs to the process."""
    precision, reduced = torch.get_float32_matmul_precision(), _MATMUL.allow_bf16_reduced_precision_reduction
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(precision)
        _MATMUL.allow_bf16_reduced_precision_reduction, _MATMUL.allow_fp16_accumulation = reduced, False
        setattr(torch.backends.mkldnn, "enabled", True)  # noqa: B010 - its stub takes no bool
        torch.set_autocast_enabled("cpu", False)
        torch.backends.cuda.enable_flash_sdp(True)
        torch.use_deterministic_algorithms(False)
        torch.nn.modules.module._global_forward_hooks.clear()


@pytest.mark.slow(20)
@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_whatever_moves_a_logit_changes_the_identity(data: st.DataObject) -> None:
    """Any changes, one after the other: each gives another identity, which asking again does not change."""
    with _as_before():
        model = make("llama")
        found = [fingerprint(model)]
        for what in data.draw(st.permutations(list(_SWITCHES)))[:6]:
            _SWITCHES[what](model)
            found.append(fingerprint(model))
            assert fingerprint(model) == found[-1]
        assert len(set(found)) == len(found)
    assert fingerprint(make("llama")) == found[0]


@pytest.mark.parametrize("what", _OWN_CODE)
def test_nothing_is_cached_of_a_model_with_code_that_no_hash_names(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEESAW_CF_CACHE", str(tmp_path))
    model = make("llama")
    scorer = HFScorer(model, byte_level(bos=False))
    list(pre_scores(scorer, [[Cloze("a b", "c")]], {}))
    assert len(list(tmp_path.rglob("*.parquet"))) == 1
    with _as_before():
        _OWN_CODE[what](model)
        assert has_own_code(model)
        assert fingerprint(model) != fingerprint(model)
        list(pre_scores(scorer, [[Cloze("d", "e")]], {}))
    assert len(list(tmp_path.rglob("*.parquet"))) == 1


def _change(file: str, *keys: str | int, to: Any) -> Callable[[Path], None]:
    """Change one value of a JSON file in a folder."""

    def change(folder: Path) -> None:
        value = json.loads((folder / file).read_text())
        place = value
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = to
        (folder / file).write_text(json.dumps(value))

    return change


def _weights(folder: Path) -> None:
    data = bytearray((folder / "model.safetensors").read_bytes())
    data[-3] ^= 64
    (folder / "model.safetensors").write_bytes(data)


_CHANGES = {
    "epsilon": _change("config.json", "rms_norm_eps", to=0.3),
    "weights": _weights,
    "normaliser": _change("tokenizer.json", "normalizer", to={"type": "Lowercase"}),
    "merges": _change("tokenizer.json", "model", "merges", to=[]),
    "added token": _change("tokenizer.json", "added_tokens", 0, "lstrip", to=True),
    "beginning": _change("tokenizer.json", "post_processor", to=None),
    "template": _change("tokenizer_config.json", "chat_template", to="{{ messages }}"),
    "end": _change("generation_config.json", "eos_token_id", to=7),
}
_TEXTS_ONLY = {"end"}  # what writes another text and scores the same


@pytest.mark.slow
@pytest.mark.parametrize("what", _CHANGES)
def test_every_file_that_computes_is_part_of_the_identity(what: str, tmp_path: Path) -> None:
    shutil.copytree(model_path("seesaw-tiny"), tmp_path / "copy")
    base, copy = load_model("seesaw-tiny", device="cpu"), load_model(str(tmp_path / "copy"), device="cpu")
    expected, name = identity(*base), HFGenerator(*base).name.split()[-1]
    assert (identity(*copy), HFGenerator(*copy).name.split()[-1]) == (expected, name)
    _CHANGES[what](tmp_path / "copy")
    other = load_model(str(tmp_path / "copy"), device="cpu")
    assert (identity(*other) == expected) == (what in _TEXTS_ONLY)
    assert HFGenerator(*other).name.split()[-1] != name
