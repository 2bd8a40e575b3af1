"""Negative controls: editors with effects on other beliefs that are the noise an edit must rise above.

    identity    edits in what is true already: the machinery of an edit without a new fact
    random      a random change of the same norm at the same place as a given edit: the size of an edit without its aim
    unrelated   a real edit of a fact about something else: an edit without its subject

Each wraps the editor that it is the control of, by name in its config
(`RandomControl(ControlConfig(editor="memit", settings={"layers": (3, 4)}))`) or as an object
(`RandomControl(inner=editor)`), and needs nothing that the wrapped editor does not need.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Self

import torch
from torch import Tensor

from seesaw_cf.base.errors import EditError
from seesaw_cf.base.fields import Seed
from seesaw_cf.base.text import seed_of
from seesaw_cf.base.types import Case, EditRequest, Entity
from seesaw_cf.editors.control_names import is_control
from seesaw_cf.editors.locate.checks import request_facts
from seesaw_cf.editors.locate.config import CheckedConfig, preset_config
from seesaw_cf.models.editor import AllowsIdentity, Editor, EditsEach, Model, Requests, Settings, Tokenizer
from seesaw_cf.models.tensors import in_float64
from seesaw_cf.models.weights import LowRank, WeightDelta


def _pool() -> Iterator[EditRequest]:
    """Yield facts about things, not people, for `unrelated`."""
    with (Path(__file__).parent / "things.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            new, true = Entity(None, row["target_new"]), Entity(None, row["target_true"])
            yield EditRequest(row["prompt"], row["subject"], "", new, true)


POOL: tuple[EditRequest, ...] = tuple(_pool())
_COMMON = {"the", "of", "a", "an", "and", "de", "la", "von", "van"}


@dataclass(frozen=True, kw_only=True)
class ControlConfig(CheckedConfig):
    """Settings of a control.

    Attributes:
        editor: Name of the editor that is wrapped, out of `seesaw_cf.editors.EDITORS`; "" when given as an object.
        settings: Fields of that editor's config that differ from its preset for the model.
        seed: For the random direction, or for the choice of the unrelated fact; a run sets its own where none is given.
    """

    editor: str = ""
    settings: Settings = field(default_factory=dict)
    seed: Seed = 0

    def __post_init__(self) -> None:
        """Refuse a control of a control."""
        super().__post_init__()
        if is_control(self.editor):
            raise EditError(
                f"a control cannot wrap the control {self.editor!r}. Set editor to a method such as 'memit'."
            )


@dataclass(frozen=True)
class ControlEditor:
    """What all have in common: the wrapped editor, made when it is first needed.

    Attributes:
        config: The settings.
        corpus: Handed to the wrapped editor.
        inner: The wrapped editor; made from the config by `fit` when None. What it learns, it learns itself.
    """

    kind: ClassVar[str]
    lenient: ClassVar[bool] = False
    """The wrapped editor is set to accept a new answer that is true already, where it has that setting."""
    config_class: ClassVar[type[ControlConfig]] = ControlConfig
    config: ControlConfig = field(default_factory=ControlConfig)
    corpus: Sequence[str] | None = field(default=None, repr=False)
    inner: Editor | None = None

    def fit(self, model: Model, tokenizer: Tokenizer) -> Self:
        """Make and fit the wrapped editor."""
        return replace(self, inner=(self.inner or self._made(model)).fit(model, tokenizer))

    def _inner_editor(self, model: Model) -> Editor:
        """Return the wrapped editor: as it was given, or made with its preset for `model`, changed by `settings`."""
        inner = self.inner or self._made(model)
        known = isinstance(inner.config, AllowsIdentity) and hasattr(inner, "__dataclass_fields__")
        if not self.lenient or not known:
            return inner
        return replace(inner, config=replace(inner.config, allow_identity=True))  # type: ignore[type-var]

    def _made(self, model: Model) -> Editor:
        if not self.config.editor:
            name = type(self).__name__
            raise EditError(
                f"{name} wraps another editor, got none. Write {name}(ControlConfig(editor='memit'), corpus=texts), or "
                f"{name}(inner=editor)."
            )
        from seesaw_cf.editors import load_editor

        kind = load_editor(self.config.editor)
        config = preset_config(self.config.editor, kind.config_class, model, self.config.settings)
        editor: Editor = kind(config, corpus=self.corpus)
        return editor

    def _generator(self, requests: Requests, parameter: str = "") -> torch.Generator:
        """Return a generator seeded by (seed, parameter, requests), whatever the order of edits in a run."""
        facts = sorted(json.dumps(request_facts(request), sort_keys=True) for request in requests)
        return torch.Generator().manual_seed(seed_of(self.config.seed, parameter, *facts, bits=63))

    def edit_each(self, model: Model, tokenizer: Tokenizer, requests: Requests) -> list[WeightDelta]:
        """Return one delta per request, as `edit(model, tokenizer, [request])` makes it, up to rounding.

        Raises:
            SeesawError: See `edit`.
        """
        inner, asked = self._inner_editor(model), [self.chosen([request])[0] for request in requests]
        deltas = (
            inner.edit_each(model, tokenizer, asked)
            if isinstance(inner, EditsEach)
            else [inner.edit(model, tokenizer, [request]) for request in asked]
        )
        return [self._from(delta, [request]) for delta, request in zip(deltas, requests, strict=True)]

    def edit(self, model: Model, tokenizer: Tokenizer, requests: Requests) -> WeightDelta:
        """Return the control of one edit of all requests together.

        Raises:
            EditError: The control cannot be made for a request (see its class), or the wrapped editor failed.
        """
        return self._from(self._inner_editor(model).edit(model, tokenizer, self.chosen(requests)), requests)

    def chosen(self, requests: Requests) -> Requests:
        """Return what the wrapped editor is asked in place of some requests."""
        return requests

    def _from(self, delta: WeightDelta, requests: Requests) -> WeightDelta:
        """Return the control of `requests`, made from the wrapped editor's delta."""
        meta = {
            "editor": self.kind,
            "config": asdict(self.config),
            "requests": [request_facts(request) for request in requests],
            "diagnostics": delta.meta.get("diagnostics") or [{} for _ in requests],
            "control_of": {key: delta.meta.get(key) for key in ("editor", "config", "requests")},
        }
        base = {"base": delta.meta["base"]} if delta.meta.get("base") else {}
        return WeightDelta(delta.updates, meta | base, delta.context)


