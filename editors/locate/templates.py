"""Context templates: short beginnings under which a new fact must hold, sampled from the model itself."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import PreTrainedTokenizerBase

from seesaw_cf.editors.locate.positions import encode_text
from seesaw_cf.models.architectures import ModelParts
from seesaw_cf.models.hooks import frozen, hooked, watch

MEMIT_STARTS: tuple[tuple[str, int], ...] = tuple((word, 10) for word in ("The", "Therefore", "Because", "I", "You"))
"""MEMIT: one continuation of ten tokens for each of five words. Source: memit/memit_main.py:290-309."""

ROME_STARTS: tuple[tuple[str, int], ...] = (("", 5),) * 10 + (("", 10),) * 10
"""ROME: ten texts of five and ten of ten tokens from nothing. Source: rome/rome_main.py:213-236."""

_TOP_K = 5


def sample_templates(
    parts: ModelParts, tokenizer: PreTrainedTokenizerBase, starts: Sequence[tuple[str, int]], seed: int
) -> tuple[str, ...]:
    """Sample continuations with top-k 5 and make templates "<text>. {}" of them, the bare "{}" first.

    Deviates: The published programs sample without a seed, so no two runs agree; here a generator of its own is
    seeded, and the model's random state is not touched.

    Args:
        parts: The model.
        tokenizer: Its tokenizer.
        starts: Words to continue, each with the number of new tokens; "" starts from the beginning-of-text token.
        seed: Of the sampling.

    Returns:
        Templates, each with exactly one "{}".
    """
    generator = torch.Generator().manual_seed(seed)
    templates = ["{}"]
    with frozen(parts.model), torch.no_grad():
        for start, n_new in starts:
            ids = list(encode_text(tokenizer, start)) if start else []
            ids = ids or [tokenizer.bos_token_id if tokenizer.bos_token_id is not None else 0]
            for _ in range(n_new):
                ids.append(_next_token(parts, ids, generator))
            text = str(tokenizer.decode(ids, skip_special_tokens=True))
            text = " ".join(text.replace("{", " ").replace("}", " ").split())
            templates.append(f"{text}. {{}}")
    return tuple(templates)


def _next_token(parts: ModelParts, ids: list[int], generator: torch.Generator) -> int:
    seen: dict[str, torch.Tensor] = {}
    with hooked(watch(seen, outputs={"top": parts.block(parts.n_layers - 1)})):
        parts.model(input_ids=torch.tensor([ids], device=parts.model.device), use_cache=False)
    top = parts.logits(seen["top"][0, -1]).float().cpu().topk(_TOP_K)
    return int(top.indices[int(torch.multinomial(top.values.softmax(-1), 1, generator=generator))])
