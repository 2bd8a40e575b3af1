"""The promises of every editor, checked on one model: for authors of editors, and for this package's own tests."""

from __future__ import annotations

import contextlib
import inspect
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch

from seesaw_cf.base.checks import instance
from seesaw_cf.base.types import Cloze, EditRequest
from seesaw_cf.editors.plugins import failure
from seesaw_cf.models.delta_files import load_delta, save_delta
from seesaw_cf.models.editor import Editor, Model, Requests, Tokenizer
from seesaw_cf.models.identity import contents, unstored_buffers
from seesaw_cf.models.weights import WeightDelta, applied, hash_tensor
from seesaw_cf.scoring import HFScorer

_RUNS = "fit and edit run; fit returns an editor, edit a WeightDelta"
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def state_of(model: Model, tokenizer: Tokenizer) -> dict[str, object]:
    """Return what an edit must leave as it was, beside the stored tensors and files."""
    return {
        "buffers": {name: hash_tensor(tensor) for name, tensor in unstored_buffers(model).items()},
        "gradients": [parameter.grad is None for parameter in model.parameters()],
        "requires_grad": [parameter.requires_grad for parameter in model.parameters()],
        "hooks": [[len(getattr(module, kind)) for kind in _HOOKS] for module in model.modules()],
        "training mode": [module.training for module in model.modules()],
        "config": model.config.to_json_string(),
        "random state": torch.get_rng_state().tolist(),
        "grad mode": torch.is_grad_enabled(),
        "padding side": tokenizer.padding_side,
        "tokenizer": (len(tokenizer), tokenizer.pad_token, tokenizer.truncation_side, tokenizer.special_tokens_map),
    }


def traces(
    editor: Editor,
    model: Model,
    tokenizer: Tokenizer,
    requests: Requests,
    folder: Path,
) -> tuple[WeightDelta, list[str]]:
    """Return an edit, and what it changed beyond its delta."""

    def state() -> dict[str, object]:
        files = sorted(str(path) for path in folder.rglob("*"))
        return {"weights": contents(model), **state_of(model, tokenizer), "files": files}

    before = state()
    delta = instance("what edit returned", editor.edit(model, tokenizer, requests), WeightDelta, "a WeightDelta")
    after = state()
    return delta, [part for part, value in before.items() if value != after[part]]


def fault_of_delta(delta: WeightDelta, model: Model) -> str:
    """Return what is wrong with a change: its parameters, shapes, numbers or meta; "" for nothing."""
    parameters, json_fits = dict(model.named_parameters()), False
    with contextlib.suppress(TypeError, ValueError):
        json_fits = bool(json.dumps(delta.meta))
    unknown = [name for name in delta.updates if name not in parameters]
    named = [name for name in delta.updates if name in parameters]
    shapes = [name for name in named if delta.updates[name].shape != parameters[name].shape]
    faults = {
        f"no parameters of the model: {', '.join(unknown)}": unknown,
        f"of another shape than their parameter: {', '.join(shapes)}": shapes,
        "numbers that are not finite": not delta.is_finite(),
        "every number is 0": delta.is_zero(),
        f"meta that JSON cannot hold: {delta.meta}": not json_fits,
    }
    return "; ".join(fault for fault, there in faults.items() if there)


def fault_of_restore(model: Model, delta: WeightDelta) -> str:
    """Return how a model differs after a change was applied and taken back, nested as well; "" for no bit."""
    before = contents(model)
    with applied(model, delta):
        once = contents(model)
        with applied(model, delta):
            pass
        nested = contents(model)
    if contents(model) != before or nested != once:
        return "other weights than before"
    return "the change moves no weight" if once == before and delta.updates else ""


def check_contract(editor: Editor, model: Model, tokenizer: Tokenizer, requests: Requests) -> dict[str, str]:
    """Check every clause of the contract of editors on one model.

    Args:
        editor: Not fitted.
        model, tokenizer: A model for which the editor has settings.
        requests: At least one; the first is edited alone, then all together.

    Returns:
        Clause -> what breaks it, "" where it holds. A clause that an earlier one makes impossible to check is left out.
    """
    clauses = {_RUNS: ""}
    try:
        clauses.update(_faults(editor, model, tokenizer, requests))
    except (Exception, SystemExit) as error:  # what another author wrote can fail in any way
        clauses[_RUNS] = failure(error, inspect.getsourcefile(type(editor)) or "")
    return clauses


def _faults(editor: Editor, model: Model, tokenizer: Tokenizer, requests: Requests) -> Iterator[tuple[str, str]]:
    """Yield each clause with what breaks it; stop where an earlier one makes the next impossible to check."""
    fitted = instance("what fit returned", editor.fit(model, tokenizer), Editor, "an editor")  # type: ignore[type-abstract]
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        delta, changed = traces(fitted, model, tokenizer, requests[:1], Path(name))
        yield "edit leaves model, tokenizer, random state and disk as they were", ", ".join(changed)
        if "weights" in changed:
            return
        model.train()
        try:
            again, changed = traces(fitted, model, tokenizer, requests[:1], Path(name))
        finally:
            model.eval()
        yield "the same of a model in training mode", ", ".join(changed)
        yield "the same request gives the same change, bit for bit", _difference(delta, again)
        yield "the change fits the model", (fault := fault_of_delta(delta, model))
        if fault:
            return
        yield "applied and taken back, the weights are the same bits", fault_of_restore(model, delta)
        save_delta(delta, Path(name) / "delta", model)
        yield "saved and loaded, it is the same change", _difference(delta, load_delta(Path(name) / "delta", model))
        yield "the new answer becomes likelier", _not_likelier(model, tokenizer, requests[0], delta)
        several = fitted.edit(model, tokenizer, requests)
        yield "several requests make one change that fits the model", fault_of_delta(several, model)


def _difference(delta: WeightDelta, other: WeightDelta) -> str:
    if delta.updates.keys() != other.updates.keys() or delta.context != other.context:
        return f"other parameters or another text: {sorted(other.updates)}"
    moved = [name for name in delta.updates if not torch.equal(delta.dense(name), other.dense(name))]
    return f"other numbers in {', '.join(moved)}" if moved else ""


def _not_likelier(model: Model, tokenizer: Tokenizer, request: EditRequest, delta: WeightDelta) -> str:
    cloze, scorer = Cloze(delta.context + request.text, request.target_new.label), HFScorer(model, tokenizer)
    [before] = scorer.score([Cloze(request.text, request.target_new.label)])
    with applied(model, delta):
        [after] = scorer.score([cloze])
    return "" if after.logprob > before.logprob else f"{before.logprob:.3f} nats before, {after.logprob:.3f} after"
