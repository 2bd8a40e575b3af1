"""Settings files with a provenance: which edits they were tuned on, so that none of those is evaluated with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.text import parse_json_text, read_json
from seesaw_cf.base.types import Case

PROVENANCE = "provenance"
"""Key of a settings file beside the editors' names: editor -> how its settings were found."""


SettingsSource = str | Path | Mapping[str, Mapping[str, object]]
"""Settings of a run's editors, editor -> setting -> value: a JSON file, a JSON text, or the mapping itself."""


def settings_document(settings: SettingsSource | None, expected: str = "settings of editors") -> dict[str, Any]:
    """Return what settings say, their provenance included; {} for None.

    Raises:
        RecordError: Not a JSON object.
        StorageError: The file cannot be read.
    """
    if settings is None or isinstance(settings, Mapping):
        return dict(settings or {})
    if isinstance(settings, str) and settings.lstrip().startswith("{"):
        text: dict[str, Any] = parse_json_text(settings, "editor settings", dict, expected=expected)
        return text
    document: dict[str, Any] = read_json(settings, expected=expected)
    return document


def tuned_subjects(file: SettingsSource | None) -> frozenset[str]:
    """Return the people that settings were tuned on; none for those that were written by hand.

    Raises:
        RecordError: Not JSON, or a provenance without a list of subjects.
        StorageError: The file cannot be read.
    """
    provenance: Any = settings_document(file).get(PROVENANCE, {})
    entries = list(provenance.values()) if isinstance(provenance, Mapping) else [provenance]
    subjects: set[str] = set()
    for entry in entries:
        listed = entry.get("subjects") if isinstance(entry, Mapping) else None
        if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
            raise RecordError(
                f"{file}: {PROVENANCE!r} is {shown(provenance)}, expected what `seesaw-cf tune` writes: for each "
                "editor an object with 'subjects', a list of names. Make the file again, or leave the provenance out."
            )
        subjects.update(listed)
    return frozenset(subjects)


def held_out(cases: Sequence[Case], file: SettingsSource | None, leave_out: bool) -> list[Case]:
    """Return the cases about people that the settings of a run were not tuned on.

    Args:
        cases: Of the run.
        file: Its settings file.
        leave_out: Leave out the other cases; otherwise they are refused.

    Raises:
        RecordError: Cases that the settings were tuned on: evaluated on them an editor looks better than it is.
    """
    tuned = tuned_subjects(file)
    evaluated = [case for case in cases if case.request.subject not in tuned]
    if len(evaluated) < len(cases) and not leave_out:
        names = sorted({case.request.subject for case in cases} & tuned)
        raise RecordError(
            f"{file}: {len(cases) - len(evaluated)} of the {len(cases)} edits to evaluate are about people on "
            f"whom these settings were tuned ({', '.join(names[:3])}{', ...' if len(names) > 3 else ''}). Leave them "
            "out with --leave-out-tuned, or tune on other records."
        )
    return evaluated
