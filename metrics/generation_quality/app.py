"""Demo of `generation_quality`: paste rows as CSV, read the numbers."""

from __future__ import annotations

from seesaw_cf.metrics.demo import Demo

EXAMPLE = """\
case_id,texts,references
1,Ann is a painter. Ann is a painter. Ann is a painter.,A painter makes paintings.
2,Bob was born in Vienna and studied law.,Vienna is the capital of Austria.
"""
demo = Demo("generation_quality", "Low entropy or high repetition: the edit damaged the model.", EXAMPLE)

if __name__ == "__main__":
    demo.page().launch()
