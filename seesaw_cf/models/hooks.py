"""Look into a forward pass, end it early, change parts of it, and leave nothing behind."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.hooks import RemovableHandle
from transformers import AttentionInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from seesaw_cf.models.architectures import attention_of

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

    def keep_input(name: str, _: nn.Module, args: tuple[Tensor, ...], kwargs: dict[str, Tensor]) -> None:
        seen[name] = args[0] if args else kwargs["hidden_states"]

    def keep_output(name: str, _: nn.Module, args: tuple[Tensor, ...], output: object) -> None:
        seen[name] = first_tensor(output)

    handles: list[RemovableHandle] = []
    for name, module in (inputs or {}).items():
        handles.append(module.register_forward_pre_hook(partial(keep_input, name), with_kwargs=True))
    for name, module in (outputs or {}).items():
        handles.append(module.register_forward_hook(partial(keep_output, name)))
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


# Grouped-query attention without copies of keys and values, registered with transformers.
#
# Under a mask the library copies keys and values for each query head. Here the query heads of a key head stand one
# behind another along the queries, under the same mask once for each: the sums are the same. For the short rows of an
# editor products and a softmax are faster still than fused kernels: on a CPU both passes take two fifths of the
# library's time (12 tokens that see 66, 9 query heads, 3 key heads). Scoring, without a backward pass, gains nothing.

_NAME = "seesaw_cf_grouped_query"
_UNSUPPORTED = ("position_bias", "softcap", "cache")
_SHORT = 256
"""Keys up to which products are faster than a fused kernel on a CPU; the weights kept for gradients are small then."""


def _attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """Return what the library's "sdpa" attention returns.

    Args:
        module: The attention layer.
        query: (batch, heads, T, d).
        key, value: (batch, key heads, K, d).
        attention_mask: (batch or 1, 1, T, K), added to scores, or True where a token may look. Without one, and with an
            unsupported option, the library's own function is called.
        dropout, scaling, options: As the library's.

    Returns:
        (batch, T, heads, d).
    """
    heads = query.shape[1] // key.shape[1]
    unsupported = any(options.get(name) is not None for name in _UNSUPPORTED)
    if heads == 1 or unsupported or attention_mask is None or attention_mask.shape[1] != 1:
        options |= {"dropout": dropout, "scaling": scaling}
        return sdpa_attention_forward(module, query, key, value, attention_mask, **options)
    queries, mask = query.unflatten(1, (-1, heads)).flatten(2, 3), attention_mask.repeat(1, 1, heads, 1)
    # a kernel adds up in single precision what products would in half
    plain = query.dtype.itemsize >= 4 and mask.is_floating_point() and not dropout
    if plain and query.device.type == "cpu" and key.shape[2] <= _SHORT:
        scores = queries * (query.shape[-1] ** -0.5 if scaling is None else scaling) @ key.mT
        output = (scores + mask).softmax(-1) @ value
    else:
        output = functional.scaled_dot_product_attention(queries, key, value, mask, dropout, scale=scaling)
    return output.unflatten(2, (heads, -1)).permute(0, 3, 1, 2, 4).flatten(2, 3), None


AttentionInterface.register(_NAME, _attend)


@contextlib.contextmanager
def use_attention(model: PreTrainedModel, name: str) -> Iterator[None]:
    """Compute the model's attention with a function of `AttentionInterface` while the block runs.

    Args:
        model: Its attention is what it was before afterwards, also after an exception.
        name: What the function is registered as.

    Raises:
        ValueError: The model's attention cannot be chosen by name.
    """
    decoder: Any = model.get_decoder()
    before = decoder.config._attn_implementation
    try:
        decoder.set_attn_implementation(name)
        if decoder.config._attn_implementation != name:
            raise ValueError("the model's attention does not go through transformers' AttentionInterface")
        yield
    finally:
        decoder.set_attn_implementation(before)


def grouped_query_attention(model: PreTrainedModel) -> contextlib.AbstractContextManager[None]:
    """Return a context in which a model with "sdpa" attention uses `_attend`; any other model is left alone.

    Forward passes in the block must be given masks of four dimensions.
    """
    decoder: Any = model.get_decoder()
    heads, keys = (getattr(decoder.config, f"num_{name}_heads", None) for name in ("attention", "key_value"))
    supported = attention_of(model) == "sdpa" and getattr(decoder, "_supports_attention_backend", False)
    return use_attention(model, _NAME) if supported and keys and keys < heads else contextlib.nullcontext()
