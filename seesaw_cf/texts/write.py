"""Passages before and after edits, block by block: a killed run goes on where it was and ends with the same text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from seesaw_cf.base.errors import EditError
from seesaw_cf.base.retrying import Bar
from seesaw_cf.base.tables import read_table, write_table
from seesaw_cf.base.types import Case
from seesaw_cf.editors.ike import chat_messages
from seesaw_cf.generation.hf import HFGenerator
from seesaw_cf.generation.types import Ask, Completion, Generator, Message, Sampling
from seesaw_cf.models.editor import Editor
from seesaw_cf.models.weights import WeightDelta, digest, parameter_hashes
from seesaw_cf.run.edits import edit_units
from seesaw_cf.run.manifest import RunManifest
from seesaw_cf.run.store import Key, Store
from seesaw_cf.texts.prompts import EditedCase, asks_of, passage_rows
from seesaw_cf.texts.tables import EDITS, PASSAGES, EditRow

Written = list[list[Completion]]


class Writer(Protocol):
    """A model that can be asked before and after edits."""

    def before(self, asks: Sequence[Sequence[Ask]], sampling: Sampling) -> Written:
        """Return completions of the unedited model."""

    def after(
        self, editor: str, cases: Sequence[EditedCase], asks: Sequence[Sequence[Ask]], sampling: Sampling
    ) -> tuple[Written, list[EditRow]]:
        """Return completions of each case's own edited model, and rows of `EDITS`."""


@dataclass(frozen=True)
class LocalWriter:
    """A transformers model; the edits of a block are made together and written with in one batch.

    Attributes:
        generator: Writes.
        editors: Name -> editor, not fitted yet.
        fitted: Those that were used.
    """

    generator: HFGenerator
    editors: Mapping[str, Editor]
    fitted: dict[str, Editor] = field(default_factory=dict)

    def before(self, asks: Sequence[Sequence[Ask]], sampling: Sampling) -> Written:
        """Return completions of the unedited model."""
        return _completions(self.generator, asks, sampling)

    def after(
        self, editor: str, cases: Sequence[EditedCase], asks: Sequence[Sequence[Ask]], sampling: Sampling
    ) -> tuple[Written, list[EditRow]]:
        """Return completions of each case's own edited model; an edit that is refused leaves a status and no text."""
        model, tokenizer = self.generator.model, self.generator.tokenizer
        if editor not in self.fitted:
            self.fitted[editor] = self.editors[editor].fit(model, tokenizer)
        edits = edit_units(model, tokenizer, self.fitted[editor], [[Case(c.case_id, c.request)] for c in cases])
        jobs = [(edit.delta, own) for edit, own in zip(edits, asks, strict=True) if edit.delta is not None]
        texts = iter(self.generator.generate_each(jobs, sampling))
        written, rows = [], []
        for case, edit, own in zip(cases, edits, asks, strict=True):
            status = edit.status[case.case_id]
            rows.append(_edit_row(editor, case, status, _norm(edit.delta), _demonstrations(edit.delta)))
            refused = [Completion("", "", f"not edited: {status}") for _ in own]
            written.append(next(texts) if edit.delta is not None else refused)
        return written, rows


@dataclass(frozen=True)
class ApiWriter:
    """A model behind an API: only edited in its prompt, by LEME's instructions (Appendix B.2), zero-shot.

    Attributes:
        generator: Asks the API.
    """

    generator: Generator

    def before(self, asks: Sequence[Sequence[Ask]], sampling: Sampling) -> Written:
        """Return completions of the prompts as they are."""
        return _completions(self.generator, asks, sampling)

    def after(
        self, editor: str, cases: Sequence[EditedCase], asks: Sequence[Sequence[Ask]], sampling: Sampling
    ) -> tuple[Written, list[EditRow]]:
        """Return completions of the prompts with the edit in them.

        Raises:
            EditError: Another editor than "ike": the weights are not here.
        """
        if editor != "ike":
            raise EditError(
                f"{self.generator.name}: editor {editor!r} changes weights, which an API does not give. Use ike."
            )
        prompts = [[_with_edit(case, ask) for ask in own] for case, own in zip(cases, asks, strict=True)]
        return self.before(prompts, sampling), [_edit_row(editor, case, "ok", None, 0) for case in cases]


def _with_edit(case: EditedCase, ask: Ask) -> Ask:
    return replace(ask, prompt=tuple(Message(**turn) for turn in chat_messages([case.request], str(ask.prompt))))


