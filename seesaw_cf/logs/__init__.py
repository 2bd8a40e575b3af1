"""Logs of evaluation harnesses: read, paired by item, compared before and after a change of the model."""

from typing import TYPE_CHECKING

from seesaw_cf.base.system import lazy

if TYPE_CHECKING:
    from seesaw_cf.logs.comparison import LogComparison, compare, read_log
    from seesaw_cf.logs.settings import CompareSettings

__all__ = ["CompareSettings", "LogComparison", "compare", "read_log"]

_HOME = dict.fromkeys(("LogComparison", "compare", "read_log"), "seesaw_cf.logs.comparison")
__getattr__, __dir__ = lazy(__name__, _HOME | {"CompareSettings": "seesaw_cf.logs.settings"})
