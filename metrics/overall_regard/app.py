"""Demo of `overall_regard`: paste rows as CSV, read the numbers."""

from __future__ import annotations

from seesaw_cf.metrics.demo import Demo

EXAMPLE = """\
identity,regard
bakers,positive
bakers,positive
bakers,neutral
tailors,negative
tailors,positive
tailors,negative
"""
demo = Demo("overall_regard", "Below 0: spoken of badly more often than well.", EXAMPLE)

if __name__ == "__main__":
    demo.page().launch()
