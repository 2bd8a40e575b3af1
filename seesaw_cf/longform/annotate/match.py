"""The annotators for few labelled rows: features of words, or of a frozen encoder, and a random forest on top."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from seesaw_cf.effects.leme_annotation import LABELS, sentences
from seesaw_cf.longform.annotate.annotate import Judgement, label_of
from seesaw_cf.longform.annotate.calibration import temper
from seesaw_cf.longform.annotate.embed import Embedder, save_encoder
from seesaw_cf.longform.annotate.features import features
from seesaw_cf.longform.annotate.folder import read_settings, write_settings
from seesaw_cf.longform.annotate.forest import TreeEnsemble, load_forest
from seesaw_cf.longform.annotate.words import WordFeaturizer
from seesaw_cf.stats.bootstrap import Floats

Texts = tuple[str, str]
_CHUNK = 128  # pairs whose vectors are held at a time


class PairFeatures(Protocol):
    """Pairs of premise and claim as numbers."""

    @property
    def encoder(self) -> str:
        """The name of the encoder; "words" without one."""

    def rows(self, pairs: Sequence[Texts], *, split: bool = False) -> Floats:
        """(n, features); `split` announces that each sentence of the premise is asked about next."""

    def forget(self) -> None:
        """Free what was computed."""

    def save(self, folder: Path) -> None:
        """Write what `rows` needs."""


class Featurizer:
    """Features of pairs with a frozen encoder, each computed once."""

    def __init__(self, embedder: Embedder):
        """Remember the encoder."""
        self.embedder = embedder
        self._rows: dict[Texts, list[float]] = {}

    @property
    def encoder(self) -> str:
        """The encoder's name."""
        return self.embedder.encoder

    def save(self, folder: Path) -> None:
        """Write the encoder and its tokenizer."""
        save_encoder(self.embedder.model, self.embedder.tokenizer, folder)

    def rows(self, pairs: Sequence[Texts], *, split: bool = False) -> Floats:
        """Return the features of (premise, claim) pairs.

        Args:
            pairs: Neither text empty.
            split: Also prepare the pair of each sentence of the premise with the claim (for evidence).

        Returns:
            (n, features).
        """
        new_pairs = list(dict.fromkeys(pair for pair in pairs if pair not in self._rows))
        for start in range(0, len(new_pairs), _CHUNK):
            self._add(new_pairs[start : start + _CHUNK], split)
        return np.array([self._rows[pair] for pair in pairs], dtype=np.float64)

    def _add(self, pairs: Sequence[Texts], split: bool) -> None:
        texts = [text for premise, claim in pairs for text in (premise, claim, *sentences(premise))]
        vectors = self.embedder.embed(texts)
        singles = [(row, claim) for premise, claim in pairs for row in sentences(premise)] if split else []
        for premise, claim in dict.fromkeys([*pairs, *singles]):
            self._rows[premise, claim] = list(features(premise, claim, vectors).values())

    def forget(self) -> None:
        """Free what was computed."""
        self._rows.clear()


class MatchAnnotator:
    """Classifies pairs by what premise and claim share."""

    def __init__(self, featurizer: PairFeatures, forest: TreeEnsemble, temperature: float):
        """Put the parts together; `seesaw_cf.longform.train.match.fit_match` and `load_match` make them."""
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
        judgements: list[Judgement] = []
        for start in range(0, len(pairs), _CHUNK):
            chunk = pairs[start : start + _CHUNK]
            chances = self.forest.probabilities(self.featurizer.rows(chunk, split=True))
            judgements += [self._judge(pair, row) for pair, row in zip(chunk, temper(chances, self.temperature))]
            self.featurizer.forget()
        return judgements

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

    def save(self, folder: Path, settings: Mapping[str, object]) -> None:
        """Write the forest and what its features need into an existing folder."""
        self.forest.save(folder / "forest.safetensors")
        self.featurizer.save(folder)
        own = {"kind": "match", "encoder": self.featurizer.encoder, "temperature": self.temperature}
        write_settings(folder, {**own, **settings})


def load_match(folder: Path, device: str = "cpu") -> MatchAnnotator:
    """Read what `MatchAnnotator.save` wrote.

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
