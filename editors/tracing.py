"""Causal tracing: at which layers and tokens does a model hold a fact?

Noise is added to the subject's embeddings, then one clean state at a time is put back; where the answer's
probability returns, there the fact is read.

Source: Meng et al. 2022 (ROME), section 2: indirect effect = p(answer | corrupted, one state restored) -
p(answer | corrupted), noise of three standard deviations of the subjects' embeddings, ten noise samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import EditError
from seesaw_cf.base.types import Cloze, EditRequest, Estimate
from seesaw_cf.editors.locate.positions import encode_text, last_token_before
from seesaw_cf.models.architectures import ModelParts, model_parts
from seesaw_cf.models.hooks import first_tensor, frozen, hooked, watch
from seesaw_cf.models.trial import embedding
from seesaw_cf.scoring.encode import encode_cloze

KINDS = ("block", "mlp")
POSITIONS = ("first subject token", "middle subject tokens", "last subject token", "further tokens", "last token")


@dataclass(frozen=True, slots=True)
class FactTrace:
    """One fact's trace.

    Attributes:
        request: The fact; its answer is target_true.
        clean: Probability of the answer's first token in the untouched run.
        corrupted: The same with noise on the subject, mean over noise samples.
        effects: (positions, layers) indirect effects, mean over noise samples; rows as in `POSITIONS`, NaN where the
            prompt has no such token.
    """

    request: EditRequest
    clean: float
    corrupted: float
    effects: Tensor


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """How facts are traced.

    Attributes:
        kind: What is restored: "block" (the residual stream) or "mlp" (the MLP's output).
        window: How many neighbouring layers are restored together (the paper uses 10 of 48 for MLPs, 1 for blocks).
        samples: Noise samples.
        noise: Noise in standard deviations of the embeddings.
        sigma: That standard deviation; None = of this subject's tokens, or of all subjects of `trace_facts`.
        seed: Seed of the noise.
    """

    kind: str = "mlp"
    window: int = 1
    samples: int = 10
    noise: float = 3.0
    sigma: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse an unknown `kind`.

        Raises:
            UnknownNameError: See above.
        """
        one_of("kind of causal tracing", self.kind, KINDS)


def trace_fact(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    request: EditRequest,
    options: TraceOptions | None = None,
) -> FactTrace:
    """Trace one fact.

    Args:
        model: In any mode; unchanged afterwards.
        tokenizer: The model's tokenizer.
        request: The fact; `target_true` is the answer.
        options: How; the defaults when None.

    Raises:
        PromptError: The subject is not in the prompt, or the prompt cannot be tokenised.
    """
    how = options or TraceOptions()
    parts = model_parts(model)
    ids = encode_text(tokenizer, request.text)
    subject = _subject_span(tokenizer, request)
    answer = _answer(tokenizer, request)
    with frozen(model), torch.no_grad():
        modules = _modules(parts, how.kind)
        clean, states = _clean(model, modules, ids, answer)
        shake = _shaker(model, ids, subject, how)
        places = list(range(subject[0], len(ids)))
        corrupted = _restored(model, modules, {}, ids, answer, shake, [0], how.samples)[0]
        columns = []
        for layer in range(parts.n_layers):
            low, high = max(0, layer - (how.window - 1) // 2), min(parts.n_layers, layer + how.window // 2 + 1)
            window = {index: states[index] for index in range(low, high)}
            columns.append(_restored(model, modules, window, ids, answer, shake, places, how.samples) - corrupted)
    return FactTrace(request, clean, float(corrupted), _by_position(torch.stack(columns, 1), places, subject, len(ids)))


def trace_facts(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    requests: Iterable[EditRequest],
    options: TraceOptions | None = None,
) -> Iterator[FactTrace]:
    """Trace facts one after the other with one noise scale, the standard deviation over all subjects' embeddings.

    Args:
        model: In any mode; unchanged afterwards.
        tokenizer: The model's tokenizer.
        requests: Facts; keep to those the model knows.
        options: How; the defaults when None.

    Raises:
        EditError: No facts.
    """
    facts = list(requests)
    if not facts:
        raise EditError("causal tracing needs at least one fact that the model knows; none was given.")
    with torch.no_grad():
        spans = [(encode_text(tokenizer, f.text), f) for f in facts]
        rows = [torch.tensor(ids[a : b + 1]) for ids, f in spans for a, b in [_subject_span(tokenizer, f)]]
        table = model.get_input_embeddings()
        sigma = float(torch.cat([table(r.to(embedding(model).device)).float() for r in rows]).std())
    how = options or TraceOptions()
    how = how if how.sigma is not None else replace(how, sigma=sigma)
    yield from (trace_fact(model, tokenizer, fact, how) for fact in facts)


def estimates(traces: Sequence[FactTrace], position: str = "last subject token") -> list[Estimate]:
    """Estimate each layer's mean indirect effect over facts, with a normal 95 % interval (NaN ends for one fact).

    Raises:
        UnknownNameError: An unknown position.
    """
    one_of("position", position, POSITIONS)
    rows = torch.stack([trace.effects[POSITIONS.index(position)] for trace in traces]).double()
    restored = []
    for column in rows.T:
        values = column[~column.isnan()]
        n = len(values)
        error = float(values.std()) / math.sqrt(n) if n > 1 else math.nan
        mean = float(values.mean()) if n else math.nan
        restored.append(
            Estimate(
                mean, mean - 1.96 * error, mean + 1.96 * error, error, n=n, method="normal interval over facts, 95 %"
            )
        )
    return restored


def propose_layers(traces: Sequence[FactTrace]) -> dict[str, tuple[int, ...]]:
    """Suggest layers: ROME edits where the MLP's effect at the subject's last token peaks, MEMIT ends there.

    Source: ROME section 2 (the peak) and MEMIT section 4.2 (the range of critical layers up to it; five of 32 in
    Llama-2-7B, so the same share of this model's layers).

    Args:
        traces: Made with kind="mlp".
    """
    effects = [estimate.value for estimate in estimates(traces)]
    peak = max(range(len(effects)), key=lambda layer: effects[layer])
    wide = max(1, round(len(effects) * 5 / 32))
    return {"rome": (peak,), "memit": tuple(range(max(0, peak - wide + 1), peak + 1))}


def _subject_span(tokenizer: PreTrainedTokenizerBase, request: EditRequest) -> tuple[int, int]:
    """Return the places of the subject's first and last token in the filled prompt."""
    start = request.prompt.index("{}")
    first, last = start + 1, start + len(request.subject.rstrip())
    return last_token_before(tokenizer, request.text, first), last_token_before(tokenizer, request.text, last)


def _answer(tokenizer: PreTrainedTokenizerBase, request: EditRequest) -> int:
    encoded = encode_cloze(tokenizer, Cloze(request.text, request.target_true.label))
    return encoded.ids[encoded.start]


def _modules(parts: ModelParts, kind: str) -> dict[str, nn.Module]:
    pick: Callable[[int], nn.Module] = parts.block if kind == "block" else parts.mlp_out
    return {str(layer): pick(layer) for layer in range(parts.n_layers)}


def _clean(
    model: PreTrainedModel, modules: dict[str, nn.Module], ids: tuple[int, ...], answer: int
) -> tuple[float, dict[int, Tensor]]:
    """Return the answer's probability and every module's output (tokens, width) in the untouched run."""
    seen: dict[str, Tensor] = {}
    with hooked(watch(seen, outputs=modules)):
        probability = float(_probability(model, torch.tensor([ids]), answer)[0])
    return probability, {int(layer): state.reshape(len(ids), -1).clone() for layer, state in seen.items()}


def _probability(model: PreTrainedModel, ids: Tensor, answer: int) -> Tensor:
    logits: Tensor = model(input_ids=ids.to(embedding(model).device), use_cache=False).logits[:, -1]
    return logits.float().softmax(-1)[:, answer].cpu().double()


def _shaker(model: PreTrainedModel, ids: tuple[int, ...], subject: tuple[int, int], how: TraceOptions) -> Tensor:
    """Draw the noise, (samples, tokens up to the subject's last, width), zero before the subject.

    It is the same for every layer and position.
    """
    table, device = model.get_input_embeddings(), embedding(model).device
    rows = table(torch.tensor(ids[subject[0] : subject[1] + 1], device=device)).float()
    scale = how.noise * (float(rows.std()) if how.sigma is None else how.sigma)
    generator = torch.Generator().manual_seed(how.seed)
    noise = scale * torch.randn(how.samples, *rows.shape, generator=generator)
    return torch.cat([torch.zeros(how.samples, subject[0], rows.shape[1]), noise], 1).to(device)


def _restored(
    model: PreTrainedModel,
    modules: dict[str, nn.Module],
    states: dict[int, Tensor],
    ids: tuple[int, ...],
    answer: int,
    shake: Tensor,
    places: list[int],
    samples: int,
) -> Tensor:
    """Return p(answer) with noise on the subject and `states` restored at each of P places: (P,), sample means."""
    rows = torch.arange(len(places)).repeat_interleave(samples)
    at = torch.tensor(places).repeat_interleave(samples)
    everywhere = shake.repeat(len(places), 1, 1)

    def corrupt(_: nn.Module, args: object, output: Tensor) -> Tensor:
        changed = output.clone()
        changed[:, : everywhere.shape[1]] += everywhere.to(output.dtype)
        return changed

    def restore(state: Tensor) -> Callable[..., object]:
        def hook(_: nn.Module, args: object, output: Any) -> Any:
            hidden = first_tensor(output)
            changed = hidden.reshape(len(at), len(ids), -1).clone()
            changed[torch.arange(len(at)), at] = state[at].to(changed)
            changed = changed.reshape(hidden.shape)
            return (changed, *output[1:]) if isinstance(output, tuple) else changed

        return hook

    handles = [model.get_input_embeddings().register_forward_hook(corrupt)]
    handles += [modules[str(layer)].register_forward_hook(restore(state)) for layer, state in states.items()]
    with hooked(handles):
        values = _probability(model, torch.tensor([ids]).expand(len(at), -1), answer)
    return torch.zeros(len(places), dtype=torch.float64).index_add(0, rows, values) / samples


def _by_position(effects: Tensor, places: list[int], subject: tuple[int, int], length: int) -> Tensor:
    """Turn (places, layers) into (POSITIONS, layers): means over the tokens of a kind, NaN where there is none."""
    first, last = subject
    groups = {
        "first subject token": [first] if first < last else [],
        "middle subject tokens": list(range(first + 1, last)),
        "last subject token": [last],
        "further tokens": list(range(last + 1, length - 1)),
        "last token": [length - 1] if length - 1 > last else [],
    }
    return torch.stack(
        [
            effects[[places.index(place) for place in groups[name]]].mean(0)
            if groups[name]
            else torch.full((effects.shape[1],), math.nan, dtype=effects.dtype)
            for name in POSITIONS
        ]
    )
