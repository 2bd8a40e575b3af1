"""A model that was changed elsewhere: a second model, loaded as transformers and peft load it.

Reaches the network for an id on the Hugging Face Hub only.
"""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor
from transformers import AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.checks import check_path
from seesaw_cf.base.errors import DeltaMismatchError, RecordError, SeesawError, StorageError, need
from seesaw_cf.base.hub import download
from seesaw_cf.base.text import read_json
from seesaw_cf.models.delta_files import load_delta
from seesaw_cf.models.load import read_model
from seesaw_cf.models.names import known_name
from seesaw_cf.models.tensors import in_float64
from seesaw_cf.models.trial import check_model, embedding, silent_loaders, some_ids
from seesaw_cf.models.weights import WeightDelta, write

# What tells a folder's form, in the order in which it is looked for: that of an adapter may hold a config.json, too.
_FORMS = {"delta.json": "delta", "adapter_config.json": "adapter", "config.json": "checkpoint"}
_FILES = ("*.json", "*.safetensors", "*.model", "*.txt", "*.jinja")
_TOKENIZERS = ("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.json")
_ROUNDING = {torch.float64: 1e-6, torch.float32: 1e-3}
"""Nats that merging an adapter may move a log-probability by; an adapter that moves it more is asked unmerged."""


@dataclass(frozen=True, slots=True)
class SecondModel:
    """A changed model in memory.

    Attributes:
        model: In eval mode.
        tokenizer: Its own.
        notes: What a reader of its numbers must know, in sentences.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChangedModel:
    """A model changed elsewhere, before it is loaded.

    Attributes:
        source: As it was given.
        form: "checkpoint", "adapter", "delta" or "model in memory".
        place: Folder or GGUF file on this machine.
        held: The model itself, or the delta, where it is in memory.
        tokenizer: Of a model in memory; None = the base's.
    """

    source: str
    form: str
    place: Path = Path()
    held: PreTrainedModel | WeightDelta | None = None
    tokenizer: PreTrainedTokenizerBase | None = None

    def load(
        self, base: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, *, trust_remote_code: bool = False
    ) -> SecondModel:
        """Load the model, in the dtype and onto the device of its base.

        Args:
            base: Read, not changed.
            tokenizer: Of the base; also the model's, where its folder has none.
            trust_remote_code: See `load_model`.

        Raises:
            SeesawError: It cannot be loaded, does not fit its base, or is the base.
        """
        if self.held is not None and not isinstance(self.held, WeightDelta):
            _check_apart(base, self.held)
            _check_prompts(self.source, self.held)
            second = SecondModel(self.held, self.tokenizer or tokenizer)
        elif self.form == "checkpoint":
            second = self._load_checkpoint(base, tokenizer, trust_remote_code)
        elif self.form == "adapter":
            second = self._load_adapter(base, tokenizer)
        else:
            second = SecondModel(self._with_delta(base), tokenizer)
        check_model(second.model, second.tokenizer)
        return second

    def _load_checkpoint(
        self, base: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, trust_remote_code: bool
    ) -> SecondModel:
        own = self.place.suffix == ".gguf" or any((self.place / name).exists() for name in _TOKENIZERS)
        notes = [] if own else [f"{self.place.name} has no tokenizer: the base's is used"]
        model, its_tokenizer, said = read_model(
            str(self.place),
            device=base.device,
            dtype=base.dtype,
            trust_remote_code=trust_remote_code,
            tokenizer=None if own else tokenizer,
        )
        return SecondModel(model, its_tokenizer, (*notes, *said))

    def _load_adapter(self, base: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> SecondModel:
        config = read_json(self.place / "adapter_config.json")
        kind = str(config.get("peft_type"))
        with need("peft", extra="hub", what_for=f"an adapter of type {kind}"):
            from peft import PeftModel
        rows, notes = _rows(self.place), _base_notes(config, base)
        tokenizer = _own_tokenizer(self.place, tokenizer) if rows else tokenizer

        def adapt() -> Any:
            whole = copy.deepcopy(base)
            if rows and rows != len(embedding(whole)):
                whole.resize_token_embeddings(rows, mean_resizing=False)
            return PeftModel.from_pretrained(whole, str(self.place)).eval()

        try:
            with silent_loaders(bars=False), torch.random.fork_rng():
                adapted = adapt()
                _check_prompts(self.source, adapted)
                before = _logprobs(adapted, base)
                with contextlib.suppress(Exception):  # of peft: not every adapter has a place in the weights
                    merged = adapted.merge_and_unload().eval()
                    if float((before - _logprobs(merged, base)).abs().max()) <= _ROUNDING.get(base.dtype, 0.3):
                        return SecondModel(merged, tokenizer, notes)
                adapted = adapt()
        except SeesawError:
            raise
        except Exception as error:  # peft fails in any way where base and adapter do not fit
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise DeltaMismatchError(
                f"{self.source}: peft cannot load this {kind} adapter onto {type(base).__name__} "
                f"({type(error).__name__}: {lines[-1].strip()[:200]}). Give the base it was made on with --model, or "
                "merge the adapter with peft and give the checkpoint."
            ) from error
        return SecondModel(adapted, tokenizer, (*notes, f"this {kind} adapter is asked as peft runs it, not merged"))

    def _with_delta(self, base: PreTrainedModel) -> PreTrainedModel:
        delta = self.held if isinstance(self.held, WeightDelta) else load_delta(self.place, base)
        if delta.context:
            raise RecordError(
                f"{self.source}: this delta puts a text before every prompt and changes no weights. Audit it with "
                "--editor ike."
            )
        if not delta.is_finite():
            raise RecordError(f"{self.source}: this delta holds numbers that are not finite, so its edit failed.")
        return with_delta(base, delta)


def find_changed(source: str) -> ChangedModel:
    """Find a model changed elsewhere.

    Args:
        source: A folder with a checkpoint, an adapter or a saved delta, a GGUF file, or an id on the Hugging Face Hub,
            as "ORG/NAME" or "ORG/NAME@REVISION" (branch, tag or commit).

    Raises:
        StorageError: None of these, or a folder with nothing of that kind.
    """
    folder = check_path(source)
    if source.endswith(".gguf"):
        return ChangedModel(source, "checkpoint", folder)
    if not folder.exists():
        what = "no such folder, and the Hub gives no model of that id"
        remedy = "for the Hub check name, revision and network; a gated model needs `hf auth login`"
        folder = download(source, what, remedy, allow_patterns=list(_FILES))  # only the files that are read
    form = next((form for name, form in _FORMS.items() if (folder / name).is_file()), None)
    if form is None:
        run = "It is a run folder: name one of its deltas/EDITOR/UNIT." if (folder / "manifest.json").exists() else ""
        raise StorageError(
            f"{source}: holds none of {', '.join(_FORMS)}; expected a checkpoint that save_pretrained wrote, an "
            f"adapter of peft, or a delta that was saved. {run or 'Name its folder.'}"
        )
    return ChangedModel(source, form, folder)


def with_delta(base: PreTrainedModel, delta: WeightDelta) -> PreTrainedModel:
    """Return a copy of a model with a delta in its weights, rounded once."""
    model = copy.deepcopy(base)
    write(model, delta)
    return model


def norms_between(base: PreTrainedModel, other: PreTrainedModel) -> dict[str, float]:
    """Return the Frobenius norm of the difference of each parameter of the base; {} where the parameters differ.

    It is what a random change of the same norm needs. Of an embedding with more rows those that both have count.
    """
    plain = _plain(other)
    theirs = {} if plain is None else dict(plain.named_parameters())
    norms: dict[str, float] = {}
    for name, parameter in base.named_parameters():
        value = theirs.get(name)
        if value is None or value.shape[1:] != parameter.shape[1:] or not value.is_floating_point():
            return {}
        rows = min(len(value), len(parameter))
        if rows != len(parameter) and name.rpartition(".")[2] != "weight":
            return {}
        own, changed = parameter.detach()[:rows], value.detach()[:rows].to(parameter.device)
        if norm := math.sqrt(float((in_float64(changed) - in_float64(own)).square().sum())):
            norms[name] = norm
    return norms


def _plain(model: Any) -> Any:
    """Return a model with plain weights: an adapter merged, quantised weights as the numbers that they stand for."""
    undo = "dequantize" if getattr(model, "is_quantized", False) else "merge_and_unload"
    if not hasattr(model, undo):
        return model
    try:
        with silent_loaders(bars=False):
            return getattr(copy.deepcopy(model), undo)()
    except Exception:  # a method that cannot be undone
        return None


def _check_apart(base: PreTrainedModel, other: PreTrainedModel) -> None:
    if set(base.modules()) & set(other.modules()):
        raise RecordError(
            "changed: this model is made of the base's own modules (as a PeftModel is of its base), so that neither "
            "can be asked without the other. Load the base again with seesaw_cf.models.load_model, or give its name."
        )


def _check_prompts(source: str, model: Any) -> None:
    config: Any = getattr(model, "active_peft_config", None)
    if getattr(config, "is_prompt_learning", False):
        raise RecordError(
            f"{source}: this {config.peft_type.value} adapter puts tokens of its own before every text, which no score "
            "of the text's tokens allows for. Give one that changes what the model computes."
        )


def _base_notes(config: Mapping[str, Any], base: PreTrainedModel) -> tuple[str, ...]:
    """Say where the base that an adapter names is not the one that was given."""
    places = (config.get("base_model_name_or_path"), base.config._name_or_path)
    named, own = (known_name(str(place or "")) for place in places)
    differ = named and own and Path(named).name != Path(own).name
    return (f"the adapter names {named} as its base, and it is asked on {own}",) if differ else ()


def _rows(folder: Path) -> int:
    """Return how many tokens an adapter's own embedding has; 0 when it has none."""
    file = folder / "adapter_model.safetensors"
    try:
        with safe_open(file, framework="pt") as opened:
            names = [name for name in opened.keys() if name.endswith(_EMBEDDINGS)]  # noqa: SIM118 - it is no mapping
            return int(opened.get_slice(names[0]).get_shape()[0]) if names else 0
    except OSError as error:
        raise StorageError(f"{file}: missing or damaged ({error}). Copy or download the whole folder.") from error
    except SafetensorError as error:
        raise RecordError(f"{file}: damaged ({error}). Copy or download the whole folder.") from error


_EMBEDDINGS = ("embed_tokens.weight", "wte.weight", "embed_in.weight", "embed_tokens.base_layer.weight")


def _own_tokenizer(folder: Path, tokenizer: PreTrainedTokenizerBase) -> PreTrainedTokenizerBase:
    if not any((folder / name).exists() for name in _TOKENIZERS):
        return tokenizer
    with silent_loaders(bars=False):
        own: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(folder)
    return own


def _logprobs(model: Any, base: PreTrainedModel) -> Tensor:
    ids = torch.tensor([some_ids(base, 8)], device=base.device)
    with torch.inference_mode():
        logits: Tensor = model(input_ids=ids, use_cache=False).logits
        return logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(-1)
