"""Other forward functions for single modules, for the length of a `with` block."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from torch import nn

__all__ = ["exchanged"]


@contextlib.contextmanager
def exchanged(forwards: Mapping[nn.Module, Callable[..., Any]]) -> Iterator[None]:
    """Inside the block every module of `forwards` runs the function given for it; its hooks run as ever.

    Args:
        forwards: Modules are as before afterwards, also after an exception.
    """
    kept = {part: vars(part).get("forward") for part in forwards}
    try:
        for part, forward in forwards.items():
            vars(part)["forward"] = forward
        yield
    finally:
        for part, before in kept.items():
            if before is None:
                vars(part).pop("forward", None)
            else:
                vars(part)["forward"] = before
