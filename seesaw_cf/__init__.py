"""seesaw_cf: how editing a fact in a language model changes what it believes about other people.

    import seesaw_cf
    cases = seesaw_cf.load("cross_subject")     # the embedded sample as a `datasets.Dataset`
    seesaw_cf.register()                        # evaluate.load("edit_bias") then works from any folder, offline

Everything heavy (torch, transformers, evaluate, datasets) is imported only by what needs it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seesaw_cf.registering import register
    from seesaw_cf.sample import configs, load, path

__version__ = "0.1.0"
__all__ = ["__version__", "configs", "load", "path", "register"]

_HOME = {
    "configs": "seesaw_cf.sample",
    "load": "seesaw_cf.sample",
    "path": "seesaw_cf.sample",
    "register": "seesaw_cf.registering",
}


def __getattr__(name: str) -> Any:
    """Imports the module behind a public name on first use."""
    if name not in _HOME:
        raise AttributeError(f"module 'seesaw_cf' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
