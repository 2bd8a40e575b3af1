"""Inference for effects of edits: intervals, tests and verdicts that respect how the data are clustered."""

from seesaw_cf.stats.bootstrap import cluster_weights, interval
from seesaw_cf.stats.clustered import case_weights, clustered_mean, clustered_means
from seesaw_cf.stats.crossing import Crossing
from seesaw_cf.stats.multiple import adjust, adjust_families
from seesaw_cf.stats.simple import agreeing, clustered_share, mcnemar, paired_change, proportion, share_interval, t_test
from seesaw_cf.stats.verdicts import Verdict, equivalence_p, minimum_detectable_effect, verdict

__all__ = [
    "Crossing",
    "Verdict",
    "adjust",
    "adjust_families",
    "agreeing",
    "case_weights",
    "cluster_weights",
    "clustered_mean",
    "clustered_means",
    "clustered_share",
    "equivalence_p",
    "interval",
    "mcnemar",
    "minimum_detectable_effect",
    "paired_change",
    "proportion",
    "share_interval",
    "t_test",
    "verdict",
]
