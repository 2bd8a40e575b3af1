"""What a run needs, asked before weights are loaded or a text is scored.

The model's structure comes from its config alone (`seesaw_cf.models.load.outline_model`), so that layers, sizes and the
texts that editors need are known in seconds.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import PreTrainedModel

from seesaw_cf.base.errors import EditError, StorageError, UnsupportedModelError
from seesaw_cf.base.files import cache_folder, size
from seesaw_cf.base.types import Case
from seesaw_cf.editors.control_names import is_control, split_control
from seesaw_cf.editors.locate.method import LocateThenEdit
from seesaw_cf.editors.locate.norms import check_norms
from seesaw_cf.models.architectures import model_parts
from seesaw_cf.models.editor import Editor, HasLayers, HasMoments, ReadsTexts, WrapsEditor
from seesaw_cf.models.memory import physical_memory
from seesaw_cf.records.checks import has_special_token
from seesaw_cf.records.groups import AXES
from seesaw_cf.records.load import unread_keys
from seesaw_cf.run.manifest import check_folder
from seesaw_cf.run.questions import count_questions, count_spaced
from seesaw_cf.run.units import units

_ROW_BYTES = 120  # bytes on disk of a score row, in its shard and in the merged table: twice the 50 to 70 of the sample
_SUM_BYTES, _MOMENT_BYTES = 8, 4  # bytes of an entry of a second moment, while it is summed and afterwards
_WORTH_SAYING = 2**28  # sizes below are not worth a line
_DENSE = ("ft",)  # editors whose deltas are full matrices


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A run before its model is loaded.

    Attributes:
        outline: The model without weights; None when its class cannot be built so.
        dtype: Of the weights.
        on_cpu: The weights will be in the machine's own memory.
        editors: Name -> editor, not fitted.
        texts: How many there are for editors; None where there are none.
        cases: What is edited and asked.
        batch: Cases of a relation are edited together.
        out: The run folder.
        keep_deltas: Every edit is saved.
        checkpoints: Every edit is written as a separate model.
        external: There are models changed elsewhere.
    """

    outline: PreTrainedModel | None
    dtype: torch.dtype
    on_cpu: bool
    editors: Mapping[str, Editor]
    texts: int | None
    cases: Sequence[Case]
    batch: bool
    out: Path
    keep_deltas: bool = False
    checkpoints: bool = False
    external: bool = False


def check_places(out: Path) -> None:
    """Refuse a run folder or a cache folder that cannot be written.

    Raises:
        RunFolderError: `out` is a file, or holds something else.
        StorageError: No right to write there; the message names the variable or option that chooses another place.
    """
    check_folder(out)
    try:
        cache = cache_folder()
    except RuntimeError as error:  # no home folder
        raise StorageError(f"no folder for the cache ({error}). Set SEESAW_CF_CACHE to a folder.") from error
    for folder, remedy in ((out, "Choose another with --out."), (cache, "Set SEESAW_CF_CACHE to another folder.")):
        there = _existing(folder)
        if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
            raise StorageError(f"{folder} cannot be written (no right to write in {there}). {remedy}")


def check_plan(plan: RunPlan) -> list[str]:
    """Run every check, in order.

    Returns:
        Sentences that the user should read before a long run: sizes, and what the report will miss.

    Raises:
        EditError: An editor needs texts and there are none, or a control cannot be made.
        UnsupportedModelError: No row for the architecture, a missing layer, a norm behind the MLP through which an
            editor cannot write, or a model larger than the memory.
        StorageError: The disk is too small.
    """
    _check_controls(plan)
    check_texts(plan.editors, plan.texts is not None)
    _check_checkpoints(plan)
    _check_layers(plan)
    return [*_memory(plan), *_disk(plan)]


def check_texts(editors: Mapping[str, Editor], there: bool) -> None:
    """Refuse editors that learn from texts where there are none.

    Raises:
        EditError: Names the editors, and tells how texts are given.
    """
    configs = {name: editor.config for name, editor in _methods(editors).items()}
    needy = [name for name, config in configs.items() if isinstance(config, ReadsTexts) and config.needs_texts]
    if needy and not there:
        raise EditError(
            f"{', '.join(needy)}: texts are needed (second moments of the edited layers, or training), got none. Give "
            "some that the model knows with --corpus: a text file with one text a line, thousands of lines."
        )


