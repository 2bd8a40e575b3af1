"""Editors of other packages and of files: what a class must offer before it is tried."""

from __future__ import annotations

from typing import Any

from seesaw_cf.base.errors import EditError
from seesaw_cf.base.plugins import Plugin, Plugins, has_arguments
from seesaw_cf.editors import EDITORS
from seesaw_cf.editors.control_names import is_control


def _has_config(kind: Plugin) -> bool:
    config: Any = getattr(kind, "config_class", None)
    return hasattr(config, "__dataclass_fields__") and has_arguments(config, "for_model", "model")


PLUGINS = Plugins(
    noun="editor",
    known=EDITORS,
    marks=lambda plugin: hasattr(plugin, "config_class"),
    mark="classes with a config_class",
    clauses={
        "config_class is a frozen dataclass with a class method for_model(model), which makes the settings that are "
        "used when the user gives none": _has_config,
        "fit(model, tokenizer) prepares what no request changes, and returns an editor": lambda kind: has_arguments(
            kind, "fit", "model", "tokenizer"
        ),
        "edit(model, tokenizer, requests) returns a WeightDelta": lambda kind: has_arguments(
            kind, "edit", "model", "tokenizer", "requests"
        ),
    },
    error=EditError,
    page="docs/editors.md",
)
"""What `--editor` takes: see `seesaw_cf.models.Editor` for the protocol and `contract.py` for what is tried out."""


def editor_name(source: str) -> str:
    """Return the name of an editor, as `Plugins.name` does, or of a control."""
    return source if is_control(source) else PLUGINS.name(source)


def code_facts(name: str) -> dict[str, str]:
    """Return where the code of an editor comes from, as `Plugins.code` does; {} for a control."""
    return {} if is_control(name) else PLUGINS.code(name)
