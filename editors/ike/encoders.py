"""Texts as vectors of length 1, for retrieving demonstrations: word statistics, or any sentence encoder."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seesaw_cf.base.errors import StorageError

Encoder = Callable[[Sequence[str]], NDArray[np.float64]]
"""N texts -> (N, size)."""


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def lexical_similarity(queries: Sequence[str], texts: Sequence[str]) -> NDArray[np.float64]:
    """Return cosines of TF-IDF vectors over lower-case words; idf = ln((1 + N) / (1 + df)) + 1 from `texts` alone.

    Args:
        queries: Q texts; words that no text has are ignored.
        texts: N texts.

    Returns:
        (Q, N), between 0 and 1.
    """
    counts = [Counter(_words(text)) for text in texts]
    document_frequency = Counter(word for count in counts for word in count)
    place = {word: index for index, word in enumerate(sorted(document_frequency))}
    seen = np.array([document_frequency[word] for word in place], dtype=np.float64)
    idf = np.log((1 + len(texts)) / (1 + seen)) + 1

    def vectors(bags: Sequence[Counter[str]]) -> NDArray[np.float64]:
        matrix = np.zeros((len(bags), len(place)))
        for row, bag in enumerate(bags):
            for word, count in bag.items():
                if word in place:
                    matrix[row, place[word]] = count * idf[place[word]]
        return _unit(matrix)

    return vectors([Counter(_words(query)) for query in queries]) @ vectors(counts).T


def similarity(encoder: Encoder, queries: Sequence[str], vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the cosine of encoded queries with encoded texts, (Q, N)."""
    return _unit(np.asarray(encoder(queries), dtype=np.float64)) @ _unit(vectors).T


def _unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    norms: NDArray[np.float64] = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms == 0, 1.0, norms)


def transformers_encoder(name_or_path: str) -> Encoder:
    """Load a sentence encoder with transformers: the mean over tokens of the last hidden states.

    That is how all-MiniLM-L6-v2 and similar encoders were trained; texts are cut at 256 tokens, as there.

    Args:
        name_or_path: A Hub id such as "sentence-transformers/all-MiniLM-L6-v2", or a folder.

    Raises:
        StorageError: It cannot be loaded.
    """
    import torch
    from transformers import AutoModel, AutoTokenizer

    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(name_or_path)
        model: Any = AutoModel.from_pretrained(name_or_path).eval()
    except (OSError, ValueError) as error:
        raise StorageError(
            f"sentence encoder {name_or_path!r} cannot be loaded ({type(error).__name__}). Give the id of a model on "
            "the Hub or a folder, or leave it out for retrieval by words."
        ) from error

    def encode(texts: Sequence[str]) -> NDArray[np.float64]:
        rows = []
        with torch.inference_mode():
            for start in range(0, len(texts), 64):
                part = list(texts[start : start + 64])
                batch = tokenizer(part, padding=True, truncation=True, max_length=256, return_tensors="pt")
                mask = batch["attention_mask"][..., None].float()
                hidden = model(**batch).last_hidden_state.float()
                rows.append(((hidden * mask).sum(1) / mask.sum(1)).double().numpy())
        return np.concatenate(rows)

    return encode
