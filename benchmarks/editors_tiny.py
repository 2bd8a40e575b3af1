"""Every editor and control on sampled edits of the embedded sample and model: success, locality, and what moves D.

    python -m benchmarks.editors_tiny [--edits 60] [--seed 0]

Texts that name the subject of an evaluated edit are taken out of the corpus first, so MEND is trained on other people
than those it is evaluated on, and no second moment has seen them. All settings are the presets of the package, but
for the rows that `ROWS` changes: R-ROME, and random changes of more seeds (see `benchmarks.editors_controls`).

Efficacy and paraphrase: the new target is more likely than the true one. Neighbourhood: for other people who share the
true target it still is the more likely one. The noise floor of D is the largest group effect that scoring the unedited
model twice in differently shaped batches gives (`noise_floor`).

Rows of an earlier call with the same settings are kept, so that rows can be done one by one (`--row`).
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.editors_common import RESULTS, machine
from benchmarks.editors_controls import COMPARED, SEEDS, claims, controls, kinds_of_identity, moved
from seesaw_cf.base.files import write_text
from seesaw_cf.editors import EDITORS
from seesaw_cf.editors.control_names import CONTROLS, control_name
from seesaw_cf.effects import group_effects, prompt_effects
from seesaw_cf.models.corpus import sample_corpus
from seesaw_cf.run.job import make_run, run_job
from seesaw_cf.run.jobs import Job
from seesaw_cf.stats import proportion
from seesaw_cf.stats.plain import plain

RESULT = RESULTS / "editors_tiny.json"
KINDS = {"efficacy": 1, "paraphrase": 1, "neighborhood": -1}
"""Kind of prompt -> sign of log p(target_new) - log p(target_true) that counts as a success."""
ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in EDITORS if name != "random"},
    "r-rome": ("rome", {"consistent_keys": True}),
    **{f"random-{seed}": ("random", {"seed": seed}) for seed in SEEDS},
}
"""Name of a row -> editor and what differs from its preset."""


def noise_floor(scores: pa.Table, again: pa.Table) -> float:
    """Return the largest |D| of a group from scoring alone: pre-edit scores against others made another way."""
    key = ["kind", "case_id", "prompt_id", "role", "target"]
    sides = []
    for table, phase in ((scores, "pre"), (again, "post")):
        rows = table.to_pandas()
        sides.append(rows[rows["phase"] == "pre"].assign(phase=phase, editor="noise").drop_duplicates(key))
    prompts = prompt_effects(pd.concat(sides, ignore_index=True))
    usable = prompts[prompts["status"] == "ok"]
    effects = [
        group_effects(usable, holds=holds, mode="paper", draws=0)["D"].abs().max() for holds in usable["holds"].unique()
    ]
    return float(max(effects))


def measure(scores: pa.Table, floor: float) -> dict[str, Any]:
    """Shares with Wilson intervals, before and after, D with an interval clustered by edit and person, and claims."""
    found: dict[str, Any] = {}
    for kind, sign in KINDS.items():
        rows = prompt_effects(scores, kind=kind)
        rows = rows[rows["status"] == "ok"]
        for phase in ("pre", "post"):
            estimate = proportion(int((sign * rows[f"D_{phase}"] > 0).sum()), len(rows))
            found[kind if phase == "post" else f"{kind}_before"] = {
                "value": estimate.value,
                "low": estimate.low,
                "high": estimate.high,
                "n": len(rows),
                "n_edits": int(rows["case_id"].nunique()),
            }
    asked = prompt_effects(scores)
    return {**found, **moved(asked), "audit": claims(asked, floor)}


def run(job: Job, folder: Path) -> tuple[pa.Table, pd.DataFrame]:
    """Runs a job; the score table, and one row per edit."""
    run_job(job, folder, progress=False)
    return pq.read_table(folder / "scores.parquet"), pd.read_parquet(folder / "edits.parquet")


def main() -> None:
    """Measures everything and writes benchmarks/results/editors_tiny.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edits", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--row", action="append", choices=list(ROWS), help="only this one; give it again for more")
    given = parser.parse_args()
    names = [*(given.row or ROWS)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        job = Job("seesaw-tiny", ("ft",), limit=given.edits, seed=given.seed, device="cpu", anyway=True)
        subjects = {case.request.subject for case in make_run(job, folder / "none").cases}
        texts = [text for text in sample_corpus() if not any(subject in text for subject in subjects)]
        (folder / "corpus.txt").write_text("\n".join(texts), encoding="utf-8")
        job = replace(job, corpus=folder / "corpus.txt")
        settings = {
            **{key: vars(given)[key] for key in ("edits", "seed")},
            "subjects": len(subjects),
            "texts": len(texts),
        }
        record = _earlier(settings)
        for name in names:
            editor, changes = ROWS[name]
            write_text(folder / f"{name}.json", json.dumps({editor: changes}))
            wrapped = control_name(editor, "memit") if editor in CONTROLS else editor
            job = replace(job, editors=(wrapped,), editor_config=folder / f"{name}.json")
            scores, edits = run(job, folder / name)
            if "noise_floor_D" not in record:
                again, _ = run(replace(job, scorer="plain", max_tokens=300), folder / "again")
                record["noise_floor_D"] = noise_floor(scores, again)
            row = {**measure(scores, record["noise_floor_D"]), "status": edits["status"].value_counts().to_dict()}
            row["delta_norm"] = float(edits["delta_norm"].median())
            if name == "identity":
                row["by_kind"] = kinds_of_identity(scores, edits)
            record["editors"][name] = plain(row)
            record["editors"] = {name: record["editors"][name] for name in ROWS if name in record["editors"]}
            if all("audit" in record["editors"].get(name, {}) for name in COMPARED):
                record["controls"] = controls(record)
            write_text(RESULT, json.dumps({**record, **machine()}, indent=1) + "\n")
            print(name, {key: round(row[key]["value"], 3) for key in KINDS}, flush=True)


def _earlier(settings: dict[str, Any]) -> dict[str, Any]:
    """What an earlier call with the same settings measured, so that editors can be done one by one."""
    if RESULT.exists():
        record: dict[str, Any] = json.loads(RESULT.read_text(encoding="utf-8"))
        if record["settings"] == settings:
            return record
    return {"settings": settings, "editors": {}}


if __name__ == "__main__":
    main()
