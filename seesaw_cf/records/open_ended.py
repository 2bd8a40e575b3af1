"""Open-ended prompts of cases as rows that long texts are written for: the config `open_ended`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from seesaw_cf.base.types import Case, TableRow
from seesaw_cf.records.arrow import REQUEST
from seesaw_cf.records.formats import request_row
from seesaw_cf.records.relations import FREE

CONFIG = "open_ended"

# One row per (case, prompt). use: "guided" or "free"; config: where the case is; subject_id: null where the record
# names its subject only.
OPEN_ENDED: pa.Schema = pa.schema(
    [
        ("case_id", pa.int64()),
        ("config", pa.string()),
        ("requested_rewrite", REQUEST),
        ("effect_relation_id", pa.string()),
        ("subject_id", pa.string()),
        ("prompt", pa.string()),
        ("use", pa.string()),
    ]
)


def open_ended(config: str, cases: Iterable[Case]) -> pa.Table:
    """Return the open-ended prompts of cases as a flat table of schema `OPEN_ENDED`.

    Args:
        config: The config that the cases belong to.
        cases: Its cases, or some of them. Those without generation prompts give no row.
    """
    return pa.Table.from_pylist([row for case in cases for row in _rows(config, case)], schema=OPEN_ENDED)


def _rows(config: str, case: Case) -> Iterator[TableRow]:
    free = [words.replace("{}", case.request.subject) for words in (FREE.present, FREE.past)]
    for prompt in case.generation_prompts:
        yield {
            "case_id": case.case_id,
            "config": config,
            "requested_rewrite": request_row(case.request),
            "effect_relation_id": case.effect_relation_id,
            "subject_id": case.extra.get("subject_id") or None,
            "prompt": prompt,
            "use": "free" if prompt in free else "guided",
        }
