"""transformers' loaders without their own reports and bars."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator

from transformers.utils import logging as logs


@contextlib.contextmanager
def silent_loaders(bars: bool) -> Iterator[None]:
    """Without transformers' own report of the weights, and its bars only when wanted; what was set is put back."""
    level, bars_before = logs.get_verbosity(), logs.is_progress_bar_enabled()
    logs.set_verbosity_error()
    if not bars:
        logs.disable_progress_bar()
    try:
        # The bar of GGUF files knows no setting of transformers.
        with contextlib.nullcontext() if bars else contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logs.set_verbosity(level)
        if bars_before:
            logs.enable_progress_bar()
