"""Published layers and hyper-parameters, as a table: one row per (editor, model).

A model is recognised by its type, number of blocks and width, never by its name. For any other model the layers come
from relative depth and the rest from the row "default" of the editor.
"""

from __future__ import annotations

from typing import Any

from transformers import PreTrainedModel

__all__ = ["DEFAULTS", "MODELS", "PRESETS", "preset"]

MODELS: dict[tuple[str, int, int], str] = {
    ("gpt2", 48, 1600): "gpt2-xl",
    ("gptj", 28, 4096): "gpt-j-6b",
    ("llama", 32, 4096): "llama-7b",
    ("mistral", 32, 4096): "mistral-7b",
    ("llama", 5, 128): "seesaw-tiny",
}
"""(model type, blocks, width) -> the name used in `PRESETS`."""

_MEMIT_GPT = {"weight_decay": 0.5, "clamp": 0.75}
_MEMIT_LLAMA = {"weight_decay": 1e-3, "clamp": 4.0, "moment_weight": 15_000.0}
# Five shallow blocks read the subject at once, so the first MLP is edited, with larger steps; measured on the sample.
_TINY = {"layers": (0,), "learning_rate": 1.0, "steps": 30, "weight_decay": 1e-3, "clamp": 10.0}
_ROME_GPT = {"steps": 20, "weight_decay": 0.5, "clamp": 4.0}
_ROME_LLAMA = {"steps": 25, "weight_decay": 1e-3, "clamp": 4.0}

PRESETS: dict[tuple[str, str], dict[str, Any]] = {
    # Source: hparams/FT of the memit repository.
    ("ft", "gpt2-xl"): {"layers": (0,), "learning_rate": 5e-4, "steps": 25, "norm_constraint": 5e-4},
    ("ft", "gpt-j-6b"): {"layers": (0,), "learning_rate": 5e-4, "steps": 25, "norm_constraint": 5e-5},
    # Source: EasyEdit hparams/FT.
    ("ft", "llama-7b"): {"layers": (21,), "learning_rate": 5e-4, "steps": 25, "norm_constraint": None},
    ("ft", "mistral-7b"): {"layers": (21,), "learning_rate": 5e-4, "steps": 25, "norm_constraint": 5e-5},
    # Source: hparams/ROME of the rome repository; EasyEdit's files leave C out (mom2_adjustment false).
    ("rome", "gpt2-xl"): {"layers": (17,), **_ROME_GPT},
    ("rome", "gpt-j-6b"): {"layers": (5,), **_ROME_GPT},
    # Source: EasyEdit hparams/ROME, with C (which those files switch off).
    ("rome", "llama-7b"): {"layers": (5,), **_ROME_LLAMA},
    ("rome", "mistral-7b"): {"layers": (5,), **_ROME_LLAMA},
    # Source: hparams/MEMIT of the memit repository.
    ("memit", "gpt2-xl"): {"layers": tuple(range(13, 18)), "steps": 20, "moment_weight": 20_000.0, **_MEMIT_GPT},
    ("memit", "gpt-j-6b"): {"layers": tuple(range(3, 9)), "steps": 25, "moment_weight": 15_000.0, **_MEMIT_GPT},
    # Source: EasyEdit hparams/MEMIT and the SEESAW-CF authors' hparams (the same).
    ("memit", "llama-7b"): {"layers": tuple(range(4, 9)), "steps": 25, **_MEMIT_LLAMA},
    ("memit", "mistral-7b"): {"layers": tuple(range(4, 9)), "steps": 25, **_MEMIT_LLAMA},
    # Source: unified-model-editing and EasyEdit hparams/EMMET.
    ("emmet", "gpt2-xl"): {"layers": (17,), "steps": 20, "moment_weight": 10_000.0, **_MEMIT_GPT},
    ("emmet", "gpt-j-6b"): {"layers": (5,), "steps": 25, "moment_weight": 1.0, **_MEMIT_GPT},
    ("emmet", "llama-7b"): {"layers": (5,), "steps": 25, "weight_decay": 1e-3, "clamp": 4.0, "moment_weight": 1e5},
    # Source: EasyEdit hparams/AlphaEdit (its Llama file is for Llama 3, which has the same shape).
    ("alphaedit", "gpt2-xl"): {"layers": tuple(range(13, 18)), "steps": 20, **_MEMIT_GPT},
    ("alphaedit", "gpt-j-6b"): {"layers": tuple(range(3, 9)), "steps": 25, **_MEMIT_GPT},
    ("alphaedit", "llama-7b"): {"layers": tuple(range(4, 9)), "steps": 25, "weight_decay": 0.5, "clamp": 0.75},
    # Source: chosen on every fifth edit of the embedded sample (efficacy, paraphrases, neighbourhood).
    ("ft", "seesaw-tiny"): {"layers": (2,), "learning_rate": 5e-3, "steps": 25, "norm_constraint": 2e-2},
    ("rome", "seesaw-tiny"): _TINY,
    ("memit", "seesaw-tiny"): {**_TINY, "moment_weight": 1.0},
    ("emmet", "seesaw-tiny"): {**_TINY, "moment_weight": 1.0},
    ("alphaedit", "seesaw-tiny"): {**_TINY, "norm_weight": 0.1},
}
"""(editor, model) -> settings."""

DEFAULTS: dict[str, tuple[tuple[float, float], dict[str, Any]]] = {
    "ft": ((21 / 32, 21 / 32), {"learning_rate": 5e-4, "steps": 25, "norm_constraint": 5e-4}),
    "rome": ((5 / 32, 5 / 32), _ROME_LLAMA),
    "memit": ((4 / 32, 8 / 32), {"steps": 25, **_MEMIT_LLAMA}),
    "emmet": ((5 / 32, 5 / 32), {"steps": 25, "weight_decay": 1e-3, "clamp": 4.0, "moment_weight": 1e5}),
    "alphaedit": ((4 / 32, 8 / 32), {"steps": 25, "weight_decay": 0.5, "clamp": 0.75}),
}
"""Editor -> (depth of the first and last layer as a share of all, other settings); shares are those of Llama-2-7B."""


def preset(editor: str, model: PreTrainedModel) -> dict[str, Any]:
    """Settings for an editor's config on a model.

    Args:
        editor: A name in `DEFAULTS`.
        model: Only its config is read.

    Returns:
        Keyword arguments for the editor's config class, `layers` among them.
    """
    config: Any = model.config.get_text_config(decoder=True)
    n_layers, width = int(config.num_hidden_layers), int(config.hidden_size)
    name = MODELS.get((str(model.config.model_type), n_layers, width), "")
    if (editor, name) in PRESETS:
        return dict(PRESETS[editor, name])
    (low, high), settings = DEFAULTS[editor]
    top = n_layers - 2 if n_layers > 1 else 0  # leave a block above to read the change
    first, last = (min(round(share * n_layers), top) for share in (low, high))
    return {"layers": tuple(range(first, last + 1)), **settings}
