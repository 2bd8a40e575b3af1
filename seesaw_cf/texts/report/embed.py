"""Text vectors from any pretrained encoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from transformers import AutoModel

from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.texts.classify import load_encoder, longest_input

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
