"""From the score table to effects: pure functions of tables, no model needed."""

from seesaw_cf.effects.columns import accuracy_of_columns, bias_of_columns
from seesaw_cf.effects.efficacy import efficacy
from seesaw_cf.effects.groups import ALL, AXES, UNKNOWN, group_effects
from seesaw_cf.effects.prompts import difference, prompt_effects
from seesaw_cf.effects.properties import cross_property

__all__ = [
    "ALL",
    "AXES",
    "UNKNOWN",
    "accuracy_of_columns",
    "bias_of_columns",
    "cross_property",
    "difference",
    "efficacy",
    "group_effects",
    "prompt_effects",
]
