"""Can this model be fed tries? Asked once, of the model itself: rules for what is known, a small trial for the rest."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from transformers import PreTrainedModel

from seesaw_cf.models.architectures import attention_of, makes_masks, text_config
from seesaw_cf.models.trial import embedding, some_ids
from seesaw_cf.scoring.encode import EncodedCloze
from seesaw_cf.scoring.forward import forward_rows, wide_dtype
from seesaw_cf.scoring.layout import make_rows

log = logging.getLogger(__name__)

# Mean |difference in log p| of the trial, in nats, that rounding alone can explain.
_TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-3, torch.float16: 0.05, torch.bfloat16: 0.2}

# Settings that say up to how many tokens a layer attends, and how many of all sparse attention picks (DeepSeek, Doge).
_WINDOWS = ("sliding_window", "window_size", "attention_chunk_size")
_LOOKED_AT = ("index_topk", "keep_window_size")


@dataclass(frozen=True, slots=True)
class Support:
    """How a model is fed.

    Attributes:
        layout: "packed": tries side by side in one sequence; "padded": one trie row per batch row; "plain": no tries,
            one padded sequence per cloze.
        reason: Why not something better; "" for packed.
    """

    layout: Literal["packed", "padded", "plain"]
    reason: str = ""


def window(model: PreTrainedModel) -> int | None:
    """Return up to how many tokens texts may share passes, None without a limit.

    It is the shortest sliding or local attention window among the model's layers, or `shared_limit`.
    """
    return min([*_sizes(text_config(model), _WINDOWS), *filter(None, [shared_limit(model)])], default=None)


def shared_limit(model: PreTrainedModel) -> int | None:
    """Return the longest text in tokens that may share a pass with others; None where any may.

    Longer ones change the rotary frequencies of a pass. Of sparse attention they have more tokens than each looks at,
    and what is looked at depends on the padding.
    """
    config = text_config(model)
    ropes = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    each = [rope for rope in (ropes, *ropes.values()) if isinstance(rope, dict)]  # one, or one for each type of layer
    kinds = [str(rope.get("rope_type", rope.get("type"))) for rope in each]
    limits = _sizes(config, _LOOKED_AT)
    if any("dynamic" in kind or kind == "longrope" for kind in kinds):
        name = "original_max_position_embeddings"
        limits += [
            int(rope.get(name) or getattr(config, name, None) or config.max_position_embeddings) for rope in each
        ]
    return min(limits, default=None)


def _sizes(config: Any, names: Sequence[str]) -> list[int]:
    return [size for name in names if isinstance(size := getattr(config, name, None), int) and size > 0]


def find_support(model: PreTrainedModel) -> Support:
    """Choose the best layout this model answers correctly in; say in the log when tries cannot be used."""
    reasons = [obstacle] if (obstacle := _known_obstacle(model)) else []
    if not reasons:
        items = _trial_items(model)
        expected = _one_by_one(model, items)
        for layout in ("packed", "padded"):
            failed = _trial(model, items, expected, layout == "packed")
            if not failed:
                return Support(layout, "; ".join(reasons))
            reasons.append(f"{layout}: {failed}")
    reason = "; ".join(reasons)
    log.warning("%s is scored without tries, one sequence per cloze: %s", type(model).__name__, reason)
    return Support("plain", reason)


def _known_obstacle(model: PreTrainedModel) -> str:
    """Return what the model's signature and config say against tries; "" for nothing."""
    config = text_config(model)
    if model.get_output_embeddings() is None:
        return "the model has no output embedding module"
    if "position_ids" not in inspect.signature(model.forward).parameters:
        return "its forward pass takes no position_ids (ALiBi, recurrent or relative positions)"
    if getattr(config, "alibi", False):
        return "its ALiBi positions are counted along the sequence, not along the trie"
    return ""


def _trial_items(model: PreTrainedModel) -> list[EncodedCloze]:
    """Return three texts that share one and three tokens, and one apart; ids spread over the vocabulary.

    Not every token is asked, so that what is computed for asked tokens only is tried as well.
    """
    a, b, c, d, e, f, g = some_ids(model, 7)
    texts = ((a, b, c, d, e, f), (a, b, c, g, d, d, c), (a, e, g, b, b), (f, c, a, g))
    return [EncodedCloze(ids, start) for ids, start in zip(texts, (4, 5, 2, 1), strict=True)]


def _one_by_one(model: PreTrainedModel, items: Sequence[EncodedCloze]) -> list[float]:
    """Return log p of every asked token, from one ordinary forward pass for each item."""
    scores: list[float] = []
    device = embedding(model).device
    for ids, start in items:
        with torch.inference_mode():
            logits = model(input_ids=torch.tensor([ids], device=device), use_cache=False).logits[0]
        logprobs = logits.to(wide_dtype(logits.dtype)).log_softmax(-1)
        scores += [float(logprobs[place - 1, ids[place]]) for place in range(start, len(ids))]
    return scores


def _trial(model: PreTrainedModel, items: Sequence[EncodedCloze], expected: Sequence[float], packed: bool) -> str:
    """Score the trial items as two rows of tries; say what is wrong with the answer, "" when nothing is."""
    attention, own = attention_of(model), makes_masks(model)
    if packed and not own and attention != "sdpa":
        return f"its attention is {attention!r}, and only 'sdpa' can be computed row by row"
    if own and not packed:
        return f"its attention {attention!r} makes masks of its own; load the model with attn_implementation='sdpa'"
    try:
        # Windows so small that there are several: attention that does not go by them then fails.
        answers = forward_rows(model, make_rows(items, 9, 100), packed, window=4)
        logprobs = answers.logprobs.tolist()  # a device says here what went wrong
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # whatever a foreign model's code raises, the plain way remains
        return f"{type(error).__name__}: {error}".splitlines()[0]
    by_item = sorted(zip(answers.items, logprobs, strict=True), key=lambda pair: pair[0])
    worst = max(abs(got - reference) for (_, got), reference in zip(by_item, expected, strict=True))
    tolerance = _TOLERANCE.get(model.dtype, 0.2)
    if not worst <= tolerance:
        return f"a trial differs by {worst:.2g} nats from separate sequences (rounding explains {tolerance:g})"
    return ""
