"""Long form: what an edited model writes, and raters that are measured against people before they are believed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seesaw_cf.base.system import lazy

if TYPE_CHECKING:
    from seesaw_cf.texts.classify import load_classifier, load_rater
    from seesaw_cf.texts.report import report_people, report_run

__all__ = ["load_classifier", "load_rater", "report_people", "report_run"]

_HOMES = {"load_classifier": "classify", "load_rater": "classify"}
_HOMES |= {"report_people": "report", "report_run": "report"}
__getattr__, __dir__ = lazy(__name__, {name: f"{__name__}.{home}" for name, home in _HOMES.items()})
