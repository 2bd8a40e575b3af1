"""What a forward pass computes below the lowest changed weight, kept for the next model that is asked the same.

An editor, its controls and all states of a sequence are asked the same, and mostly change the same weights.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from torch import Tensor, nn
from transformers import PreTrainedModel

from seesaw_cf.models.architectures import block_number, has_one_stream, transformer_blocks
from seesaw_cf.models.hooks import hooked


class Change(NamedTuple):
    """Where a changed model begins to differ from the model it was made of.

    Attributes:
        names: The changed parameters.
        blocks: The model's blocks.
        first: The lowest one that holds any of them.
        modules: Those modules of it that do.
        below: Where each parameter and buffer that may be read earlier lies, and how often it was written: while these
            stay, so does what is computed with them. Writing through `.data` is not seen.
    """

    names: frozenset[str]
    blocks: nn.ModuleList
    first: int
    modules: tuple[nn.Module, ...]
    below: tuple[tuple[int, int], ...]


def find_change(model: PreTrainedModel, names: Collection[str]) -> Change | None:
    """Return where a model with these parameters changed begins to differ; None where nothing is known to stay."""
    blocks, numbers = transformer_blocks(model), [block_number(model, name) for name in names]
    inside = [number for number in numbers if number is not None]
    if blocks is None or not inside or len(inside) < len(numbers) or not has_one_stream(model):
        return None
    first, changed = min(inside), {id(model.get_parameter(name)) for name in names}
    edited = [*blocks[first].modules()]
    above = {part for block in blocks[first + 1 :] for part in block.modules()}
    above -= {part for block in blocks[: first + 1] for part in block.modules()}
    below = [part for part in model.modules() if part not in above and part not in edited]
    if any(map(partial(_holds, changed), below)):  # tied weights
        return None
    tensors = (own for part in (*below, *edited) for own in (*part.parameters(False), *part.buffers(False)))
    places = tuple(
        (own.data_ptr(), 0 if own.is_inference() else own._version) for own in tensors if id(own) not in changed
    )
    return Change(frozenset(names), blocks, first, tuple(filter(partial(_holds, changed), edited)), places)


def _holds(changed: Collection[int], module: nn.Module) -> bool:
    return any(id(own) in changed for own in module.parameters(recurse=False))


@dataclass
class Known:
    """What is known of a pass.

    Attributes:
        change: For models that differ from there on.
        forwards: Module -> what it gives without being run.
        tensors: What these hold.
    """

    change: Change
    forwards: dict[nn.Module, Callable[..., object]] = field(default_factory=dict)
    tensors: list[Tensor] = field(default_factory=list)

    @property
    def nbytes(self) -> int:
        """Bytes of `tensors`."""
        return sum(tensor.nbytes for tensor in self.tensors)


@contextlib.contextmanager
def recording(change: Change) -> Iterator[Known]:
    """Note what does not depend on the change in one forward pass of the changed model.

    These are the blocks below, the parts of the changed block that are done before the first changed module runs, and
    what enters that module where the part around it, such as an MLP, gives just what the module gives.
    """
    known, entered, left = Known(change), list[tuple[nn.Module, tuple[Tensor, ...]]](), list[object]()

    def give(module: nn.Module, output: object) -> None:
        known.forwards[module] = lambda *_, **__: output
        known.tensors += [own for own in (output if isinstance(output, tuple) else [output]) if isinstance(own, Tensor)]

    def leave_lower(module: nn.Module, _: object, output: object) -> None:
        give(module, output)
        known.forwards |= dict.fromkeys(change.blocks[: change.first], known.forwards[module])

    def leave_part(module: nn.Module, _: object, output: object) -> None:
        if set(change.modules).isdisjoint(module.modules()):
            if not entered:
                give(module, output)
        elif len(entered) == 1 and module not in change.modules and left and output is left[0]:
            changed, args = entered[0]
            if len(args) == 1:
                known.forwards[module] = lambda *_, **__: changed(*args)
                known.tensors.append(args[0])

    hooks = [block.register_forward_hook(leave_lower) for block in change.blocks[: change.first][-1:]]
    for module in change.modules:
        hooks.append(module.register_forward_pre_hook(lambda own, args: entered.append((own, args))))
        hooks.append(module.register_forward_hook(lambda _, __, output: left.append(output)))
    for part in change.blocks[change.first].children():
        if any(parameter.dim() > 1 for parameter in part.parameters()):  # a norm takes less time than room
            hooks.append(part.register_forward_hook(leave_part))
    with hooked(hooks):
        yield known
    if {module for module, _ in entered} != {*change.modules}:  # a weight that is read without its module
        known.forwards.clear()
        known.tensors.clear()
