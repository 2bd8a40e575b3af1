"""Demo of `leme_survey`: paste ratings as CSV, read means per method and item."""

from __future__ import annotations

from seesaw_cf.metrics.demo import Demo

EXAMPLE = """\
case_id,method,item,rating
1,none,new_fact_main_passage,1
1,memit,new_fact_main_passage,6
2,none,new_fact_main_passage,2
2,memit,new_fact_main_passage,7
1,none,fluency,6
1,memit,fluency,4
2,none,fluency,7
2,memit,fluency,
"""
demo = Demo(
    "leme_survey",
    "Ratings from 1 (strongly disagree) to 7 (strongly agree), one row each.",
    EXAMPLE,
    {"reference": "none"},
)

if __name__ == "__main__":
    demo.page().launch()
