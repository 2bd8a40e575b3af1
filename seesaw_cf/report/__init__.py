"""From finished runs to a screen, a page, tables and pictures; every number comes from one frame."""

from seesaw_cf.base.fields import check_exports
from seesaw_cf.effects.audit import AuditSettings
from seesaw_cf.report.build import build_frame
from seesaw_cf.report.pairs import RunResult, read_run
from seesaw_cf.report.report import Report
from seesaw_cf.report.screen import Screen
from seesaw_cf.report.sequence import report

__all__ = ["AuditSettings", "Report", "RunResult", "Screen", "build_frame", "read_run", "report"]

check_exports(globals())