def _check_controls(plan: RunPlan) -> None:
    if ("random", "ike") in map(split_control, plan.editors):
        raise EditError(
            "random(ike): in-context editing changes no weights, so there is no norm that a random change could "
            "match. Use the controls identity or unrelated for ike."
        )


def _check_checkpoints(plan: RunPlan) -> None:
    if plan.checkpoints and "ike" in plan.editors:
        raise EditError(
            "--checkpoints: ike puts a text before every prompt and changes no weights, so there is no checkpoint to "
            "write. Leave out --checkpoints or --editor ike."
        )
    if plan.checkpoints and not plan.editors:
        raise EditError(
            "--checkpoints: the models of --changed are checkpoints already, and this run makes no edits. Leave it "
            "out, or name an --editor."
        )


def _check_layers(plan: RunPlan) -> None:
    for editor in _methods(plan.editors).values():
        if plan.outline is not None and isinstance(config := editor.config, HasLayers):
            parts = model_parts(plan.outline, config.architecture)
            parts.check_layers(config.layers, type(config).__name__)
            if isinstance(editor, LocateThenEdit):
                check_norms(parts, config.layers, type(editor).__name__)


def _memory(plan: RunPlan) -> list[str]:
    if plan.outline is None:
        return []
    weights = weight_bytes(plan)
    sums, layers = moment_bytes(plan)
    if plan.on_cpu and weights + sums > (limit := physical_memory()):
        raise UnsupportedModelError(
            f"the weights take {size(weights)} in {str(plan.dtype).removeprefix('torch.')} and the sums of the second "
            f"moments {size(sums)}, this machine has {size(limit)}. Use a smaller model, --dtype bfloat16, fewer "
            "layers (--editor-config) or a machine with more memory."
        )
    if sums < _WORTH_SAYING:
        return []
    return [
        f"Second moments of {layers} layers take {size(sums)} of memory while they are summed and "
        f"{size(sums * _MOMENT_BYTES // _SUM_BYTES)} afterwards, and {size(_moments_on_disk(plan))} below "
        f"{cache_folder()}; they are computed once."
    ]


def _disk(plan: RunPlan) -> list[str]:
    amounts = {plan.out: disk_bytes(plan)}
    amounts[cache_folder()] = _moments_on_disk(plan)
    for folder, amount in amounts.items():
        free = shutil.disk_usage(_existing(folder)).free
        if amount > free:
            remedy = "--out" if folder == plan.out else "SEESAW_CF_CACHE"
            options = {"--keep-deltas": plan.keep_deltas, "--checkpoints": plan.checkpoints}
            less = "".join(f", or leave out {option}" for option, is_on in options.items() if is_on)
            raise StorageError(
                f"{folder}: about {size(amount)} will be written, {size(free)} are free. Free some space, choose "
                f"another disk ({remedy}){less}."
            )
    return [
        f"About {size(amount)} will be written to {folder}."
        for folder, amount in amounts.items()
        if amount > _WORTH_SAYING
    ]


def disk_bytes(plan: RunPlan) -> int:
    """Return the bytes that a run writes into its folder: scores, and edits where they are kept."""
    rows = 2 * (len(plan.editors) + plan.external) * sum(map(count_questions, plan.cases))
    edits = (delta_bytes(plan) if plan.keep_deltas else 0) + (checkpoint_bytes(plan) if plan.checkpoints else 0)
    return rows * _ROW_BYTES + edits


_TAG = "`seesaw-cf tag RECORDS --from wikidata --out DIR`"


