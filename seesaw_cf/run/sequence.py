"""Edits one after another: each is made on the model with all earlier ones, and some states are looked at.

The base is held once. The change so far is a running sum in float64, and the model of a step is base + sum, rounded
once. The random control of a step has the norm of the editor's step in each parameter, with a direction of its own for
each order and step, and is summed in the same way: it has as many steps of the same sizes, on no model of its own.
"""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.errors import RecordError, RunFolderError, SeesawError, StorageError
from seesaw_cf.base.files import safe_name
from seesaw_cf.base.retrying import Bar
from seesaw_cf.base.text import seed_of
from seesaw_cf.base.types import Case
from seesaw_cf.editors.control_names import split_control
from seesaw_cf.editors.controls import RandomControl
from seesaw_cf.editors.tensor_files import load_tensors, save_tensors
from seesaw_cf.models.editor import Editor, RemembersEdits
from seesaw_cf.models.tensors import in_float64
from seesaw_cf.models.weights import WeightDelta, applied
from seesaw_cf.records.relations import FREE
from seesaw_cf.run.edits import Outcome, consistent, edit_units
from seesaw_cf.run.jobs import CHECKPOINTS
from seesaw_cf.run.store import ASKED_ONLY, MADE
from seesaw_cf.run.units import Unit, probes_of, units
from seesaw_cf.scoring.forward import is_out_of_memory

log = logging.getLogger(__name__)


def sequence_units(cases: Sequence[Case], counts: Sequence[int], orders: int, seed: int) -> list[Unit]:
    """Return the states after the first edits of each order of the same facts, order by order.

    Every state is asked the same about other people and other facts, of facts that are edited later, too. Nobody is
    asked about whom, and no other fact that, another edit of the sequence is about.

    Args:
        cases: What facts are drawn from, by `seed`; cases of one request are one fact.
        counts: Numbers of edits; () = `CHECKPOINTS`, while facts last.
        orders: How many orders are drawn.
        seed: Of the draws.

    Raises:
        RecordError: More edits than facts.
    """
    facts = units(cases, "single")
    counts = sorted({*counts} or {count for count in CHECKPOINTS if count <= len(facts)})
    if counts[-1] > len(facts):
        raise RecordError(
            f"sequential: --checkpoints up to {counts[-1]:,} edits, and the data has {len(facts):,} facts. Give at "
            "most that, or --data (or a --limit) with more."
        )
    drawn = np.random.default_rng([seed, len(facts)]).permutation(len(facts))[: counts[-1]]
    pool = [facts[place].cases for place in sorted(drawn)]
    edited = {
        name for own in pool for name in (own[0].request.subject, str(own[0].extra.get("subject_id") or "")) if name
    }
    known = {(own[0].request.subject, own[0].request.relation_id) for own in pool}
    pool = [tuple(_of_others(case, edited, known) for case in own) for own in pool]
    by_relation = defaultdict[str, list[Case]](list)
    for own in pool:
        by_relation[own[0].request.relation_id] += own
    probes = probes_of(by_relation[name] for name in sorted(by_relation))
    planned = []
    for order in range(orders):
        ordered = [pool[place] for place in np.random.default_rng([seed, order]).permutation(len(pool))]
        for count in counts:
            later = frozenset(case.case_id for own in ordered[count:] for case in own)
            labels = {"mix": "", "checkpoint": count, "order": order, "overlap": 1.0}
            own = tuple(case for own in ordered for case in own)
            planned.append(Unit(f"{order:03d}-{count:06d}", own, later, probes=probes, labels=labels))
    return planned


def _of_others(case: Case, edited: set[str], known: set[tuple[str, str]]) -> Case:
    """Return a case without prompts about edited people, or about another fact that is edited itself.

    Nor with those that do not name the property ("Ada is"): no number of a sequence is made of them, and they cost as
    much as all other prompts about that person.
    """
    people = [prompt for prompt in case.attribute_prompts if not {prompt.subject.id, prompt.subject.label} & edited]
    near = [text for text in case.neighborhood_prompts if not any(name in text for name in edited)]
    again = (case.request.subject, case.effect_relation_id) in known
    free = {FREE.fill(case.request.subject, living=living) for living in (True, False)}
    named = tuple(prompt for prompt in case.effect_prompts if prompt.text not in free)
    asked = () if again else named or case.effect_prompts
    return replace(case, attribute_prompts=tuple(people), neighborhood_prompts=tuple(near), effect_prompts=asked)


@dataclass
class Chain:
    """What was changed along an order so far.

    Attributes:
        sums: Editor, or control of it -> parameter -> change, in float64.
        editor: The editor, with what it remembers of earlier edits.
        steps: What became of each edit, and its norm, NaN where it was not made.
    """

    sums: dict[str, dict[str, Tensor]]
    editor: Editor
    steps: list[tuple[str, float]] = field(default_factory=list)


