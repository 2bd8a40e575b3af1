"""The main job: score, edit, score again, restore; killed at any point, it continues where it was.

A run folder holds `manifest.json`, one shard per finished unit of work, and at the end `scores.parquet` and
`edits.parquet`, which are the same bytes whether or not the run was interrupted, on one type of machine
with one number of threads.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.errors import EditError, StorageError
from seesaw_cf.base.files import safe_name
from seesaw_cf.base.retrying import Bar
from seesaw_cf.base.tables import CONTROL_SEEDS, SCORES
from seesaw_cf.base.types import Case
from seesaw_cf.editors.control_names import control_name, first_seed, is_control, split_control
from seesaw_cf.editors.remembered import Remembered, RememberedEach
from seesaw_cf.models.delta_files import merge_and_save, save_delta
from seesaw_cf.models.editor import Editor, EditsEach, WrapsEditor
from seesaw_cf.models.weights import WeightDelta, base_facts, checksum, parameter_hashes
from seesaw_cf.run.before import ScoresBefore, SpanScores, questions_of
from seesaw_cf.run.candidates import Candidates
from seesaw_cf.run.edit_table import write_edits
from seesaw_cf.run.edits import Outcome, edit_units, no_exit, score_edits
from seesaw_cf.run.external import ExternalModel, SecondModels
from seesaw_cf.run.first_edits import EDITS_TOGETHER, check_first_edits, no_side_effects
from seesaw_cf.run.manifest import RunManifest, read_manifest
from seesaw_cf.run.questions import CaseQuestions, pair_scores, score_table
from seesaw_cf.run.requests import Requests
from seesaw_cf.run.store import Store
from seesaw_cf.run.units import Task, Unit, units
from seesaw_cf.scoring import Scorer
from seesaw_cf.stats.simple import tolerance

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Run:
    """A run cut into tasks, which any number of processes can do in any order.

    Attributes:
        model: In eval mode; its weights are the same bytes afterwards.
        tokenizer: The model's tokenizer.
        scorer: Scores with `model`.
        editors: Name -> editor, not yet fitted.
        cases: What to edit and ask.
        manifest: What the run is made of; decides whether `out` may be continued. `settings["block"]` is the number of
            units in a task.
        out: The run folder.
        keep_deltas: Also save each edit as `deltas/EDITOR/UNIT/`, for sharing; units finished earlier are not redone.
        progress: Show progress bars with ETA on stderr.
        notes: What was found out about the run beforehand, in sentences.
        external: Name -> model changed elsewhere; they come after the editors.
        requests: The cases of those models.
        checkpoints: Also write each edit as a separate model, `checkpoints/EDITOR/UNIT/`; not of controls.
        candidates: What the true target of each case is ranked among before any edit.
        anyway: Warn of an editor with first edits that are not local, instead of stopping.
        fitted: Name -> editors fitted so far.
        checked: Editors with a first edit that had no side effects.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    scorer: Scorer
    editors: Mapping[str, Editor]
    cases: Sequence[Case]
    manifest: RunManifest
    out: Path
    keep_deltas: bool = False
    progress: bool = True
    notes: Sequence[str] = ()
    external: Mapping[str, ExternalModel] = field(default_factory=dict)
    requests: Requests = field(default_factory=Requests)
    checkpoints: bool = False
    candidates: Candidates = field(default_factory=Candidates)
    anyway: bool = False
    fitted: dict[str, Editor] = field(default_factory=dict, init=False)
    checked: set[str] = field(default_factory=set, init=False)

    @cached_property
    def store(self) -> Store:
        """The finished units."""
        return Store(self.out, self.manifest, SCORES)

    @cached_property
    def units(self) -> list[Unit]:
        """The cases, cut by the manifest's protocol."""
        return units(self.cases, self.manifest.protocol)

    @cached_property
    def tasks(self) -> list[Task]:
        """Every task, span after span. Blocks depend on the whole plan, not on what is open: a resumed run and any
        number of workers make the same ones."""
        controls, size = {name: control_name("random", name) for name in self.editors}, self.block_size
        tasks = []
        for name, seeds in self.seeds.items():
            if name not in controls.values():
                together = (*seeds, *self.seeds.get(controls.get(name, ""), ()))
                own = self._units_of(name)
                # Changed models are held one at a time: each has tasks of its own.
                for group in [(seed,) for seed in seeds] if name in self.external else [together]:
                    tasks += [Task(group, tuple(own[at : at + size])) for at in range(0, len(own), size)]
        return sorted(tasks, key=self._span)

    def _span(self, task: Task) -> int:
        return self.before.span(task.units[0])

    @property
    def block_size(self) -> int:
        """The number of units in a task."""
        return int(self.manifest.settings.get("block") or EDITS_TOGETHER)

    @cached_property
    def seeds(self) -> dict[str, list[str]]:
        """Each editor with itself and, of a control that draws, its further seeds: they share the edits of a block."""
        seeds: dict[str, list[str]] = {}
        for name in (*self.editors, *self.external):
            seeds.setdefault(first_seed(name), []).append(name)
        return seeds

    def _units_of(self, name: str) -> list[Unit]:
        return self.external_units if name in self.external else self.units

    @cached_property
    def external_units(self) -> list[Unit]:
        """The cases of models changed elsewhere, cut in the same way: what a killed run loses at most."""
        return units(self.requests.cases, self.manifest.protocol) if self.external else []

    @cached_property
    def before(self) -> ScoresBefore:
        """Scores before any edit."""
        model = {key: value for key, value in self.manifest.model.items() if key not in ("id", "revision")}
        identity, edited = {"model": model, "scoring": self.manifest.scoring}, self.units if self.editors else ()
        asked = (edited, self.external_units, self.block_size, self.requests, self.candidates)
        return ScoresBefore(self.scorer, self.tokenizer, identity, *asked, self.progress)

    @cached_property
    def second(self) -> SecondModels:
        """The models changed elsewhere, one of them in memory."""
        return SecondModels(self.model, self.external)

    @cached_property
    def hashes(self) -> dict[str, str]:
        """Checksums of the model's tensors, taken before the first edit."""
        return parameter_hashes(self.model, hash_of=checksum)

    def fit(self, name: str) -> Editor:
        """Return the fitted editor; a control takes the editor that it wraps, and its edits, from the run."""
        if name not in self.fitted:
            editor, (kind, wrapped) = self.editors[name], split_control(name)
            if wrapped in self.editors and isinstance(editor, WrapsEditor):
                inner = self.fit(wrapped)
                if kind != "random" and isinstance(inner, Remembered):
                    inner = inner.editor
                self.fitted[name] = replace(editor, inner=inner)  # type: ignore[type-var]
            else:
                with no_exit(editor):
                    fitted = editor.fit(self.model, self.tokenizer)
                self.fitted[name] = self._remembered(name, fitted)
        return self.fitted[name]

    def _remembered(self, name: str, editor: Editor) -> Editor:
        """Return the editor with a memory, where a control needs the very same edits."""
        if control_name("random", name) not in self.editors:
            return editor
        limit = sum(parameter.nbytes for parameter in self.model.parameters()) // 4
        return RememberedEach(editor, limit) if isinstance(editor, EditsEach) else Remembered(editor, limit)

    def is_open(self, task: Task) -> bool:
        """Return whether some unit of the task is not finished."""
        return not all(map(self.store.has, product(task.editors, (unit.key for unit in task.units))))

    def do(self, task: Task) -> None:
        """Edit the task's units, score them and write the shards that are missing: the same bytes whoever does it.

        Raises:
            EditError: An editor changed the model's weights or they could not be restored.
            StorageError: The disk is full.
        """
        for editor in task.editors:
            if self.is_open(replace(task, editors=(editor,))):
                (self._do_external if editor in self.external else self._do_edits)(editor, task.units)

    def _do_edits(self, name: str, block: Sequence[Unit]) -> None:
        before, hashes = self.before.of(block), self.hashes
        editor, groups = self.fit(name), [unit.cases for unit in block]
        with nullcontext() if name in self.checked else no_side_effects(name, self.model, self.tokenizer):
            edits = edit_units(self.model, self.tokenizer, editor, groups)
        self.checked.add(name)
        block_questions = [questions_of(unit) for unit in block]
        outcomes = score_edits(self.model, self.scorer, edits, block_questions, before.scores, hashes)
        for unit, case_questions, outcome in zip(block, block_questions, outcomes, strict=True):
            if self.keep_deltas and outcome.delta is not None:
                self._keep_delta(name, unit.key, outcome.delta)
            if self.checkpoints and outcome.delta is not None and not is_control(name):
                self._write_checkpoint(name, unit.key, outcome.delta)
            self._write(name, unit, case_questions, before, outcome)
        check_first_edits(self.store, name, self.units, block, self.anyway)

    def _do_external(self, name: str, block: Sequence[Unit]) -> None:
        """Score units with a model changed elsewhere: one change for all of them."""
        external, block_questions = self.external[name], [self.before.external_questions(unit) for unit in block]
        before = self.before.of(block)
        clozes = list(
            dict.fromkeys(q.cloze for case_questions in block_questions for _, qs in case_questions for q in qs)
        )
        with self.second.scorer(name) as scorer:
            scores = dict(zip(clozes, scorer.score(clozes), strict=True))
        for unit, case_questions in zip(block, block_questions, strict=True):
            status = {case.case_id: self.requests.status(case) for case in unit.cases}
            self._write(name, unit, case_questions, before, Outcome(scores, status, external.norm))

    def _write(
        self, editor: str, unit: Unit, case_questions: CaseQuestions, before: SpanScores, outcome: Outcome
    ) -> None:
        scores = {cloze: before.indistinct.get(cloze, score) for cloze, score in outcome.scores.items()}
        outcome = replace(outcome, scores=scores)
        rows = score_table(editor, pair_scores(case_questions, before.scores, scores))
        edits = outcome.edit_rows(editor, case_questions, before.scores, self.candidates)
        self.store.write((editor, unit.key), rows, edits=edits)

    def _write_checkpoint(self, editor: str, unit: str, delta: WeightDelta) -> None:
        """Write an edit as a separate model, unless it is there."""
        folder, base = self.out / "checkpoints" / safe_name(editor) / safe_name(unit), self.manifest.model.get("id")
        _write_if_missing(
            folder, lambda: merge_and_save(self.model, self.tokenizer, delta, folder, base_model=str(base))
        )

    def _keep_delta(self, editor: str, unit: str, delta: WeightDelta) -> None:
        """Save an edit, unless it is there."""
        identity = {"model_id": self.manifest.model.get("id"), "fingerprint": self.manifest.model["weights"]}
        folder = self.out / "deltas" / safe_name(editor) / safe_name(unit)
        facts = {**delta.meta, "base": {**base_facts(self.model, delta), **identity}}
        _write_if_missing(folder, lambda: save_delta(replace(delta, meta=facts), folder))

    def announce(self) -> None:
        """Log what a user should know before a run begins."""
        for note in (*self.manifest.notes, *self.notes):
            log.warning("%s", note)

    def complete(self) -> None:
        """Make the folder the run's own, do what is open and write the merged tables.

        Raises:
            RunFolderError: The folder belongs to another run.
            SeesawError: What the work itself raises; what is finished is kept.
        """
        self.store.claim()
        self.do_open()
        self.merge()

    def do_open(self) -> None:
        """Do every open task.

        Raises:
            EditError: An editor changed the model's weights or they could not be restored, or its first edits spoil
                what the model knew of other facts.
        """
        still_open = [task for task in self.tasks if self.is_open(task)]
        if not still_open:
            return
        for name in self.editors:  # of an earlier call
            check_first_edits(self.store, name, self.units, self.units, self.anyway)
        _ = self.hashes
        self.before.of(still_open[0].units)  # before the bar of the edits begins
        for task in Bar(still_open, "edit, score, restore", unit="block", disable=not self.progress):
            if self.is_open(task):
                self.do(task)
        _check_untouched(self.model, self.hashes)

    def merge(self) -> None:
        """Write the merged tables; further seeds of controls go to a separate table.

        Raises:
            RunFolderError: A shard is missing, or belongs to another run.
        """
        keys = [(name, unit.key) for name in self.seeds for unit in self._units_of(name)]
        further = [
            (seed, unit.key)
            for name, seeds in self.seeds.items()
            for seed in seeds[1:]
            for unit in self._units_of(name)
        ]
        if further:
            self.store.merge(further, CONTROL_SEEDS)
        facts = self.store.merge(keys, "scores.parquet")
        nats, _ = tolerance(read_manifest(self.out))
        write_edits(self.out / "edits.parquet", (row for unit in facts for row in unit["edits"]), nats)


def _write_if_missing(folder: Path, write: Callable[[], None]) -> None:
    """Write a folder, unless it is there: a folder is whole, and the edit of a unit is the same whoever makes it."""
    if folder.exists():
        return
    try:
        write()
    except StorageError:  # another process of the same run was first
        if not folder.exists():
            raise


def _check_untouched(model: PreTrainedModel, hashes: Mapping[str, str]) -> None:
    changed = [name for name, value in parameter_hashes(model, hash_of=checksum).items() if hashes[name] != value]
    if changed:
        raise EditError(
            f"after the run {len(changed)} tensors of the model differ from before, first {changed[0]!r}: an editor "
            "wrote to the model outside its delta. Its scores cannot be trusted; delete the run folder and report it."
        )
