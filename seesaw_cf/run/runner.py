"""The main job: score, edit, score again, restore; killed at any point, it continues where it was.

A run folder holds `manifest.json`, a shard per finished unit, and at the end `scores.parquet` and `edits.parquet`: the
same bytes whether or not the run was interrupted, on one type of machine with one number of threads.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import product
from pathlib import Path

import pyarrow as pa
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.errors import EditError, StorageError
from seesaw_cf.base.files import safe_name
from seesaw_cf.base.retrying import Bar
from seesaw_cf.base.tables import CONTROL_SEEDS, SCORES, table_of, write_table
from seesaw_cf.base.types import Case, Cloze, ClozeScore, JsonObject, TableRow
from seesaw_cf.editors.control_names import control_name, first_seed, is_control, split_control
from seesaw_cf.editors.remembered import Remembered
from seesaw_cf.effects.dose import SAMPLE
from seesaw_cf.effects.free_answers import ANSWERS
from seesaw_cf.generation.hf import HFGenerator
from seesaw_cf.models.delta_files import merge_and_save, save_delta
from seesaw_cf.models.editor import Editor, WrapsEditor
from seesaw_cf.models.weights import WeightDelta, base_facts, checksum, parameter_hashes
from seesaw_cf.run.answers import FreeAnswers
from seesaw_cf.run.edits import Outcome, Scores, ScoresBefore, distinct, edit_units, no_side_effects, score_edits
from seesaw_cf.run.external import ExternalModel, Requests, SecondModels
from seesaw_cf.run.manifest import RunManifest, read_manifest
from seesaw_cf.run.questions import PLAIN, Candidates, CaseRows, Forms, score_table
from seesaw_cf.run.sequence import Sequences
from seesaw_cf.run.store import EDITS, Key, Shard, Store, check_first_edits, write_edits
from seesaw_cf.run.units import Block, State, Unit, state_effects, units, write_doses
from seesaw_cf.scoring import Scorer, TrieScorer
from seesaw_cf.stats.simple import tolerance

log = logging.getLogger(__name__)

EDITS_TOGETHER = 8  # units whose edits are made in one go, and that show whether an editor leaves others alone


@dataclass(frozen=True)
class Run:
    """A run cut into blocks, which any number of processes can do in any order.

    Attributes:
        model: In eval mode; its weights are the same bytes afterwards.
        tokenizer: The model's tokenizer.
        scorer: Scores with `model`.
        editors: Name -> editor, not yet fitted.
        cases: What to edit and ask.
        manifest: What the run is made of; decides whether `out` may be continued. `settings["block"]` is the number of
            units in a block.
        out: The run folder.
        external: Name -> model changed elsewhere; they come after the editors.
        requests: The cases of those models.
        plan: The units of the editors, with labels of `SAMPLE`, in place of those that the protocol makes of `cases`.
        candidates: What the true target of each case is ranked among before any edit.
        known: Answers that a written one is told from.
        forms: In which forms everything is asked.
        answers: Most questions of each form and kind of a unit to which answers are written; None for none.
        keep_deltas: Also save each edit as `deltas/EDITOR/UNIT/`, for sharing; units finished earlier are not redone.
        save_checkpoints: Also write each edit as a separate model, `checkpoints/EDITOR/UNIT/`; not of controls.
        ignore_damage: Warn of an editor with first edits that are not local, instead of stopping.
        progress: Show progress bars with ETA on stderr.
        notes: What was found out about the run beforehand, in sentences.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    scorer: Scorer
    editors: Mapping[str, Editor]
    cases: Sequence[Case]
    manifest: RunManifest
    out: Path
    external: Mapping[str, ExternalModel] = field(default_factory=dict)
    requests: Requests = field(default_factory=Requests)
    plan: Sequence[Unit] = ()
    candidates: Candidates = field(default_factory=Candidates)
    known: Candidates = field(default_factory=Candidates)
    forms: Forms = field(default_factory=lambda: PLAIN)
    answers: int | None = None
    keep_deltas: bool = False
    save_checkpoints: bool = False
    ignore_damage: bool = False
    progress: bool = True
    notes: Sequence[str] = ()
    _fitted: dict[str, Editor] = field(default_factory=dict, init=False)
    _checked: set[str] = field(default_factory=set, init=False)  # editors with a first edit without side effects

    @property
    def columns(self) -> pa.Schema:
        """The labels of units in the tables."""
        return SAMPLE if self.plan else pa.schema([])

    @cached_property
    def store(self) -> Store:
        """The finished units."""
        return Store(self.out, self.manifest, pa.schema([*SCORES, *self.columns]))

    @cached_property
    def units(self) -> Sequence[Unit]:
        """What the editors edit, and what is asked about it."""
        return [replace(unit, forms=self.forms) for unit in self.plan or units(self.cases, self.manifest.protocol)]

    @cached_property
    def asked(self) -> Sequence[Unit]:
        """What models changed elsewhere are asked about, cut in the same way."""
        asked = self.requests.units(self.manifest.protocol) if self.external else []
        return [replace(unit, forms=self.forms) for unit in asked]

    @cached_property
    def blocks(self) -> list[Block]:
        """Every block. Blocks depend on the whole plan, not on what is open: a resumed run and any number of workers
        make the same ones."""
        size = 1 if self.is_sequence else int(self.manifest.settings.get("block") or EDITS_TOGETHER)
        controls, blocks = {name: control_name("random", name) for name in self.editors}, list[Block]()
        for name, seeds in self.seeds.items():
            if name not in controls.values():
                own, together = self.units_of(name), (*seeds, *self.seeds.get(controls.get(name, ""), ()))
                # Changed models are held one at a time: each has blocks of its own.
                for names in [(seed,) for seed in seeds] if name in self.external else [together]:
                    blocks += [Block(names, tuple(own[at : at + size])) for at in range(0, len(own), size)]
        return blocks

    @cached_property
    def seeds(self) -> dict[str, list[str]]:
        """Each editor with itself and, of a control that draws, its further seeds: they share the edits of a block."""
        seeds: dict[str, list[str]] = {}
        for name in (*self.editors, *self.external):
            seeds.setdefault(first_seed(name), []).append(name)
        return seeds

    def units_of(self, name: str) -> Sequence[Unit]:
        """Return the units of an editor, or of a model changed elsewhere."""
        return self.asked if name in self.external else self.units

    @cached_property
    def before(self) -> ScoresBefore:
        """Scores before any edit."""
        model = {key: value for key, value in self.manifest.model.items() if key not in ("id", "revision")}
        identity = {"model": model, "scoring": self.manifest.scoring}
        own = self.units[-1:] if self.is_sequence else self.units  # the states of a sequence are asked alike
        every = [*(own if self.editors else ()), *self.asked]
        return ScoresBefore(self.scorer, self.tokenizer, identity, every, self.candidates, self.progress)

    @cached_property
    def second(self) -> SecondModels:
        """The models changed elsewhere, one of them in memory."""
        return SecondModels(self.model, self.external)

    @property
    def is_sequence(self) -> bool:
        """Whether edits are made one after another."""
        return self.manifest.protocol == "sequential"

    @cached_property
    def sequences(self) -> Sequences:
        """The changes along each order of a sequence, one state in memory."""
        return Sequences(self.model, self.tokenizer, self.out, self.manifest.identity, self.units, self.progress)

    @cached_property
    def hashes(self) -> dict[str, str]:
        """Checksums of the model's tensors, taken before the first edit."""
        return parameter_hashes(self.model, hash_of=checksum)

    def fit(self, name: str) -> Editor:
        """Return the fitted editor; a control takes the editor that it wraps, and its edits, from the run."""
        if name not in self._fitted:
            editor, (kind, wrapped) = self.editors[name], split_control(name)
            if wrapped in self.editors and isinstance(editor, WrapsEditor):
                inner = self.fit(wrapped)
                inner = inner.editor if kind != "random" and isinstance(inner, Remembered) else inner
                self._fitted[name] = replace(editor, inner=inner)  # type: ignore[type-var]
            else:
                fitted = editor.fit(self.model, self.tokenizer)
                if (
                    control_name("random", name) in self.editors and not self.is_sequence
                ):  # it needs the very same edits
                    limit = sum(parameter.nbytes for parameter in self.model.parameters()) // 4
                    fitted = Remembered(fitted, limit)
                self._fitted[name] = fitted
        return self._fitted[name]

    def is_open(self, block: Block) -> bool:
        """Return whether some unit of the block is not finished."""
        return not all(map(self.store.has, product(block.names, (unit.key for unit in block.units))))

    def do(self, block: Block) -> None:
        """Change the model for each unit, score it and write the missing shards: the same bytes whoever does it.

        Raises:
            EditError: An editor changed the model or ended the program, or its first edits spoil what the model knew.
        """
        for name in block.names:
            if not self.is_open(Block((name,), block.units)):
                continue
            before = self.before.of(self._all_of(block))
            change = self.second.outcomes if name in self.external else partial(self._edit, before)
            try:
                outcomes = change(name, block.units)
                answers = self._answers(name, block.units, outcomes, before.scores)
                rows = before.rows(block.units)
                for unit, own, outcome, texts in zip(block.units, rows, outcomes, answers, strict=True):
                    self._keep(name, unit.key, outcome.delta)
                    indistinct = {cloze: score for cloze, score in before.indistinct.items() if cloze in outcome.scores}
                    outcome = replace(outcome, scores={**outcome.scores, **indistinct})
                    self._write(name, unit, own, outcome, texts)
            except SystemExit as error:
                what = f"it ended the program (sys.exit({error.code!r})), expected an edit or an exception"
                raise EditError(f"{name}: {what}. Correct it.") from error
            if any(unit in self._first for unit in block.units):
                self._check_first(name)
        if isinstance(self.scorer, TrieScorer) and not self.is_sequence:  # the next block asks something else
            self.scorer.forget()

    def _all_of(self, block: Block) -> Sequence[Unit]:
        """Return the units whose questions a block asks."""
        return self.units[-1:] if self.is_sequence else block.units

    def _edit(self, before: Scores, name: str, block: Sequence[Unit]) -> list[Outcome]:
        hashes, editor = self.hashes, self.fit(name)
        with nullcontext() if name in self._checked else no_side_effects(name, self.model, self.tokenizer):
            if self.is_sequence:
                edits = [self.sequences.outcome(name, self.fit, self.editors, unit) for unit in block]
            else:
                edits = edit_units(self.model, self.tokenizer, editor, [unit.cases for unit in block])
        self._checked.add(name)
        if self.is_sequence:
            asked = [self._everything] * len(block)
        else:
            asked = [list(dict.fromkeys(cloze for own in unit for cloze in own.clozes)) for unit in before.rows(block)]
        return score_edits(self.model, self.scorer, edits, asked, before.scores, hashes)

    @cached_property
    def _everything(self) -> list[Cloze]:
        """What the states of a sequence are asked: of facts that are edited later, too, so that texts are encoded and
        laid out once."""
        return list(distinct(self.units[-1]))

    @cached_property
    def _free(self) -> FreeAnswers:
        write = HFGenerator(self.model, self.tokenizer).generate_each
        return FreeAnswers(write, self.answers or 0, self.manifest.seed, self.known)

    def _answers(
        self, name: str, asked: Sequence[Unit], outcomes: Sequence[Outcome], before: Mapping[Cloze, ClozeScore]
    ) -> Iterable[list[TableRow]]:
        """Return the answers that edited models write; of a control that draws those of its first seed."""
        if not self.answers or first_seed(name) != name:
            return [[] for _ in asked]
        write = partial(self.second.write, name) if name in self.external else self._free.base
        return self._free.rows(write, asked, outcomes, before)

    def _write(
        self, name: str, unit: Unit, rows: Sequence[CaseRows], outcome: Outcome, texts: Sequence[TableRow]
    ) -> None:
        table = score_table(name, [(own, outcome.after(own)) for own in rows])
        edited = [own for own in rows if own.case.case_id in outcome.status]
        edits = [outcome.edit_row(name, own, self.candidates) | unit.labels for own in edited]
        for column in self.columns:
            table = table.append_column(column, pa.array([unit.labels[column.name]] * table.num_rows, column.type))
        more: JsonObject = {"norm": None if math.isnan(outcome.norm) else outcome.norm} if self.plan else {}
        more |= {"answers": [{"editor": name, **text} for text in texts]} if self.answers else {}
        self.store.write((name, unit.key), table, edits=edits, **more)

    def _keep(self, name: str, unit: str, delta: WeightDelta | None) -> None:
        """Save an edit, and write it as a separate model, where that is wanted."""
        if delta is None:
            return
        model_id = self.manifest.model.get("id")
        if self.keep_deltas:
            identity = {"model_id": model_id, "fingerprint": self.manifest.model["weights"]}
            facts = {**delta.meta, "base": {**base_facts(self.model, delta), **identity}}
            self._write_folder("deltas", name, unit, partial(save_delta, replace(delta, meta=facts)))
        if self.save_checkpoints and not is_control(name):
            write = partial(merge_and_save, self.model, self.tokenizer, delta, base_model=str(model_id))
            self._write_folder("checkpoints", name, unit, write)

    def _write_folder(self, kind: str, name: str, unit: str, write: Callable[[Path], None]) -> None:
        """Write a folder, unless it is there: it is whole, and the edit of a unit is the same whoever makes it."""
        folder = self.out / kind / safe_name(name) / safe_name(unit)
        try:
            if not folder.exists():
                write(folder)
        except StorageError:  # another process of the same run was first
            if not folder.exists():
                raise

    @cached_property
    def _first(self) -> Sequence[Unit]:
        """The first edits of an editor, or its first batch: what shows whether it leaves others alone."""
        return self.units[: {"single": EDITS_TOGETHER, "batch": 1}.get(self.manifest.protocol, 0)]

    def _check_first(self, name: str) -> None:
        if self._first and name in self.editors and not is_control(name):
            keys = [(name, unit.key) for unit in self.units]
            check_first_edits(self.store, keys, len(self._first), self.ignore_damage)

    def complete(self) -> None:
        """Make the folder the run's own, say what a user should know, do what is open and write the merged tables.

        Raises:
            RunFolderError: The folder belongs to another run.
            SeesawError: What the work itself raises; what is finished is kept.
        """
        for note in (*self.manifest.notes, *self.notes):
            log.warning("%s", note)
        self.store.claim()
        self.do_open()
        self.merge()

    def do_open(self) -> None:
        """Do every open block.

        Raises:
            EditError: An editor changed the model, or its first edits spoil what the model knew of other facts.
        """
        still_open = [block for block in self.blocks if self.is_open(block)]
        if not still_open:
            return
        for name in self.editors:  # of an earlier call
            self._check_first(name)
        hashes = self.hashes
        self.before.of(self._all_of(still_open[0]))  # before the bar of the edits begins
        for block in Bar(still_open, "edit, score, restore", unit="block", disable=not self.progress):
            if self.is_open(block):
                self.do(block)
        after = parameter_hashes(self.model, hash_of=checksum)
        if changed := [name for name, value in after.items() if hashes[name] != value]:
            raise EditError(
                f"after the run {len(changed)} tensors of the model differ from before, first {changed[0]!r}: an "
                "editor wrote to the model outside its delta. Its scores cannot be trusted; delete the run folder and "
                "report it."
            )

    def merge(self) -> None:
        """Write the merged tables; further seeds of controls go to a separate table.

        Raises:
            RunFolderError: A shard is missing, or belongs to another run.
        """
        keys = [[(name, unit.key) for unit in self.units_of(name)] for name in self.seeds]
        more = [(name, unit.key) for _, *seeds in self.seeds.values() for name in seeds for unit in self.units_of(name)]
        nats, _ = tolerance(read_manifest(self.out))
        states = {form: dict[Key, State]() for form in self.forms}

        def measure(form: str, key: Key, shard: Shard) -> None:
            states[form][key] = state_effects(shard, nats, people=not self.is_sequence)

        for form in reversed([*self.forms]):  # the first one last: its table says that a run is finished
            last = form == next(iter(self.forms))
            # of edits one after another the report reads the other forms
            read = partial(measure, form) if self.plan and (last or not self.is_sequence) else None
            if more:
                self.store.merge(more, table_of(CONTROL_SEEDS, "" if last else form), form, read)
            scores = table_of("scores.parquet", "" if last else form)
            facts = self.store.merge([key for own in keys for key in own], scores, form, read)
        if self.answers:
            texts = [text for unit in facts for text in unit["answers"]]
            write_table(self.out / "answers.parquet", pa.Table.from_pylist(texts, pa.schema([*ANSWERS, *self.columns])))
        rows = (row for unit in facts for row in unit["edits"])
        if self.plan:
            write_doses(self.out / "dose.json", self.editors, self.plan, states)
        write_edits(self.out / "edits.parquet", rows, nats, pa.schema([*EDITS, *self.columns]))