@dataclass
class Sequences:
    """Makes the states of a plan, the next from the last; a state that was kept is read.

    Attributes:
        model, tokenizer: The base, unchanged afterwards.
        out: The run folder; of each editor and order the last state is kept there, where a killed run goes on.
        run: Identity of the run, in every file.
        plan: The states, of an order one after another.
        progress: Show a bar of edits.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    out: Path
    run: str
    plan: Sequence[Unit]
    progress: bool = False
    _held: tuple[str, Unit, Chain] | None = None  # one state is in memory

    def outcome(self, name: str, fit: Callable[[str], Editor], editors: Mapping[str, Editor], unit: Unit) -> Outcome:
        """Return the change of an editor, or of a control of it, at a checkpoint.

        Args:
            name: The editor or control.
            fit: Returns an editor fitted.
            editors: All of the run.
            unit: The state.
        """
        own = split_control(name)[1] or name
        drawn = {each: kind for each, kind in editors.items() if isinstance(kind, RandomControl)}
        controls = {each: kind for each, kind in drawn.items() if split_control(each)[1] == own}
        chain = self._chain(own, fit(own), controls, unit)
        edited = [case for case in unit.cases if case.case_id not in unit.asked_only]
        requests, status = consistent(edited)
        places = {request: place for place, request in enumerate(requests)}
        norms = dict.fromkeys(status, math.nan)
        for case in edited:
            if status[case.case_id] == "ok":
                status[case.case_id], norms[case.case_id] = chain.steps[places[case.request]]
        status |= dict.fromkeys(unit.asked_only, ASKED_ONLY)
        made = [request for request, (text, _) in zip(requests, chain.steps, strict=True) if text in MADE]
        meta = {"editor": name, "requests": made, "sequence": unit.labels}
        delta = WeightDelta(dict(chain.sums[name]), meta)
        total = math.sqrt(sum(norm**2 for norm in delta.norms().values()))
        return Outcome(status, delta, total, steps=norms)

    def _chain(self, name: str, editor: Editor, controls: Mapping[str, RandomControl], unit: Unit) -> Chain:
        """Return the state: from memory, from its file, or made from the checkpoint before."""
        if self._held and self._held[0] == name and self._held[1] is unit:
            return self._held[2]
        file, own = self._file(name, unit), [each for each in self.plan if each.labels["order"] == unit.labels["order"]]
        earlier = own[: own.index(unit)][-1:]
        chain = self._read(file, editor, [name, *controls])
        if chain is None:
            empty = Chain({each: {} for each in (name, *controls)}, editor)
            chain = self._chain(name, editor, controls, earlier[0]) if earlier else empty
            self._held = None  # half-way it is no state
            self._go_on(name, chain, controls, unit)
            self._save(file, chain)
        for before in earlier:  # its shards are written
            self._file(name, before).unlink(missing_ok=True)
        self._held = name, unit, chain
        return chain

    def _go_on(self, name: str, chain: Chain, controls: Mapping[str, RandomControl], unit: Unit) -> None:
        """Make the edits between a state and a checkpoint."""
        edited = [case for case in unit.cases if case.case_id not in unit.asked_only]
        requests, _ = consistent(edited)
        first = {case.request: case for case in reversed(edited)}
        order: Any = unit.labels["order"]
        what = f"{name}, order {order + 1}: edit"
        for request in Bar(requests[len(chain.steps) :], what, unit="edit", disable=not self.progress):
            with applied(self.model, WeightDelta(chain.sums[name])):
                made = self._edit(chain.editor, first[request])
            step = len(chain.steps)
            chain.steps.append((made.status[first[request].case_id], made.norm))
            if made.delta is None or made.is_zero:
                continue
            _add(chain.sums[name], made.delta)
            for control, drawn in controls.items():
                config = replace(drawn.config, seed=seed_of(drawn.config.seed, order, step, bits=32))
                _add(chain.sums[control], replace(drawn, config=config).like(made.delta, [request]))
            if isinstance(chain.editor, RemembersEdits):
                with applied(self.model, WeightDelta(chain.sums[name])):
                    chain.editor = chain.editor.remember(self.model, self.tokenizer, [request])

    def _edit(self, editor: Editor, case: Case) -> Outcome:
        """Return the edit of a case; of an editor that fails on a model that others have changed it is refused."""
        try:
            return edit_units(self.model, self.tokenizer, editor, [[case]])[0]
        except (SeesawError, MemoryError):
            raise
        except Exception as error:
            if is_out_of_memory(error):
                raise
            log.warning("%s: %s: %s", case.request.text, type(error).__name__, error)
            return Outcome({case.case_id: f"refused: {type(error).__name__}: {error}"})

    def _file(self, name: str, unit: Unit) -> Path:
        return self.out / "sequences" / safe_name(name) / f"{unit.key}.safetensors"

    def _save(self, file: Path, chain: Chain) -> None:
        names = list(chain.sums)
        tensors = {f"{at}:{key}": sum_ for at, name in enumerate(names) for key, sum_ in chain.sums[name].items()}
        if isinstance(chain.editor, RemembersEdits):
            tensors |= {f"past:{layer}": keys for layer, keys in chain.editor.past.items()}
        save_tensors(file, tensors, {"run": self.run, "editors": names, "steps": chain.steps})

    def _read(self, file: Path, editor: Editor, names: Sequence[str]) -> Chain | None:
        try:
            tensors, facts = load_tensors(file)
        except StorageError:
            if file.exists():
                raise
            return None  # never made, or another worker has gone on from it
        if (facts.get("run"), facts.get("editors")) != (self.run, list(names)):
            raise RunFolderError(f"{file} belongs to another run. Delete it and run the same command again.")
        chain = Chain({name: {} for name in names}, editor, [(text, norm) for text, norm in facts["steps"]])
        past = dict[int, Tensor]()
        for key, tensor in tensors.items():
            place, _, name = key.partition(":")
            if place == "past":
                past[int(name)] = tensor
            else:
                device = self.model.get_parameter(name).device
                chain.sums[names[int(place)]][name] = tensor.to(device) if device.type != "mps" else tensor
        if isinstance(editor, RemembersEdits):
            chain.editor = replace(editor, past=past)  # type: ignore[type-var]
        return chain


def _add(sums: dict[str, Tensor], delta: WeightDelta) -> None:
    for name in delta.updates:
        change = in_float64(delta.dense(name))
        sums[name] = sums[name].add_(change) if name in sums else change.clone()
