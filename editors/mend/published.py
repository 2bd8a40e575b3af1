"""MEND networks as their authors saved them: one `.pt` file, read without running anything that is in it.

Such a file is a pickle of {"model": state dict, "opt": ..., ...}, with the configuration of the language model in the
state dict. Only tensors and plain containers are read; every other object becomes an empty stand-in.

Source: Mitchell et al. 2022, the mend repository (trainer.py, algs/mend.py: `state_dict`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor
from torch.serialization import get_unsafe_globals_in_checkpoint, safe_globals
from transformers import PreTrainedModel

from seesaw_cf.base.errors import RecordError, StorageError
from seesaw_cf.editors.mend.network import MENDNetwork, NetworkShape, matrices_of

_SHAPES = "(1600, 6400), ..."
_LAYER = re.compile(r"mend\..+\.mlp\.layers\.(\d+)\.u")


class _StandIn:
    """What every class and function of a file is replaced by: it takes anything and does nothing."""

    def __init__(self, *_: object, **__: object) -> None:
        pass


def load_published(file: Path, names: Sequence[str], model: PreTrainedModel) -> MENDNetwork:
    """Read a network that the authors' program or EasyEdit saved, in eval mode.

    Args:
        file: The file. Nothing in it is imported or called.
        names: The edited weights in the order of its training: step sizes have no other names.
        model: The language model, for the sizes of these weights.

    Raises:
        StorageError: No such file.
        RecordError: It is no such file, or was trained for other weights.
    """
    state = _state(file)
    layers = {key: match[1] for key in state if state[key].dim() == 2 and (match := _LAYER.fullmatch(key))}
    if not layers or "edit_lrs" not in state:
        raise RecordError(
            f"{file}: no MEND network in it, expected the tensors edit_lrs and mend.{_SHAPES}.mlp.layers.0.u. Give "
            "the file that training saved, or the folder of a network of this package."
        )
    hidden = len(set(layers.values())) - 1
    shape = NetworkShape(matrices_of(names, model), max(state[key].shape[1] for key in layers), hidden)
    network = MENDNetwork(shape)
    try:
        network.load_state_dict(state)
    except RuntimeError as error:
        raise RecordError(
            f"{file}: made for other weights than {', '.join(names)} ({error}). Set `layers` or `matrices` to the "
            "weights that it was trained for, in their order."
        ) from error
    return network.eval()


def _state(file: Path) -> dict[str, Tensor]:
    """Return the tensors of a file's network, in float32."""
    if not file.exists():
        raise StorageError(f"{file}: no such file. Check `weights`.")
    try:
        stand_ins: list[Callable[..., object] | tuple[Callable[..., object], str]]
        stand_ins = [(_StandIn, name) for name in get_unsafe_globals_in_checkpoint(str(file))]
        with safe_globals(stand_ins):
            archive: object = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # of a damaged file anything may come
        raise RecordError(
            f"{file}: not a plain file of torch.save in its format since torch 1.6, or damaged, or it holds commands "
            f"({str(error)[:120]}). Download it again from its authors."
        ) from error
    held = archive.get("model", archive) if isinstance(archive, Mapping) else {}
    tensors = {re.sub(r"^gtn\.", "mend.", str(name)): held[name] for name in held} if isinstance(held, Mapping) else {}
    return {
        name: value.float()
        for name, value in tensors.items()
        if isinstance(value, Tensor) and (name.startswith("mend.") or name == "edit_lrs")
    }