@dataclass(frozen=True)
class IdentityControl(ControlEditor):
    """Edits every request's target_true in: what an edit does to other beliefs when no fact changes.

    A request without target_true is an EditError.
    """

    kind: ClassVar[str] = "identity"
    lenient: ClassVar[bool] = True

    def chosen(self, requests: Requests) -> Requests:
        """Return the requests with what is true as the new answer."""
        for request in requests:
            if not request.target_true.label.strip():
                raise EditError(
                    f"identity: request {request.text!r} has no target_true, so there is nothing true to edit in. "
                    "Use the 'random' or 'unrelated' control, or fill it in."
                )
        return [replace(request, target_new=request.target_true) for request in requests]


@dataclass(frozen=True)
class RandomControl(ControlEditor):
    """A random change with the norm and the rank of a given edit, in the same parameters.

    A wrapped editor that changes no weights (in-context editing) is an EditError.
    """

    kind: ClassVar[str] = "random"

    def _from(self, delta: WeightDelta, requests: Requests) -> WeightDelta:
        return self.like(delta, requests)

    def like(self, delta: WeightDelta, requests: Requests = ()) -> WeightDelta:
        """Draw a random change of the same Frobenius norm in each parameter, of rank 1 for one request and n for n.

        Without requests (a model edited elsewhere) each update keeps its own rank; one that is held whole, or a vector,
        gets noise in every entry. The direction is drawn from (seed, requests, parameter), so it does not depend on the
        order of edits in a run.

        Raises:
            EditError: The delta changes no weights.
        """
        if not delta.updates:
            raise EditError(
                "random: the given edit changes no weights, so there is no norm to match. Wrap another editor."
            )
        updates = {
            name: _random_like(
                delta.dense(name),
                len(requests) or (update.left.shape[1] if isinstance(update, LowRank) else None),
                self._generator(requests, name),
            )
            for name, update in delta.updates.items()
        }
        return WeightDelta(updates, super()._from(delta, requests).meta)


