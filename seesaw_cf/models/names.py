"""Names of models: the embedded ones, what can be no model's name, and how a manifest names changed ones."""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path
from typing import TypedDict

from seesaw_cf.base.checks import one_of, shown
from seesaw_cf.base.errors import StorageError, UnknownNameError, unknown_name
from seesaw_cf.base.fields import checked

EMBEDDED: tuple[str, ...] = ("seesaw-tiny",)
"""Models that come with the package: folders below `seesaw_cf/models/`."""
_NEEDED = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")

_PART = r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?"
_HUB_ID = re.compile(rf"{_PART}(?:/{_PART})?")
_LONGEST = 96  # of an id on the Hub


@checked
def model_path(name: str) -> Path:
    """Return the folder of an embedded model.

    Raises:
        UnknownNameError: No embedded model has that name; near names are suggested.
        StorageError: The folder is incomplete, as in a package that was built without its data files.
    """
    one_of("embedded model", name, EMBEDDED)
    folder = Path(__file__).with_name(name)
    missing = [file for file in _NEEDED if not (folder / file).is_file()]
    if missing:
        raise StorageError(
            f"embedded model {name!r}: {missing} are missing in {folder}. "
            "Reinstall seesaw_cf, or fetch the checkout's files again."
        )
    return folder


def check_model_name(name: str) -> None:
    """Refuse what can be neither an embedded model, nor a file or folder here, nor an id on the Hub.

    Raises:
        UnknownNameError: See above; near names are suggested.
    """
    if name in EMBEDDED or os.path.exists(name):
        return
    if "/" not in name and difflib.get_close_matches(name.lower(), EMBEDDED, n=1, cutoff=0.6):
        raise unknown_name("model", name, EMBEDDED)
    if name.endswith(".gguf") or len(name) > _LONGEST or not _HUB_ID.fullmatch(name) or ".." in name or "--" in name:
        raise UnknownNameError(
            f"model: {shown(name)} is no file or folder, and no id on the Hugging Face Hub (ORG/NAME). Expected "
            f"{' or '.join(map(repr, EMBEDDED))}, a folder with a transformers causal language model, a .gguf file, or "
            "an id. Check the spelling."
        )


def known_name(place: str) -> str:
    """Return the name of an embedded model that was loaded from `place` (`model.name_or_path`), else `place`."""
    return {str(Path(__file__).parent / name): name for name in EMBEDDED}.get(place, place)


class EditedModel(TypedDict, total=False):
    """What a run's manifest records of a changed model.

    Attributes:
        source: As it was given.
        form: See `seesaw_cf.models.changed.ChangedModel`.
        notes: What a reader of its numbers must know, in sentences.
        null: Kind of its random control, see `seesaw_cf.editors.control_names.NULLS`; "" for none.
    """

    source: str
    form: str
    notes: list[str]
    null: str
