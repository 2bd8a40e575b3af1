"""What every single edit damaged: the largest first."""

from __future__ import annotations

import pandas as pd

from seesaw_cf.effects.prompts import SIDES
from seesaw_cf.report.page_cases import edited_facts
from seesaw_cf.report.results import HOLDER, Results
from seesaw_cf.report.rows import of_controls

WORST = 5  # edits of each editor that people see
_KEYS = ["editor", "edit_relation", "case_id"]


def edit_damage(results: Results) -> pd.DataFrame:
    """Return one row for each edit that anything was asked about, controls left out, the worst first.

    Columns: editor, relation, case_id, edit (in words), damage; `other_facts` asked and known before, and `lost`;
    `holders` of the old answer who were right before, and `turned`; `old_answer` and `new_answer`, the mean change of D
    for people who hold either.
    """
    parts = []
    if results.answers is not None:
        right = results.answers[results.answers["pre_correct"].astype(bool)]
        right = right.assign(lost=~right["post_correct"].astype(bool))
        parts.append(right.groupby(_KEYS)["lost"].agg(other_facts="size", lost="sum"))
    if results.prompts is not None:
        scored = results.prompts.loc[results.prompts["status"] == "ok", [*_KEYS, "holds", "D", *SIDES]]
        old, new = (scored[scored["holds"] == holds] for holds in ("target_true", HOLDER))
        were_right = old[old["pre_true"] > old["pre_new"]]
        were_right = were_right.assign(turned=were_right["post_true"] <= were_right["post_new"])
        parts += [
            were_right.groupby(_KEYS)["turned"].agg(holders="size", turned="sum"),
            old.groupby(_KEYS)["D"].mean().rename("old_answer"),
            new.groupby(_KEYS)["D"].mean().rename("new_answer"),
        ]
    if not parts:
        return pd.DataFrame()
    counts = dict.fromkeys(("other_facts", "lost", "holders", "turned"), 0)
    frame = pd.concat(parts, axis=1).reset_index().reindex(columns=[*_KEYS, *counts, "old_answer", "new_answer"])
    frame = frame[~of_controls(frame)].fillna(counts).astype(dict.fromkeys(counts, int))
    harm = [frame["lost"] / frame["other_facts"].clip(lower=1), frame["old_answer"], -frame["new_answer"]]
    facts = edited_facts(results.edits)
    words = [facts.get(key, f"case {key[1]}") for key in zip(frame["edit_relation"], frame["case_id"], strict=True)]
    frame.insert(3, "edit", words)
    frame.insert(4, "damage", pd.concat(harm, axis=1).max(axis=1))
    frame = frame.assign(order=frame["editor"].map(results.editors.index)).sort_values(
        ["order", "damage", "case_id"], ascending=[True, False, True], kind="stable"
    )
    return frame.drop(columns="order").rename(columns={"edit_relation": "relation"}).reset_index(drop=True)
