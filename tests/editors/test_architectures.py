"""The table fits every model type, and resumed, packed forward passes equal the model's own."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from accelerate import dispatch_model
from hypothesis import given
from hypothesis import strategies as st
from transformers import PreTrainedModel

from seesaw_cf.editors import load_editor
from seesaw_cf.editors.locate.positions import InputRow, prepare
from seesaw_cf.editors.locate.resume import lay_out, pack_rows
from seesaw_cf.editors.memit import MEMIT, MEMITConfig
from seesaw_cf.editors.mend.training import MENDTraining
from seesaw_cf.errors import UnsupportedModelError
from seesaw_cf.models.architectures import ARCHITECTURES, model_parts
from tests.fakes import REQUESTS, TEMPLATES, TINY, every_kind, slowly, tiny_model, tiny_texts, tiny_tokenizer


def rows_of(model: PreTrainedModel) -> list[InputRow]:
    edits = [prepare(model, tiny_tokenizer(), request, TEMPLATES) for request in REQUESTS]
    return [row for edit in edits for row in (*edit.rows, edit.anchor)]


@pytest.mark.parametrize("kind", every_kind(TINY))
@pytest.mark.parametrize("keep_prefix", [False, True])
def test_resumed_blocks_give_the_models_own_logits(kind: str, keep_prefix: bool) -> None:
    model = tiny_model(kind, dtype=torch.float64)
    parts, rows = model_parts(model), rows_of(tiny_model(kind))
    layout = lay_out(parts, rows, 2, 3, keep_prefix)
    with torch.no_grad():
        top = layout.run(layout.hidden)
        for number, row in enumerate(rows):
            own = model(torch.tensor([row.ids])).logits[0, -1]
            assert torch.allclose(parts.logits(top[layout.at(number, len(row.ids) - 1)]), own, atol=2e-5, rtol=0)
    packed = layout.hidden.shape[0] < len(rows)
    assert packed == parts.row.packed


@pytest.mark.parametrize("kind", every_kind(TINY))
def test_packed_and_padded_edits_agree(kind: str) -> None:
    """The fast path changes nothing, on every type that has it."""
    model, tokenizer = tiny_model(kind), tiny_tokenizer()
    row = ARCHITECTURES[kind]
    config = MEMITConfig(layers=(1,), steps=4, learning_rate=0.1, context_templates=TEMPLATES, moment_weight=1.0)
    deltas = []
    for packed in {row.packed, False}:
        chosen = replace(config, architecture=replace(row, packed=packed))
        editor = MEMIT(chosen, tiny_texts()).fit(model, tokenizer)
        deltas.append(editor.edit(model, tokenizer, REQUESTS))
    name = model_parts(model).weight_name(1)
    for delta in deltas:
        assert (delta.dense(name) - deltas[0].dense(name)).norm() <= 1e-3 * deltas[0].dense(name).norm()


def test_wrong_rows_and_layers_are_refused_and_an_unknown_type_shows_the_row_to_add() -> None:
    with pytest.raises(UnsupportedModelError, match="does not fit LlamaForCausalLM"):
        model_parts(tiny_model("llama"), ARCHITECTURES["gpt2"])
    with pytest.raises(UnsupportedModelError, match="orientation='linear'"):
        model_parts(tiny_model("gpt2"), replace(ARCHITECTURES["gpt2"], orientation="linear"))
    editor = MEMIT(MEMITConfig(layers=(3, 17), context_templates=TEMPLATES), tiny_texts())
    with pytest.raises(UnsupportedModelError, match=r"layers \[3, 17\].*0 to 3.*4 blocks.*for_model"):
        editor.fit(tiny_model("gpt2"), tiny_tokenizer())
    model: Any = tiny_model("llama")
    model.config.model_type = "newcomer"
    with pytest.raises(UnsupportedModelError, match=r"(?s)'newcomer'.*architecture=.*mlp\.down_proj"):
        model_parts(model)
    assert model_parts(model, ARCHITECTURES["llama"]).n_layers == 4


@pytest.mark.parametrize("name", ["ft", "rome", "memit", "lora", "mend"])
@pytest.mark.parametrize("kind", ["gpt2", *slowly("llama", "gemma3")])
def test_models_spread_by_a_device_map_are_edited_like_plain_ones(kind: str, name: str) -> None:
    """The hooks that `device_map` puts around every module are there, though all devices of this machine are one."""
    tokenizer, plain = tiny_tokenizer(), tiny_model(kind)
    spread = dispatch_model(tiny_model(kind), _one_block_each(plain), force_hooks=True)
    by_name: dict[str, dict[str, Any]] = {
        "mend": {"training": MENDTraining(steps=2, batch=4, validate_every=1, held_out=4), "rank": 4},
        "lora": {"steps": 3},
        "ft": {"steps": 3, "norm_constraint": 1e-2},
    }
    settings = by_name.get(name, {"steps": 4, "context_templates": TEMPLATES})
    cls = load_editor(name)
    deltas = []
    for model in (plain, spread):
        editor = cls(cls.config_class(layers=(1,), **settings), tiny_texts()).fit(model, tokenizer)
        deltas.append(editor.edit(model, tokenizer, REQUESTS))
    for weight in deltas[0].updates:
        assert torch.equal(deltas[0].dense(weight), deltas[1].dense(weight))


def _one_block_each(model: PreTrainedModel) -> dict[str, str]:
    """A device map with an entry for every block and every module beside them."""
    blocks = model_parts(model).row.blocks
    parts = [(name, part, list(part.parameters(recurse=False))) for name, part in model.named_modules() if name]
    names = [name for name, part, own in parts if own or not list(part.children())]
    paths = {
        ".".join(name.split(".")[: len(blocks.split(".")) + 1]) if name.startswith(blocks) else name for name in names
    }
    return dict.fromkeys(sorted(paths), "cpu")


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 30)), min_size=1, max_size=60))
def test_each_token_has_one_place_and_less_than_a_third_of_the_places_is_padding(sizes: list[tuple[int, int]]) -> None:
    """n sequences of at least twice the longest row r waste at most (n - 1) r places, and n - 1 < total / (2 r)."""
    rows = [InputRow(tuple(range(100 * i, 100 * i + skip + size)), skip) for i, (skip, size) in enumerate(sizes)]
    head, tail = pack_rows(rows, [skip for skip, _ in sizes], torch.device("cpu"))
    for i, (skip, size) in enumerate(sizes):
        for part, tokens in ((head, range(skip)), (tail, range(skip, skip + size))):
            at = part.starts[i] + torch.tensor(list(tokens), dtype=torch.long)
            assert part.ids.flatten()[at].tolist() == [100 * i + token for token in tokens]
            assert part.places.flatten(1)[:, at].T.tolist() == [[i, token] for token in tokens]
    total = sum(size for _, size in sizes)
    assert int((tail.places[0] >= 0).sum()) == total
    assert tail.ids.numel() < 1.5 * total
