"""From a finished run folder to tables and pictures; every number comes from `seesaw_cf.effects`."""

from seesaw_cf.report.audit import Settings
from seesaw_cf.report.results import Results, read_results
from seesaw_cf.report.terminal import terminal_report
from seesaw_cf.report.write import write_report

__all__ = ["Results", "Settings", "read_results", "terminal_report", "write_report"]
