"""What people are asked about: the texts of a finished run of `seesaw-cf leme run`.

The modules behind it take torch with them, so they are imported when a study is made: pages are served without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from seesaw_cf.base.errors import StorageError
from seesaw_cf.base.tables import read_table
from seesaw_cf.base.text import read_json
from seesaw_cf.texts.tables import PASSAGES
from seesaw_cf.texts.write.passages import LongformRecord

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
    def passages(self) -> pa.Table:
        """`tables.PASSAGES`."""
        return read_table(self.folder / "passages.parquet", PASSAGES)

    @cached_property
    def edits(self) -> pa.Table | None:
        """`edits.parquet`; None where the run has none."""
        from seesaw_cf.texts.write.writing import EDITS

        file = self.folder / "edits.parquet"
        return read_table(file, EDITS) if file.exists() else None

    @cached_property
    def records(self) -> Sequence[LongformRecord]:
        """The coupled records of its texts.

        Raises:
            SeesawError: The manifest is missing, or the records are not where they were.
        """
        from seesaw_cf.texts.write.passages import records_of_run

        file = self.folder / "manifest.json"
        if not file.exists():
            raise StorageError(
                f"{file}: no such file, so nothing says which facts the texts are about. Give a whole run."
            )
        records = records_of_run(read_json(file, dict), self.passages)
        return [record for record in records if "subject_entity" in record]

    @cached_property
    def samples(self) -> list[SurveySample]:
        """Subject and related passage of the same text together, with what is recorded of both."""
        from seesaw_cf.texts.rate.survey import survey_samples

        cases = {record["case_id"] for record in self.records}
        mask = pa.array([case in cases for case in self.passages["case_id"].to_pylist()])
        return survey_samples(self.passages.filter(mask), self.records)
