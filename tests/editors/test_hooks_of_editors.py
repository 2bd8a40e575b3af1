"""What a subclass of a locate-then-edit method may call directly: keys, layers and groups that do not fit."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from seesaw_cf.editors import (
    EMMET,
    MEMIT,
    ROME,
    AlphaEdit,
    AlphaEditConfig,
    EMMETConfig,
    FTConfig,
    MEMITConfig,
    ROMEConfig,
)
from seesaw_cf.editors.locate.config import LocateThenEditConfig, with_settings
from seesaw_cf.errors import EditError, SettingError, UnknownNameError
from seesaw_cf.models import model_parts
from tests.fakes import tiny_model, tiny_texts, tiny_tokenizer

SETTINGS: dict[str, Any] = {"layers": (1,), "steps": 1, "context_templates": ("{}",)}
SPREAD = [(MEMIT, MEMITConfig), (EMMET, EMMETConfig), (AlphaEdit, AlphaEditConfig)]


def fitted(kind: Any, config: Any) -> Any:
    return kind(config(**SETTINGS), tiny_texts()).fit(tiny_model("llama"), tiny_tokenizer())


@pytest.mark.parametrize(("kind", "config"), SPREAD)
def test_keys_and_layers_of_solve(kind: Any, config: Any) -> None:
    """Keys are (d_ff, n); the tiny models have d_ff = 48."""
    editor = fitted(kind, config)
    for shape in ((), (48,), (2, 3), (3, 48), (48, 1, 1)):
        with pytest.raises(EditError, match=r"expected \(48, number of keys\)"):
            editor.solve(editor.fitted, 1, [torch.zeros(shape, dtype=torch.float64)])
    with pytest.raises(EditError, match="keys: got no group, expected a tensor for each group"):
        editor.solve(editor.fitted, 1, [])
    with pytest.raises(EditError, match=r"of layer 2, only of \[1\]"):
        editor.solve(editor.fitted, 2, [torch.zeros(48, 1)])
    several = [torch.eye(48, size, dtype=torch.float64) for size in (2, 1, 3)]
    together = editor.solve(editor.fitted, 1, several)
    assert [answer.shape for answer in together] == [keys.shape for keys in several]
    for keys, answer in zip(several, together, strict=True):
        torch.testing.assert_close(answer, *editor.solve(editor.fitted, 1, [keys]), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("kind", "config"), [*SPREAD, (ROME, ROMEConfig)])
def test_no_groups_of_edits(kind: Any, config: Any) -> None:
    editor = fitted(kind, config)
    with pytest.raises(EditError, match="no edits were given, expected at least one"):
        editor.changes(model_parts(tiny_model("llama")), editor.fitted, [])


def test_settings_of_the_class_above_all_methods() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown editor with published settings ''.*memit, rome"):
        LocateThenEditConfig.for_model(tiny_model("llama"))


@pytest.mark.parametrize("config", [None, 3, "x", {"steps": 2}, FTConfig])
def test_what_is_no_config(config: Any) -> None:
    with pytest.raises(SettingError, match=r"settings are .*, expected an editor's config"):
        with_settings(config, {"steps": 2})
