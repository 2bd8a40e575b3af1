"""Open-ended prompts: guided by the property that is watched, and free ("X is").

Source: SEESAW-CF section 3.2 and Appendix A.
Deviates: tensed by date of death like all prompts, and each prompt once unless the options say otherwise (the released
files repeat each five times).
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from seesaw_cf.builder_scripts.options import BuildOptions
from seesaw_cf.builder_scripts.source.people import RecordedPerson
from seesaw_cf.records.arrow import REQUEST, request_row
from seesaw_cf.records.relations import FREE, Template, templates
from seesaw_cf.types import Case

# One row per (case, prompt). use: "guided" or "free"; config: where the case is.
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


def _guided(relation_id: str, effect_relation_id: str | None) -> tuple[Template, ...]:
    """Return a single property uses its open templates, a watched property its own ("X's field of work is")."""
    return templates(effect_relation_id, "property") if effect_relation_id else templates(relation_id, "open")


def generation_prompts(
    subject: RecordedPerson, relation_id: str, effect_relation_id: str | None, options: BuildOptions
) -> tuple[str, ...]:
    """Return the open-ended prompts of one edit: the guided ones, then the free one last.

    Args:
        subject: Person to edit.
        relation_id: The edited property.
        effect_relation_id: The watched property of a cross-property case, else None.
        options: How often each is listed, and whether edits of a single property have the free one.
    """
    guided = _guided(relation_id, effect_relation_id)
    rows = (*guided, FREE) if options.always_free or guided[0].use != "open" else guided
    return tuple(
        row.fill(subject.entity.label, living=subject.living) for row in rows for _ in range(options.open_repeats)
    )


def _is_free(case: Case, prompt: str) -> bool:
    return prompt in (FREE.present.replace("{}", case.request.subject), FREE.past.replace("{}", case.request.subject))


def _rows(config: str, case: Case) -> Iterable[dict[str, object]]:
    for prompt in case.generation_prompts:
        yield {
            "case_id": case.case_id,
            "config": config,
            "requested_rewrite": request_row(case.request),
            "effect_relation_id": case.effect_relation_id,
            "subject_id": case.extra["subject_id"],
            "prompt": prompt,
            "use": "free" if _is_free(case, prompt) else "guided",
        }


def open_ended(config: str, cases: Iterable[Case]) -> pa.Table:
    """Return the open-ended prompts of cases as a flat table of schema `OPEN_ENDED`.

    Args:
        config: The config that the cases belong to.
        cases: Its cases, or some of them.
    """
    return pa.Table.from_pylist([row for case in cases for row in _rows(config, case)], schema=OPEN_ENDED)
