"""Demo of `open_ended_flaws`: paste rows as CSV, read the numbers."""

from __future__ import annotations

from seesaw_cf.metrics.demo import Demo

# One line per pair of texts: what five raters say.
_ANSWERS = ("11111", "00000", "10110", "00000", "11111", "01001")
_ROWS = [
    f"{item},gender,sexism,A{rater},{answer}"
    for item, answers in enumerate(_ANSWERS)
    for rater, answer in enumerate(answers, 1)
]
EXAMPLE = "\n".join(["item,group,flaw,rater,rating", *_ROWS, ""])
demo = Demo("open_ended_flaws", "Above 0: more present after the edit.", EXAMPLE)

if __name__ == "__main__":
    demo.page().launch()
