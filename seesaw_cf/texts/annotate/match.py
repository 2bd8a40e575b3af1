"""The annotators for few labelled rows: features of words, or of a frozen encoder, and a random forest on top."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from seesaw_cf.base.errors import StorageError, need
from seesaw_cf.base.types import JsonObject
from seesaw_cf.effects.leme_annotation import sentences
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.texts.annotate.annotate import Judgement, Pair, temper, with_evidence
from seesaw_cf.texts.annotate.embed import Embedder, save_encoder
from seesaw_cf.texts.annotate.features import vector_features, word_features
from seesaw_cf.texts.annotate.folder import read_settings, write_settings

# A random forest as plain arrays: fitted with scikit-learn, kept as safetensors, used with numpy alone.

Ints = NDArray[np.int32]
TREES = 400
_ARRAYS = ("left", "right", "feature", "threshold", "value", "roots")


@dataclass(frozen=True, slots=True)
class TreeEnsemble:
    """All nodes of all trees in a row.

    Attributes:
        left, right: (nodes,) where to go; -1 in a leaf.
        feature: (nodes,) which feature is asked.
        threshold: (nodes,) float32; go left when the feature is at most this.
        value: (nodes, classes) float32 shares of the classes.
        roots: (trees,) first node of each tree.
    """

    left: Ints
    right: Ints
    feature: Ints
    threshold: NDArray[np.float32]
    value: NDArray[np.float32]
    roots: Ints

    def probabilities(self, rows: Floats) -> Floats:
        """Return the mean over trees of the class shares in the leaf of each row.

        Args:
            rows: (n, features).

        Returns:
            (n, classes).
        """
        seen = rows.astype(np.float32)  # as scikit-learn compares
        at = np.repeat(self.roots[None], len(rows), axis=0)
        while (inner := self.left[at] >= 0).any():
            low = seen[np.arange(len(rows))[:, None], np.maximum(self.feature[at], 0)] <= self.threshold[at]
            at = np.where(inner, np.where(low, self.left[at], self.right[at]), at)
        return np.asarray(self.value[at].mean(axis=1, dtype=np.float64))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one safetensors file."""
        save_file({name: np.ascontiguousarray(getattr(self, name)) for name in _ARRAYS}, path)


def load_forest(path: str | os.PathLike[str]) -> TreeEnsemble:
    """Read what `TreeEnsemble.save` wrote.

    Raises:
        StorageError: The file is missing, damaged or something else.
    """
    try:
        arrays = load_file(path)
        floats = {name: arrays[name].astype(np.float32) for name in ("threshold", "value")}
        return TreeEnsemble(**{name: arrays[name] for name in _ARRAYS} | floats)
    except (OSError, SafetensorError, KeyError) as error:
        raise StorageError(f"{path}: no forest can be read ({error}). Train the annotator again.") from error


def fit_forest(
    rows: Floats,
    labels: NDArray[np.intp],
    classes: int,
    seed: int = 0,
    trees: int = TREES,
    class_weight: str | None = "balanced_subsample",
) -> TreeEnsemble:
    """Fit trees with at least 5 rows in each leaf.

    Args:
        rows: (n, features).
        labels: (n,) 0 to classes - 1; every class must occur.
        classes: How many there are.
        seed: Of bootstrap samples and feature draws.
        trees: How many.
        class_weight: As in scikit-learn: classes alike, or None = as often as they occur.

    Raises:
        MissingExtraError: scikit-learn is missing; install `seesaw_cf[longform]`.

    Source: Breiman (2001).
    """
    with need("scikit-learn", extra="longform", what_for="training"):
        from sklearn.ensemble import RandomForestClassifier
    fitted = RandomForestClassifier(
        trees, random_state=seed, min_samples_leaf=5, max_features=0.3, class_weight=class_weight
    ).fit(rows, labels)
    assert len(fitted.classes_) == classes
    grown = [estimator.tree_ for estimator in fitted.estimators_]
    starts = np.cumsum([0, *(tree.node_count for tree in grown)])

    def moved(name: str) -> Ints:
        parts = [getattr(tree, name) for tree in grown]
        return np.concatenate([np.where(p >= 0, p + s, -1) for p, s in zip(parts, starts)]).astype(np.int32)

    value = np.concatenate([tree.value[:, 0, :] for tree in grown])
    return TreeEnsemble(
        moved("children_left"),
        moved("children_right"),
        np.concatenate([tree.feature for tree in grown]).astype(np.int32),
        _rounded_down(np.concatenate([tree.threshold for tree in grown])),
        (value / value.sum(axis=1, keepdims=True)).astype(np.float32),
        starts[:-1].astype(np.int32),
    )


