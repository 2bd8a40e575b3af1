"""Looking into a forward pass, ending it early, changing parts of it; and leaving nothing behind."""

from __future__ import annotations

import contextlib
import io
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle
from transformers import PreTrainedModel
from transformers.utils import logging as logs

_LOCKS: WeakKeyDictionary[nn.Module, threading.RLock] = WeakKeyDictionary()
_MAKING = threading.Lock()
_CUDNN_BEFORE: list[bool] = []  # whether cuDNN's attention was on, for each block that keeps it out


class StopForward(BaseException):
    """Raised to end a forward pass once everything asked for has been seen; caught by `hooked`."""


def first_tensor(output: object) -> Tensor:
    """Return a block's hidden states, whether it returns them alone or first in a tuple."""
    first = output[0] if isinstance(output, (tuple, list)) else output
    assert isinstance(first, Tensor)
    return first


@contextlib.contextmanager
def hooked(handles: Sequence[RemovableHandle]) -> Iterator[None]:
    """Remove the hooks when the block ends, however it ends, and swallow `StopForward`."""
    try:
        with contextlib.suppress(StopForward):
            yield
    finally:
        for handle in handles:
            handle.remove()


def watch(
    seen: dict[str, Tensor],
    inputs: Mapping[str, nn.Module] | None = None,
    outputs: Mapping[str, nn.Module] | None = None,
) -> list[RemovableHandle]:
    """Register hooks that store what goes into or comes out of modules.

    Args:
        seen: Filled with the tensors under the given names.
        inputs: Name -> module; its first input is wanted.
        outputs: Name -> module; its (first) output is wanted.

    Returns:
        The handles, for `hooked`.
    """

    def keep_input(name: str) -> Callable[[nn.Module, tuple[Tensor, ...], dict[str, Tensor]], None]:
        def hook(_: nn.Module, args: tuple[Tensor, ...], kwargs: dict[str, Tensor]) -> None:
            seen[name] = args[0] if args else kwargs["hidden_states"]

        return hook

    def keep_output(name: str) -> Callable[[nn.Module, tuple[Tensor, ...], object], None]:
        def hook(_: nn.Module, args: tuple[Tensor, ...], output: object) -> None:
            seen[name] = first_tensor(output)

        return hook

    handles: list[RemovableHandle] = [
        module.register_forward_pre_hook(keep_input(name), with_kwargs=True) for name, module in (inputs or {}).items()
    ]
    handles += [module.register_forward_hook(keep_output(name)) for name, module in (outputs or {}).items()]
    return handles


def stop_after(module: nn.Module) -> RemovableHandle:
    """Register a hook that ends the forward pass after `module`; register it last."""
    return module.register_forward_hook(_stop)


def stop_before(module: nn.Module) -> RemovableHandle:
    """Register a hook that ends the forward pass where `module` would run; register it last."""
    return module.register_forward_pre_hook(_stop)


def _stop(*_: object) -> None:
    raise StopForward


@contextlib.contextmanager
def exchanged(forwards: Mapping[nn.Module, Callable[..., object]]) -> Iterator[None]:
    """Make every module of `forwards` run the function given for it while the block runs; its hooks run as usual.

    Args:
        forwards: Modules are as before afterwards, also after an exception.
    """
    originals = {part: vars(part).get("forward") for part in forwards}
    try:
        for part, forward in forwards.items():
            vars(part)["forward"] = forward
        yield
    finally:
        for part, before in originals.items():
            if before is None:
                vars(part).pop("forward", None)
            else:
                vars(part)["forward"] = before


@contextlib.contextmanager
def enter_at(blocks: nn.ModuleList, first: int, hidden: Tensor, form: object) -> Iterator[None]:
    """Make the model skip the blocks below `first`, and give that one `hidden`, while the `with` block runs.

    The model's own forward pass still makes positions, masks and everything else that the upper blocks are given.

    Args:
        blocks: The model's blocks.
        first: The first block that runs, at least 1.
        hidden: (batch, tokens, d) what enters it.
        form: Output of a block, to answer in the same form.
    """
    answer = (hidden, *form[1:]) if isinstance(form, tuple) else hidden
    with exchanged(dict.fromkeys(list(blocks)[:first], lambda *_, **__: answer)):
        yield


@contextlib.contextmanager
def alone(model: nn.Module) -> Iterator[None]:
    """Wait until no other thread is in such a block with the same model.

    While we score or edit, modules of the model run other functions; a second thread would run them too, with the first
    one's tokens. Blocks of one thread nest.
    """
    with _MAKING:
        lock = _LOCKS.setdefault(model, threading.RLock())
    with lock, without_cudnn_attention():
        yield


@contextlib.contextmanager
def without_cudnn_attention() -> Iterator[None]:
    """Keep cuDNN's attention out while the block runs.

    On a GPU it builds a plan for every shape that it has not seen, up to half a second forward and half a second
    backward, and each pass here has another shape. The switch is the process's: it is put back after the last
    block of any thread.
    """
    with _MAKING:
        _CUDNN_BEFORE.append(torch.backends.cuda.cudnn_sdp_enabled())
        torch.backends.cuda.enable_cudnn_sdp(False)
    try:
        yield
    finally:
        with _MAKING:
            if len(_CUDNN_BEFORE) == 1:
                torch.backends.cuda.enable_cudnn_sdp(_CUDNN_BEFORE[0])
            _CUDNN_BEFORE.pop()


@contextlib.contextmanager
def evaluating(model: PreTrainedModel) -> Iterator[None]:
    """Keep a model in eval mode while the block runs and other threads wait (`alone`); then restore all modes."""
    with alone(model):
        training = [module for module in model.modules() if module.training]
        model.eval()
        try:
            yield
        finally:
            for module in training:
                module.training = True


@contextlib.contextmanager
def frozen(model: PreTrainedModel) -> Iterator[None]:
    """Hold a model in eval mode without parameter gradients while the block runs; then restore it and the random state.

    Dropout is off, autograd never sees a parameter (so no `.grad` appears), and the random number generators of the
    CPU and of every GPU in use are put back. Tensors optimised outside the parameters get gradients also when the
    caller is inside `torch.no_grad()` or `torch.inference_mode()`. Other threads wait, see `alone`.
    """
    with evaluating(model):
        wants = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
        gpus = sorted({p.device.index for p, _ in wants if p.device.type == "cuda" and p.device.index is not None})
        with torch.random.fork_rng(devices=gpus), torch.inference_mode(False), torch.enable_grad():
            try:
                for parameter, _ in wants:
                    parameter.requires_grad_(False)
                yield
            finally:
                for parameter, requires in wants:
                    parameter.requires_grad_(requires)


# transformers' loaders without their own reports and bars.


@contextlib.contextmanager
def silent_loaders(bars: bool) -> Iterator[None]:
    """Hide transformers' own report of the weights, and its bars unless wanted, while the block runs.

    What was set is put back.
    """
    level, bars_before = logs.get_verbosity(), logs.is_progress_bar_enabled()
    logs.set_verbosity_error()
    if not bars:
        logs.disable_progress_bar()
    try:
        # The bar of GGUF files knows no setting of transformers.
        with contextlib.nullcontext() if bars else contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logs.set_verbosity(level)
        if bars_before:
            logs.enable_progress_bar()
