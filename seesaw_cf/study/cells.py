"""The cells of a study: one editor with its controls, on one model, one record set and one protocol; each is a run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import RecordError, RunFolderError, StorageError, unknown_name
from seesaw_cf.base.files import create_text, write_text
from seesaw_cf.base.tables import RESULTS
from seesaw_cf.base.text import read_json, read_text
from seesaw_cf.models.editor import Settings
from seesaw_cf.run.jobs import Job
from seesaw_cf.run.manifest import differences
from seesaw_cf.study.declared import Base, RecordSet, Study

STUDY = "study.json"
_GROWS = ("models", "editors", "records", "protocols")


@dataclass(frozen=True, slots=True)
class StudyCell:
    """A run of a study.

    Attributes:
        name: "MODEL/RECORDS/PROTOCOL/EDITOR".
        base, records: What the first two stand for.
        settings: Of the editor, where they differ from the preset.
    """

    name: str
    base: Base
    records: RecordSet
    settings: Settings

    @property
    def parts(self) -> tuple[str, str, str, str]:
        """Names of model, records, protocol and editor."""
        model, records, protocol, editor = self.name.split("/")
        return model, records, protocol, editor

    def folder(self, out: Path) -> Path:
        """Return the run folder."""
        return out / "cells" / self.name


Record = dict[str, Any]
"""Content of `study.json`: part -> name -> what it stands for."""


def cells_of(study: Study) -> list[StudyCell]:
    """Return every cell, in the order of the file."""
    return [
        StudyCell(f"{model}/{records}/{protocol}/{editor}", base, record_set, settings)
        for model, base in study.models.items()
        for records, record_set in study.records.items()
        for protocol in study.protocols
        for editor, settings in study.editors.items()
    ]


def chosen(cells: Sequence[StudyCell], patterns: Sequence[str]) -> list[StudyCell]:
    """Return the cells with names that match; all without a pattern.

    Args:
        cells: Of the study.
        patterns: Names; `*` stands for anything, as in "tiny/*".

    Raises:
        UnknownNameError: A pattern that matches no cell.
    """
    for pattern in patterns:
        if not any(fnmatchcase(cell.name, pattern) for cell in cells):
            raise unknown_name("cell", pattern, [cell.name for cell in cells])
    return [cell for cell in cells if not patterns or any(fnmatchcase(cell.name, wildcard) for wildcard in patterns)]


def claim_study(out: Path, study: Study) -> None:
    """Make a folder this study's own, or check that it is; a study may grow by models, editors, records, protocols.

    Raises:
        RunFolderError: The folder holds another study, or one with entries missing here. Every difference is named.
        StorageError: The folder cannot be written.
    """
    file = out / STUDY
    text = json.dumps(study.record(), indent=1, sort_keys=True) + "\n"
    record: Record = json.loads(text)
    if not file.exists():
        others = out.is_file() or (out.is_dir() and any(not part.name.startswith(".") for part in out.iterdir()))
        if others and not file.exists():  # another process of this study may have made it meanwhile
            raise RunFolderError(
                f"{out} is not empty and has no {STUDY}, so it is no study. Choose another with --out."
            )
        if create_text(file, text):
            return
    stored = read_json(file, error=RunFolderError)
    expected = {
        part: {name: own for name, own in values.items() if name in stored.get(part, ())} if part in _GROWS else values
        for part, values in record.items()
    }
    if changed := [
        f"{place}: the folder has {shown(old)}, this file {shown(new)}"
        for place, old, new in differences(stored, expected)
    ]:
        raise RunFolderError(
            f"{out} belongs to another study:\n  " + "\n  ".join(changed) + "\nA study may grow, so add to its file "
            "and change nothing in it; or choose a new folder with --out."
        )
    if stored != record:
        write_text(file, text)


def job_of(cell: StudyCell, study: Study, out: Path) -> Job:
    """Return the job of a cell, and write its editor's settings next to the cells.

    Raises:
        RecordError: The model's file of settings is damaged.
        StorageError: It cannot be read, or the settings cannot be written.
    """
    _, _, protocol, editor = cell.parts
    base, records = cell.base, cell.records
    more: dict[str, Any] = {} if base.corpus_limit is None else {"corpus_limit": base.corpus_limit}
    return Job(
        base.model,
        editors=(editor,),
        controls=study.controls,
        data=records.data,
        configs=records.configs,
        limit=records.limit,
        protocol=protocol,
        editor_config=_settings(cell, out),
        corpus=base.corpus,
        moments=base.moments if _takes_moments(editor) else None,
        revision=base.revision,
        dtype=base.dtype,
        device=base.device,
        ignore_damage=True,  # a study measures every cell it declares, also of an editor that breaks the model
        **more,
        **study.options,
    )


def _takes_moments(editor: str) -> bool:
    from seesaw_cf.editors import load_editor

    return "moments" in getattr(load_editor(editor).config_class, "__dataclass_fields__", ())


def _settings(cell: StudyCell, out: Path) -> Path | None:
    """Write the cell's settings, of the model's file, then of the study; return the file, None without any."""
    editor = cell.parts[-1]
    file_settings = (
        read_json(Path(cell.base.settings), expected='{"memit": {"layers": [3, 4]}}') if cell.base.settings else {}
    )
    own = file_settings.get(editor, {})
    if not isinstance(own, Mapping):
        raise RecordError(f"{cell.base.settings}: {editor!r} is {shown(own)}, expected an object of settings.")
    settings = {**own, **cell.settings}
    if not settings:
        return None
    file = out / "settings" / f"{cell.name}.json"
    write_text(file, json.dumps({editor: settings}, indent=1) + "\n")
    return file


def is_finished(cell: StudyCell, out: Path) -> bool:
    """Return whether the cell's tables are written; `edits.parquet` is the last."""
    folder = cell.folder(out)
    return all((folder / name).exists() for name in RESULTS)


def failure(cell: StudyCell, out: Path) -> str:
    """Return why the cell failed when it was last tried; "" when it did not, or was not tried."""
    try:
        return read_text(_failed(cell, out)).strip()
    except StorageError:
        return ""


def note_failure(cell: StudyCell, out: Path, message: str) -> None:
    """Keep why a cell failed, for the report; "" forgets it."""
    if message:
        write_text(_failed(cell, out), message + "\n")
    else:
        _failed(cell, out).unlink(missing_ok=True)


def _failed(cell: StudyCell, out: Path) -> Path:
    return out / "failed" / f"{cell.name}.txt"
