"""What a finished run says about the size of the next one."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd

from seesaw_cf.checks import one_of
from seesaw_cf.effects.groups import check_axes, mask, members
from seesaw_cf.effects.prompts import ScoreForm, prompt_effects
from seesaw_cf.errors import RecordError
from seesaw_cf.stats import Components, contrast_components, variance_components
from seesaw_cf.tables import SCORES, read_table


def run_components(
    folder: str | os.PathLike[str],
    *,
    axis: str | None = None,
    group: str | None = None,
    holds: str = "target_new",
    score: ScoreForm = "summed",
) -> tuple[Components, float, int]:
    """Variance components of D in a finished run.

    Args:
        folder: A run folder.
        axis, group: The group whose contrast with all others is planned; None: the mean over everybody.
        holds: Whose prompts.
        score: The form of confidence.

    Returns:
        Components; the share of prompts about the group (NaN without one); the number of prompts. With several editors
        the components are those of the one that varies most.

    Raises:
        RecordError: The run has too few edits or people, or no prompts of this kind.
        UnknownNameError: Unknown axis or group.
    """
    check_axes([axis] if axis is not None else [])
    prompts = prompt_effects(read_table(Path(folder) / "scores.parquet", SCORES), score=score)
    usable = prompts[(prompts["holds"].fillna("") == holds) & (prompts["status"] == "ok")]
    if usable.empty:
        raise RecordError(f"{folder}: no scored prompts about people with holds={holds!r}; nothing to estimate.")
    candidates: list[tuple[Components, float, int]] = []
    for _, rows in usable.groupby("editor", sort=True):
        values = rows["D"].to_numpy()
        edit, person = (pd.factorize(rows[name])[0] for name in ("case_id", "person"))
        if axis is None:
            candidates.append((variance_components(values, edit, person), float("nan"), values.size))
            continue
        groups = members(rows[axis].tolist())
        member = mask(values.size, groups[one_of(f"{axis} group", str(group), groups)])
        candidates.append((contrast_components(values, edit, person, member), float(member.mean()), values.size))
    return max(
        candidates, key=lambda candidate: candidate[0].edit ** 2 + candidate[0].person ** 2 + candidate[0].prompt ** 2
    )
