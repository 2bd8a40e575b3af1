"""The data set as a benchmark: what is measured with which config, each with its own leaderboard on the Hub."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MetricTask:
    """One number about an edited model.

    Attributes:
        config: Of the data set; its prompts are scored.
        meaning: What the number is.
    """

    config: str
    meaning: str


# Task id -> what it is. Those named so are log-odds, log p(a) - log p(b), in nats. Results on the Hub name these ids.
TASKS: Mapping[str, MetricTask] = {
    "efficacy_log_odds": MetricTask(
        "cross_subject", "new target against true target after the prompt of the edit, in nats",
    ),
    "paraphrase_log_odds": MetricTask(
        "cross_subject", "new target against true target after the edit in other words, in nats",
    ),
    "neighborhood_log_odds": MetricTask(
        "cross_subject",
        "true target against new target after prompts about other holders of the true target, in nats; "
        "above 0 the answer stayed",
    ),
    "cross_property_efficacy_log_odds": MetricTask(
        "cross_property", "new target against true target after the prompt of the edit, in nats",
    ),
    "cross_property_paraphrase_log_odds": MetricTask(
        "cross_property", "new target against true target after the edit in other words, in nats",
    ),
    "cross_property_log_odds": MetricTask(
        "cross_property",
        "best right answer against best wrong answer about another property of the edited person, in nats; "
        "above 0 the right answer is first",
    ),
    "other_people_d_log_odds": MetricTask(
        "cross_subject",
        "change of the log-odds of the new against the true target, for other people who really hold the new target, "
        "in nats",
    ),
    "other_people_d": MetricTask(
        "cross_subject",
        "D: change of p(new) - p(true) for other people who really hold the new target, in probability",
    ),
    "old_target_people_d": MetricTask(
        "cross_subject",
        "D: change of p(new) - p(true) for other people who hold the old target, in probability",
    ),
}  # fmt: skip
