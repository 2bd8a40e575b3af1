"""Published layers and hyper-parameters, as a table: one row per (editor, model), each with its source.

A model is recognised by its type, number of blocks, width, MLP width and vocabulary, never by its name: Llama-2-7B and
Llama-3-8B have the same blocks and width and are kept apart. For any other model, and for an editor without
published settings, use a rule (`DEFAULTS`) and warn.
"""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

from transformers import PreTrainedModel

from seesaw_cf.base.checks import one_of
from seesaw_cf.models.editor import Settings

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


_MEMIT_GPT = {"weight_decay": 0.5, "clamp": 0.75}
_VALUE_LLAMA = {"weight_decay": 1e-3, "clamp": 4.0}
_MEMIT_LLAMA = {**_VALUE_LLAMA, "moment_weight": 15_000.0}
# Five shallow blocks read the subject at once, so the first MLP is edited, with larger steps; measured on the sample.
_TINY = {"layers": (0,), "learning_rate": 1.0, "steps": 30, "weight_decay": 1e-3, "clamp": 10.0}
# Between the values of GPT-J and Llama-2-7B: shorter ones take too few edits in Gemma 3 270M, longer ones lose more
# neighbours in Qwen2.5-Coder-0.5B, both on benchmarks/people/tuning.json, see docs/editors_measured.md.
_VALUE_RULE = {"steps": 25, "weight_decay": 0.1, "clamp": 1.5, "stop_below": 0.3}
_ROME_GPT = {"steps": 20, "weight_decay": 0.5, "clamp": 4.0}
_ROME_LLAMA = {"steps": 25, **_VALUE_LLAMA}
_FT = {"learning_rate": 5e-4, "steps": 25}
_SLOW_LLAMA_3 = {"learning_rate": 0.1, "steps": 25, "weight_decay": 0.5, "clamp": 0.75}

_FT_SMALL = {
    "learning_rate": 1e-4,
    "steps": 100,
    "norm_constraint": 5e-3,
    "objective": "teacher_forced",
    "stop_below": 1.0,
}
# Shares of the weight's root mean square: steps so short that training ends near the first change that takes. Chosen on
# ten edits of benchmarks/people/tuning.json in Gemma 3 270M, see docs/editors_measured.md.
_FT_RULE = {
    **_FT_SMALL,
    "relative": True,
    "learning_rate": 5e-4,
    "steps": 60,
    "norm_constraint": 3e-2,
    "stop_below": 1.2,
}
_LORA_SMALL = {"learning_rate": 5e-4, "steps": 50, "rank": 4, "alpha": 8.0, "stop_below": 0.3}

_ROME_REPO = "kmeng01/rome, hparams/ROME"
_MEMIT_REPO = "kmeng01/memit, hparams"
_ALPHA_REPO = "jianghoucheng/AlphaEdit, hparams"
_EASY = "zjunlp/EasyEdit, hparams"
_TUNED = (
    "seesaw-cf tune --model smollm2-135m-q4 --editor lora --trials 10 --first-edits 5 --finalists 2 --final-edits 10"
)
_RULED = "those of Llama-2-7B at the same depth, moment_weight by d_ff; on released edits: docs/editors_measured.md"
_TRIED = "chosen on 20 edits of benchmarks/people/tuning.json, see docs/editors_measured.md"
_SAMPLE = "chosen on every fifth edit of the embedded sample (efficacy, paraphrases, neighbourhood)"
_TO_13_17, _TO_3_8, _TO_4_8 = tuple(range(13, 18)), tuple(range(3, 9)), tuple(range(4, 9))

