"""The tensors of a checkpoint folder, one at a time: what they are is known without reading them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from seesaw_cf.base.errors import RecordError, StorageError
from seesaw_cf.base.text import read_json

_ONE, _INDEX = "model.safetensors", "model.safetensors.index.json"
_PICKLED = ("pytorch_model.bin", "pytorch_model.bin.index.json")


@contextmanager
def whole_tensors(file: Path, remedy: str = "Copy or download the whole folder.") -> Iterator[None]:
    """Say of a file of tensors that it is missing or damaged, where reading it in the block fails.

    Raises:
        StorageError: It is missing.
        RecordError: It is damaged.
    """
    try:
        yield
    except (OSError, SafetensorError) as error:
        kind = StorageError if isinstance(error, OSError) else RecordError
        raise kind(f"{file}: missing or damaged ({error}). {remedy}") from error


@dataclass(frozen=True)
class TensorFiles:
    """The safetensors files of a checkpoint, in one piece or in several with an index.

    Attributes:
        folder: Where they are.
    """

    folder: Path

    @cached_property
    def files(self) -> dict[str, Path]:
        """Tensor name -> the file it is in.

        Raises:
            StorageError: No safetensors file exists, or one that the index names is missing.
            RecordError: The index or a file is damaged.
        """
        if (self.folder / _INDEX).is_file():
            named: Any = read_json(self.folder / _INDEX).get("weight_map")
            if not isinstance(named, dict) or not all(isinstance(n, str) and Path(n).name == n for n in named.values()):
                raise RecordError(
                    f"{self.folder / _INDEX}: no 'weight_map' from tensors to files of this folder. Copy or download "
                    "the checkpoint again."
                )
            return {name: self.folder / file for name, file in named.items()}
        if not (self.folder / _ONE).is_file():
            raise StorageError(f"{self.folder}: no {_ONE} in it. {self._remedy()}")
        with self._opened(self.folder / _ONE) as file:
            return dict.fromkeys(file.keys(), self.folder / _ONE)

    def shapes(self) -> dict[str, torch.Size]:
        """Return tensor name -> shape, from the files' headers.

        Raises:
            StorageError: A file is missing.
            RecordError: A file is damaged, or misses a tensor that the index lists.
        """
        shapes: dict[str, torch.Size] = {}
        for file in dict.fromkeys(self.files.values()):
            with self._opened(file) as opened:
                there = [name for name, place in self.files.items() if place == file]
                shapes |= {name: torch.Size(opened.get_slice(name).get_shape()) for name in there}
        return shapes

    def tensor(self, name: str) -> Tensor:
        """Read one tensor, onto the CPU.

        Raises:
            StorageError: Its file is missing.
            RecordError: Its file is damaged.
        """
        with self._opened(self.files[name]) as file:
            tensor: Tensor = file.get_tensor(name)
        return tensor

    @contextmanager
    def _opened(self, file: Path) -> Iterator[Any]:
        try:
            with safe_open(file, framework="pt", device="cpu") as opened:
                yield opened
        except OSError as error:
            raise StorageError(
                f"{file}: cannot be read ({error.strerror or error}). Copy or download the whole checkpoint."
            ) from error
        except SafetensorError as error:
            raise RecordError(f"{file}: damaged ({error}). Copy or download it again.") from error

    def _remedy(self) -> str:
        if any((self.folder / name).exists() for name in _PICKLED):
            return (
                "Its weights are pickled (.bin), which is not read because it can run code. Where you trust the file, "
                "convert it once with AutoModelForCausalLM.from_pretrained(FOLDER).save_pretrained(NEW_FOLDER)."
            )
        return "Expected a folder that save_pretrained wrote, with its safetensors files."
