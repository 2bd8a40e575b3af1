"""What decides a comparison of logs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from seesaw_cf.base.checks import above_zero, draws, number, one_of, seed
from seesaw_cf.base.fields import field_types
from seesaw_cf.logs.log import LOGLIK, MARGIN
from seesaw_cf.logs.pairing import ALLOWED
from seesaw_cf.stats.simple import BOUNDS


@dataclass(frozen=True, slots=True)
class CompareSettings:
    """What is declared before two logs are compared.

    Attributes:
        groups: Field of items with the names of groups, such as gender, beside those of known benchmarks. Repeatable.
        clusters: Field that names what items share, such as passage. Two cross (default: of known benchmarks).
        mapping: CSV or Parquet with a column item, and groups or clusters in others.
        metrics: Metric to test (default: the first of a task with values from -1 to 1). Repeatable.
        margin: Smaller changes of scores, values from -1 to 1, do not matter.
        margin_log_odds: The same of log-probabilities, nats, and of other values.
        alpha: Level, for each of three families: scores, log-probabilities, groups.
        permutations: Flips of clusters, for p and correction. 0: Holm over p of t.
        seed: Seed of the flips.
        allow: Difference of logs that is not refused: version, shots, seeds, template, generation, arguments, epochs,
            content or cut. Repeatable.
        errors: How items with an error or without a score count: left-out, or wrong, as 0 of what is at most 1.
    """

    groups: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()
    mapping: Path | None = None
    metrics: tuple[str, ...] = ()
    margin: float = 0.02
    margin_log_odds: float = 0.1
    alpha: float = 0.05
    permutations: int = 1999
    seed: int = 0
    allow: tuple[str, ...] = ()
    errors: str = "left-out"

    def __post_init__(self) -> None:
        """Refuse what no comparison can be made with.

        Raises:
            RecordError: A number is outside its range, or there are more than two clusters.
            UnknownNameError: `allow` names no difference.
        """
        field_types(self)
        above_zero(self, ("margin", "margin_log_odds"))
        number("CompareSettings: alpha", self.alpha, 0, 1, ends=False)
        draws("CompareSettings: permutations", self.permutations)
        seed("CompareSettings: seed", self.seed)
        one_of("way to count errors", self.errors, ("left-out", "wrong"))
        for name in self.allow:
            one_of("difference of logs", name, ALLOWED)

    def margin_of(self, metric: str, is_share: bool) -> tuple[float, float]:
        """Return the margin of a metric, and the largest change that is rounding."""
        if is_share:
            return self.margin, 0.0
        return self.margin_log_odds, BOUNDS["float32"] if metric in (MARGIN, LOGLIK) else 0.0
