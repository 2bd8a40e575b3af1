"""The annotators for few labelled rows: features of words, or of a frozen encoder, and a random forest on top."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from seesaw_cf.longform.annotate import LABELS, Judgement, label_of, sentences
from seesaw_cf.longform.annotators_embed import Embedder
from seesaw_cf.longform.annotators_features import features
from seesaw_cf.longform.annotators_folder import read_settings, write_settings
from seesaw_cf.longform.annotators_forest import TREES, Forest, fit_forest, load_forest
from seesaw_cf.longform.annotators_words import WordFeaturizer
from seesaw_cf.longform.splits import grouped_folds
from seesaw_cf.longform.training_data import AnnotationData, with_neutral_sentences
from seesaw_cf.longform.training_scores import fit_temperature, temper
from seesaw_cf.stats.bootstrap import Floats

__all__ = ["Featurizer", "MatchAnnotator", "PairFeatures", "fit_match", "fit_words", "load_match"]

Texts = tuple[str, str]
_CHUNK = 128  # pairs whose vectors are held at a time
FOLDS, FEWER = 4, 100  # inner folds whose left-out rows set the temperature, and trees of their forests
WORD_TREES = 48  # keep the annotator that ships below 300 KB


class PairFeatures(Protocol):
    """Pairs of premise and claim as numbers."""

    @property
    def encoder(self) -> str:
        """The name of the encoder; "words" without one."""

    def rows(self, pairs: Sequence[Texts], *, split: bool = False) -> Floats:
        """(n, features); `split` says that each sentence of the premise is asked about next."""

    def forget(self) -> None:
        """Frees what was computed."""

    def save(self, folder: Path) -> None:
        """Writes what `rows` needs."""


class Featurizer:
    """Features of pairs with a frozen encoder, each computed once."""

    def __init__(self, embedder: Embedder):
        """Remembers the encoder."""
        self.embedder = embedder
        self._known: dict[Texts, list[float]] = {}

    @property
    def encoder(self) -> str:
        """The encoder's name."""
        return self.embedder.encoder

    def save(self, folder: Path) -> None:
        """Writes the encoder and its tokenizer."""
        self.embedder.model.save_pretrained(folder / "encoder")
        self.embedder.tokenizer.save_pretrained(folder / "encoder")

    def rows(self, pairs: Sequence[Texts], *, split: bool = False) -> Floats:
        """The features of (premise, claim) pairs.

        Args:
            pairs: Neither text empty.
            split: Also prepare the pair of each sentence of the premise with the claim (for evidence).

        Returns:
            (n, features).
        """
        wanted = list(dict.fromkeys(pair for pair in pairs if pair not in self._known))
        for start in range(0, len(wanted), _CHUNK):
            self._add(wanted[start : start + _CHUNK], split)
        return np.array([self._known[pair] for pair in pairs], dtype=np.float64)

    def _add(self, pairs: Sequence[Texts], split: bool) -> None:
        texts = [text for premise, claim in pairs for text in (premise, claim, *sentences(premise))]
        vectors = self.embedder.embed(texts)
        singles = [(row, claim) for premise, claim in pairs for row in sentences(premise)] if split else []
        for premise, claim in dict.fromkeys([*pairs, *singles]):
            self._known[premise, claim] = list(features(premise, claim, vectors).values())

    def forget(self) -> None:
        """Frees what was computed."""
        self._known.clear()


