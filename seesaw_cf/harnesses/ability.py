"""Tasks of lm_eval asked of a run's base and of its edited models, which share what they can; a log of each."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch
from lm_eval import simple_evaluate
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.errors import RunFolderError, StorageError, UnsupportedModelError, unknown_name
from seesaw_cf.base.types import ClozeScore
from seesaw_cf.harnesses.lm_eval_model import SeesawLM
from seesaw_cf.models.delta_files import load_delta
from seesaw_cf.models.load import load_model
from seesaw_cf.models.weights import WeightDelta
from seesaw_cf.run.manifest import read_manifest
from seesaw_cf.scoring import EditedScorer
from seesaw_cf.scoring.encode import EncodedCloze

BASE = "base"
"""Name of the model before any edit."""


@dataclass(frozen=True, slots=True)
class AbilityJob:
    """What is asked of which models.

    Attributes:
        run: A finished run that kept its edits (`--keep-deltas`).
        tasks: Names of tasks, groups or tags of lm_eval; `*` stands for any letters.
        out: Folder of the logs, one folder per model.
        include: Folders with more tasks (YAML).
        per_editor: Most edits of an editor, the first ones by name.
        limit: Most documents of a task; None = all.
        shots: Examples before each question; None = as the task says.
        device: See `load_model`.
    """

    run: Path
    tasks: tuple[str, ...]
    out: Path
    include: tuple[Path, ...] = ()
    per_editor: int = 8
    limit: int | None = None
    shots: int | None = None
    device: str = "auto"


class SharingLM(SeesawLM):
    """A model and its changed versions: what one of them is asked all are asked, in one go."""

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, changes: Mapping[str, WeightDelta]
    ) -> None:
        """Start as the unchanged model.

        Args:
            model: The base.
            tokenizer: Of the base.
            changes: Name of a changed model -> what changes it.
        """
        super().__init__(model, tokenizer, batch_size=16)
        self.changes = dict(changes)
        self.answers: dict[str, dict[EncodedCloze, ClozeScore]] = {name: {} for name in (BASE, *changes)}
        self.name = BASE

    def turn_to(self, name: str) -> None:
        """Answer as one of the models from now on."""
        self.name, self.change = name, self.changes.get(name)

    def score_encoded(self, items: Sequence[EncodedCloze]) -> list[ClozeScore]:
        """Score by what is known; what is not is asked of all models."""
        own = self.answers[self.name]
        if new := [item for item in dict.fromkeys(items) if item not in own]:
            for name, scores in self._of_all(new):
                self.answers[name] |= zip(new, scores, strict=True)
        return [own[item] for item in items]

    def _of_all(self, items: Sequence[EncodedCloze]) -> Iterator[tuple[str, list[ClozeScore]]]:
        way = "together" if self.model.dtype in (torch.bfloat16, torch.float16) else "auto"
        jobs = [(delta, items) for delta in (WeightDelta(), *self.changes.values())]
        yield from zip((BASE, *self.changes), EditedScorer(self.scorer, way).score_encoded(jobs), strict=True)


def run_ability(job: AbilityJob) -> dict[str, Path]:
    """Ask tasks of the base and of the edited models of a run, and write a log of each as lm_eval does.

    Returns:
        Name of a model -> folder of its log, the base first.

    Raises:
        RunFolderError: Not a run, or one that kept no edits.
        UnknownNameError: lm_eval has no such task.
        SeesawError: The base or an edit cannot be loaded, or a log cannot be written.
    """
    manager = _manager(job)
    tasks = _tasks(manager, job.tasks)
    folders = _edits(job)
    about = read_manifest(job.run).get("model", {})
    model, tokenizer = load_model(
        about["id"], device=job.device, dtype=about.get("dtype", "float32"), revision=about.get("revision") or None
    )
    lm = SharingLM(model, tokenizer, {name: load_delta(folder, model) for name, folder in folders.items()})
    if lm.scorer.support.layout == "plain":
        raise UnsupportedModelError(
            f"{about['id']}: {lm.scorer.support.reason}, so its edits cannot share anything. Run `python -m "
            "seesaw_cf.harnesses run --model seesaw --model_args pretrained=...,delta=FOLDER` for each."
        )
    return write_logs(lm, str(about["id"]), tasks, manager, job)


def write_logs(
    lm: SharingLM, source: str, tasks: Sequence[str], manager: TaskManager, job: AbilityJob
) -> dict[str, Path]:
    """Evaluate every model of `lm`, the base first.

    Args:
        lm: The models.
        source: Name of the base, for the logs.
        tasks: Names that `manager` knows.
        manager: lm_eval's.
        job: Where to, how much.

    Returns:
        Name -> folder of its log.

    Raises:
        StorageError: lm_eval could not write a log.
    """
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    logs = {name: job.out / name for name in (BASE, *lm.changes)}
    for name, folder in logs.items():
        lm.turn_to(name)
        tracker = EvaluationTracker(output_path=str(folder))
        results = simple_evaluate(
            lm,
            f"pretrained={source}" + (f",delta={name}" if name != BASE else ""),
            tasks=list(tasks),
            num_fewshot=job.shots,
            limit=job.limit,
            bootstrap_iters=0,  # errors are this package's, of pairs
            evaluation_tracker=tracker,
            task_manager=manager,
        )
        samples = results.pop("samples")
        tracker.save_results_aggregated(results, samples)
        for task, rows in samples.items():
            tracker.save_results_samples(task, rows)
        if len(list(folder.rglob("samples_*.jsonl"))) < len(samples):
            raise StorageError(
                f"{folder}: lm_eval could not write its log. Check the rights and the space of the disk."
            )
    return logs


def _manager(job: AbilityJob) -> TaskManager:
    """Return where tasks are looked for: among lm_eval's own, which takes seconds, only for those not in `include`."""
    folders = list(map(str, job.include))
    own = TaskManager(include_path=folders, include_defaults=False)
    return own if all(own.match_tasks([name]) for name in job.tasks) else TaskManager(include_path=folders)


def _tasks(manager: TaskManager, names: Sequence[str]) -> list[str]:
    known: dict[str, None] = {}
    for name in names:
        matches = manager.match_tasks([name])
        if not matches:
            raise unknown_name("task of lm_eval", name, manager.all_tasks)
        known |= dict.fromkeys(matches)
    return list(known)


def _edits(job: AbilityJob) -> dict[str, Path]:
    """Return the folders of the first edits of each editor: "memit-P27-00000001", or "memit" where it has one."""
    editors = sorted(folder for folder in (job.run / "deltas").glob("*") if folder.is_dir())
    if not read_manifest(job.run) or not editors:
        raise RunFolderError(f"{job.run}: expected a run with edits in deltas/. Run with --keep-deltas.")
    units = {editor.name: sorted(editor.iterdir()) for editor in editors}
    return {
        name if len(folders) == 1 else f"{name}-{folder.name}": folder
        for name, folders in units.items()
        for folder in islice(folders, job.per_editor)
    }
