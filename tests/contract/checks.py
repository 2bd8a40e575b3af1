"""The promises every editor makes, as functions that also catch editors that break them."""

import json
from pathlib import Path
from typing import Any

import torch

from seesaw_cf.editors.contract import fault_of_delta, fault_of_restore, traces
from seesaw_cf.editors.locate.optimise import optimise
from seesaw_cf.editors.locate.positions import at_subject, prepare
from seesaw_cf.models.architectures import model_parts
from seesaw_cf.models.editor import Model, Requests, Tokenizer
from seesaw_cf.models.hooks import frozen
from seesaw_cf.models.identity import fingerprint
from seesaw_cf.models.weights import WeightDelta, applied
from seesaw_cf.scoring import HFScorer
from seesaw_cf.types import Cloze, EditRequest


def check_leaves_no_trace(
    editor: Any, model: Model, tokenizer: Tokenizer, asked: Requests, folder: Path
) -> WeightDelta:
    """Model, tokenizer, random state, autograd and disk are as before."""
    delta, broken = traces(editor, model, tokenizer, asked, folder)
    assert not broken, f"{editor!r} changed: {', '.join(broken)}"
    return delta


def check_delta(delta: WeightDelta, model: Model) -> None:
    """The change fits the model, and its meta says what made it."""
    assert not (fault := fault_of_delta(delta, model)), fault
    facts = json.loads(json.dumps(delta.meta))
    assert facts["editor"]
    assert facts["config"]
    assert facts["requests"]
    assert len(facts["diagnostics"]) == len(facts["requests"])


def check_equal(delta: WeightDelta, again: WeightDelta) -> None:
    """The same change, bit for bit."""
    assert delta.updates.keys() == again.updates.keys()
    assert delta.context == again.context
    for name in delta.updates:
        assert torch.equal(delta.dense(name), again.dense(name)), f"{name}: the same edit gave another change"


def check_restores(model: Model, delta: WeightDelta) -> None:
    """Bitwise restore: after a block, after an exception, and nested."""
    assert not (fault := fault_of_restore(model, delta)), fault
    before = fingerprint(model)
    try:
        with applied(model, delta):
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    assert fingerprint(model) == before


def check_approaches(editor: Any, model: Model, tokenizer: Tokenizer, request: EditRequest, delta: WeightDelta) -> None:
    """What the edit writes at the subject's last token goes towards the value that was optimised for it.

    This holds on every model. That p(target_new) rises as well does not: the new matrix acts at all other tokens too.
    An editor without such a value (FT) must lower its own loss.
    """
    facts = delta.meta["diagnostics"][0]
    if "shift_norm" not in facts:
        assert facts["final_loss"] < facts["first_loss"]
        return
    parts, layer, inside = model_parts(model), max(editor.config.layers), delta.meta["editor"] == "rome"
    edit = prepare(model, tokenizer, request, editor.fitted.templates)
    with frozen(model):
        found = optimise(parts, [edit], layer, editor.config, at="mlp" if inside else "stream")
        with applied(model, delta):
            seen = at_subject(parts, edit.rows[:1], layer)
    now = (seen.values if inside else seen.stream) - found.initial
    assert float((now - found.shift).norm() / found.shift.norm()) < 1, "nearer to the value than before"
    assert float(torch.cosine_similarity(now, found.shift)) > 0.5, "in the direction of the value"


def new_log_probability(
    model: Model, tokenizer: Tokenizer, request: EditRequest, delta: WeightDelta | None = None
) -> float:
    """log p(target_new) on the request's prompt, in nats."""
    with applied(model, delta or WeightDelta()):
        return HFScorer(model, tokenizer).score([Cloze(request.text, request.target_new.label)])[0].logprob