class MatchAnnotator:
    """Classifies pairs by what premise and claim share."""

    def __init__(self, featurizer: PairFeatures, forest: Forest, temperature: float):
        """Puts the parts together; `fit_match` and `load_match` make them."""
        self.featurizer, self.forest, self.temperature = featurizer, forest, temperature

    @property
    def name(self) -> str:
        """The recipe, the encoder's name, and the first digits of the forest's hash."""
        digest = hashlib.sha256(self.forest.threshold.tobytes() + self.forest.value.tobytes()).hexdigest()[:8]
        return f"match {Path(self.featurizer.encoder).name} {digest}"

    def probabilities(self, pairs: Sequence[Texts]) -> Floats:
        """Uncalibrated probabilities of `LABELS`, (n, 3)."""
        return self.forest.probabilities(self.featurizer.rows(pairs))

    def classify(self, pairs: Sequence[Texts]) -> list[Judgement]:
        """Labels with calibrated probabilities; the evidence is what carries the label when read alone."""
        found: list[Judgement] = []
        for start in range(0, len(pairs), _CHUNK):
            chunk = pairs[start : start + _CHUNK]
            chances = self.forest.probabilities(self.featurizer.rows(chunk, split=True))
            found += [self._judge(pair, row) for pair, row in zip(chunk, temper(chances, self.temperature))]
            self.featurizer.forget()
        return found

    def _judge(self, pair: Texts, chances: Floats) -> Judgement:
        label = label_of(chances.tolist())
        named = (float(chances[0]), float(chances[1]), float(chances[2]))
        if label == "neutral":
            return Judgement(label, named)
        rows = sentences(pair[0])
        alone = self.forest.probabilities(self.featurizer.rows([(row, pair[1]) for row in rows]))
        carried = alone[:, LABELS.index(label)]
        cut = min(0.5, float(carried.max()))
        return Judgement(label, named, tuple(row for row, p in zip(rows, carried) if p >= cut))

    def save(self, folder: Path, settings: dict[str, Any]) -> None:
        """Writes the forest and what its features need into an existing folder."""
        self.forest.save(folder / "forest.safetensors")
        self.featurizer.save(folder)
        own = {"kind": "match", "encoder": self.featurizer.encoder, "temperature": self.temperature}
        write_settings(folder, own | settings)


def load_match(folder: Path, device: str = "cpu") -> MatchAnnotator:
    """Reads what `MatchAnnotator.save` wrote.

    Raises:
        StorageError: A file is missing or damaged.
    """
    settings = read_settings(folder)
    featurizer: PairFeatures = WordFeaturizer()
    if settings["encoder"] != featurizer.encoder:
        embedder = Embedder(str(folder / "encoder"), device)
        embedder.encoder = str(settings["encoder"])
        featurizer = Featurizer(embedder)
    return MatchAnnotator(featurizer, load_forest(folder / "forest.safetensors"), settings["temperature"])


def fit_words(data: AnnotationData, seed: int = 0) -> MatchAnnotator:
    """`fit_match` without an encoder: fewer trees, classes as often as they occur, neutral sentences added."""
    return fit_match(with_neutral_sentences(data, seed), WordFeaturizer(), seed, WORD_TREES, None)


def fit_match(
    data: AnnotationData,
    featurizer: PairFeatures,
    seed: int = 0,
    trees: int | None = None,
    class_weight: str | None = "balanced_subsample",
) -> MatchAnnotator:
    """Fits the forest on all rows, and the temperature on rows that forests of the same kind have not seen.

    Args:
        data: What to train on.
        featurizer: Of the encoder, which stays as it is.
        seed: Of the forest and the inner folds.
        trees: How many; None = `TREES`.
        class_weight: See `fit_forest`.

    Raises:
        RecordError: A class has no row.
    """
    data.check_classes("training data")
    rows, labels = featurizer.rows(data.pairs), np.array(data.labels)
    temperature = 1.0
    folds = min(FOLDS, len(set(data.groups)))
    if folds > 1:
        fold = np.array(grouped_folds(data.groups, folds, seed))
        out = np.full((len(labels), len(LABELS)), np.nan)
        for one in range(folds):
            if len(set(labels[fold != one])) == len(LABELS):
                kept = rows[fold != one], labels[fold != one], len(LABELS)
                left_out = fit_forest(*kept, seed, min(FEWER, trees or FEWER), class_weight)
                out[fold == one] = left_out.probabilities(rows[fold == one])
        known = ~np.isnan(out[:, 0])
        temperature = fit_temperature(labels[known], out[known]) if known.any() else 1.0
    forest = fit_forest(rows, labels, len(LABELS), seed, trees or TREES, class_weight)
    return MatchAnnotator(featurizer, forest, temperature)
