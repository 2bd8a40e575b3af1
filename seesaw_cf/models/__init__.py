"""The model: loading, architectures, weight deltas and their files. Embedded weights lie next to this file.

Names are imported on first use: torch is not needed to know where the embedded weights lie.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seesaw_cf.base.system import lazy

if TYPE_CHECKING:
    from seesaw_cf.models.architectures import ModelParts, model_parts
    from seesaw_cf.models.corpus import Corpus, sample_corpus
    from seesaw_cf.models.editor import Editor
    from seesaw_cf.models.load import load_model
    from seesaw_cf.models.names import model_path
    from seesaw_cf.models.weights import LowRank, WeightDelta, applied

__all__ = [
    "Corpus",
    "Editor",
    "LowRank",
    "ModelParts",
    "WeightDelta",
    "applied",
    "load_model",
    "model_parts",
    "model_path",
    "sample_corpus",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "Corpus": "seesaw_cf.models.corpus",
        "Editor": "seesaw_cf.models.editor",
        "load_model": "seesaw_cf.models.load",
        "model_path": "seesaw_cf.models.names",
        "sample_corpus": "seesaw_cf.models.corpus",
    }
    | dict.fromkeys(("ModelParts", "model_parts"), "seesaw_cf.models.architectures")
    | dict.fromkeys(("LowRank", "WeightDelta", "applied"), "seesaw_cf.models.weights"),
)
