"""How often does an edit that does nothing seem to do more than its control?

    python -m benchmarks.control_level RUN [--draws 300]

takes a finished run whose random control was made with several seeds: updates of the same norm, none of which knows the
fact. Of two of them one is called the edit and the other its control, for every edit as a coin falls, so that no level
differs; of all edits and of 40 that are drawn. What is counted is any of the three levels below .05 after Holm's
correction, whatever its margin. "invented" are new values in every draw: 40 edits of 20 people, 12 holders of either
answer. Writes benchmarks/results/control_level.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.report_level import share_of
from seesaw_cf.base.files import write_text
from seesaw_cf.base.tables import CONTROL_SEEDS, SCORES, read_table
from seesaw_cf.effects import prompt_effects
from seesaw_cf.effects.answers import answers, mark
from seesaw_cf.effects.means import AXES, SCALES
from seesaw_cf.report import AuditSettings
from seesaw_cf.report.build import build_levels
from seesaw_cf.report.pairs import RunResult
from seesaw_cf.report.rows import floor_of

CONTROL = "random(edit)"
LEVELS = ("other_facts", "target_true", "target_new")
ALPHA = 0.05
__all__ = ["exchanged", "invented", "judged_levels", "measured"]

RESULTS = Path(__file__).parent / "results"
FEW, HOLDERS = 40, 24


Questions = tuple[pd.DataFrame, pd.DataFrame]
"""About people who hold either answer, and about other facts of the edited people."""


def exchanged(rows: pd.DataFrame, rng: np.random.Generator, edits: int | None = None) -> pd.DataFrame:
    """Return the rows of two editors as those of "edit" and "control", exchanged for every edit as a coin falls.

    Args:
        rows: With `edit`, and `editor` of two names.
        rng: Of the coin, and of which edits stay.
        edits: How many stay; None: all.
    """
    code, names = pd.factorize(rows["edit"], sort=True)
    turned = rng.random(len(names)) < 0.5
    stays = np.argsort(rng.random(len(names))) < (edits or len(names))
    first = (rows["editor"] == rows["editor"].min()).to_numpy()
    return rows.assign(editor=np.where(first ^ turned[code], "edit", "control"))[stays[code]]


def judged_levels(prompts: pd.DataFrame, facts: pd.DataFrame) -> pd.DataFrame:
    """Return the levels of "edit" beside its control that decide, with their p and corrected p."""
    names = {"control": CONTROL}
    people, answers = (rows.assign(editor=rows["editor"].replace(names)) for rows in (prompts, facts))
    edits = pd.DataFrame({"editor": ["edit", CONTROL], "case_id": 0, "status": "ok"})
    for axis in AXES:
        people[axis] = [()] * len(people)
    run = RunResult(
        folder=Path(),
        manifest={"protocol": "single", "editors": {"edit": {}, CONTROL: {}}},
        edits=edits,
        people=people,
        facts=answers.assign(seed=1),
        efficacy=None,
        success={},
        local={},
        unscored=pd.DataFrame({"n_rows": []}),
        n_rows=0,
        floor=floor_of({}, 0.0, 0.0),
    )
    frame = build_levels(run, AuditSettings())
    rows = frame[(frame["what"] == "beyond") & (frame["relation"] == "all") & (frame["axis"] == "all")]
    rows = rows[rows["decides"].astype(bool)]
    level = rows["true_answer"].map({"": "other_facts", "old": "target_true", "new": "target_new"})
    return rows.assign(level=level, difference=rows["value"])


def invented(rng: np.random.Generator, harm: float = 0.0) -> Questions:
    """Return questions under two editors that do the same, "edit" and "control".

    Args:
        rng: Of all values.
        harm: What "edit" does to people who hold the old answer beyond "control", in probability.
    """
    edit, holder, editor = (code.ravel() for code in np.indices((FEW, HOLDERS, 2)))
    of_edit, of_person = rng.normal(0, 0.03, (FEW, 2)), rng.normal(0, 0.01, (HOLDERS, 2))
    values = of_edit[edit, editor] + of_person[holder, editor] + rng.normal(0, 0.05, edit.size)
    old = holder % 2 == 0
    values = values + harm * (old & (editor == 0))
    prompts = pd.DataFrame(
        {
            "editor": np.array(["edit", "control"])[editor],
            "kind": "cross_subject",
            "case_id": edit,
            "edit": edit,
            "edit_relation": np.where(edit % 2, "P19", "P27"),
            "prompt_id": holder,
            "person": holder,
            "holds": np.where(old, "target_true", "target_new"),
            "status": "ok",
            "likelier_pre": 0.5,
            **dict.fromkeys(("D_pre", "D_post", "D", *SCALES), values),
        }
    )
    edit, fact, editor = (code.ravel() for code in np.indices((FEW, 8, 2)))
    lost = rng.random((FEW, 2)) * 0.3
    facts = pd.DataFrame(
        {
            "editor": np.array(["edit", "control"])[editor],
            "case_id": edit * 8 + fact,
            "edit": edit,
            "edit_relation": np.where(edit % 2, "P19", "P27"),
            "effect_relation": fact,
            "person": edit // 2,
            "status": "ok",
            "pre_correct": True,
            "post_correct": rng.random(edit.size) >= lost[edit, editor],
        }
    )
    return prompts, facts


def measured(draw: Callable[[np.random.Generator], Questions], draws: int) -> dict[str, Any]:
    """Return how often a level is said to differ, and how often each alone has p < .05, with Wilson's intervals.

    Args:
        draw: Makes the questions under "edit" and "control".
        draws: How often; draw k is the same whatever their number.
    """
    tables = [judged_levels(*draw(np.random.default_rng(number))) for number in range(draws)]
    alone = pd.DataFrame([table.set_index("level")["p"].reindex(LEVELS) < ALPHA for table in tables])
    any_of = [bool((table["p_adjusted"] < ALPHA).any()) for table in tables]
    return {"any": share_of(any_of)} | {level: share_of(alone[level].tolist()) for level in LEVELS}


def _questions(run: Path) -> Questions:
    """Return the questions of a run under each seed of its random control."""
    prompts, facts = [], []
    for file in ("scores.parquet", CONTROL_SEEDS):
        table = read_table(run / file, SCORES)
        changes, right = prompt_effects(table), mark(answers(table))
        prompts.append(changes[changes["editor"].str.startswith("random")].drop(columns=list(AXES)))
        facts.append(right[right["editor"].str.startswith("random")])
    whole = pd.concat(facts, ignore_index=True)
    edit = whole.groupby(["edit_relation", "person"]).ngroup()  # several cases ask about the facts of one edit
    return pd.concat(prompts, ignore_index=True).assign(edit=lambda rows: rows["case_id"]), whole.assign(edit=edit)


def _both(two: Sequence[pd.DataFrame], edits: int | None, rng: np.random.Generator) -> Questions:
    prompts, facts = (exchanged(rows, rng, edits) for rows in two)
    return prompts, facts


def main() -> None:
    """Measure and write what was made."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--draws", type=int, default=300)
    given = parser.parse_args()
    questions = _questions(given.run)
    manifest = json.loads((given.run / "manifest.json").read_text(encoding="utf-8"))
    made: dict[str, Any] = {"model": manifest["model"]["id"], "design": manifest["job"]["prompts"]}
    made |= {name: int(rows["edit"].nunique()) for name, rows in zip(("edits", "edits_of_facts"), questions)}
    made["invented"] = measured(invented, given.draws)
    for pair in combinations(sorted(questions[0]["editor"].unique()), 2):
        two = [rows[rows["editor"].isin(pair)] for rows in questions]
        made[" and ".join(pair)] = {
            f"{edits or 'all'} edits": measured(partial(_both, two, edits), given.draws) for edits in (FEW, None)
        }
        write_text(RESULTS / "control_level.json", json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    main()
