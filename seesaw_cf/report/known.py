"""What the unedited model knew, as data frames: how much of it, and every effect among the known facts alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from seesaw_cf.effects.knowledge import among_known, knowledge_table
from seesaw_cf.run.edit_table import ASKED_ONLY

_NEITHER = """Whether the model knew the edited facts is unknown: no edit of this run has a rank for its true target.
Runs of an older version did not record it (repeat the run into a new folder), and records such as those of zsRE name no
true target."""


@dataclass(frozen=True, slots=True)
class KnownTables:
    """Tables about facts that the unedited model knew.

    Attributes:
        facts: Rows of `seesaw_cf.effects.knowledge.KnowledgeRow`.
        effects: As `Results.effects`, of the facts that the column `facts` names; empty where none was known.
        accuracy: The same for `Results.accuracy`.
        note: Why nothing is known of the edited facts; "" where something is.
    """

    facts: pd.DataFrame
    effects: pd.DataFrame
    accuracy: pd.DataFrame
    note: str


def known_facts(
    edits: pd.DataFrame,
    prompts: pd.DataFrame | None,
    answers: pd.DataFrame | None,
    effects: Callable[[pd.DataFrame], pd.DataFrame],
    accuracy: Callable[[pd.DataFrame], pd.DataFrame],
) -> KnownTables:
    """Return the tables about known facts of one run.

    Args:
        edits: Rows of `seesaw_cf.run.edit_table.EDITS`.
        prompts: Rows of `seesaw_cf.effects.prompt_effects` with `edit_known`; None without questions on other people.
        answers: Rows of `seesaw_cf.effects.accuracy.mark` with `edit_known`; None without questions about other
            properties.
        effects, accuracy: What makes a report's table of some of these rows.
    """
    nothing, edited = pd.DataFrame(), edits[edits["status"] != ASKED_ONLY]
    if answers is not None:
        answers = answers.assign(known=(answers["pre_rank"] == 1).astype("boolean"))
    return KnownTables(
        facts=knowledge_table(edited, prompts),
        effects=nothing if prompts is None else among_known(prompts, effects),
        accuracy=nothing if answers is None else among_known(answers, accuracy),
        note=" ".join(_NEITHER.split()) if len(edited) and edited["known"].isna().all() else "",
    )
