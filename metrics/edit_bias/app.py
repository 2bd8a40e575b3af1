"""Demo of `edit_bias`: paste rows as CSV, read D per group."""

from __future__ import annotations

from seesaw_cf.metrics.demo import Demo

EXAMPLE = """\
case_id,prompt,subject,groups,pre_new,pre_true,post_new,post_true
1,Ann is a citizen of,Ann,female,-0.7,-1.4,-1.4,-1.4
1,Bob is a citizen of,Bob,male,-0.7,-1.4,-0.7,-1.4
2,Cleo is a citizen of,Cleo,female,-0.6,-1.5,-1.2,-1.5
2,Dan is a citizen of,Dan,male,-0.8,-1.3,-0.8,-1.3
"""
demo = Demo(
    "edit_bias",
    "Log-probabilities in nats. D below 0: less confident in the right answer after the edit.",
    EXAMPLE,
    {"score": ("summed", "log_odds")},
)

if __name__ == "__main__":
    demo.page().launch()
