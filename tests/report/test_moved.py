"""Where a changed model was changed: said in a sentence and drawn, without naming a method."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from seesaw_cf.models.change import EditedModel, MovedPart
from seesaw_cf.report.moved import block_of, where_moved


def part(name: str, norm: float) -> MovedPart:
    return {"name": name, "shape": [4, 4], "rank": 1, "norm": norm, "relative": norm / 10}


def model(*parts: MovedPart) -> EditedModel:
    return {"source": "here", "form": "checkpoint", "moved": list(parts), "notes": [], "null": "noise"}


SEVERAL = model(
    part("model.layers.1.mlp.down_proj.weight", 1.0),
    part("model.layers.10.mlp.down_proj.weight", 3.0),
    part("model.embed_tokens.weight", 9.0),
)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("model.layers.12.mlp.down_proj.weight", (12, "mlp.down_proj")),
        ("transformer.h.0.attn.c_attn.bias", (0, "attn.c_attn.bias")),
        ("gpt_neox.layers.3.input_layernorm.weight", (3, "input_layernorm")),
        ("lm_head.weight", (None, "lm_head.weight")),
    ],
)
def test_the_block_of_a_parameter(name: str, place: tuple[int | None, str]) -> None:
    assert block_of(name) == place


def test_the_sentence_names_blocks_and_the_largest() -> None:
    assert where_moved(model(*SEVERAL["moved"][:2])) == (
        "weights of 2 blocks from 1 to 10 moved, block 10 most (90% of the squared norm)"
    )
    assert where_moved(SEVERAL) == (
        "weights of 2 blocks from 1 to 10 moved, block 10 most (10% of the squared norm); 89% of the squared norm lies "
        "outside the blocks"
    )
    assert where_moved(model(part("model.layers.1.mlp.down_proj.weight", 1.0))) == "weights of block 1 moved"
    assert where_moved(model(part("lm_head.weight", 1.0))) == ""


def test_the_picture_has_a_panel_for_each_model_that_moved_blocks(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    from seesaw_cf.report.more_plots import draw_moved

    results: Any = SimpleNamespace(manifest={"edited": {"mine": SEVERAL}})
    assert list(draw_moved(results, tmp_path)) == ["moved.png"]
    assert (tmp_path / "moved.png").stat().st_size > 1000
    one: Any = SimpleNamespace(manifest={"edited": {"mine": model(part("model.layers.1.a.weight", 1.0))}})
    assert draw_moved(one, tmp_path) == {}
    assert draw_moved(SimpleNamespace(manifest={}), tmp_path) == {}  # type: ignore[arg-type]