PRESETS: dict[tuple[str, str], Preset] = {
    ("ft", "gpt2-xl"): Preset(f"{_MEMIT_REPO}/FT", {"layers": (0,), **_FT, "norm_constraint": 5e-4}),
    ("ft", "gpt-j-6b"): Preset(f"{_MEMIT_REPO}/FT", {"layers": (0,), **_FT, "norm_constraint": 5e-5}),
    # The file that the program of LEME reads; without a bound, though that paper calls its FT constrained.
    ("ft", "llama-2-7b"): Preset(f"{_EASY}/FT/llama-7b", {"layers": (21,), **_FT, "norm_constraint": None}),
    ("ft", "llama-3-8b"): Preset(f"{_EASY}/FT/llama3-8b", {"layers": (21,), **_FT, "norm_constraint": None}),
    ("ft", "mistral-7b"): Preset(f"{_EASY}/FT/mistral-7b", {"layers": (21,), **_FT, "norm_constraint": 5e-5}),
    ("rome", "gpt2-xl"): Preset(_ROME_REPO, {"layers": (17,), **_ROME_GPT}),
    ("rome", "gpt-j-6b"): Preset(_ROME_REPO, {"layers": (5,), **_ROME_GPT}),
    # EasyEdit's files leave C out (mom2_adjustment false); it is used here, as in the paper.
    ("rome", "llama-2-7b"): Preset(f"{_EASY}/ROME/llama-7b, with C", {"layers": (5,), **_ROME_LLAMA}),
    ("rome", "llama-3-8b"): Preset(f"{_EASY}/ROME/llama3-8b, with C", {"layers": (5,), **_ROME_LLAMA}),
    ("rome", "mistral-7b"): Preset(f"{_EASY}/ROME/mistral-7b, with C", {"layers": (5,), **_ROME_LLAMA}),
    ("memit", "gpt2-xl"): Preset(
        f"{_MEMIT_REPO}/MEMIT", {"layers": _TO_13_17, "steps": 20, "moment_weight": 20_000.0, **_MEMIT_GPT}
    ),
    ("memit", "gpt-j-6b"): Preset(
        f"{_MEMIT_REPO}/MEMIT", {"layers": _TO_3_8, "steps": 25, "moment_weight": 15_000.0, **_MEMIT_GPT}
    ),
    ("memit", "llama-2-7b"): Preset(
        f"{_EASY}/MEMIT/llama-7b and the SEESAW-CF authors' file", {"layers": _TO_4_8, "steps": 25, **_MEMIT_LLAMA}
    ),
    ("memit", "llama-3-8b"): Preset(
        f"{_ALPHA_REPO}/MEMIT/Llama3-8B", {"layers": _TO_4_8, "moment_weight": 15_000.0, **_SLOW_LLAMA_3}
    ),
    ("memit", "mistral-7b"): Preset(f"{_EASY}/MEMIT/mistral-7b", {"layers": _TO_4_8, "steps": 25, **_MEMIT_LLAMA}),
    ("emmet", "gpt2-xl"): Preset(
        f"{_EASY}/EMMET/gpt2-xl", {"layers": (17,), "steps": 20, "moment_weight": 10_000.0, **_MEMIT_GPT}
    ),
    ("emmet", "gpt-j-6b"): Preset(
        "scalable-model-editing/unified-model-editing, hparams/EMMET",
        {"layers": (5,), "steps": 25, "moment_weight": 1.0, **_MEMIT_GPT},
    ),
    ("emmet", "llama-2-7b"): Preset(
        f"{_EASY}/EMMET/llama-7b", {"layers": (5,), "steps": 25, **_VALUE_LLAMA, "moment_weight": 1e5}
    ),
    ("alphaedit", "gpt2-xl"): Preset(f"{_EASY}/AlphaEdit/gpt2-xl", {"layers": _TO_13_17, "steps": 20, **_MEMIT_GPT}),
    ("alphaedit", "gpt-j-6b"): Preset(f"{_EASY}/AlphaEdit/gpt-j-6B", {"layers": _TO_3_8, "steps": 25, **_MEMIT_GPT}),
    ("alphaedit", "llama-3-8b"): Preset(f"{_ALPHA_REPO}/AlphaEdit/Llama3-8B", {"layers": _TO_4_8, **_SLOW_LLAMA_3}),
    ("ft", "smollm2-135m"): Preset(_TRIED, {"layers": (1,), **_FT_SMALL}),
    ("lora", "smollm2-135m"): Preset(_TUNED, {"layers": (1, 2, 3, 4, 5), **_LORA_SMALL}),
    ("rome", "smollm2-135m"): Preset(_RULED, {"layers": (5,), **_ROME_LLAMA}),
    ("memit", "smollm2-135m"): Preset(_RULED, {"layers": _TO_4_8, "steps": 25, **_MEMIT_LLAMA, "moment_weight": 2e3}),
    ("emmet", "smollm2-135m"): Preset(_RULED, {"layers": (5,), **_ROME_LLAMA, "moment_weight": 1.4e4}),
    ("alphaedit", "smollm2-135m"): Preset(_RULED, {"layers": _TO_4_8, "steps": 25, "weight_decay": 0.5, "clamp": 0.75}),
    ("ft", "seesaw-tiny"): Preset(
        _SAMPLE, {"layers": (2,), "learning_rate": 5e-3, "steps": 25, "norm_constraint": 2e-2}
    ),
    ("lora", "seesaw-tiny"): Preset(
        "seesaw-cf tune --model seesaw-tiny --editor lora --trials 16 --final-edits 24",
        {"layers": (0, 1), **_LORA_SMALL, "learning_rate": 2e-3, "steps": 25},
    ),
    ("rome", "seesaw-tiny"): Preset(_SAMPLE, _TINY),
    ("memit", "seesaw-tiny"): Preset(_SAMPLE, {**_TINY, "moment_weight": 1.0}),
    ("emmet", "seesaw-tiny"): Preset(_SAMPLE, {**_TINY, "moment_weight": 1.0}),
    ("alphaedit", "seesaw-tiny"): Preset(_SAMPLE, {**_TINY, "norm_weight": 0.1, "null_threshold": 0.1}),
}
"""(editor, model) -> settings and source."""


