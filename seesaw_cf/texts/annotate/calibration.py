"""Temperature scaling of an annotator's probabilities."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import softmax

from seesaw_cf.stats.bootstrap import Floats

_TINY = 1e-6


def temper(probabilities: Floats, temperature: float) -> Floats:
    """Probabilities with their logits divided by the temperature; zeros count as one in a million."""
    return np.asarray(softmax(np.log(np.maximum(probabilities, _TINY)) / temperature, axis=1))


def fit_temperature(truth: NDArray[np.intp], probabilities: Floats) -> float:
    """Return the temperature, between 0.1 and 10, under which the truth is most likely.

    Args:
        truth: (n,) class numbers of rows that the classifier was not fitted on.
        probabilities: (n, classes).

    Source: Guo et al. (2017), temperature scaling.
    """

    def loss(log_temperature: float) -> float:
        chances = temper(probabilities, float(np.exp(log_temperature)))[np.arange(len(truth)), truth]
        return float(-np.log(np.maximum(chances, 1e-300)).mean())

    return float(np.exp(minimize_scalar(loss, bounds=(np.log(0.1), np.log(10)), method="bounded").x))