def data_notes(cases: Sequence[Case]) -> list[str]:
    """Say what records lack, what a report cannot show without it and what adds it, and where white space is odd.

    Args:
        cases: The run's.

    Returns:
        Sentences; none for records with everything that was asked of them.
    """
    people = [prompt for case in cases for prompt in case.attribute_prompts]
    lacking = [axis for axis in AXES if not any(getattr(prompt, axis) for prompt in people)]
    other = [case for case in cases if case.effect_relation_id not in (None, case.request.relation_id)]
    complete = [case for case in other if case.effect_prompts and case.candidates]
    notes = []
    if not people and not other:
        notes.append(
            f"None of the {len(cases):,} records asks about other people or another property: the report will have "
            "neither groups nor verdicts. `seesaw-cf build --edits FILE` makes such prompts."
        )
    if people and lacking:
        notes.append(
            f"None of the {len(people):,} prompts about other people has a recorded {' or '.join(lacking)}: effects "
            f"are shown for 'unknown' only there, without groups and verdicts. {_TAG} adds what a source records."
        )
    if other and len(complete) < len(other):
        notes.append(
            f"{len(other) - len(complete):,} of {len(other):,} cross-property cases have no candidates or no prompts "
            "about the other property: their answers are not compared, and the cross-property accuracy lacks them. "
            f"{_TAG} adds both where the edited person is found."
        )
    if silent := sum(not case.gold for case in complete):
        notes.append(
            f"{silent:,} of {len(complete):,} cross-property cases do not say which candidate is true: they are left "
            f"out of the cross-property accuracy. {_TAG} adds the true one where a source knows it."
        )
    if odd := sum(map(count_spaced, cases)):
        notes.append(
            f"{odd:,} of {sum(map(count_questions, cases)):,} prompts with an answer have white space at an end or two "
            "spaces in a row: to a model that is another text, by up to 20 nats. `seesaw-cf import` flags such records."
        )
    if special := sum(map(has_special_token, cases)):
        notes.append(
            f"{special:,} of {len(cases):,} records hold text such as <s> or </s> in a prompt or answer, which "
            "tokenizers read as their own signs: the model reads two of them, or an end. Remove it from the records."
        )
    for key, number in Counter(key for case in cases for key in unread_keys(case)).items():
        notes.append(f"The key {key!r} of {number:,} of {len(cases):,} records is not read: nothing of it is asked.")
    return notes


def moment_bytes(plan: RunPlan) -> tuple[int, int]:
    """Return the bytes of the largest editor's second-moment sums, and its layers; 0 for those that are named."""
    sizes = [(0, 0)]
    for editor in _methods(plan.editors).values():
        config = editor.config
        if plan.outline is not None and isinstance(config, HasMoments) and not getattr(config, "moments", None):
            parts, layers = model_parts(plan.outline, config.architecture), config.moment_layers
            sizes.append((sum(_SUM_BYTES * parts.key_size(layer) ** 2 for layer in layers), len(layers)))
    return max(sizes)


def _moments_on_disk(plan: RunPlan) -> int:
    """Return the bytes of a checkpoint and of the moments."""
    sums = moment_bytes(plan)[0]
    return sums + sums * _MOMENT_BYTES // _SUM_BYTES


def _methods(editors: Mapping[str, Editor]) -> dict[str, Editor]:
    """Return the editors, with controls replaced by what they wrap."""
    return {split_control(name)[1] or name: _method(editor) for name, editor in editors.items()}


def _method(editor: Editor) -> Editor:
    """Return the editor itself, or the one that a control wraps."""
    return editor.inner or editor if isinstance(editor, WrapsEditor) else editor


def delta_bytes(plan: RunPlan) -> int:
    """Return the bytes of all saved deltas: full matrices, or two factors with a rank of one for each request."""
    total, requests = 0, len({case.request for case in plan.cases})
    for name, editor in plan.editors.items():
        config, dense = _method(editor).config, (split_control(name)[1] or name) in _DENSE
        if plan.outline is not None and isinstance(config, HasLayers) and config.layers:
            parts = model_parts(plan.outline, config.architecture)
            for rows, columns in (parts.weight(layer).shape for layer in config.layers):
                each = rows * columns if dense else rows + columns
                total += 4 * each * (1 if plan.batch and dense else requests)
    return total


def checkpoint_bytes(plan: RunPlan) -> int:
    """Return bytes of all edits as separate models, without controls."""
    editors = sum(not is_control(name) for name in plan.editors)
    edits = len(units(plan.cases, "batch" if plan.batch else "single"))
    return editors * edits * weight_bytes(plan)


def weight_bytes(plan: RunPlan) -> int:
    """Return bytes of the model's weights."""
    return sum(p.numel() for p in plan.outline.parameters()) * plan.dtype.itemsize if plan.outline is not None else 0


def _existing(folder: Path) -> Path:
    """Return the folder itself, or the nearest above it that exists."""
    path = folder.absolute()
    while not path.exists() and path != path.parent:
        path = path.parent
    return path
