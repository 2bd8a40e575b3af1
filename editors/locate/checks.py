"""Requests and results that are refused, with the remedy."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from torch import Tensor

from seesaw_cf.base.errors import EditError
from seesaw_cf.base.types import EditRequest, JsonObject
from seesaw_cf.models.editor import Diagnostics, Model, Requests
from seesaw_cf.models.tensors import in_float64
from seesaw_cf.models.weights import BaseFacts, LowRank, WeightDelta, base_facts

logger = logging.getLogger(__name__)


def check_requests(requests: Requests, editor: str, allow_identity: bool = False) -> None:
    """Refuse batches no editor can carry out.

    Args:
        requests: The batch.
        editor: Name for messages.
        allow_identity: Accept target_new == target_true.

    Raises:
        EditError: No request, a request that changes nothing, or two that ask for different answers to one question.
    """
    if not requests:
        raise EditError(f"{editor}: no requests were given, expected at least one EditRequest.")
    answers: dict[str | tuple[str, str], EditRequest] = {}
    for request in requests:
        new, true = request.target_new.label.strip(), request.target_true.label.strip()
        if new == true and not allow_identity:
            raise EditError(
                f"{editor}: request {request.text!r} has target_new equal to target_true ({new!r}): nothing to edit. "
                "Use the 'identity' control, or set allow_identity=True in the config if that is meant."
            )
        questions: list[str | tuple[str, str]] = [request.text.strip()]
        if request.relation_id:
            questions.append((request.subject, request.relation_id))
        for question in questions:
            other = answers.setdefault(question, request)
            if other.target_new.label.strip() != new:
                raise EditError(
                    f"{editor}: two requests of one batch contradict each other: {other.text!r} -> "
                    f"{other.target_new.label!r} and {request.text!r} -> {new!r}. Keep one, or edit them one after "
                    "the other."
                )


def request_facts(request: EditRequest) -> JsonObject:
    """Return a request as JSON-able facts for a delta's meta."""
    return {
        "prompt": request.prompt,
        "subject": request.subject,
        "relation_id": request.relation_id,
        "target_new": {"id": request.target_new.id, "str": request.target_new.label},
        "target_true": {"id": request.target_true.id, "str": request.target_true.label},
    }


def shortened(model: Model, updates: Mapping[str, LowRank | Tensor], most: float | None) -> dict[str, LowRank | Tensor]:
    """Shorten changes that are longer (Frobenius norm) than a share of the weight they change.

    Args:
        model: The unedited model.
        updates: Parameter name -> change.
        most: The share; None = changes of any length.

    Returns:
        The same changes, those that were too long with the same direction and the largest length.
    """
    return {name: _times(change, allowed(model, name, change, most)) for name, change in updates.items()}


def allowed(model: Model, name: str, change: LowRank | Tensor, most: float | None) -> float:
    """Return the factor, 1 at most, that shortens a change of one weight as `shortened` does."""
    if most is None:
        return 1.0
    length = WeightDelta({name: change}).norms()[name]
    limit = most * float(in_float64(model.get_parameter(name).detach()).norm())
    return limit / length if length > limit else 1.0


def _times(change: LowRank | Tensor, factor: float) -> LowRank | Tensor:
    if factor == 1.0:
        return change
    return LowRank(change.left * factor, change.right) if isinstance(change, LowRank) else change * factor


def make_delta(
    model: Model,
    config: Any,
    requests: Requests,
    updates: Mapping[str, LowRank | Tensor],
    diagnostics: Sequence[Diagnostics],
    base: BaseFacts | None = None,
    **facts: object,
) -> WeightDelta:
    """Put a delta together: shorten it, refuse one that is not finite and warn of one that changes nothing.

    Args:
        model: The unedited model.
        config: The method's settings, with the longest change.
        requests: What was edited.
        updates: Parameter name -> change.
        diagnostics: One record per request.
        base: See `base_facts`, when it is known.
        **facts: More JSON-able facts about the edit as a whole.

    Returns:
        The delta; `meta` holds editor, config, requests, diagnostics, the norm of each change, base and `facts`.

    Raises:
        EditError: A change holds NaN or infinity.
    """
    editor, delta = config.editor, WeightDelta(shortened(model, updates, config.max_change))
    norms = delta.norms()
    if not delta.is_finite():
        bad = [name for name, norm in norms.items() if not norm < float("inf")]
        raise EditError(
            f"{editor}: the change of {', '.join(bad) or 'a parameter'} is not finite, for {len(requests)} request(s) "
            f"starting with {requests[0].text!r}. The model is unchanged. Lower learning_rate or clamp, or fit the "
            "second moments on more texts."
        )
    changing = [r for r in requests if r.target_new.label.strip() != r.target_true.label.strip()]
    if changing and not any(norms.values()):
        logger.warning(
            "%s: the edit of %r (%d request(s)) changes nothing: the model gives %r already, as far as the settings "
            "ask. Leave out what it knows, or change the settings (lower stop_below where there is one).",
            *(editor, changing[0].text, len(requests), changing[0].target_new.label),
        )
    meta = {
        "editor": editor,
        "config": asdict(config),
        "requests": [request_facts(request) for request in requests],
        "diagnostics": [dict(entry) for entry in diagnostics],
        "norms": norms,
        "base": base or base_facts(model, delta),
        **facts,
    }
    return WeightDelta(delta.updates, meta)