@dataclass(frozen=True)
class UnrelatedControl(ControlEditor):
    """A real edit of a fact that shares no relation, no name and no answer with the request.

    Attributes:
        pool: Facts to choose from first, such as requests of other cases; `POOL` (43 facts about things) when it has
            not enough unconnected ones.
        asked: Request -> the prompts that are asked after its edit; people named in them are not edited.
    """

    kind: ClassVar[str] = "unrelated"
    pool: Requests = ()
    asked: Mapping[EditRequest, tuple[str, ...]] = field(default_factory=dict, repr=False)

    def learn(self, cases: Iterable[Case]) -> Self:
        """Return this control with the requests of `cases` as its pool; none of them should be evaluated."""
        return replace(self, pool=tuple(case.request for case in cases))

    def avoid(self, cases: Iterable[Case]) -> Self:
        """Return this control; for a request of `cases` it then edits none of the people in the case's own prompts."""
        prompts: dict[EditRequest, tuple[str, ...]] = {}
        for case in cases:
            texts = (*(prompt.text for prompt in case.attribute_prompts), *case.neighborhood_prompts)
            prompts[case.request] = (*prompts.get(case.request, ()), *texts)
        return replace(self, asked=prompts)

    def chosen(self, requests: Requests) -> Requests:
        """Draw the facts edited instead, by (seed, requests), so not dependent on the order of edits in a run.

        Raises:
            EditError: The pool holds no unconnected fact, or fewer than there are requests.
        """
        words = set().union(*(_words(request) for request in requests))
        relations = {request.relation_id for request in requests} - {""}
        prompts = "\n".join(text for request in requests for text in self.asked.get(request, ()))
        for pool in (self.pool, POOL):
            free = [fact for fact in pool if fact.relation_id not in relations and not words & _words(fact)]
            free = [fact for fact in free if fact.subject not in prompts]
            if len(free) >= len(requests):
                break
        else:
            raise EditError(
                f"unrelated: {len(requests)} unconnected facts are needed, {len(free)} of the {len(POOL)} about things "
                f"and fewer of the {len(self.pool)} given share no relation, name or answer with the requests and are "
                "about nobody asked about. Give a larger pool of facts about other subjects."
            )
        order = torch.randperm(len(free), generator=self._generator(requests))
        return [free[index] for index in order[: len(requests)].tolist()]


def _words(request: EditRequest) -> set[str]:
    """Return the words of subject and answers in lower case, without those that name nothing."""
    texts = (request.subject, request.target_new.label, request.target_true.label)
    return {word for text in texts for word in text.lower().replace(",", " ").split()} - _COMMON


def _random_like(change: Tensor, rank: int | None, generator: torch.Generator) -> LowRank | Tensor:
    """Draw Gaussian factors scaled to the norm of `change`; Gaussian entries for vectors, or without a rank."""
    norm, dtype = float(in_float64(change).norm()), torch.promote_types(change.dtype, torch.float32)
    if change.dim() != 2 or rank is None:
        noise = torch.randn(change.shape, generator=generator, dtype=torch.float64)
        return (noise * (norm / float(noise.norm()))).to(device=change.device, dtype=dtype)
    rows, columns = change.shape
    rank = min(rank, rows, columns)
    left = torch.randn(rows, rank, generator=generator, dtype=torch.float64)
    right = torch.randn(rank, columns, generator=generator, dtype=torch.float64)
    left *= norm / float((left @ right).norm())
    return LowRank(*(part.to(device=change.device, dtype=dtype) for part in (left, right)))


def noise_like(model: Model, norms: Mapping[str, float], seed: int) -> WeightDelta:
    """Draw noise for some parameters of a model, given its Frobenius norm for each, by (seed, parameter)."""
    updates: dict[str, LowRank | Tensor] = {}
    for name, norm in norms.items():
        generator = torch.Generator().manual_seed(seed_of(seed, name, bits=63))
        noise = torch.randn(model.get_parameter(name).shape, generator=generator)
        updates[name] = noise * (norm / float(noise.double().norm()))
    return WeightDelta(updates, {"editor": "random", "seed": seed})
