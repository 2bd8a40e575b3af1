"""Laws of the builder's parts that hold for any input: batches, phrasings, kept replies, options."""

from __future__ import annotations

import tempfile
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seesaw_cf.builder_scripts.cases import paraphrases
from seesaw_cf.builder_scripts.jobs import BuildOptions, paper
from seesaw_cf.builder_scripts.sources import CachedSource, Source, batches
from seesaw_cf.builder_scripts.sparql import SourceError
from seesaw_cf.errors import RecordError
from seesaw_cf.records.relations import RELATIONS, templates


@pytest.mark.slow
@settings(max_examples=30)
@given(st.lists(st.text(max_size=4)), st.integers(1, 7))
def test_batches_hold_everything_once_in_order_and_only_the_last_is_short(ids: list[str], size: int) -> None:
    made = batches(ids, size)
    assert [id for batch in made for id in batch] == sorted(set(ids))
    assert all(len(batch) == size for batch in made[:-1])
    assert all(made)


@pytest.mark.parametrize("relation_id", RELATIONS)
def test_a_paraphrase_is_never_the_edit_and_never_said_twice(relation_id: str) -> None:
    for said in templates(relation_id, "cloze"):
        found = paraphrases(relation_id, said)
        assert found
        assert said not in found
        assert max(Counter(template.id for template in found).values()) == 1
        for template in found:
            assert template.relation_id == relation_id
            assert template.present.count("{}") == template.past.count("{}") == 1


class Echo(Source):
    """A source that answers with the query itself, and counts."""

    identity = "echo"

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def ask(self, text: str) -> bytes:
        self.asked[text] += 1
        return text.encode()


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=30), min_size=1, max_size=8))
def test_a_reply_is_asked_for_once_and_then_had_offline(texts: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = Echo()
        online = CachedSource(source, folder)
        assert [online.ask(text) for text in texts] == [text.encode() for text in texts]
        assert set(source.asked.values()) == {1}
        assert (online.hits, online.misses) == (len(texts) - len(set(texts)), len(set(texts)))
        offline = CachedSource(Echo(), folder, offline=True)
        assert [offline.ask(text) for text in texts] == [text.encode() for text in texts]
        with pytest.raises(SourceError, match="asking is switched off"):
            offline.ask("".join(texts) + "?")


@given(st.integers(0, 10**6), st.integers(0, 500), st.booleans())
def test_the_published_rules_keep_seed_and_numbers_and_are_the_same_twice(seed: int, number: int, skip: bool) -> None:
    made = paper(BuildOptions(seed=seed, edits={"P21": number}, skip_both=skip))
    assert (made.seed, made.edits) == (seed, {"P21": number})
    assert paper(made) == made


@given(
    st.sampled_from(["per_gender", "true_per_gender", "min_holders", "per_pair", "neighborhood", "paraphrases"]),
    st.integers(-50, 50),
)
def test_options_below_zero_are_refused_by_name(name: str, number: int) -> None:
    if number < 0:
        with pytest.raises(
            RecordError, match=f"build options: {name} is {number}, expected a whole number of at least 0"
        ):
            BuildOptions(**{name: number})  # type: ignore[arg-type]
    else:
        assert getattr(BuildOptions(**{name: number}), name) == number  # type: ignore[arg-type]
