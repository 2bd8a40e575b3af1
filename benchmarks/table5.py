"""Table 5 of SEESAW-CF for GPT-J (before editing, FT, MEMIT), as published and corrected, from the published scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from seesaw_cf.effects import accuracy_of_columns
from seesaw_cf.records.relations import FREE, templates
from seesaw_cf.stats.plain import as_json

RESULTS = Path(__file__).parent / "results"
# Table 5 as printed, (pre, FT, MEMIT), in its order; citizenship/birth is not printed but counted in the average.
PRINTED: dict[tuple[str, str], tuple[float, float, float]] = {
    ("P19", "P21"): (1, 1, 1),
    ("P19", "P101"): (0.22, 0.19, 0.12),
    ("P21", "P101"): (0.24, 0.17, 0.07),
    ("P27", "P21"): (1, 1, 0.99),
    ("P27", "P101"): (0.18, 0.20, 0.13),
    ("P101", "P21"): (1, 1, 1),
    ("P101", "P27"): (0.28, 0.27, 0.20),
}
PRINTED_AVERAGE = (0.49, 0.48, 0.44)


def cases(path: Path, mode: str) -> pd.DataFrame:
    """One row per (editor, case): prompt, candidates, gold labels, log-probabilities.

    Args:
        path: The parquet of published GPT-J scores.
        mode: "paper" takes the prompt that each file stored first, "exact" the one that names the property.
    """
    frame = pd.read_parquet(path)
    frame = frame[frame["stored_first"] if mode == "paper" else frame["prompt_kind"] == "property"]
    names = ["editor", "case_id", "edit_relation", "effect_relation", "prompt_kind", "subject", "gold"]
    lists = frame.groupby(["editor", "case_id"], observed=True, sort=True)
    rows = lists[names[2:]].first()
    rows["candidates"] = lists["candidate"].agg(list)
    rows["logprobs"] = lists["sum_logprob"].agg(list)
    rows["gold"] = [[label for label in str(text).split("|") if label] for text in rows["gold"]]
    rows["prompt"] = [
        (templates(effect, "property")[0] if kind == "property" else FREE).fill(subject)
        for effect, kind, subject in zip(rows["effect_relation"], rows["prompt_kind"], rows["subject"])
    ]
    return rows.reset_index()


def accuracies(path: Path, mode: str) -> dict[str, dict[str, Any]]:
    """The result of `cross_property_accuracy` for each editor, before editing against after."""
    table = cases(path, mode)
    pre = table[table["editor"] == "none"].set_index("case_id")
    results = {}
    for editor in ("ft", "memit"):
        post = table[table["editor"] == editor].set_index("case_id").loc[pre.index]
        after = zip(pre["candidates"], post["candidates"], post["logprobs"])
        rows = pre.reset_index()[["case_id", "edit_relation", "effect_relation", "prompt", "candidates", "gold"]]
        in_order: Any = [_in_order(*row) for row in after]
        rows = rows.assign(pre=pre["logprobs"].tolist(), post=in_order)
        rows["post_prompts"] = post["prompt"].tolist()
        rows = rows.astype({"edit_relation": str, "effect_relation": str})
        results[editor] = as_json(accuracy_of_columns)(rows, mode=mode)  # type: ignore[arg-type]
    return results


def _in_order(wanted: list[str], found: list[str], logprobs: list[float]) -> list[float]:
    by_name = dict(zip(found, logprobs))
    return [by_name[name] for name in wanted]