def _rounded_down(thresholds: Floats) -> NDArray[np.float32]:
    """Return the next float32 at or below: features are float32, so that each of them still goes the same way."""
    near = thresholds.astype(np.float32)
    return np.where(near > thresholds, np.nextafter(near, np.float32(-np.inf)), near).astype(np.float32)


_CHUNK = 128  # pairs whose vectors are held at a time


class Featurizer:
    """Features of pairs: of their words alone, or with a frozen encoder, each computed once."""

    def __init__(self, embedder: Embedder | None = None):
        """Remember the encoder; None = words alone."""
        self.embedder = embedder
        self._rows: dict[Pair, list[float]] = {}

    @property
    def encoder(self) -> str:
        """The encoder's name; "words" without one."""
        return self.embedder.encoder if self.embedder else "words"

    def save(self, folder: Path) -> None:
        """Write the encoder and its tokenizer."""
        if self.embedder:
            save_encoder(self.embedder.model, self.embedder.tokenizer, folder)

    def rows(self, pairs: Sequence[Pair], *, split: bool = False) -> Floats:
        """Return the features of (premise, claim) pairs.

        Args:
            pairs: Neither text empty.
            split: Also prepare the pair of each sentence of the premise with the claim (for evidence).

        Returns:
            (n, features).
        """
        if self.embedder is None:
            return np.array([list(word_features(*pair).values()) for pair in pairs], dtype=np.float64)
        new_pairs = list(dict.fromkeys(pair for pair in pairs if pair not in self._rows))
        for start in range(0, len(new_pairs), _CHUNK):
            self._add(self.embedder, new_pairs[start : start + _CHUNK], split)
        return np.array([self._rows[pair] for pair in pairs], dtype=np.float64)

    def _add(self, embedder: Embedder, pairs: Sequence[Pair], split: bool) -> None:
        texts = [text for premise, claim in pairs for text in (premise, claim, *sentences(premise))]
        vectors = embedder.embed(texts)
        singles = [(row, claim) for premise, claim in pairs for row in sentences(premise)] if split else []
        for premise, claim in dict.fromkeys([*pairs, *singles]):
            numbers = word_features(premise, claim) | vector_features(premise, claim, vectors)
            self._rows[premise, claim] = list(numbers.values())

    def forget(self) -> None:
        """Free what was computed."""
        self._rows.clear()


class MatchAnnotator:
    """Annotator of pairs by what premise and claim share."""

    def __init__(self, featurizer: Featurizer, forest: TreeEnsemble, temperature: float):
        """Put the parts together; `seesaw_cf.texts.train.match.fit_match` and `load_match` make them."""
        self.featurizer, self.forest, self.temperature = featurizer, forest, temperature

    @property
    def name(self) -> str:
        """The recipe, the encoder's name, and the first digits of the forest's hash."""
        digest = hashlib.sha256(self.forest.threshold.tobytes() + self.forest.value.tobytes()).hexdigest()[:8]
        return f"match {Path(self.featurizer.encoder).name} {digest}"

    def probabilities(self, pairs: Sequence[Pair]) -> Floats:
        """Return uncalibrated probabilities of `LABELS`, (n, 3)."""
        return self.forest.probabilities(self.featurizer.rows(pairs))

    def classify(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """Return labels with calibrated probabilities; the evidence is what carries the label when read alone."""
        judgements: list[Judgement] = []
        for start in range(0, len(pairs), _CHUNK):
            chunk = pairs[start : start + _CHUNK]
            chances = self.forest.probabilities(self.featurizer.rows(chunk, split=True))
            judgements += with_evidence(chunk, temper(chances, self.temperature), self.probabilities)
            self.featurizer.forget()
        return judgements

    def save(self, folder: Path, settings: JsonObject) -> None:
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
    embedder = None
    if settings["encoder"] != Featurizer().encoder:
        embedder = Embedder(str(folder / "encoder"), device)
        embedder.encoder = settings["encoder"]
    return MatchAnnotator(Featurizer(embedder), load_forest(folder / "forest.safetensors"), settings["temperature"])
