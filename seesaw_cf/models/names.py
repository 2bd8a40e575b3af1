"""What may be the name of a model, as far as that is known without loading anything."""

from __future__ import annotations

import difflib
import os
import re

from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import UnknownNameError, unknown_name
from seesaw_cf.models.packaged import NAMED

_PART = r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?"
_HUB_ID = re.compile(rf"{_PART}(?:/{_PART})?")
_LONGEST = 96  # of an id on the Hub


def is_misspelt(name: str) -> bool:
    """Return whether a bare name is close to a packaged one and not a folder; refused before the network is asked."""
    bare = "/" not in name and not os.path.exists(name)
    return bare and bool(difflib.get_close_matches(name.lower(), NAMED, n=1, cutoff=0.6))


def check_model_name(name: str) -> None:
    """Refuse what can be neither a packaged model, nor a file or folder here, nor an id on the Hub.

    Raises:
        UnknownNameError: See above; near names are suggested.
    """
    if name in NAMED or os.path.exists(name):
        return
    if is_misspelt(name):
        raise unknown_name("model", name, NAMED)
    if name.endswith(".gguf") or len(name) > _LONGEST or not _HUB_ID.fullmatch(name) or ".." in name or "--" in name:
        raise UnknownNameError(
            f"--model: {shown(name)} is no file or folder, and no id on the Hugging Face Hub (ORG/NAME). Expected "
            f"{' or '.join(map(repr, NAMED))}, a folder with a transformers causal language model, a .gguf file, an "
            "id, or the address of a server (http://HOST:PORT/v1). Check the spelling."
        )
