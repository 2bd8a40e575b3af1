"""One model asked by several threads at once: each gets what it would have got alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial

import pytest

from seesaw_cf.editors import FT, FTConfig
from seesaw_cf.models.weights import applied, parameter_hashes
from seesaw_cf.run.questions import questions
from seesaw_cf.scoring import HFScorer
from seesaw_cf.scoring.edited_scorer import EditedScorer
from seesaw_cf.scoring.trie_scorer import TrieScorer
from seesaw_cf.types import Cloze, ClozeScore
from tests.runner import small
from tests.tokenizer_styles import byte_level


@pytest.mark.slow
def test_threads_that_score_and_edit_with_one_model_do_not_see_each_other() -> None:
    model, tokenizer = small.model(), byte_level(bos=False)
    cases = small.cases()
    clozes = [q.cloze for case in cases for q in questions(case)]
    editor = FT(FTConfig(layers=(0,), steps=3))
    delta = editor.edit(model, tokenizer, [cases[0].request])

    def edited() -> list[Cloze | ClozeScore]:
        return [score for part in EditedScorer(TrieScorer(model, tokenizer)).score([(delta, clozes)]) for score in part]

    def norm() -> list[float]:
        made = editor.edit(model, tokenizer, [cases[0].request])
        return [float(made.dense(name).norm()) for name in made.updates]

    jobs: list[Callable[[], Sequence[object]]] = [
        partial(HFScorer(model, tokenizer).score, clozes),
        partial(TrieScorer(model, tokenizer).score, clozes),
        edited,
        norm,
    ] * 3
    before = parameter_hashes(model)
    alone = [job() for job in jobs]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda job: job(), jobs))
    assert together == alone
    assert parameter_hashes(model) == before
    assert all("forward" not in vars(part) for part in model.modules())


@pytest.mark.slow
def test_an_edit_is_made_on_the_weights_before_another_threads_edit() -> None:
    """The second thread starts inside the block of the first and waits for its end."""
    model, tokenizer, (case, *_) = small.model(), byte_level(bos=False), small.cases()
    editor = FT(FTConfig(layers=(0,), steps=3))
    alone = editor.edit(model, tokenizer, [case.request])
    with ThreadPoolExecutor(1) as pool:
        with applied(model, alone):
            later = pool.submit(editor.edit, model, tokenizer, [case.request])
            assert not wait([later], timeout=0.5).done
        made = later.result()
    assert made.meta["losses"] == alone.meta["losses"]
