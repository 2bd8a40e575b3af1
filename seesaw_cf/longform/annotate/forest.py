"""A random forest as plain arrays: fitted with scikit-learn, kept as safetensors, used with numpy alone."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from seesaw_cf.errors import StorageError, need
from seesaw_cf.stats.bootstrap import Floats

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
        """Mean over trees of the class shares in the leaf of each row.

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
