"""A finished run of `seesaw-cf leme run`: its manifest, its tables, and the records that its texts are about.

The modules behind it take torch with them, so they are imported when a part is read: pages are served without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from seesaw_cf.base.errors import RunFolderError
from seesaw_cf.base.tables import read_table
from seesaw_cf.base.text import read_json
from seesaw_cf.texts.tables import ANNOTATIONS, PASSAGES, RATINGS
from seesaw_cf.texts.write.passages import LongformRecord, coupled_records, records_of_run

if TYPE_CHECKING:
    from seesaw_cf.texts.rate.survey import SurveySample


@dataclass(frozen=True)
class RunTexts:
    """A run, each part read when it is first asked for.

    Attributes:
        folder: Its folder.
    """

    folder: Path

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """`manifest.json`.

        Raises:
            RunFolderError: It is missing or damaged.
        """
        return finished_manifest(self.folder, "passages.parquet", "leme run")

    @cached_property
    def passages(self) -> pa.Table:
        """`tables.PASSAGES`."""
        return read_table(self.folder / "passages.parquet", PASSAGES)

    @cached_property
    def ratings(self) -> pa.Table | None:
        """`tables.RATINGS`; None where nothing was rated."""
        return self._optional("ratings.parquet", RATINGS)

    @cached_property
    def annotations(self) -> pa.Table | None:
        """`tables.ANNOTATIONS`; None where nothing was annotated."""
        return self._optional("annotations.parquet", ANNOTATIONS)

    @cached_property
    def edits(self) -> pa.Table | None:
        """`edits.parquet`; None where the run has none."""
        from seesaw_cf.texts.write.writing import EDITS

        return self._optional("edits.parquet", EDITS)

    def _optional(self, name: str, schema: pa.Schema) -> pa.Table | None:
        file = self.folder / name
        return read_table(file, schema) if file.exists() else None

    @cached_property
    def records(self) -> Sequence[LongformRecord]:
        """Return the records of its texts.

        Raises:
            SeesawError: The manifest is missing, or the records are not where they were.
        """
        return records_of_run(self.manifest, self.passages)

    @cached_property
    def coupled(self) -> Sequence[LongformRecord]:
        """Return those of the records that couple a subject with a related entity."""
        return coupled_records(self.records)

    @cached_property
    def coupled_passages(self) -> pa.Table:
        """Return the passages that are about `coupled` records."""
        cases = pa.array([record["case_id"] for record in self.coupled], pa.int64())
        return self.passages.filter(pc.is_in(self.passages["case_id"], cases))

    @cached_property
    def samples(self) -> list[SurveySample]:
        """Subject and related passage of the same text together, with what is recorded of both."""
        from seesaw_cf.texts.rate.survey import survey_samples

        return survey_samples(self.coupled_passages, self.coupled)


def finished_manifest(folder: Path, table: str, command: str) -> dict[str, Any]:
    """Return the manifest of a finished run.

    Args:
        folder: The run.
        table: File that a finished run has.
        command: What makes such a run.

    Raises:
        RunFolderError: A file is missing, or the manifest is damaged.
    """
    missing = [name for name in ("manifest.json", table) if not (folder / name).exists()]
    if missing:
        raise RunFolderError(
            f"{folder}: {' and '.join(missing)} missing, so it is no finished run of `seesaw-cf {command}`. "
            "Give its --out, or repeat the command that began it."
        )
    manifest: dict[str, Any] = read_json(folder / "manifest.json", error=RunFolderError)
    return manifest
