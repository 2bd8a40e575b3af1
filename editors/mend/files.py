"""A MEND network as a folder: `mend.safetensors` and `mend.json`. No pickle."""

from __future__ import annotations

import json
import os
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from seesaw_cf.base.errors import RecordError, StorageError
from seesaw_cf.base.files import atomic_folder
from seesaw_cf.base.types import JsonObject
from seesaw_cf.editors.mend.network import Matrix, MENDNetwork, NetworkShape

FORMAT, VERSION = "seesaw_cf.mend", 1


def save_network(network: MENDNetwork, folder: str | os.PathLike[str], facts: JsonObject | None = None) -> None:
    """Write a network; the folder appears whole or not at all.

    Args:
        network: What to save.
        folder: A folder that does not exist yet, or is empty.
        facts: More JSON-able facts: the base it was trained for, the training settings, the losses.

    Raises:
        StorageError: The folder is not empty or cannot be written.
    """
    shape = network.shape
    text = {
        "format": FORMAT,
        "format_version": VERSION,
        "matrices": [[matrix.name, matrix.inputs, matrix.outputs] for matrix in shape.matrices],
        "rank": shape.rank,
        "hidden": shape.hidden,
        "facts": dict(facts or {}),
    }
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in network.state_dict().items()}
    with atomic_folder(folder) as temporary:
        save_file(tensors, temporary / "mend.safetensors", metadata={"format": "pt"})
        (temporary / "mend.json").write_text(json.dumps(text, indent=1) + "\n", encoding="utf-8")


def load_network(folder: str | os.PathLike[str]) -> MENDNetwork:
    """Read a network back, bit for bit, in eval mode.

    Raises:
        StorageError: A file is missing.
        RecordError: A file is damaged, of another format, or the two do not belong together.
    """
    where = Path(folder)
    try:
        facts = json.loads((where / "mend.json").read_text(encoding="utf-8"))
        tensors = load_file(where / "mend.safetensors")
    except FileNotFoundError as error:
        raise StorageError(
            f"{error.filename or where}: no such file. A MEND network is a folder of two files."
        ) from error
    except (ValueError, SafetensorError) as error:
        raise RecordError(f"{where}: damaged ({error}). Copy the folder again, or train anew.") from error
    if not isinstance(facts, dict) or (facts.get("format"), facts.get("format_version")) != (FORMAT, VERSION):
        raise RecordError(
            f"{where / 'mend.json'}: not a MEND network of format {FORMAT!r}, version {VERSION}. Train anew."
        )
    try:
        matrices = tuple(Matrix(str(name), int(inputs), int(outputs)) for name, inputs, outputs in facts["matrices"])
        network = MENDNetwork(NetworkShape(matrices, int(facts["rank"]), int(facts["hidden"])))
        network.load_state_dict(tensors)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise RecordError(
            f"{where}: mend.json and mend.safetensors do not belong together ({error}). Copy the folder again."
        ) from error
    return network.eval()
