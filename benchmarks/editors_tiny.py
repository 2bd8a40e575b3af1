"""Every editor and control on sampled edits of the embedded sample and model: success, locality, and what moves D.

    python -m benchmarks.editors_tiny [--edits 60] [--seed 0]

Texts that name the subject of an evaluated edit are taken out of the corpus first, so MEND is trained on other people
than those it is evaluated on, and no second moment has seen them. All settings are the presets of the package.

Efficacy and paraphrase: the new target is more likely than the true one. Neighbourhood: for other people who share the
true target it still is the more likely one. The noise floor of D is the largest group effect that scoring the unedited
model twice in differently shaped batches gives (`seesaw_cf.effects.noise_floor`).
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.editors_common import RESULTS, machine
from seesaw_cf.editors import EDITORS
from seesaw_cf.effects import estimate_groups, noise_floor, prompt_effects
from seesaw_cf.files import write_text
from seesaw_cf.job import Job, make_run, run_job
from seesaw_cf.pretrained import sample_corpus
from seesaw_cf.stats import share
from seesaw_cf.stats.plain import plain

RESULT = RESULTS / "editors_tiny.json"
KINDS = {"efficacy": 1, "paraphrase": 1, "neighborhood": -1}
"""Kind of prompt -> sign of log p(target_new) - log p(target_true) that counts as a success."""


def measure(scores: pa.Table, editor: str) -> dict[str, Any]:
    """Shares with Wilson intervals, before and after, and D with an interval clustered by edit and person."""
    found: dict[str, Any] = {}
    for kind, sign in KINDS.items():
        rows = prompt_effects(scores, kind=kind)
        rows = rows[(rows["editor"] == editor) & (rows["status"] == "ok")]
        for phase in ("pre", "post"):
            estimate = share(int((sign * rows[f"D_{phase}"] > 0).sum()), len(rows))
            found[kind if phase == "post" else f"{kind}_before"] = {
                "value": estimate.value,
                "low": estimate.low,
                "high": estimate.high,
                "n": len(rows),
                "n_edits": int(rows["case_id"].nunique()),
            }
    asked = prompt_effects(scores).assign(edit_relation="all")
    asked = asked[asked["editor"] == editor]
    for holds in ("target_new", "target_true"):
        ((_, row),) = estimate_groups(asked, axes=(), holds=holds).iterrows()
        found[f"D_{holds}"] = {key: row[key] for key in row.index if key not in ("editor", "relation", "axis", "group")}
    return found


def run(job: Job, folder: Path) -> tuple[pa.Table, pd.DataFrame, float]:
    """Runs a job; the score table, one row per edit, and seconds."""
    started = time.perf_counter()
    run_job(job, folder, progress=False)
    return (
        pq.read_table(folder / "scores.parquet"),
        pd.read_parquet(folder / "edits.parquet"),
        time.perf_counter() - started,
    )


def main() -> None:
    """Measures everything and writes benchmarks/results/editors_tiny.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edits", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--editor", action="append", help="only this one; give it again for more")
    given = parser.parse_args()
    names = [*(given.editor or EDITORS)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        job = Job("seesaw-tiny", tuple(names), limit=given.edits, seed=given.seed, device="cpu")
        subjects = {case.request.subject for case in make_run(replace(job, editors=("ft",)), folder / "none").cases}
        texts = [text for text in sample_corpus() if not any(subject in text for subject in subjects)]
        (folder / "corpus.txt").write_text("\n".join(texts), encoding="utf-8")
        job = replace(job, corpus=folder / "corpus.txt")
        settings = {
            **{key: vars(given)[key] for key in ("edits", "seed")},
            "subjects": len(subjects),
            "texts": len(texts),
        }
        record = _earlier(settings)
        for editor in names:
            scores, edits, seconds = run(replace(job, editors=(editor,)), folder / editor)
            row = {**measure(scores, editor), "status": edits["status"].value_counts().to_dict()}
            record["editors"][editor] = plain({**row, "seconds_with_fit_and_scoring": round(seconds, 1)})
            if "noise_floor_D" not in record:
                again, _, _ = run(replace(job, editors=(editor,), scorer="plain", max_tokens=300), folder / "again")
                record["noise_floor_D"] = noise_floor(scores, again)
            record["editors"] = {name: record["editors"][name] for name in EDITORS if name in record["editors"]}
            write_text(RESULT, json.dumps({**record, **machine()}, indent=1) + "\n")
            print(editor, {key: round(row[key]["value"], 3) for key in KINDS}, round(seconds), "s", flush=True)


def _earlier(settings: dict[str, Any]) -> dict[str, Any]:
    """What an earlier call with the same settings measured, so that editors can be done one by one."""
    if RESULT.exists():
        record: dict[str, Any] = json.loads(RESULT.read_text(encoding="utf-8"))
        if record["settings"] == settings:
            return record
    return {"settings": settings, "editors": {}}


if __name__ == "__main__":
    main()
