"""Text written by a model: one interface, several back ends, every sample with its own seed.

`HFGenerator` (seesaw_cf.generation.hf) writes with a transformers model, `OpenAIGenerator` (seesaw_cf.generation.api)
through any OpenAI-compatible server, `CachedGenerator` keeps what either wrote. They are imported on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from seesaw_cf.generation.types import Ask, Completion, Generator, Message, Sampling

if TYPE_CHECKING:
    from seesaw_cf.generation.api import OpenAIGenerator
    from seesaw_cf.generation.cached import CachedGenerator
    from seesaw_cf.generation.hf import HFGenerator

__all__ = [
    "Ask",
    "CachedGenerator",
    "Completion",
    "Generator",
    "HFGenerator",
    "Message",
    "OpenAIGenerator",
    "Sampling",
]

_HOME = {"CachedGenerator": "cached", "HFGenerator": "hf", "OpenAIGenerator": "api"}


def __getattr__(name: str) -> Any:
    """Imports a back end on first use."""
    if name not in _HOME:
        raise AttributeError(f"module 'seesaw_cf.generation' has no attribute {name!r}")
    return getattr(importlib.import_module(f"seesaw_cf.generation.{_HOME[name]}"), name)
