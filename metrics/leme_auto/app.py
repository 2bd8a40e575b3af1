"""Demo of `leme_auto`: paste passages as CSV, read the measures."""

from __future__ import annotations

from seesaw_cf.metrics.demo import Demo

EXAMPLE = """\
case_id,subject,related,subject_passage,related_passage,new_fact,subject_facts,related_facts
1,Ann,Bob,Ann is a painter. She lives in Rome.,Bob married Ann.,Ann lives in Rome,Ann is a painter,Bob sings|Bob is 9
2,Cleo,Dan,Cleo was born in Oslo.,Dan knows Cleo. Dan sings.,Cleo was born in Bonn,Cleo is a chemist,Dan sings
"""
demo = Demo(
    "leme_auto", "Simple measures of passages. Correlate them with people's ratings before use.", EXAMPLE, blank=""
)

if __name__ == "__main__":
    demo.page().launch()
