"""A finished run of `seesaw-cf texts write`: its manifest, its tables, and the records that its texts are about.

The modules behind it take torch with them, so they are imported when a part is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from seesaw_cf.base.errors import UnknownNameError
from seesaw_cf.base.tables import read_table
from seesaw_cf.records.relations import relation
from seesaw_cf.run.manifest import RunFolder
from seesaw_cf.texts.records import LongformRecord, coupled_records, records_of_run
from seesaw_cf.texts.tables import ANNOTATIONS, EDITS, PASSAGES, RATINGS

if TYPE_CHECKING:
    from seesaw_cf.texts.survey import SurveySample


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
        return RunFolder.open(self.folder, "texts write", ("passages.parquet",)).manifest

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
        """`tables.ANNOTATIONS`; None where no claim was classified."""
        return self._optional("annotations.parquet", ANNOTATIONS)

    @cached_property
    def edits(self) -> pa.Table | None:
        """`edits.parquet`; None where the run has none."""
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
        from seesaw_cf.texts.survey import survey_samples

        return survey_samples(self.coupled_passages, self.coupled)


def edit_sentences(edits: pa.Table) -> dict[tuple[str, int], str]:
    """Return a sentence about each edit: (editor, case_id) -> "Ada Oak: gender was changed from female to male."

    Args:
        edits: `tables.EDITS`.
    """
    rows = edits.to_pylist()
    names = ("subject", "relation", "target_true", "target_new")
    return {(row["editor"], row["case_id"]): edit_sentence(*(row[name] for name in names)) for row in rows}


def edit_sentence(subject: str, relation_id: str, old: str, new: str) -> str:
    """Return what raters are told about an edit."""
    return f"{subject}: {property_label(relation_id, 'one fact')} was changed from {old} to {new}."


def property_label(relation_id: str, otherwise: str = "") -> str:
    """Return the label of an edited property; `otherwise` of one that the package does not know."""
    try:
        return relation(relation_id).label
    except UnknownNameError:
        return otherwise
