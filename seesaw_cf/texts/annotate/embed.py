"""Text vectors from any pretrained encoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.errors import UnknownNameError
from seesaw_cf.stats.bootstrap import Floats

MAX_TOKENS = 512
_BATCH = 32


@dataclass(frozen=True, slots=True)
class TextVectors:
    """A text as an encoder sees it; all vectors have length 1.

    Attributes:
        whole: (width,) mean over tokens.
        tokens: (tokens, width) without the special tokens.
    """

    whole: Floats
    tokens: Floats


def load_encoder(
    kind: Any, encoder: str, device: str = "cpu", **options: Any
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Return an encoder in float32, and its tokenizer.

    Args:
        kind: The class of transformers that reads it, such as `AutoModel`.
        encoder: A folder or a Hub id.
        device: A torch device.
        **options: Of `from_pretrained`.

    Raises:
        UnknownNameError: It cannot be loaded.
    """
    try:
        tokenizer = AutoTokenizer.from_pretrained(encoder)
        return kind.from_pretrained(encoder, dtype=torch.float32, **options).to(device), tokenizer
    except (OSError, ValueError) as error:
        why = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise UnknownNameError(
            f"encoder {encoder!r} could not be loaded ({type(error).__name__}: {why}). Expected a folder with a "
            "transformers encoder and its tokenizer, or an id on the Hugging Face Hub; offline only what is in the "
            "cache."
        ) from error


def longest_input(model: PreTrainedModel) -> int:
    """Return the most tokens that an encoder is given: 512, or its positions where they are fewer."""
    longest = getattr(model.config, "max_position_embeddings", MAX_TOKENS)
    return min(MAX_TOKENS, longest if longest > 0 else MAX_TOKENS)


class Embedder:
    """Mean and token vectors of texts."""

    def __init__(self, encoder: str, device: str = "cpu"):
        """Load the encoder.

        Args:
            encoder: A folder or a Hub id.
            device: A torch device.

        Raises:
            UnknownNameError: It cannot be loaded.
        """
        self.encoder = encoder
        model, self.tokenizer = load_encoder(AutoModel, encoder, device)
        self.model = model.eval()

    def embed(self, texts: Sequence[str]) -> dict[str, TextVectors]:
        """Return the vectors of each text; texts longer than 512 tokens are seen up to there."""
        order = sorted(dict.fromkeys(texts), key=len)
        limit = longest_input(self.model)
        out: dict[str, TextVectors] = {}
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            encoded = self.tokenizer(
                batch, padding=True, truncation=True, max_length=limit, return_tensors="pt",
                return_special_tokens_mask=True,
            )  # fmt: skip
            special = encoded.pop("special_tokens_mask").bool()
            with torch.inference_mode():
                hidden = self.model(**encoded.to(self.model.device)).last_hidden_state.float().cpu()
            mask = encoded["attention_mask"].cpu().bool()
            for text, states, in_text, marks in zip(batch, hidden, mask, special):
                own = states[in_text & ~marks] if (in_text & ~marks).any() else states[in_text]
                out[text] = TextVectors(_unit(states[in_text].mean(0).numpy()), _unit(own.numpy()))
        return out


def _unit(vectors: np.ndarray) -> Floats:
    rows = vectors.astype(np.float64)
    length = np.linalg.norm(rows, axis=-1, keepdims=True)
    return np.asarray(rows / np.maximum(length, 1e-12))
