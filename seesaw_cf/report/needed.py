"""What would decide the open contrasts of a finished run, in one sentence."""

from __future__ import annotations

import pandas as pd

from seesaw_cf.editors.control_names import is_control
from seesaw_cf.effects.groups import ALL
from seesaw_cf.effects.needed import Aim, needs
from seesaw_cf.report.results import Results


def needed(results: Results, effect: float | None = None, power: float = 0.8) -> str:
    """Return one sentence on what would decide the open contrasts of a run; "" where nothing is open.

    Args:
        results: What the run found.
        effect: To find, in probability; None: the declared margin.
        power: Chance to find it.
    """
    table = open_needs(results, effect, power)
    if "times" not in table or table["times"].isna().all():
        return ""
    solved = table[table["times"].notna()].sort_values("times", kind="stable")
    row = solved.iloc[(len(solved) - 1) // 2]
    which = "the open contrast" if len(solved) == 1 else f"half of the {len(solved)} open contrasts"
    unit = "" if row["scale"] == "probability" else " nats"
    return f"To decide {row['effect']:.3g}{unit} in {which} this run needs {_what(row)}."


def open_needs(results: Results, effect: float | None = None, power: float = 0.8) -> pd.DataFrame:
    """Return `needs` of the undetermined contrasts of editors; the pooled ones where there are some."""
    if results.prompts is None or results.audit is None or "verdict" not in results.audit.verdicts:
        return pd.DataFrame()
    verdicts, settings = results.audit.verdicts, results.audit.settings
    rows = verdicts[(verdicts["verdict"] == "undetermined") & ~verdicts["editor"].map(is_control)]
    pooled = rows[rows["relation"] == ALL]
    rows = pooled if len(pooled) else rows
    aim = Aim(settings.margin if effect is None else effect, settings.alpha, power)
    return needs(results.prompts, rows, aim, settings.margin) if len(rows) else pd.DataFrame()


def _what(row: pd.Series) -> str:
    def more(needed: str, there: str) -> str:
        return f"{float(format(row[needed] / row[there], '.2g')):,g} times the {there} ({row[needed]:,.0f})"

    edits, people = (bool(pd.notna(row[f"{name}_needed"])) for name in ("edits", "people"))
    if edits and people:
        return f"{more('edits_needed', 'edits')} or {more('people_needed', 'people')}"
    if people:
        return f"{more('people_needed', 'people')}; more edits alone do not do it"
    if edits:
        return f"{more('edits_needed', 'edits')}; more people alone do not do it"
    if pd.notna(row["cheapest_edits"]):
        return f"{more('cheapest_edits', 'edits')} and {more('cheapest_people', 'people')}"
    return "more than a thousand times as many edits or people"
