"""One seed for every (identity, run, step, try), from nothing but these and the crawl's seed."""

from __future__ import annotations

import hashlib

__all__ = ["seed_of"]


def seed_of(seed: int, identity: str, run: int, step: int, attempt: int) -> int:
    """A number from 0 to 2**31 - 1; the same on every machine, whatever else is crawled."""
    text = "\x1f".join((str(seed), identity, str(run), str(step), str(attempt)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1
