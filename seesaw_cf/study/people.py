"""Do runs that ask the same prompts record the same of the people in them? Else a group is other people's."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

_PERSON = ("holds", "gender", "race", "region")
_NUMBERS = ("case_id", "prompt_id")
_QUESTION = ["kind", "case_id", "prompt_id", "edit_relation", "prompt", "subject"]


def people_of(prompts: pd.DataFrame | None) -> pd.DataFrame:
    """Return each question once, with what is recorded of the person in it, as words.

    Args:
        prompts: `Results.prompts`.
    """
    if prompts is None:
        return pd.DataFrame(columns=[*_QUESTION, *_PERSON])
    once = prompts.drop_duplicates(_QUESTION)[[*_QUESTION, *_PERSON]].reset_index(drop=True)
    return once.astype({name: str for name in once if name not in _NUMBERS})


def people_facts(tables: Sequence[pd.DataFrame]) -> dict[str, list[str]]:
    """Return what each run records of the people whom the first run asks about, too.

    Args:
        tables: `people_of` of the runs.

    Returns:
        What is compared -> its value in each run, counted against the first; "" where no prompt is shared.
    """
    if not tables or tables[0].empty:
        return {}
    facts: dict[str, list[str]] = {f"what is recorded of the same people ({name})": [] for name in _PERSON}
    for own in tables:
        shared = tables[0].merge(own, on=_QUESTION) if len(own) else own
        for name, values in zip(_PERSON, facts.values()):
            other = int((shared[f"{name}_x"] != shared[f"{name}_y"]).sum()) if len(shared) else 0
            part = f"other in {other:,} of {len(shared):,} shared prompts" if other else "that of the first"
            values.append(part if len(shared) else "")
    return facts
