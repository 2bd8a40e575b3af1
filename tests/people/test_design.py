"""Who rates what: laws of the design, whatever the numbers."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.errors import RecordError
from seesaw_cf.texts.people.design import RaterDesign, assigned, sampled, tasks
from seesaw_cf.texts.people.study import RatingItem, RatingTask


def items(number: int, groups: int = 1) -> list[RatingItem]:
    return [RatingItem(f"i{place}", f"g{place % groups}", (), ()) for place in range(number)]


SHARED = [RatingItem(f"s{role}", "", (), (), about={"role": role}) for role in ("training", "gold", "attention")]
DESIGNS = st.integers(1, 9).flatmap(
    lambda raters: st.builds(
        RaterDesign,
        st.just(raters),
        st.integers(1, raters),
        st.sampled_from([0.0, 0.1, 0.5]),
        st.integers(0, 4),
        st.booleans(),
        st.integers(0, 99),
    )
)


@given(DESIGNS, st.integers(0, 40), st.integers(1, 4))
def test_every_item_goes_to_so_many_raters_and_loads_are_even(design: RaterDesign, number: int, groups: int) -> None:
    given = items(number, groups)
    dealt = assigned(given, design)
    assert list(dealt) == list(design.names)
    counts = Counter(id for own in dealt.values() for id in own)
    assert counts == dict.fromkeys((item.id for item in given), design.per_item)
    assert all(len(set(own)) == len(own) for own in dealt.values()), "nobody twice"
    loads = [len(own) for own in dealt.values()]
    assert max(loads) - min(loads) <= 1
    for group in {item.group for item in given}:
        inside = {item.id for item in given if item.group == group}
        loads = [len(inside & set(own)) for own in dealt.values()]
        assert max(loads) - min(loads) <= 2
    assert assigned(given[::-1], design) == dealt, "the order of items does not matter, the seed does"


@given(DESIGNS, st.integers(1, 40))
def test_a_sequence_has_everything_once_and_repeats_late(design: RaterDesign, number: int) -> None:
    given = items(number)
    made = tasks(given, SHARED, design)
    for name, own in assigned(given, design).items():
        mine = [task for task in made if task.rater == name]
        assert [task.position for task in mine] == list(range(1, len(mine) + 1))
        assert [task.role for task in mine[:2]] == ["training", "gold"]
        at = {role: {task.item: task for task in mine if task.role == role} for role in ("item", "repeat")}
        assert sorted(at["item"]) == sorted(own)
        half = (len(own) + 1) // 2
        assert len(at["repeat"]) == min(half, round(design.duplicates * len(own)))
        assert sum(task.role == "attention" for task in mine) == design.attention
        for id, again in at["repeat"].items():
            once = at["item"][id]
            between = [task for task in mine[once.position : again.position - 1] if task.role == "item"]
            assert len(between) >= half - 1
            assert {once.first, again.first} == ({"pre", "post"} if design.orders else {""})
        if design.orders:
            orders = Counter(task.first for task in at["item"].values())
            assert abs(orders["pre"] - orders["post"]) <= 1


def test_all_pairs_of_raters_meet() -> None:
    dealt = assigned(items(60), RaterDesign(6, 3))
    met = {(a, b) for a in dealt for b in dealt if a < b and set(dealt[a]) & set(dealt[b])}
    assert len(met) == 15


def test_another_seed_deals_otherwise_and_the_same_one_the_same() -> None:
    one, same, other = (tasks(items(20), SHARED, RaterDesign(3, 2, seed=seed)) for seed in (1, 1, 2))
    assert one == same != other
    assert isinstance(one[0], RatingTask)


def test_a_sample_by_group_by_number_and_more_than_there_is() -> None:
    given = [*items(10, 2), RatingItem("x", "g9", (), ())]

    def count(wanted: int | dict[str, int]) -> Counter[str]:
        return Counter(item.group for item in sampled(given, wanted, 0))

    assert count({"g0": 3, "g1": 1}) == {"g0": 3, "g1": 1}
    assert count(7) == {"g0": 3, "g1": 3, "g9": 1}, "as evenly as the groups allow"
    assert count(99) == {"g0": 5, "g1": 5, "g9": 1}
    with pytest.raises(RecordError, match=r"sample: 6 items of 'g0' are wanted, there are 5 \(g0 5, g1 5, g9 1\)"):
        sampled(given, {"g0": 6}, 0)


def test_more_raters_of_an_item_than_raters_is_refused() -> None:
    with pytest.raises(RecordError, match="every item to 4 of 3 raters, expected at most all of them"):
        RaterDesign(3, 4)
    with pytest.raises(RecordError, match=r"share of duplicates is 0\.6, expected"):
        RaterDesign(duplicates=0.6)
