"""The locality gate: how many edits leave the right answers about others right."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.effects.answers import LEAST_LOCAL, locality
from seesaw_cf.stats.simple import proportion
from tests.effects.rows import four, table

Edit = list[tuple[bool, bool]]
"""(right before, right after) of each prompt about others."""


def scores(edits: list[Edit], kind: str = "neighborhood", holds: str = "target_true") -> pa.Table:
    logprobs = {True: (-2.0, -1.0), False: (-1.0, -2.0)}
    return table(
        row | {"editor": "ft"}
        for case, prompts in enumerate(edits)
        for number, (before, after) in enumerate(prompts)
        for row in four(*logprobs[before], *logprobs[after], case_id=case, kind=kind, prompt_id=number, holds=holds)
    )


PROMPTS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=4)


@given(st.lists(PROMPTS, min_size=1, max_size=12))
def test_edits_are_counted_that_leave_half_of_the_right_answers(edits: list[Edit]) -> None:
    kept = [[after for before, after in prompts if before] for prompts in edits]
    shares = [sum(own) / len(own) for own in kept if own]
    counts = locality(scores(edits))
    if not shares:
        assert counts == {}
        return
    local = proportion(sum(share >= LEAST_LOCAL for share in shares), len(shares))
    every = [answers for prompts in edits for answers in prompts]
    assert counts["ft"].local == local
    assert counts["ft"].n_prompts == len(every)
    assert counts["ft"].before == pytest.approx(sum(before for before, _ in every) / len(every))
    assert counts["ft"].after == pytest.approx(sum(after for _, after in every) / len(every))


def test_without_neighbours_those_who_hold_the_old_answer_count() -> None:
    edits: list[Edit] = [[(True, False)]] * 8
    assert locality(scores(edits, "cross_subject"))["ft"].others == "people who hold the old answer"
    assert locality(scores(edits, "cross_subject", holds="target_new")) == {}
    assert locality(scores(edits, "efficacy")) == {}


def test_cases_of_one_edit_are_one_edit() -> None:
    edits: list[Edit] = [[(True, False)], [(True, True)], [(True, True)]]
    counts = locality(scores(edits), {("ft", 0): 0, ("ft", 1): 0, ("ft", 2): 2})
    assert counts["ft"].local.n == 2
    assert counts["ft"].local.value == 1.0, "one half of the first edit's answers is left"


def test_a_collapse_is_shown_or_it_is_none() -> None:
    """One of eight is below one half for certain, 95 % Wilson [0.02, 0.47]; two of eight are not, [0.07, 0.59]."""
    lost, left = [(True, False)] * 3, [(True, True)] * 3
    assert locality(scores([left] + [lost] * 7))["ft"].collapsed
    assert not locality(scores([left] * 2 + [lost] * 6))["ft"].collapsed
    assert not locality(scores([lost] * 3))["ft"].collapsed, "three edits show nothing"
