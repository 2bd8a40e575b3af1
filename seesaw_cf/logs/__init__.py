"""Logs of evaluation harnesses, compared before and after a change of the model; nothing heavy is imported here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from seesaw_cf.base.fields import AboveZero, Draws, Inside, OneOf, Seed, field_types
from seesaw_cf.base.system import lazy

if TYPE_CHECKING:
    from seesaw_cf.logs.comparison import LogComparison, compare
    from seesaw_cf.logs.formats import read_log

__all__ = ["CompareSettings", "LogComparison", "compare", "read_log"]

MARGIN = "margin"
"""Metric of items with log-probabilities: of the right answer minus that of the best other one, nats."""
LOGLIK = "loglik"
"""Metric of items with log-probabilities: of the right answer, nats."""
ALLOWED: Mapping[str, str] = {
    "version": "the version of the task",
    "shots": "the number of few-shot examples",
    "seeds": "random seeds",
    "template": "the chat template or system instruction",
    "generation": "how answers are generated",
    "arguments": "the arguments of the task",
    "epochs": "the number of epochs",
    "content": "what is asked under one id",
    "cut": "where a log ends",
}
"""Difference of logs that can be allowed -> what differs, in words."""


@dataclass(frozen=True, slots=True)
class CompareSettings:
    """What is declared before two logs are compared.

    Attributes:
        groups: Field of items with the names of groups, such as gender.
        clusters: Field that names what items share, such as passage.
        metrics: Metric to test (default: a task's first share).
        margin: Smaller changes of scores do not matter.
        margin_log_odds: The same of log-probabilities (nats) and other values.
        alpha: Level of each family of tests.
        permutations: Flips of clusters, for p; 0: Holm over p of t.
        seed: Seed of the flips.
        allow: Difference of the logs that is not refused.
        errors: How items without a score count: not, or as 0.
    """

    groups: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    margin: AboveZero = 0.02
    margin_log_odds: AboveZero = 0.1
    alpha: Inside = 0.05
    permutations: Draws = 1999
    seed: Seed = 0
    allow: tuple[Annotated[str, OneOf(tuple(ALLOWED))], ...] = ()
    errors: Annotated[str, OneOf(("left-out", "wrong"))] = "left-out"

    def __post_init__(self) -> None:
        """Raise RecordError or UnknownNameError where a field cannot be."""
        field_types(self)


_HOME = dict.fromkeys(("LogComparison", "compare"), "seesaw_cf.logs.comparison")
__getattr__, __dir__ = lazy(__name__, _HOME | {"read_log": "seesaw_cf.logs.formats"})
