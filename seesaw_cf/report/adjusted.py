"""Group contrasts of other estimands, each next to the raw contrast of the same people; made only when asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from seesaw_cf.effects.adjusted import ESTIMANDS, unadjustable
from seesaw_cf.effects.audit import HOLDERS
from seesaw_cf.effects.groups import ALL

_KEYS = ["editor", "relation", "holds", "axis", "group", "reference"]
_RAW = ["value", "low", "high", "p_adjusted"]
_ADJUSTED = ["scale", *_RAW, "p", "verdict", "rule", "note", "mirror", "clusters"]


def adjusted_contrasts(prompts: pd.DataFrame, names: Sequence[str], audit: Callable[..., pd.DataFrame]) -> pd.DataFrame:
    """Return contrasts of groups pooled over relations, raw and adjusted.

    Args:
        prompts: Rows of `seesaw_cf.effects.prompt_effects`.
        names: Of `seesaw_cf.effects.adjusted.ESTIMANDS`.
        audit: `seesaw_cf.effects.audit` with all of its arguments but prompts and estimand.

    Returns:
        One row per estimand, editor, kind of holder and group, without columns where none was named: `raw`, `raw_low`,
        `raw_high`, `raw_p_adjusted` of the people who have the covariates; `value`, `low`, `high`, `p`, `p_adjusted`
        (a family per editor and estimand), `verdict` and `note` of the adjusted contrast; `n_people` asked and
        `n_left_out` of them for the reason `left_out`.

    Raises:
        RecordError: There is nothing to compare.
    """
    tables = [_contrasts(prompts, name, audit) for name in names]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def _contrasts(prompts: pd.DataFrame, name: str, audit: Callable[..., pd.DataFrame]) -> pd.DataFrame:
    scored = prompts[(prompts["status"] == "ok") & prompts["holds"].isin(HOLDERS)].assign(edit_relation=ALL)
    reasons = unadjustable(scored, ESTIMANDS[name])
    complete = scored[reasons == ""]
    reason = next((reason for reason in reasons if reason), "")
    raw = audit(scored if complete.empty else complete)
    adjusted = _untestable(raw, reason) if complete.empty else audit(complete, estimand=name)
    table = raw[[*_KEYS, *_RAW]].rename(columns={"value": "raw", **{column: f"raw_{column}" for column in _RAW[1:]}})
    table = pd.concat([table, adjusted[_ADJUSTED]], axis=1)
    table.insert(0, "estimand", name)
    left_out = scored.loc[reasons != "", "person"].nunique()
    return table.assign(n_people=scored["person"].nunique(), n_left_out=left_out, left_out=reason)


def _untestable(raw: pd.DataFrame, reason: str) -> pd.DataFrame:
    numbers = dict.fromkeys([*_RAW, "p"], np.nan)
    return raw.assign(**numbers, verdict="not testable", rule=reason, note=reason)
