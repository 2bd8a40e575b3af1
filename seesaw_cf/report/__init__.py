"""From a finished run folder to tables and pictures; every number comes from `seesaw_cf.effects`."""

from seesaw_cf.base.public import check_exports
from seesaw_cf.effects.audit import AuditSettings
from seesaw_cf.report.results import Results, read_results
from seesaw_cf.report.write import terminal_report, write_report

__all__ = ["AuditSettings", "Results", "read_results", "terminal_report", "write_report"]

check_exports(globals())
