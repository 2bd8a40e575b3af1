"""Names of control editors: "identity(memit)" is the control of kind "identity" that wraps the editor "memit".

A control that draws is made with several seeds; "random(memit, 2)" is its second.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import UnknownNameError

CONTROLS = ("identity", "random", "unrelated")
"""Kinds of editors that should do nothing to anybody."""

DRAWN = ("random", "unrelated")
"""Kinds that draw with a seed."""

NULLS = {
    "noise": "noise of the same norm in the same tensors",
    "given": "a change that was named as the null (--control-model)",
}
"""Kind of the random control of a model that was changed elsewhere -> what it is, in words."""

_NAME = re.compile(rf"({'|'.join(CONTROLS)})(?:\((.+?)(?:, (\d+))?\))?")


def control_name(kind: str, editor: str, number: int = 1) -> str:
    """Return the name of the control of an editor, or of one more seed of it."""
    return f"{kind}({editor}, {number})" if number > 1 else f"{kind}({editor})"


def seed_number(name: str) -> int:
    """Return which seed of its control an editor is: 1 for "random(memit)", 2 for "random(memit, 2)"."""
    match = _NAME.fullmatch(name)
    return int(match[3] or 1) if match else 1


def first_seed(name: str) -> str:
    """Return the name of the control that an editor is one more seed of; the name itself for every other editor."""
    return control_name(*split_control(name)) if seed_number(name) > 1 else name


def split_control(name: str) -> tuple[str, str]:
    """Return the kind and the wrapped editor of a control, such as ("identity", "memit").

    The editor is "" for a bare kind; for other editors the kind is "" and the editor the name itself.
    """
    match = _NAME.fullmatch(name)
    return (match[1], match[2] or "") if match else ("", name)


def is_control(name: str) -> bool:
    """Return whether an editor of that name is a control."""
    return bool(split_control(name)[0])


def planned(editors: Sequence[str], controls: Sequence[str] = (), seeds: int = 1) -> tuple[str, ...]:
    """Return the editors of a run: those audited, every kind of control for each of them, then their further seeds.

    Args:
        editors: Names as they were given; a bare kind of control among them is one of `controls`.
        controls: Kinds of controls.
        seeds: How many seeds a kind that draws is made with.

    Raises:
        UnknownNameError: No such kind of control, or no editor that it could be the control of.
    """
    for kind in controls:
        one_of("control", kind, CONTROLS)
    kinds = list(dict.fromkeys([*controls, *(name for name in editors if name in CONTROLS)]))
    named = list(dict.fromkeys(name for name in editors if name not in CONTROLS))
    audited = [name for name in named if not is_control(name)]
    if kinds and not audited:
        raise UnknownNameError(
            f"the control {kinds[0]!r} needs an editor that it is the control of, got none. Name one, for example "
            f"--editor memit --control {kinds[0]}."
        )
    own = [control_name(kind, name) for name in audited for kind in kinds]
    drawn = [kind for kind in kinds if kind in DRAWN]
    more = [control_name(kind, name, n) for name in audited for kind in drawn for n in range(2, seeds + 1)]
    return tuple(dict.fromkeys([*named, *own, *more]))


def compared(names: Iterable[str], manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (editor, its own control) for every control among the editors of a run.

    Args:
        names: The run's editors.
        manifest: Its manifest. A bare kind in it, as earlier versions wrote, wraps the editor of its settings; one
            without settings is compared with every editor.
    """
    there = sorted(names)
    settings = manifest.get("editors") or {}
    pairs = []
    for control in (name for name in there if is_control(name)):
        wrapped = split_control(control)[1] or (settings.get(control) or {}).get("editor", "")
        pairs += [(name, control) for name in there if not is_control(name) and wrapped in (name, "")]
    return pairs
