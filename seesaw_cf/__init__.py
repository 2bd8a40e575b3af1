"""seesaw_cf: how editing a fact in a language model changes what it believes about other people.

The heavy parts (torch, transformers, evaluate, datasets) are imported by the functions that need them.
"""

from __future__ import annotations

__version__ = "0.1.0"
__all__ = ["__version__"]
