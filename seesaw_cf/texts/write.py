"""Passages before and after edits, block by block: a killed run goes on where it was and ends with the same text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from seesaw_cf.base.errors import EditError
from seesaw_cf.base.retrying import Bar
from seesaw_cf.base.tables import read_table, write_table
from seesaw_cf.base.text import seed_of
from seesaw_cf.base.types import Case, TableRow
from seesaw_cf.editors.ike import chat_messages
from seesaw_cf.generation.hf import HFGenerator
from seesaw_cf.generation.types import Ask, Completion, Generator, Message, Sampling
from seesaw_cf.models.editor import Editor
from seesaw_cf.models.weights import WeightDelta, digest, parameter_hashes
from seesaw_cf.run.edits import edit_units
from seesaw_cf.run.manifest import RunManifest
from seesaw_cf.run.store import Key, Store
from seesaw_cf.texts.records import SIDES, EditedCase, PassagePrompt
from seesaw_cf.texts.tables import EDITS, PASSAGES


def with_leads(case: EditedCase) -> EditedCase:
    """Return a case whose prompts about coupled entities end with their names, and the passages begin with them.

    That is for models that continue texts and do not answer. The released code does it for all models.
    """
    prompts = [
        replace(prompt, text=f"{prompt.text}\n\n{prompt.entity.label}", lead=prompt.entity.label)
        if prompt.passage in SIDES and prompt.status == "ok"
        else prompt
        for prompt in case.prompts
    ]
    return replace(case, prompts=tuple(prompts))


def _sample_seed(seed: int, case_id: int, prompt: PassagePrompt, sample: int) -> int:
    """Return the seed of one text, the same before and after an edit: they differ by the edit and not by luck."""
    return seed_of(seed, case_id, prompt.passage, prompt.number, prompt.text, sample)


def asks_of(case: EditedCase, samples: int, seed: int) -> list[Ask]:
    """Return what is asked of a model for one case: every prompt that there is, `samples` times."""
    return [
        Ask(prompt.text, _sample_seed(seed, case.case_id, prompt, sample))
        for prompt in case.prompts
        if prompt.status == "ok"
        for sample in range(samples)
    ]


def passage_rows(
    case: EditedCase, editor: str, samples: int, seed: int, completions: Iterable[Completion]
) -> list[TableRow]:
    """Return the rows of `tables.PASSAGES` for one case.

    Args:
        case: The case.
        editor: Its name, "none" before the edit.
        samples, seed: As given to `asks_of`.
        completions: The answers to `asks_of`, in order. Prompts that do not exist keep a row with their status.
    """
    answers, rows = iter(completions), list[TableRow]()
    phase, relation = "pre" if editor == "none" else "post", case.request.relation_id
    for prompt in case.prompts:
        for sample in range(samples):
            answer = next(answers) if prompt.status == "ok" else Completion("", "", prompt.status)
            text, drawn = prompt.lead + answer.text, _sample_seed(seed, case.case_id, prompt, sample)
            values = (
                editor, case.case_id, relation, phase, sample, prompt.passage, prompt.number, prompt.entity.id,
                prompt.entity.label, prompt.text, drawn, text if answer.text.strip() else "", answer.finish,
                answer.new_tokens, answer.status,
            )  # fmt: skip
            rows.append(dict(zip(PASSAGES.names, values, strict=True)))
    return rows


@dataclass(frozen=True)
class PassageRun:
    """Everything that is written in one run.

    Attributes:
        generator: Writes; only a local model can be edited.
        editors: Name -> editor, not fitted yet; None puts the edit into the prompt, zero-shot, by LEME's instructions
            (Appendix B.2), which is all that a model behind an API takes. "none" (before any edit) is always written.
        cases: The edits and their prompts.
        manifest: What the run is made of; its identity is in every shard.
        out: The run folder.
        samples: Texts for each prompt.
        sampling: How they are drawn.
        block: Cases that are edited and written together; also what is redone after a kill.
        progress: Show a progress bar.
    """

    generator: Generator
    editors: Mapping[str, Editor | None]
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
        blocks = {
            f"{at // self.block:05d}": self.cases[at : at + self.block] for at in range(0, len(self.cases), self.block)
        }
        units = [(editor, key) for editor in ("none", *self.editors) for key in blocks]
        left = [unit for unit in units if not _is_final(store, unit)]
        fitted: dict[str, Editor] = {}
        for editor, key in Bar(left, "write passages", unit="block", disable=not self.progress):
            rows, edits = self._write(editor, blocks[key], fitted)
            store.write((editor, key), pa.Table.from_pylist(rows, PASSAGES), edits=edits)
        if left and isinstance(self.generator, HFGenerator):
            self._check_untouched(self.generator)
        edits = [row for unit in store.merge(units, "passages.parquet") for row in unit["edits"]]
        write_table(self.out / "edits.parquet", pa.Table.from_pylist(edits, EDITS))
        return read_table(self.out / "passages.parquet", PASSAGES)

    def _write(
        self, name: str, cases: Sequence[EditedCase], fitted: dict[str, Editor]
    ) -> tuple[list[TableRow], list[TableRow]]:
        """Return the passages of a block, and what became of its edits."""
        seed, edits = self.manifest.seed, list[TableRow]()
        asks = [asks_of(case, self.samples, seed) for case in cases]
        editor = self.editors.get(name)
        if editor is None:
            if name != "none":
                asks = [[_with_edit(case, ask) for ask in own] for case, own in zip(cases, asks)]
                edits = [_edit_row(name, case, "ok", None) | {"demonstrations": 0} for case in cases]
            answers = iter(self.generator.generate([ask for own in asks for ask in own], self.sampling))
            written = [[next(answers) for _ in own] for own in asks]
        else:
            generator = cast(HFGenerator, self.generator)
            model, tokenizer = generator.model, generator.tokenizer
            fitted[name] = fitted.get(name) or editor.fit(model, tokenizer)
            units = edit_units(model, tokenizer, fitted[name], [[Case(c.case_id, c.request)] for c in cases])
            edits = [_edit_row(name, case, unit.status[case.case_id], unit.delta) for case, unit in zip(cases, units)]
            jobs = [(unit.delta, own) for unit, own in zip(units, asks, strict=True) if unit.delta is not None]
            texts = iter(generator.generate_each(jobs, self.sampling))
            written = [
                [Completion("", "", f"not edited: {edit['status']}")] * len(own) if unit.delta is None else next(texts)
                for edit, unit, own in zip(edits, units, asks, strict=True)
            ]
        block = zip(cases, written, strict=True)
        return [row for case, own in block for row in passage_rows(case, name, self.samples, seed, own)], edits

    def _check_untouched(self, generator: HFGenerator) -> None:
        if digest(parameter_hashes(generator.model)) != self.manifest.model["weights"]:
            raise EditError(
                "after the run the model's weights differ from before: an editor wrote to the model outside its delta. "
                f"The passages cannot be trusted; delete {self.out} and report it."
            )


def _is_final(store: Store, key: Key) -> bool:
    """Return whether a unit is finished, and none of its rows waits for a server that gave no answer."""
    if not store.has(key):
        return False
    statuses = store.read(key).table["status"].unique().to_pylist()
    return not any(status.startswith("no answer") for status in statuses)


def _with_edit(case: EditedCase, ask: Ask) -> Ask:
    return replace(ask, prompt=tuple(Message(**turn) for turn in chat_messages([case.request], str(ask.prompt))))


def _edit_row(editor: str, case: EditedCase, status: str, delta: WeightDelta | None) -> TableRow:
    """Return a row of `tables.EDITS`."""
    norms = list(delta.norms().values()) if delta is not None else []
    diagnostics: Any = (delta.meta.get("diagnostics") if delta else None) or [{}]
    shown = diagnostics[0].get("demonstrations")  # worked examples in an in-context edit, by kind
    values = (
        editor, case.case_id, case.request.relation_id, case.request.subject, case.request.target_new.label,
        case.request.target_true.label, status, math.hypot(*norms) if norms else None,
        sum(shown.values()) if isinstance(shown, dict) else None, case.dataset,
    )  # fmt: skip
    return dict(zip(EDITS.names, values, strict=True))
