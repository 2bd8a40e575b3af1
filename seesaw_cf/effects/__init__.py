"""From the score table to effects: pure functions of tables, no model needed."""

from seesaw_cf.base.fields import check_exports
from seesaw_cf.effects.accuracy import accuracy_of_columns, cross_property
from seesaw_cf.effects.audit import AuditSettings, audit
from seesaw_cf.effects.bias import bias_of_columns, group_effects
from seesaw_cf.effects.estimands import excess_over_control, group_contrasts, toward_truth
from seesaw_cf.effects.means import ALL, AXES, UNKNOWN
from seesaw_cf.effects.prompts import difference, prompt_effects
from seesaw_cf.effects.success import edit_success, success_of_scores

__all__ = [
    "ALL",
    "AXES",
    "UNKNOWN",
    "AuditSettings",
    "accuracy_of_columns",
    "audit",
    "bias_of_columns",
    "cross_property",
    "difference",
    "edit_success",
    "excess_over_control",
    "group_contrasts",
    "group_effects",
    "prompt_effects",
    "success_of_scores",
    "toward_truth",
]

check_exports(globals())
