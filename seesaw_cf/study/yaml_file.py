"""Reading a YAML file of a user: nothing but plain values, no key twice, no aliases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from seesaw_cf.checks import shown
from seesaw_cf.errors import RecordError
from seesaw_cf.io.text import read_text


class _Plain(yaml.SafeLoader):
    """`yaml.safe_load` that refuses a key that occurs twice, and aliases: a few of them stand for gigabytes."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """One value of the file."""
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.YAMLError(f"line {mark.line + 1}: aliases (*name) are not read")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """An object of the file."""
        keys = [key.value for key, _ in node.value]
        if twice := [key for key, _ in node.value if keys.count(key.value) > 1]:
            line = twice[-1].start_mark.line + 1
            raise yaml.YAMLError(f"line {line}: the key {shown(twice[-1].value)} occurs twice")
        return super().construct_mapping(node, deep)


def read_yaml(file: Path) -> dict[str, Any]:
    """The object in a YAML file.

    Args:
        file: The file.

    Raises:
        StorageError: The file is missing or cannot be read.
        RecordError: Not UTF-8, not YAML, a key twice, an alias, or something else than an object at the top.
    """
    try:
        values = yaml.load(read_text(file), _Plain)  # a SafeLoader
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        if isinstance(error, RecordError):
            raise
        reason = " ".join(str(error).split()) or "nested too deeply"
        raise RecordError(f"{file}: not YAML that is read here ({reason}). Correct the file.") from error
    if not isinstance(values, dict):
        raise RecordError(f"{file}: got {shown(values)}, expected keys such as models, editors and records.")
    return values
