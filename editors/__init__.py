"""Knowledge editors: one file per method, each a frozen config and one immutable class.

    editor = MEMIT(MEMITConfig.for_model(model), corpus=texts).fit(model, tokenizer)
    delta = editor.edit(model, tokenizer, requests)
    with seesaw_cf.models.applied(model, delta):
        ...

Every method is a class and its settings, importable from here; nothing heavy is imported before it is asked for.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from seesaw_cf.base.fields import checked
from seesaw_cf.base.system import lazy

if TYPE_CHECKING:
    from seesaw_cf.editors.alphaedit import AlphaEdit, AlphaEditConfig
    from seesaw_cf.editors.controls import ControlConfig, IdentityControl, RandomControl, UnrelatedControl
    from seesaw_cf.editors.ft import FT, FTConfig, LoRA, LoRAConfig
    from seesaw_cf.editors.ike import IKE, IKEConfig
    from seesaw_cf.editors.memit import EMMET, MEMIT, EMMETConfig, MEMITConfig
    from seesaw_cf.editors.mend import MEND, MENDConfig
    from seesaw_cf.editors.rome import ROME, ROMEConfig

__all__ = [
    "EDITORS",
    "EMMET",
    "FT",
    "IKE",
    "MEMIT",
    "MEND",
    "ROME",
    "AlphaEdit",
    "AlphaEditConfig",
    "ControlConfig",
    "EMMETConfig",
    "FTConfig",
    "IKEConfig",
    "IdentityControl",
    "LoRA",
    "LoRAConfig",
    "MEMITConfig",
    "MENDConfig",
    "ROMEConfig",
    "RandomControl",
    "UnrelatedControl",
    "load_editor",
]

_OWN = {
    "ft": "seesaw_cf.editors.ft:FT",
    "rome": "seesaw_cf.editors.rome:ROME",
    "memit": "seesaw_cf.editors.memit:MEMIT",
    "emmet": "seesaw_cf.editors.memit:EMMET",
    "alphaedit": "seesaw_cf.editors.alphaedit:AlphaEdit",
    "mend": "seesaw_cf.editors.mend:MEND",
    "lora": "seesaw_cf.editors.ft:LoRA",
    "ike": "seesaw_cf.editors.ike:IKE",
    "identity": "seesaw_cf.editors.controls:IdentityControl",
    "random": "seesaw_cf.editors.controls:RandomControl",
    "unrelated": "seesaw_cf.editors.controls:UnrelatedControl",
}
EDITORS: dict[str, str | type[Any]] = {
    **{point.name: point.value for point in entry_points(group="seesaw_cf.editors")},
    **_OWN,
}
"""Editor name -> "module:class": this package's, and those of installed packages with an entry point in the group
`seesaw_cf.editors`. `seesaw_cf.editors.plugins.editor_name` adds classes of other modules and files."""

# The settings of a method stand in the same file, those of all controls are one class.
_CLASSES = {target.partition(":")[2]: target.partition(":")[0] for target in _OWN.values()}
_CONFIGS = {f"{name}Config": module for name, module in _CLASSES.items() if not name.endswith("Control")}
__getattr__, __dir__ = lazy(__name__, _CLASSES | _CONFIGS | {"ControlConfig": "seesaw_cf.editors.controls"})


@checked
def load_editor(name: str) -> type[Any]:
    """Return the class of an editor; its settings are `load_editor(name).config_class`.

    Args:
        name: A key of `EDITORS`.

    Returns:
        A class made as `cls(config, corpus=texts)` that follows `seesaw_cf.models.Editor`.

    Raises:
        UnknownNameError: No such editor; near names are suggested.
        EditError: The package that declares it cannot be imported.
    """
    from seesaw_cf.editors.plugins import load

    return load(name)
