"""Runs and numbers of their reports that were frozen, see goldens/README.md."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from seesaw_cf.base.files import write_text
from seesaw_cf.base.tables import CONTROL_SEEDS, SCORES, write_table
from seesaw_cf.editors.control_names import first_seed
from seesaw_cf.run.store import EDITS

GOLDENS = Path(__file__).parent / "goldens"
RUNS = ("demo", "two_editors", "three_seeds", "batch", "planted")
KEYS = ["what", "editor", "beside", "relation", "axis", "group", "reference", "holds", "scale"]
FLOATS = ["value", "low", "high", "stderr", "df", "p", "p_adjusted", "margin", "detectable"]
COUNTS = ["n", "n_edits", "n_people", "n_unscored", "half_edits"]
_STEP = 2.0**-12  # nats: logprobs are stored as whole multiples


def restore(name: str, folder: Path) -> Path:
    """Write the run folder of a frozen run."""
    source = GOLDENS / name
    manifest = json.loads((source / "manifest.json").read_text(encoding="utf-8"))
    questions = pq.read_table(source / "questions.parquet")
    n = len(questions)
    same = {"editor": "", "phase": "pre", "prompt": "", "subject": "", "greedy": False}
    tables: dict[str, list[pa.Table]] = {"scores.parquet": [], CONTROL_SEEDS: []}
    for editor in manifest["editors"]:
        for phase in ("pre", "post"):
            steps = questions["pre" if phase == "pre" else editor].to_pandas().to_numpy(np.float64)
            scored = np.isfinite(steps)
            columns = {
                name: pa.array([value] * n) for name, value in {**same, "editor": editor, "phase": phase}.items()
            }
            columns |= {name: questions[name] for name in questions.column_names if name in SCORES.names}
            columns |= {"logprob": pa.array(steps * _STEP, mask=~scored)}
            columns |= {"status": pa.array(np.where(scored, "ok", "not scored").tolist())}
            rows = [columns[field.name].cast(field.type) if field.name in columns else pa.nulls(n, field.type)
                    for field in SCORES]  # fmt: skip
            file = "scores.parquet" if first_seed(editor) == editor else CONTROL_SEEDS
            tables[file].append(pa.table(rows, schema=SCORES))
    for file, parts in tables.items():
        if parts:
            write_table(folder / file, pa.concat_tables(parts))
    edits = pq.read_table(source / "edits.parquet")
    for field in EDITS:
        if field.name not in edits.column_names:
            edits = edits.append_column(field, pa.nulls(len(edits), field.type))
    write_table(folder / "edits.parquet", edits.select(EDITS.names))
    write_text(folder / "manifest.json", json.dumps(manifest))
    return folder
