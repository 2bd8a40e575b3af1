"""Inference for effects of edits: intervals, tests and verdicts that respect how the data are clustered."""

from seesaw_cf.stats.bootstrap import cluster_weights, interval, ratio_draws
from seesaw_cf.stats.simple import mcnemar, share, t_test

__all__ = ["cluster_weights", "interval", "mcnemar", "ratio_draws", "share", "t_test"]
