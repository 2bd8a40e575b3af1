"""Text written by a model: one interface, several back ends, every sample with its own seed.

`HFGenerator` (seesaw_cf.generation.hf) writes with a transformers model, `OpenAIGenerator` (seesaw_cf.generation.api)
through any OpenAI-compatible server, `CachedGenerator` keeps what either wrote. They are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seesaw_cf.base.system import lazy
from seesaw_cf.generation.types import Ask, CachedGenerator, Completion, Generator, Message, Sampling

if TYPE_CHECKING:
    from seesaw_cf.generation.api import OpenAIGenerator
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

__getattr__, __dir__ = lazy(
    __name__,
    {
        "HFGenerator": "seesaw_cf.generation.hf",
        "OpenAIGenerator": "seesaw_cf.generation.api",
    },
)
