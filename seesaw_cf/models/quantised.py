"""Quantised checkpoints as transformers loads them, with the weights that their numbers stand for."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedModel

from seesaw_cf.base.errors import MissingExtraError, UnsupportedModelError
from seesaw_cf.base.text import read_json
from seesaw_cf.models.hooks import silent_loaders

# `quant_method` of a config.json -> the packages that transformers needs to load it.
_PACKAGES = {
    "bitsandbytes": "bitsandbytes",
    "torchao": "torchao",
    "gptq": "gptqmodel optimum",
    "awq": "gptqmodel",
    "hqq": "hqq",
    "quanto": "optimum-quanto",
    "compressed-tensors": "compressed-tensors",
}


def quantisation(folder: Path) -> str:
    """Return by which method a checkpoint is quantised, "" for none.

    Raises:
        StorageError: No config.json.
        RecordError: It is damaged.
    """
    settings = read_json(folder / "config.json", any_number=True).get("quantization_config")
    if not isinstance(settings, dict):
        return ""
    return str(settings.get("quant_method") or "bitsandbytes")


def load_quantised(folder: Path, model: PreTrainedModel) -> PreTrainedModel:
    """Load a quantised checkpoint onto the device of its base.

    Raises:
        MissingExtraError: The package of its method is not installed; names it.
        UnsupportedModelError: It cannot be loaded on this machine.
    """
    method = quantisation(folder)
    packages = _PACKAGES.get(method, method)
    try:
        with silent_loaders(bars=False):
            loaded: PreTrainedModel = AutoModelForCausalLM.from_pretrained(
                folder, dtype=model.dtype, device_map={"": model.device}, use_safetensors=True
            )
    except Exception as error:  # each method's package fails in ways of its own
        lines = str(error).strip().splitlines() or [type(error).__name__]
        if isinstance(error, ImportError):
            raise MissingExtraError(
                f"{folder}: quantised by {method}, and what loads it is not installed ({lines[0][:160]}). Install it "
                f"with: pip install {packages} accelerate. Or audit its GGUF file, or a dequantised copy.",
                name=packages.split()[0],
            ) from error
        raise UnsupportedModelError(
            f"{folder}: quantised by {method}, and cannot be loaded on {model.device.type} ({type(error).__name__}: "
            f"{lines[0][:160]}). Use a machine that its method runs on, or audit its GGUF file or a dequantised copy."
        ) from error
    loaded.eval()
    return loaded


def plain_weights(quantised: PreTrainedModel) -> Mapping[str, Tensor]:
    """Return parameter name -> the floating-point weights that quantised numbers stand for; the model is used up."""
    model: Any = quantised
    with contextlib.suppress(NotImplementedError), silent_loaders(bars=False):
        model = model.dequantize()
    return {
        name: parameter.detach() if type(parameter.data) is torch.Tensor else parameter.detach().dequantize()
        for name, parameter in model.named_parameters()
    }
