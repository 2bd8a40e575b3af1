"""Seeds and chances that depend on words alone, so that any part of a job, in any order, draws the same."""

from __future__ import annotations

import hashlib
import json


def seed_of(*parts: object, bits: int = 48, joined: str | None = None) -> int:
    """Return a whole number from 0 to 2**bits - 1 that depends only on `parts`; it is the same on every machine.

    Args:
        parts: Words and numbers.
        bits: At most 64; 48 is what every server's JSON can carry.
        joined: The parts as text with this between them are hashed, not as JSON: what was drawn so stays as it was.
    """
    text = json.dumps(parts) if joined is None else joined.join(map(str, parts))
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") >> (64 - bits)


def chance_of(*parts: object, bits: int = 53, joined: str | None = None) -> float:
    """Return a number in [0, 1) that depends on nothing but `parts`; see `seed_of`."""
    return seed_of(*parts, bits=bits, joined=joined) / float(2**bits)
