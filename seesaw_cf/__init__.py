"""seesaw_cf: how editing a fact in a language model changes what it believes about other people.

    import seesaw_cf
    cases = seesaw_cf.load("cross_subject")     # the embedded sample as a `datasets.Dataset`
    seesaw_cf.audit("seesaw-tiny", editor="memit", limit=8)     # edits, asks, undoes, reports
    seesaw_cf.register()                        # evaluate.load("edit_bias") then works from any folder, offline

Everything heavy (torch, transformers, evaluate, datasets) is imported only by what needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seesaw_cf.base.system import lazy

if TYPE_CHECKING:
    from seesaw_cf import editors, effects, metrics, scoring, types
    from seesaw_cf.api import Audit, audit
    from seesaw_cf.callback import AuditCallback
    from seesaw_cf.logs.comparison import compare
    from seesaw_cf.metrics.register import load_metric, register
    from seesaw_cf.models.load import load_model
    from seesaw_cf.records.load import configs, load, path

__version__ = "0.1.0"
"""Of the package."""
__all__ = [
    "Audit",
    "AuditCallback",
    "__version__",
    "audit",
    "compare",
    "configs",
    "editors",
    "effects",
    "load",
    "load_metric",
    "load_model",
    "metrics",
    "path",
    "register",
    "scoring",
    "types",
]

_HOME = dict.fromkeys(("configs", "load", "path"), "seesaw_cf.records.load")
_HOME |= dict.fromkeys(("Audit", "audit"), "seesaw_cf.api")
_HOME |= {
    "AuditCallback": "seesaw_cf.callback",
    "compare": "seesaw_cf.logs.comparison",
    "load_model": "seesaw_cf.models.load",
}
_HOME |= {name: f"seesaw_cf.{name}" for name in ("editors", "effects", "metrics", "scoring", "types")}
__getattr__, __dir__ = lazy(__name__, _HOME | dict.fromkeys(("load_metric", "register"), "seesaw_cf.metrics.register"))
