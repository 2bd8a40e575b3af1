"""Demo of `leme_annotation`: paste rows as CSV, read the shares."""

from __future__ import annotations

from seesaw_cf.metrics.demo import Demo

EXAMPLE = """\
case_id,group,passage,claim_kind,label
1,none,subject,ground_truth,supports
1,rome,subject,ground_truth,contradicts
1,rome,subject,new_fact,supports
2,none,subject,ground_truth,supports
2,rome,subject,ground_truth,supports
2,rome,subject,new_fact,contradicts
"""
demo = Demo("leme_annotation", "Share of claims that the passages support, leave open or contradict.", EXAMPLE)

if __name__ == "__main__":
    demo.page().launch()
