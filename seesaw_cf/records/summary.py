"""Counts of one file of cases, and the table that shows several files side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from seesaw_cf.records.flags import count_flags
from seesaw_cf.types import AttributePrompt, Case, Entity


@dataclass(frozen=True, slots=True)
class FileSummary:
    """What one file holds.

    Attributes:
        name: Its config.
        source: Name of the file it came from, without folder.
        sha256: Of that file (hex).
        record_formats: The formats its records have.
        cases: Number of edits.
        first_case_id, last_case_id: Smallest and largest id.
        prompts, unique_prompts: Cross-subject prompts about other people, and distinct texts among them. The single
            prompt of an `_eff` record is the edit's own and not counted.
        generation_prompts, unique_generation_prompts: Open-ended prompts, and distinct texts.
        paraphrase_prompts, neighborhood_prompts: CounterFact's and zsRE's.
        edit_subjects: Distinct names of edited subjects.
        test_subjects: Distinct people asked about, by id (by name where there is none); unnamed ones are not counted.
        targets_new, targets_true, targets: Distinct new and old targets by id (by text where there is none), and both.
        prompts_min, prompts_mean, prompts_max: Cross-subject prompts per case.
        tagged_prompts: Cross-subject prompts with a gender, race or region tag (none in the released files).
        prompt_flags, case_flags: Damage → number of prompts, of cases.
    """

    name: str
    source: str
    sha256: str
    record_formats: tuple[str, ...]
    cases: int
    first_case_id: int
    last_case_id: int
    prompts: int
    unique_prompts: int
    generation_prompts: int
    unique_generation_prompts: int
    paraphrase_prompts: int
    neighborhood_prompts: int
    edit_subjects: int
    test_subjects: int
    targets_new: int
    targets_true: int
    targets: int
    prompts_min: int
    prompts_mean: float
    prompts_max: int
    tagged_prompts: int
    prompt_flags: dict[str, int]
    case_flags: dict[str, int]


def _keys(entities: Sequence[Entity]) -> set[tuple[str | None, str]]:
    keys = {(item.id, "" if item.id is not None else item.label) for item in entities}
    return keys - {(None, "")}


def _tagged(row: AttributePrompt) -> bool:
    return bool(row.gender or row.race or row.region)


def summarise(name: str, source: str, sha256: str, cases: Sequence[Case]) -> FileSummary:
    """Count what a file of at least one case holds; see `FileSummary` for the meaning of each number."""
    rows = [row for case in cases for row in case.attribute_prompts]
    per_case = [len(case.attribute_prompts) for case in cases]
    open_ended = [text for case in cases for text in case.generation_prompts]
    new, true = (_keys([getattr(case.request, role) for case in cases]) for role in ("target_new", "target_true"))
    prompt_flags, case_flags = count_flags(cases)
    return FileSummary(
        name=name,
        source=source,
        sha256=sha256,
        record_formats=tuple(sorted({case.record_format for case in cases})),
        cases=len(cases),
        first_case_id=min(case.case_id for case in cases),
        last_case_id=max(case.case_id for case in cases),
        prompts=len(rows),
        unique_prompts=len({row.text for row in rows}),
        generation_prompts=len(open_ended),
        unique_generation_prompts=len(set(open_ended)),
        paraphrase_prompts=sum(len(case.paraphrase_prompts) for case in cases),
        neighborhood_prompts=sum(len(case.neighborhood_prompts) for case in cases),
        edit_subjects=len({case.request.subject for case in cases}),
        test_subjects=len(_keys([row.subject for row in rows])),
        targets_new=len(new),
        targets_true=len(true),
        targets=len(new | true),
        prompts_min=min(per_case),
        prompts_mean=sum(per_case) / len(per_case),
        prompts_max=max(per_case),
        tagged_prompts=sum(map(_tagged, rows)),
        prompt_flags=prompt_flags,
        case_flags=case_flags,
    )


@dataclass(frozen=True, slots=True)
class ImportSummary:
    """What an import wrote.

    Attributes:
        out: The dataset folder.
        files: One summary per config, in the order of the import.
        moved_aside: Where a folder that was in the way is now, None when there was none.
    """

    out: Path
    files: tuple[FileSummary, ...]
    moved_aside: Path | None = None

    def rows(self) -> list[tuple[str, ...]]:
        """The table: a header with the configs' names, then one row per count; flags that occur nowhere are absent."""
        table = [("", *(file.name for file in self.files))]
        table += [(label, *(template.format(file) for file in self.files)) for label, template in _LINES]
        for kind, unit in (("prompt_flags", "prompts"), ("case_flags", "cases")):
            counts = [getattr(file, kind) for file in self.files]
            for flag in dict.fromkeys(flag for count in counts for flag in count):
                table.append((f"flag {flag} ({unit})", *(f"{count.get(flag, 0):,}" for count in counts)))
        return table

    def to_markdown(self) -> str:
        """Return the table as aligned Markdown, readable in a terminal too."""
        table = self.rows()
        widths = [max(map(len, column)) for column in zip(*table)]
        lines = [
            _line([cell.ljust(widths[0]) if i == 0 else cell.rjust(widths[i]) for i, cell in enumerate(row)])
            for row in table
        ]
        rule = _line(["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])])
        return "\n".join([lines[0], rule, *lines[1:]])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


# (row label, how a FileSummary fills it)
_LINES: tuple[tuple[str, str], ...] = (
    ("cases", "{0.cases:,}"),
    ("case ids", "{0.first_case_id}-{0.last_case_id}"),
    ("prompts", "{0.prompts:,}"),
    ("unique prompts", "{0.unique_prompts:,}"),
    ("prompts per case, min / mean / max", "{0.prompts_min} / {0.prompts_mean:.1f} / {0.prompts_max}"),
    ("generation prompts", "{0.generation_prompts:,}"),
    ("unique generation prompts", "{0.unique_generation_prompts:,}"),
    ("paraphrase / neighborhood prompts", "{0.paraphrase_prompts:,} / {0.neighborhood_prompts:,}"),
    ("edit subjects", "{0.edit_subjects:,}"),
    ("test subjects", "{0.test_subjects:,}"),
    ("targets, new / true / either", "{0.targets_new} / {0.targets_true} / {0.targets}"),
    ("prompts with a group tag", "{0.tagged_prompts:,}"),
)
