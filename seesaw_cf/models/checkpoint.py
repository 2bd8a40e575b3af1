"""An edited model as a full checkpoint."""

from __future__ import annotations

import json
import os

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.errors import EditError
from seesaw_cf.io.files import atomic_folder
from seesaw_cf.models.delta_files import describe
from seesaw_cf.models.silent import silent_loaders
from seesaw_cf.models.weights import WeightDelta, applied


def merge_and_save(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    delta: WeightDelta,
    folder: str | os.PathLike[str],
    *,
    base_model: str | None = None,
) -> None:
    """Write model, tokenizer and edit as one checkpoint that `from_pretrained(folder)` loads.

    The edit is rounded once into the dtype of the weights. The model is restored bitwise. `seesaw_cf.json` beside the
    weights says what was edited and on which base.

    Args:
        model: The unedited base.
        tokenizer: Its tokenizer.
        delta: The edit.
        folder: A folder that does not exist yet, or is empty.
        base_model: Name of the base to write down, instead of the model's own.

    Raises:
        EditError: The delta is a text context (in-context editing), which a checkpoint cannot hold.
        DeltaMismatchError: The delta does not fit the model.
        StorageError: The folder is not empty or cannot be written.
    """
    if delta.context:
        raise EditError(
            "this delta puts a text before every prompt; a checkpoint holds weights only. "
            "Share it as a delta (save_delta, --as delta) instead."
        )
    facts = describe(delta, model, base_model)
    with atomic_folder(folder) as temporary:
        with applied(model, delta), silent_loaders(bars=False):
            model.save_pretrained(temporary)
        tokenizer.save_pretrained(temporary)
        (temporary / "seesaw_cf.json").write_text(
            json.dumps(facts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n"
        )
