"""Equal rows of the first block are multiplied once: fewer rows, the same answers, hooks that see all rows."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from seesaw_cf.scoring.encode import EncodedCloze
from seesaw_cf.scoring.fast.first_block import _Groups, distinct_rows
from seesaw_cf.scoring.layout import Layout, lay_out
from seesaw_cf.scoring.rows import make_rows
from tests.scoring.models import CONFIGS, make

TEXTS = ((5, 9, 2, 7, 4), (6, 9, 2, 7, 4), (8, 9, 2, 7, 1), (8, 8, 9, 2, 7), (3, 9, 2, 5, 5, 5, 1))
"""Most tokens occur several times, some of them at several positions."""


def layout(texts: tuple[tuple[int, ...], ...] = TEXTS) -> Layout:
    rows = make_rows([EncodedCloze(ids, 1) for ids in texts], 4, 100)
    return lay_out(rows, False, torch.device("cpu"), torch.float32)


def states(model: Any, fed: Layout) -> Tensor:
    with torch.inference_mode():
        answer: Tensor = model(
            input_ids=fed.ids, position_ids=fed.positions, attention_mask=fed.mask, use_cache=False
        ).logits
    return answer


_of = _Groups.of


def _noted(groups: _Groups, rows: Tensor, spared: list[int]) -> Any:
    """What `_Groups.of` answers; how many rows it spares is noted."""
    found = _of(groups, rows)
    spared.append(0 if found is None else len(found[1]) - len(found[0]))
    return found


PADDED = [kind for kind, (_, expected) in CONFIGS.items() if expected != "plain"]


@pytest.mark.parametrize("kind", PADDED)
def test_the_same_logits_on_every_architecture(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, fed = make(kind, attention="eager"), layout()
    expected = states(model, fed)
    spared: list[int] = []
    with monkeypatch.context() as patch, distinct_rows(model, fed):
        patch.setattr(_Groups, "of", lambda groups, rows: _noted(groups, rows, spared))
        found = states(model, fed)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert max(spared, default=0) >= fed.ids.numel() // 5 or kind == "falcon"  # its layers are of a class of their own
    assert not any("forward" in vars(part) for part in model.modules())


@pytest.mark.parametrize(("kind", "name"), [("llama", "q_proj"), ("gpt2", "c_attn"), ("gptj", "fc_in")])
def test_rows_are_counted_by_token_and_by_position_where_that_matters(kind: str, name: str) -> None:
    """GPT-2 adds positions to the embeddings. GPT-J's MLP runs beside its attention, so that it is shared as well."""
    model, fed = make(kind, attention="eager"), layout()
    pairs = torch.stack([fed.ids.flatten(), fed.positions.flatten()]) if kind == "gpt2" else fed.ids.flatten()[None]
    layers = [part for path, part in model.named_modules() if path.endswith(name)]
    multiplied: list[int] = []
    own = type(layers[0]).forward

    def counted(rows: Tensor) -> Tensor:
        multiplied.append(rows.numel() // rows.shape[-1])
        answer: Tensor = own(layers[0], rows)
        return answer

    vars(layers[0])["forward"] = counted
    with distinct_rows(model, fed):
        states(model, fed)
    assert vars(layers[0])["forward"] is counted
    assert multiplied == [torch.unique(pairs, dim=1).shape[1]] != [fed.ids.numel()]


def test_rows_that_only_look_equal_are_all_multiplied() -> None:
    """Nothing is taken on trust: here the embeddings differ although the tokens do not."""
    model, fed = make("llama", attention="eager"), layout()
    torch.manual_seed(0)
    noise = torch.randn(*fed.ids.shape, 32)
    noise[..., 0] = 0.0

    def disturb(_: Any, __: Any, output: Tensor) -> Tensor:
        return output + noise

    with model.get_input_embeddings().register_forward_hook(disturb):
        expected = states(model, fed)
        with distinct_rows(model, fed):
            found = states(model, fed)
    assert torch.equal(found, expected)


def test_hooks_see_and_change_every_row() -> None:
    """An edit that belongs to single rows is added by a hook behind the layer."""
    model, fed = make("llama", attention="eager"), layout()
    layer = next(part for path, part in model.named_modules() if path.endswith("0.self_attn.v_proj"))
    torch.manual_seed(0)
    delta = torch.randn(*fed.ids.shape, 16)

    def edit(_: Any, args: tuple[Tensor, ...], output: Tensor) -> Tensor:
        assert args[0].shape[:-1] == output.shape[:-1] == fed.ids.shape
        return output + delta

    with layer.register_forward_hook(edit):
        expected = states(model, fed)
        with distinct_rows(model, fed):
            found = states(model, fed)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_texts_without_repeated_tokens_are_fed_as_they_are() -> None:
    model, fed = make("gpt2", attention="eager"), layout(((5, 9, 2, 7, 4), (6, 8, 3, 1)))
    expected = states(model, fed)
    assert _Groups(fed).of(torch.ones(*fed.ids.shape, 3)) is None
    with distinct_rows(model, fed):
        found = states(model, fed)
    assert torch.equal(found, expected)
