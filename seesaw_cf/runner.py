"""The main job: score, edit, score again, restore; killed at any point, it continues where it was.

A run folder holds `manifest.json`, one shard per finished unit of work, and at the end `scores.parquet` and
`edits.parquet`, which are the same bytes whether or not the run was interrupted.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tqdm import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.errors import EditError, RecordError, unknown_name
from seesaw_cf.files import safe_name
from seesaw_cf.manifest import RunManifest, claim_folder
from seesaw_cf.outcome import Edited, Outcome, edit_units, score_edit
from seesaw_cf.prescores import blocks, pre_scores
from seesaw_cf.questions import Question, questions, rows_to_table, score_row
from seesaw_cf.scoring import Scorer
from seesaw_cf.shards import merge_shards, shard_path, write_shard
from seesaw_cf.types import Case, Cloze, ClozeScore
from seesaw_cf.weights import Editor, WeightDelta, base_facts, parameter_hashes

__all__ = ["PROTOCOLS", "Unit", "run_cases", "units"]

log = logging.getLogger(__name__)

PROTOCOLS = ("single", "batch")
_EDITS_TOGETHER = 8  # units whose edits are made in one go


@dataclass(frozen=True, slots=True)
class Unit:
    """Cases that are edited together: one case, or all cases of a relation."""

    key: str
    cases: tuple[Case, ...]


def units(cases: Sequence[Case], protocol: str) -> list[Unit]:
    """Cuts cases into units.

    Args:
        cases: In the order they were read.
        protocol: "single": edit one case, score, restore. "batch": all cases with the same edit and effect relation
            are edited together, as in the authors' code (PEER_FACTS: one batch per property file).

    Raises:
        UnknownNameError: Another protocol.
        RecordError: Two cases share a number (and effect relation) in the "single" protocol.
    """
    if protocol not in PROTOCOLS:
        raise unknown_name("protocol", protocol, PROTOCOLS)
    groups: dict[str, list[Case]] = {}
    for case in cases:
        name = "-".join(filter(None, (case.request.relation_id, case.effect_relation_id)))
        key = name if protocol == "batch" else f"{name}-{case.case_id:08d}"
        groups.setdefault(key, []).append(case)
    shared = [key for key, group in groups.items() if protocol == "single" and len(group) > 1]
    if shared:
        raise RecordError(
            f"{len(shared)} case numbers occur twice, first {shared[0]}; expected unique case_id per relation. "
            "Renumber the cases or run the files one at a time."
        )
    return [Unit(key, tuple(group)) for key, group in groups.items()]


def run_cases(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    scorer: Scorer,
    editors: Mapping[str, Editor],
    cases: Sequence[Case],
    manifest: RunManifest,
    out: Path,
    *,
    keep_deltas: bool = False,
    progress: bool = True,
) -> None:
    """Runs every editor over every case and writes the merged tables.

    Args:
        model: In eval mode; its weights are the same bytes afterwards.
        tokenizer: The model's tokenizer.
        scorer: Scores with `model`.
        editors: Name -> editor, not yet fitted.
        cases: What to edit and ask.
        manifest: What the run is made of; decides whether `out` may be continued.
        out: The run folder.
        keep_deltas: Also save each edit as `deltas/EDITOR/UNIT/`, for sharing; units finished earlier are not redone.
        progress: Show progress bars with ETA on stderr.

    Raises:
        RunFolderError: `out` belongs to another run.
        EditError: An editor changed the model's weights or they could not be restored.
        StorageError: The disk is full; finished units are kept.
    """
    plan = units(cases, manifest.protocol)
    claim_folder(out, manifest)
    asked = {unit.key: [(case, list(questions(case))) for case in unit.cases] for unit in plan}
    open_units = {name: [unit for unit in plan if not shard_path(out, name, unit.key).exists()] for name in editors}
    if any(open_units.values()):
        before = _before(scorer, asked, manifest, progress)
        hashes = parameter_hashes(model)
        for name, editor in editors.items():
            if not open_units[name]:
                continue
            fitted = editor.fit(model, tokenizer)
            edits = _edits(model, tokenizer, fitted, plan, open_units[name])
            bar = tqdm(edits, f"{name}: edit, score, restore", len(open_units[name]), unit="edit", disable=not progress)
            for unit, edited in bar:
                outcome = score_edit(model, scorer, edited, asked[unit.key], hashes)
                if keep_deltas and outcome.delta is not None:
                    _keep_delta(out / "deltas" / safe_name(name) / safe_name(unit.key), outcome.delta, model, manifest)
                _save(out, name, unit, asked[unit.key], before, outcome)
        _check_untouched(model, hashes)
    merge_shards(out, [(name, unit.key) for name in editors for unit in plan])


def _edits(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    editor: Editor,
    plan: Sequence[Unit],
    wanted: Sequence[Unit],
) -> Iterator[tuple[Unit, Edited]]:
    """The edits of the wanted units, made in blocks of the whole plan so that a resumed run makes the same ones."""
    keys = {unit.key for unit in wanted}
    size = _EDITS_TOGETHER if hasattr(editor, "edit_each") else 1
    for start in range(0, len(plan), size):
        block = plan[start : start + size]
        if keys.isdisjoint(unit.key for unit in block):
            continue
        edits = edit_units(model, tokenizer, editor, [unit.cases for unit in block])
        yield from ((unit, edited) for unit, edited in zip(block, edits, strict=True) if unit.key in keys)


def _before(
    scorer: Scorer, asked: Mapping[str, list[tuple[Case, list[Question]]]], manifest: RunManifest, progress: bool
) -> dict[Cloze, ClozeScore]:
    parts = blocks(q.cloze for rows in asked.values() for _, qs in rows for q in qs)
    weights = {key: manifest.model.get(key) for key in ("fingerprint", "tokenizer", "dtype")}
    identity = {"model": weights, "scoring": manifest.scoring}
    scores: dict[Cloze, ClozeScore] = {}
    for block in tqdm(
        pre_scores(scorer, parts, identity),
        total=len(parts),
        desc="before any edit: score",
        unit="block",
        disable=not progress,
    ):
        scores.update(block)
    return scores


def _save(
    out: Path,
    name: str,
    unit: Unit,
    asked: list[tuple[Case, list[Question]]],
    before: Mapping[Cloze, ClozeScore],
    outcome: Outcome,
) -> None:
    def rows() -> Iterator[tuple[object, ...]]:
        for case, qs in asked:
            for q in qs:
                yield score_row(name, case, q, "pre", before[q.cloze])
                yield score_row(name, case, q, "post", outcome.scores[q.cloze])

    write_shard(out, name, unit.key, rows_to_table(list(rows())), outcome.edit_rows(name, asked, before))


def _keep_delta(folder: Path, delta: WeightDelta, model: PreTrainedModel, manifest: RunManifest) -> None:
    """Saves an edit; what a killed run left of this unit is made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    known = {"model_id": manifest.model.get("id"), "fingerprint": manifest.model.get("fingerprint")}
    replace(delta, meta={**delta.meta, "base": {**base_facts(model, delta), **known}}).save(folder)


def _check_untouched(model: PreTrainedModel, hashes: Mapping[str, str]) -> None:
    changed = [name for name, value in parameter_hashes(model).items() if hashes[name] != value]
    if changed:
        raise EditError(
            f"after the run {len(changed)} tensors of the model differ from before, first {changed[0]!r}: an editor "
            "wrote to the model outside its delta. Its scores cannot be trusted; delete the run folder and report it."
        )
