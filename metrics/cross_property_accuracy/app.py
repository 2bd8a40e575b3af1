"""Demo of `cross_property_accuracy`: paste candidates as CSV, read accuracy before and after the edit."""

from __future__ import annotations

from seesaw_cf.metrics.demo import Demo

EXAMPLE = """\
case_id,edit_relation,effect_relation,prompt,candidates,gold,pre,post
1,P27,P101,Ann's field of work is,physics|law,physics,-1.0|-2.0,-1.0|-2.0
2,P27,P101,Bob's field of work is,physics|law,law,-3.0|-1.0,-1.0|-2.0
"""
demo = Demo(
    "cross_property_accuracy",
    "Share of right first choices before and after editing another property.",
    EXAMPLE,
    {"mode": ("exact", "paper")},
)

if __name__ == "__main__":
    demo.page().launch()