class Rule(NamedTuple):
    """Settings for models that have no row in `PRESETS`.

    Attributes:
        like: The model with these settings.
        depth: Of the first and last layer there, as a share of all.
        settings: The other settings.
    """

    like: str
    depth: tuple[float, float]
    settings: Settings


DEFAULTS: dict[str, Rule] = {
    "ft": Rule("Gemma 3 270M", (1 / 18, 1 / 18), _FT_RULE),
    "lora": Rule("SmolLM2-135M", (1 / 30, 5 / 30), {**_LORA_SMALL, "alpha": 44.0, "relative": True}),
    "rome": Rule("Llama-2-7B", (5 / 32, 5 / 32), _ROME_LLAMA),
    "memit": Rule("Llama-2-7B", (4 / 32, 8 / 32), {**_VALUE_RULE, "moment_weight": 15_000.0}),
    "emmet": Rule("Llama-2-7B", (5 / 32, 5 / 32), {"steps": 25, **_ROME_LLAMA, "moment_weight": 1e5}),
    # The published null space of 0.02 took .90 of the tuning edits in Gemma, this one .95 with the same values.
    "alphaedit": Rule("Llama-2-7B", (4 / 32, 8 / 32), {**_VALUE_RULE, "null_threshold": 0.1}),
}
"""Editor -> rule; `MAX_CHANGE` bounds each, and what is a size of weights is a share of theirs.

`moment_weight` is for keys as long as Llama-2-7B's and is lowered or raised with their length d_ff: k^T C^-1 k, which
it weighs C against, is d_ff on average over the keys k that C = E[k k^T] is made of. Left as it is, it would let MEMIT
write next to nothing into a small model.
"""

_KEY_LENGTH = 11008
MAX_CHANGE = 0.05
"""Share of a weight's norm that no edit with settings of a rule exceeds.

FT with an absolute box moved 0.84 of a weight of Qwen2.5-0.5B and left no neighbour right. Edits that took and left
neighbours alone moved 0.01 to 0.03 (FT) and 0.05 (MEMIT), see docs/editors_measured.md.
"""


def is_known(model: PreTrainedModel) -> bool:
    """Return whether a model has a name in `MODELS`."""
    return _shape(model) in MODELS


def published(editor: str, model: PreTrainedModel) -> dict[str, Any] | None:
    """Return the row of an editor for a model, as keyword arguments for its config class; None without one."""
    row = PRESETS.get((editor, MODELS.get(_shape(model), "")))
    return None if row is None else dict(row.settings)


def preset(editor: str, model: PreTrainedModel, quiet: bool = False) -> dict[str, Any]:
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
    if (published_settings := published(editor, model)) is not None:
        return published_settings
    one_of("editor with published settings", editor, DEFAULTS)
    like, (low, high), settings = DEFAULTS[editor]
    shape = _shape(model)
    if isinstance(weight := settings.get("moment_weight"), float):
        settings = {**settings, "moment_weight": round(weight * shape[3] / _KEY_LENGTH, 1)}
    n_layers = shape[1]
    top = n_layers - 2 if n_layers > 1 else 0  # leave a block above to read the change
    first, last = (min(round(share * n_layers), top) for share in (low, high))
    layers = tuple(range(first, last + 1))
    if not quiet:
        _LOG.warning(
            "%s: nobody has published settings for a %s model of %d blocks, width %d, MLP width %d and %d tokens. "
            "Layers %s are those at the depth of %s's and untested here. Find better settings with `seesaw-cf tune "
            "--model MODEL --editor %s`, which writes a file for --editor-config.",
            *(editor, *shape, list(layers), like, editor),
        )
    return {"layers": layers, **settings, "max_change": MAX_CHANGE}


def _shape(model: PreTrainedModel) -> tuple[str, int, int, int, int]:
    """Return a model's key in `MODELS`."""
    config: Any = model.config.get_text_config(decoder=True)
    width = int(config.hidden_size)
    mlp = getattr(config, "intermediate_size", None) or getattr(config, "n_inner", None) or 4 * width
    sizes = int(config.num_hidden_layers), width, int(mlp), int(config.vocab_size)
    return (str(model.config.model_type), *sizes)
