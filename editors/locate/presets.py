"""Published layers and hyper-parameters: presets.tsv has one row per (editor, model), each with its source.

A model is recognised by its type, number of blocks, width, MLP width and vocabulary, never by its name: Llama-2-7B and
Llama-3-8B have the same blocks and width and are kept apart. For any other model, and for an editor without
published settings, use a rule (`DEFAULTS`) and warn.
"""

from __future__ import annotations

import csv
import json
import logging
from pathlib import Path
from typing import Any, NamedTuple

from seesaw_cf.base.checks import one_of
from seesaw_cf.models.editor import Model, Settings

_LOG = logging.getLogger(__name__)

MODELS: dict[tuple[str, int, int, int, int], str] = {
    ("gpt2", 48, 1600, 6400, 50257): "gpt2-xl",
    ("gptj", 28, 4096, 16384, 50400): "gpt-j-6b",
    ("llama", 32, 4096, 11008, 32000): "llama-2-7b",
    ("llama", 32, 4096, 14336, 128256): "llama-3-8b",
    ("mistral", 32, 4096, 14336, 32000): "mistral-7b",
    ("llama", 30, 576, 1536, 49152): "smollm2-135m",
    ("llama", 5, 128, 768, 4096): "seesaw-tiny",
}
"""(model type, blocks, width, MLP width, vocabulary) -> the name used in `PRESETS`, chat models included."""


class Preset(NamedTuple):
    """Settings of an editor for one model, and where they were published."""

    source: str
    settings: Settings


def _tuples(settings: Settings) -> Settings:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}


with Path(__file__).with_name("presets.tsv").open(encoding="utf-8", newline="") as _file:
    _ROWS = list(csv.DictReader(_file, delimiter="\t", quoting=csv.QUOTE_NONE))
_TABLE = {(r["editor"], r["model"]): Preset(r["source"], _tuples(json.loads(r["settings"]))) for r in _ROWS}
PRESETS = {key: row for key, row in _TABLE.items() if key[1] != "any other"}
"""(editor, model) -> settings and source."""
DEFAULTS = {editor: row.settings for (editor, model), row in _TABLE.items() if model == "any other"}
"""Editor -> rule: settings, and which model (like) has its first and last layer at which depth, as a share of all.

`MAX_CHANGE` bounds each, and what is a size of weights is a share of theirs.

`moment_weight` is for keys as long as Llama-2-7B's and is lowered or raised with their length d_ff: k^T C^-1 k, which
it weighs C against, is d_ff on average over the keys k that C = E[k k^T] is made of. Left as it is, it would let MEMIT
write next to nothing into a small model.
"""

_KEY_LENGTH = 11008
MAX_CHANGE = 0.05
"""Share of a weight's norm that no edit with settings of a rule exceeds.

FT with an absolute box moved 0.84 of a weight of Qwen2.5-0.5B and left no neighbour right. Edits that took and left
neighbours alone moved 0.01 to 0.03 (FT) and 0.05 (MEMIT), see docs/editors.md.
"""


def is_known(model: Model) -> bool:
    """Return whether a model has a name in `MODELS`."""
    return _shape(model) in MODELS


def preset(editor: str, model: Model, quiet: bool = False) -> dict[str, Any]:
    """Return settings for an editor's config on a model.

    Args:
        editor: A name in `DEFAULTS`.
        model: Only its config is read.
        quiet: Do not warn of layers that come from the rule: the caller sets the layers.

    Returns:
        Keyword arguments for the editor's config class, `layers` among them.

    Raises:
        UnknownNameError: No published settings exist for an editor of that name.
    """
    shape = _shape(model)
    if row := PRESETS.get((editor, MODELS.get(shape, ""))):
        return dict(row.settings)
    one_of("editor with published settings", editor, DEFAULTS)
    settings: dict[str, Any] = dict(DEFAULTS[editor])
    like, (low, high) = settings.pop("like"), settings.pop("depth")
    if isinstance(weight := settings.get("moment_weight"), float):
        settings["moment_weight"] = round(weight * shape[3] / _KEY_LENGTH, 1)
    n_layers = shape[1]
    top = n_layers - 2 if n_layers > 1 else 0  # leave a block above to read the change
    first, last = (min(round(share * n_layers), top) for share in (low, high))
    layers = tuple(range(first, last + 1))
    if not quiet:
        _LOG.warning(
            "%s: nobody has published settings for a %s model of %d blocks, width %d, MLP width %d and %d tokens. "
            "Layers %s are those at the depth of %s's and untested here. Give others with --editor-config.",
            *(editor, *shape, list(layers), like),
        )
    return {"layers": layers, **settings, "max_change": MAX_CHANGE}


def _shape(model: Model) -> tuple[str, int, int, int, int]:
    """Return a model's key in `MODELS`."""
    config: Any = model.config.get_text_config(decoder=True)
    width = int(config.hidden_size)
    mlp = getattr(config, "intermediate_size", None) or getattr(config, "n_inner", None) or 4 * width
    sizes = int(config.num_hidden_layers), width, int(mlp), int(config.vocab_size)
    return (str(model.config.model_type), *sizes)
