"""Logs of evaluation harnesses: read, paired by item, compared before and after a change of the model."""

from seesaw_cf.base.public import check_exports
from seesaw_cf.logs.comparison import LogComparison, compare_logs
from seesaw_cf.logs.read import read_log
from seesaw_cf.logs.settings import CompareSettings

__all__ = ["CompareSettings", "LogComparison", "compare_logs", "read_log"]

check_exports(globals())
