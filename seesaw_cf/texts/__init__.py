"""Long form: what an edited model writes, and raters that are measured against people before they are believed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seesaw_cf.base.system import lazy

if TYPE_CHECKING:
    from seesaw_cf.base.tables import read_table, write_table
    from seesaw_cf.effects.instruments import ITEMS
    from seesaw_cf.texts.classify import load_classifier, load_rater
    from seesaw_cf.texts.report.write import report_people, report_run
    from seesaw_cf.texts.tables import PASSAGES, RATINGS

__all__ = [
    "ITEMS",
    "PASSAGES",
    "RATINGS",
    "load_classifier",
    "load_rater",
    "read_table",
    "report_people",
    "report_run",
    "write_table",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "ITEMS": "seesaw_cf.effects.instruments",
        "PASSAGES": "seesaw_cf.texts.tables",
        "RATINGS": "seesaw_cf.texts.tables",
        "load_classifier": "seesaw_cf.texts.classify",
        "load_rater": "seesaw_cf.texts.classify",
        "read_table": "seesaw_cf.base.tables",
        "report_people": "seesaw_cf.texts.report.write",
        "report_run": "seesaw_cf.texts.report.write",
        "write_table": "seesaw_cf.base.tables",
    },
)