def _completions(generator: Generator, asks: Sequence[Sequence[Ask]], sampling: Sampling) -> Written:
    answers = iter(generator.generate([ask for own in asks for ask in own], sampling))
    return [[next(answers) for _ in own] for own in asks]


def _norm(delta: WeightDelta | None) -> float | None:
    norms = delta.norms().values() if delta is not None else ()
    return math.sqrt(sum(norm**2 for norm in norms)) if norms else None


def _demonstrations(delta: WeightDelta | None) -> int | None:
    """Return how many worked examples are in an in-context edit."""
    diagnostics = (delta.meta.get("diagnostics") if delta else None) or ()
    counts = [entry.get("demonstrations") for entry in diagnostics]
    return sum(counts[0].values()) if counts and isinstance(counts[0], dict) else None


def _edit_row(editor: str, case: EditedCase, status: str, norm: float | None, demonstrations: int | None) -> EditRow:
    request = case.request
    return {
        "editor": editor,
        "case_id": case.case_id,
        "relation": request.relation_id,
        "subject": request.subject,
        "target_new": request.target_new.label,
        "target_true": request.target_true.label,
        "status": status,
        "delta_norm": norm,
        "demonstrations": demonstrations,
        "dataset": case.dataset,
    }


def _is_final(store: Store, key: Key) -> bool:
    """Return whether a unit is finished, and none of its rows waits for a server that gave no answer."""
    if not store.has(key):
        return False
    statuses = store.read(key).table["status"].unique().to_pylist()
    return not any(status.startswith("no answer") for status in statuses)


@dataclass(frozen=True)
class PassageRun:
    """Everything that is written in one run.

    Attributes:
        writer: The model.
        editors: Names of editors; "none" (before any edit) is always written, first.
        cases: The edits and their prompts.
        manifest: What the run is made of; its identity is in every shard.
        out: The run folder.
        samples: Texts for each prompt.
        sampling: How they are drawn.
        block: Cases that are edited and written together; also what is redone after a kill.
        progress: Show a progress bar.
    """

    writer: Writer
    editors: tuple[str, ...]
    cases: Sequence[EditedCase]
    manifest: RunManifest
    out: Path
    samples: int
    sampling: Sampling
    block: int = 8
    progress: bool = True

    def run(self) -> pa.Table:
        """Write what is not written yet, merge it to `passages.parquet` and `edits.parquet`.

        Returns:
            `tables.PASSAGES`.

        Raises:
            RunFolderError: The folder or a shard belongs to another run.
            EditError: An editor changed the model's weights outside its delta.
            StorageError: The disk is full; finished blocks are kept.
        """
        store = Store(self.out, self.manifest, PASSAGES)
        store.claim()
        tasks = [
            (editor, f"{start // self.block:05d}", self.cases[start : start + self.block])
            for editor in ("none", *self.editors)
            for start in range(0, len(self.cases), self.block)
        ]
        left = [task for task in tasks if not _is_final(store, task[:2])]
        for editor, key, cases in Bar(left, "write passages", unit="block", disable=not self.progress):
            self._write(store, editor, key, cases)
        if left:
            self._check_untouched()
        facts = store.merge([task[:2] for task in tasks], "passages.parquet")
        edits = [row for unit in facts for row in unit["edits"]]
        write_table(self.out / "edits.parquet", pa.Table.from_pylist(edits, EDITS))
        return read_table(self.out / "passages.parquet", PASSAGES)

    def _write(self, store: Store, editor: str, key: str, cases: Sequence[EditedCase]) -> None:
        seed = self.manifest.seed
        asks = [asks_of(case, self.samples, seed) for case in cases]
        edits: list[EditRow] = []
        if editor == "none":
            written = self.writer.before(asks, self.sampling)
        else:
            written, edits = self.writer.after(editor, cases, asks, self.sampling)
        rows = [
            row
            for case, completions in zip(cases, written, strict=True)
            for row in passage_rows(case, editor, self.samples, seed, completions)
        ]
        store.write((editor, key), pa.Table.from_pylist(rows, PASSAGES), edits=edits)

    def _check_untouched(self) -> None:
        if not isinstance(self.writer, LocalWriter):
            return
        if digest(parameter_hashes(self.writer.generator.model)) != self.manifest.model["weights"]:
            raise EditError(
                "after the run the model's weights differ from before: an editor wrote to the model outside its delta. "
                f"The passages cannot be trusted; delete {self.out} and report it."
            )
