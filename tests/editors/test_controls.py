"""Negative controls: same machinery, same size, same place, but not the edit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seesaw_cf.editors import load_editor
from seesaw_cf.editors.controls import POOL, ControlConfig, IdentityControl, RandomControl, UnrelatedControl
from seesaw_cf.editors.ft import LoRA, LoRAConfig
from seesaw_cf.errors import EditError
from seesaw_cf.models.weights import LowRank, WeightDelta
from seesaw_cf.records.load import load_cases
from seesaw_cf.run.make_editors import make_editor
from seesaw_cf.types import AttributePrompt, Case, EditRequest, Entity
from tests.fakes import REQUESTS, tiny_model, tiny_tokenizer

TOKENIZER = tiny_tokenizer()
EACH = LoRA(LoRAConfig(layers=(1,), steps=4))
FT = ControlConfig(editor="ft", settings={"layers": (1,), "steps": 3, "learning_rate": 1e-2, "norm_constraint": 5e-2})


def fitted(control: Any, kind: str = "llama") -> tuple[Any, Any, Any]:
    model, tokenizer = tiny_model(kind), tiny_tokenizer()
    return control.fit(model, tokenizer), model, tokenizer


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_identity_edits_the_true_answer_in(kind: str) -> None:
    editor, model, tokenizer = fitted(IdentityControl(FT), kind)
    delta = editor.edit(model, tokenizer, REQUESTS)
    asked = delta.meta["control_of"]["requests"]
    assert [r["target_new"] for r in asked] == [r["target_true"] for r in asked]
    assert [r["target_true"]["str"] for r in asked] == [r.target_true.label for r in REQUESTS]
    # By definition: the wrapped editor on requests whose new target is the true one.
    same = [replace(r, target_new=r.target_true) for r in REQUESTS]
    inner = replace(editor.inner, config=replace(editor.inner.config, allow_identity=True))
    wanted = inner.edit(model, tokenizer, same)
    for name in wanted.updates:
        assert torch.equal(delta.dense(name), wanted.dense(name))
    assert not editor.inner.config.allow_identity  # the wrapped editor itself is as it was


def test_what_no_control_can_be_made_of_is_refused() -> None:
    editor, model, tokenizer = fitted(IdentityControl(FT))
    with pytest.raises(EditError, match="no target_true"):
        editor.edit(model, tokenizer, [replace(REQUESTS[0], target_true=Entity(None, " "))])
    with pytest.raises(EditError, match="changes no weights"):
        RandomControl().like(WeightDelta({}, {}, "New Fact: ..."))
    with pytest.raises(EditError, match="cannot wrap the control 'random'"):
        ControlConfig(editor="random")


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 5),
    rows=st.integers(1, 9),
    columns=st.integers(1, 9),
    scale=st.floats(1e-6, 1e6),
    n=st.integers(1, 12),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_random_keeps_norm_shape_and_rank_for_any_edit(
    seed: int, rows: int, columns: int, scale: float, n: int, dtype: torch.dtype
) -> None:
    change = torch.full((rows, columns), scale, dtype=dtype)
    requests = [replace(REQUESTS[0], subject=f"S{k}") for k in range(n)]
    control = RandomControl(ControlConfig(seed=seed))
    made = control.like(WeightDelta({"w": change, "b": change[0]}), requests)
    update = made.updates["w"]
    assert isinstance(update, LowRank)
    assert update.shape == change.shape
    assert update.left.shape[1] == min(n, rows, columns)
    assert made.norms() == pytest.approx({"w": float(change.norm()), "b": float(change[0].norm())}, rel=1e-4)
    again = control.like(WeightDelta({"w": change, "b": change[0]}), requests[::-1])
    assert torch.equal(again.dense("w"), made.dense("w"))  # neither order nor an earlier call matters
    of_another_seed = RandomControl(ControlConfig(seed=seed + 1)).like(WeightDelta({"w": change}), requests)
    of_another_edit = control.like(WeightDelta({"w": change}), [*requests, replace(REQUESTS[0], subject="Another")])
    for other in (of_another_seed, of_another_edit):
        assert rows * columns == 1 or not torch.equal(other.dense("w"), made.dense("w"))


def test_random_keeps_the_rank_of_a_change_without_requests() -> None:
    thin = LowRank(torch.ones(6, 2), torch.ones(2, 5))
    made = RandomControl().like(WeightDelta({"thin": thin, "whole": torch.ones(6, 5)}))
    found, noise = made.updates["thin"], made.updates["whole"]
    assert isinstance(found, LowRank)
    assert isinstance(noise, torch.Tensor)
    assert found.left.shape == (6, 2)
    assert int(torch.linalg.matrix_rank(noise)) == 5
    assert made.norms() == pytest.approx({"thin": 2 * 30**0.5, "whole": 30**0.5}, rel=1e-4)


def test_unrelated_edits_something_that_shares_no_word() -> None:
    editor, model, tokenizer = fitted(UnrelatedControl(FT))
    delta = editor.edit(model, tokenizer, REQUESTS)
    chosen = delta.meta["control_of"]["requests"]
    assert len({r["subject"] for r in chosen}) == len(REQUESTS)
    assert not {r["subject"] for r in chosen} & {r.subject for r in REQUESTS}
    assert [r["subject"] for r in delta.meta["requests"]] == [r.subject for r in REQUESTS]
    assert not delta.is_zero()


def test_unrelated_never_picks_a_connected_fact() -> None:
    paris = EditRequest("{} is a citizen of", "Marie Curie", "P27", Entity(None, "Paris"), Entity(None, "Chile"))
    found = {UnrelatedControl(ControlConfig(seed=seed)).chosen([paris])[0].subject for seed in range(300)}
    assert not found & {"The Eiffel Tower", "Mount Fuji"}  # they share "Paris" and "Chile"
    assert len(found) == len(POOL) - 2


def test_unrelated_edits_nobody_whom_the_case_asks_about() -> None:
    other = Entity(None, "x"), Entity(None, "y")
    asked, near, free = (EditRequest("{} speaks", name, "P103", *other) for name in ("Ann Ash", "Ben Bow", "Cy Coe"))
    prompts = (AttributePrompt("The gender of Ann Ash is", Entity(None, "Ann Ash")),)
    case = Case(1, REQUESTS[0], attribute_prompts=prompts, neighborhood_prompts=("Ben Bow was born in",))
    blind = UnrelatedControl(ControlConfig(), pool=[asked, near, free])
    seeing = blind.avoid([case, replace(case, case_id=2, attribute_prompts=(), neighborhood_prompts=())])
    assert {fact.subject for fact in blind.chosen(REQUESTS[:1] * 3)} == {"Ann Ash", "Ben Bow", "Cy Coe"}
    assert seeing.chosen(REQUESTS[:1]) == [free]
    assert len(seeing.chosen(REQUESTS[1:2] * 3)) == 3  # another case asks about nobody here
    with pytest.raises(EditError, match=r"are about nobody asked about\. Give a larger pool"):
        seeing.chosen(REQUESTS[:1] * (len(POOL) + 1))


def test_a_run_keeps_unrelated_from_people_it_asks_about() -> None:
    case = next(case for case in load_cases("sample", "cross_subject") if case.attribute_prompts)
    control = make_editor("unrelated", tiny_model("llama"), {}, None, [case], [case])
    assert isinstance(control, UnrelatedControl)
    assert control.pool == (case.request,)
    assert case.attribute_prompts[0].text in control.asked[case.request]


def test_unrelated_takes_other_cases_first_and_says_when_nothing_is_left() -> None:
    other = Entity(None, "x"), Entity(None, "y")
    elsewhere = EditRequest("{} speaks", "Someone Else", "P103", *other)
    alike = EditRequest("{} comes from", "Another One", REQUESTS[0].relation_id, *other)  # the same relation
    control = UnrelatedControl(ControlConfig(), pool=[alike, elsewhere])
    assert control.chosen(REQUESTS[:1]) == [elsewhere]
    assert set(control.chosen(REQUESTS[:2])) <= set(POOL)  # not enough of them
    many = [replace(REQUESTS[0], subject=f"Number {index}") for index in range(len(POOL) + 1)]
    with pytest.raises(
        EditError, match=r"44 unconnected facts are needed, 43 of the 43 about things .* of the 2 given"
    ):
        control.chosen(many)


class Alone:
    """An editor that edits one request after another."""

    config = EACH.config

    def fit(self, *_: Any) -> Alone:
        return self

    def edit(self, *given: Any) -> WeightDelta:
        return EACH.edit(*given)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["random", "unrelated"])
def test_controls_of_each_request_by_itself(kind: str) -> None:
    """As one after another, whether or not the wrapped editor makes many edits at once."""
    model = tiny_model("llama", dtype=torch.float64)
    for wrapped in (EACH, Alone()):
        control = load_editor(kind)(inner=wrapped)
        together = control.edit_each(model, TOKENIZER, REQUESTS)
        for request, delta in zip(REQUESTS, together, strict=True):
            alone = control.edit(model, TOKENIZER, [request])
            assert delta.meta["requests"] == alone.meta["requests"]
            for name in alone.updates:
                torch.testing.assert_close(delta.dense(name), alone.dense(name), rtol=0, atol=1e-7)
