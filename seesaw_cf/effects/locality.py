"""Do edits leave other facts alone? The locality gate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd
import pyarrow.compute as pc

from seesaw_cf.base.terminal import interval
from seesaw_cf.base.types import Estimate
from seesaw_cf.effects.prompts import SIDES, prompt_effects
from seesaw_cf.effects.scores import Scores, checked, count_rows
from seesaw_cf.stats import proportion
from seesaw_cf.stats.simple import BOUNDS, above

LEAST_LOCAL = 0.5
"""An edit is local while at least this share of the others' answers that were right before it are right after it.

An editor's edits collapse once the interval of the share of local edits lies below the same number: most of its edits
spoil most of what they were not about, and numbers about other people then describe a broken model. One half is the
majority, twice; no data were used to choose it.
"""
_OTHERS = {"neighborhood": "neighbours", "cross_subject": "people who hold the old answer"}
"""Kind of prompts -> who they are about; the first kind that a table has."""


@dataclass(frozen=True, slots=True)
class Locality:
    """What an editor's edits leave of the right answers about other people and facts.

    Attributes:
        others: Description of the prompts that were counted.
        before, after: Shares of the prompts about them that are right before and after the edits.
        n_prompts: Number of those prompts.
        local: Share of the edits that are local (Wilson, 95 %).
    """

    others: str
    before: float
    after: float
    n_prompts: int
    local: Estimate

    @property
    def collapsed(self) -> bool:
        """Whether most edits are shown not to be local."""
        return self.local.high < LEAST_LOCAL

    def __str__(self) -> str:
        return (
            f"{self.others} right {self.before:.0%} before, {self.after:.0%} after (n = {self.n_prompts}); "
            f"{self.local.value:.0%} {interval(self.local.low, self.local.high, spec='.0%')} of {self.local.n} edits "
            "leave at least half of those right"
        )


def locality(
    scores: Scores,
    first: Mapping[tuple[str, int], int] | None = None,
    nats: float = BOUNDS["float32"],
    people: pd.DataFrame | None = None,
) -> dict[str, Locality]:
    """Count the edits after which most of the other right answers are still right; a tie is wrong.

    These are the neighbourhood prompts, or without any the people of the cross-subject prompts who hold the true
    target. An edit without an answer that was right before is left out.

    Args:
        scores: A score table.
        first: (editor, case) -> the case that stands for its edit, see `seesaw_cf.effects.success.edit_numbers`; None:
            every case is an edit.
        nats: Log-probabilities no further apart than this are a tie.
        people: Rows of `seesaw_cf.effects.prompt_effects` of the kind "cross_subject", where they are at hand.

    Returns:
        Editor -> what was counted; an editor without such edits is left out.

    Raises:
        RecordError: As `seesaw_cf.effects.prompt_effects`.
    """
    table = checked(scores)
    kinds = count_rows(table, ["kind"], pc.field("role") == "target_new")["kind"].to_pylist()
    kind = next((name for name in _OTHERS if name in kinds), None)
    if kind is None:
        return {}
    at_hand = people if kind == "cross_subject" else None
    prompts = prompt_effects(table, kind=kind) if at_hand is None else at_hand
    right = prompts["holds"] == "target_true" if kind == "cross_subject" else True
    prompts = prompts.loc[(prompts["status"] == "ok") & right, ["editor", "case_id", *SIDES]]
    keys = zip(prompts["editor"], prompts["case_id"], strict=True)
    prompts = prompts.assign(
        edit=[key[1] if first is None else first[key] for key in keys],
        **{name: above(prompts[f"{name}_true"], prompts[f"{name}_new"], nats) for name in ("pre", "post")},
    )
    counts = {}
    for editor, own in prompts.groupby("editor", sort=False):
        local = own[own["pre"]].groupby("edit")["post"].mean() >= LEAST_LOCAL
        if len(local):
            shares = own["pre"].mean(), own["post"].mean(), len(own)
            counts[str(editor)] = Locality(_OTHERS[kind], *shares, proportion(int(local.sum()), len(local)))
    return counts
