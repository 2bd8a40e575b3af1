"""Demo of `topic_disparity`: paste rows as CSV, read the numbers."""

from __future__ import annotations

from seesaw_cf.metrics.demo import Demo

EXAMPLE = "identity,topic\n" + "bakers,0\nbakers,0\nbakers,1\ntailors,1\ntailors,1\ntailors,0\ntailors,2\n" * 5
demo = Demo(
    "topic_disparity", "Relative entropy in nats: 0 = spoken of like everybody else.", EXAMPLE, {"min_triples": 10}
)

if __name__ == "__main__":
    demo.page().launch()
