"""Text written by a model: one interface, several back ends, every sample with its own seed."""

from seesaw_cf.generation.types import Ask, Completion, Generator, Message, Sampling

__all__ = ["Ask", "Completion", "Generator", "Message", "Sampling"]
