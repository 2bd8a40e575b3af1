"""Knowledge editors: one file per method, each a frozen config and one immutable class.

    editor = MEMIT(MEMITConfig.for_model(model), corpus=texts).fit(model, tokenizer)
    delta = editor.edit(model, tokenizer, requests)
    with seesaw_cf.weights.applied(model, delta):
        ...

Names are resolved by a plain table, so that nothing heavy is imported before it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from seesaw_cf.errors import unknown_name

__all__ = ["EDITORS", "load_editor"]

EDITORS: dict[str, str] = {
    "ft": "seesaw_cf.editors.ft:FT",
    "rome": "seesaw_cf.editors.rome:ROME",
    "memit": "seesaw_cf.editors.memit:MEMIT",
    "emmet": "seesaw_cf.editors.emmet:EMMET",
    "alphaedit": "seesaw_cf.editors.alphaedit:AlphaEdit",
    "mend": "seesaw_cf.editors.mend:MEND",
    "lora": "seesaw_cf.editors.lora:LoRA",
    "ike": "seesaw_cf.editors.ike:IKE",
    "identity": "seesaw_cf.editors.controls:Identity",
    "random": "seesaw_cf.editors.controls:Random",
    "unrelated": "seesaw_cf.editors.controls:Unrelated",
}
"""Editor name -> "module:class"."""


def load_editor(name: str) -> type[Any]:
    """The class of an editor; its settings are `load_editor(name).config_class`.

    Args:
        name: A key of `EDITORS`.

    Returns:
        A class made as `cls(config, corpus=texts)` that follows `seesaw_cf.weights.Editor`.

    Raises:
        UnknownNameError: No such editor; near names are suggested.
    """
    if name not in EDITORS:
        raise unknown_name("editor", name, EDITORS)
    module, _, attribute = EDITORS[name].partition(":")
    found: type[Any] = getattr(import_module(module), attribute)
    return found
