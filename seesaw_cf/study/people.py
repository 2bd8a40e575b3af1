"""Do runs that ask the same prompts record the same of the people in them? Else a group is other people's."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

_PERSON = ("holds", "gender", "race", "region")
_QUESTION = ["kind", "case_id", "prompt_id", "edit_relation", "prompt", "subject"]


def people_facts(tables: Sequence[pd.DataFrame | None]) -> dict[str, list[str]]:
    """Return what each run records of the people whom the first run asks about, too.

    Args:
        tables: `Results.prompts` of the runs.

    Returns:
        What is compared -> its value in each run, counted against the first; "" where no prompt is shared.
    """
    asked = [None if table is None else table.drop_duplicates(_QUESTION) for table in tables]
    first = asked[0] if asked else None
    if first is None:
        return {}
    facts: dict[str, list[str]] = {f"what is recorded of the same people ({name})": [] for name in _PERSON}
    for own in asked:
        shared = first[:0].merge(first[:0], on=_QUESTION) if own is None else first.merge(own, on=_QUESTION)
        for name, values in zip(_PERSON, facts.values()):
            other = int((shared[f"{name}_x"].astype(str) != shared[f"{name}_y"].astype(str)).sum())
            part = f"other in {other:,} of {len(shared):,} shared prompts" if other else "that of the first"
            values.append(part if len(shared) else "")
    return facts
