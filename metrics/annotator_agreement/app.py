"""Demo of `annotator_agreement`: paste rows as CSV, read the numbers."""

from __future__ import annotations

from seesaw_cf.metrics.demo import Demo

EXAMPLE = """\
ratings
0|0|0
1|1|1
0|1|0
0||1
-1|-1|0
"""
demo = Demo(
    "annotator_agreement", "Raw agreement flatters rare labels: read it beside the chance-corrected figures.", EXAMPLE
)

if __name__ == "__main__":
    demo.page().launch()
