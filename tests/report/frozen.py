"""Runs and numbers of their reports that were frozen, see goldens/README.md."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from seesaw_cf.base.files import write_text
from seesaw_cf.base.tables import CONTROL_SEEDS, SCORES, write_table
from seesaw_cf.editors.control_names import first_seed
from seesaw_cf.report import Results
from seesaw_cf.report.success import success_table
from seesaw_cf.run.edit_table import EDITS

GOLDENS = Path(__file__).parent / "goldens"
RUNS = ("demo", "two_editors", "three_seeds", "batch", "planted")
KEYS = ["what", "editor", "beside", "relation", "axis", "group", "reference", "holds", "scale"]
FLOATS = ["value", "low", "high", "stderr", "df", "p", "p_adjusted", "margin", "detectable"]
COUNTS = ["n", "n_edits", "n_people", "n_unscored", "half_edits"]
_STEP = 2.0**-12  # nats: logprobs are stored as whole multiples
_UNSCORED = "not scored"


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
            columns |= {"status": pa.array(np.where(scored, "ok", _UNSCORED).tolist())}
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


def numbers(results: Results) -> pd.DataFrame:
    """Return what a report estimates as rows of `KEYS`, `FLOATS`, `COUNTS` and `verdict`."""
    parts = [*_levels(results), *_groups(results), *_contrasts(results), *_shares(results)]
    table = pd.concat([part for part in parts if len(part)], ignore_index=True)
    table = table.reindex(columns=[*KEYS, *FLOATS, *COUNTS, "verdict"])
    table[FLOATS] = table[FLOATS].astype(float)
    table[COUNTS] = table[COUNTS].astype("Float64").astype(float)
    words = [*KEYS, "verdict"]
    table[words] = table[words].fillna("").astype(str)
    return table.sort_values(KEYS, kind="stable").reset_index(drop=True)


_Parts = list[pd.DataFrame]
_LIMITS = ("low", "high", "stderr", "df", "p")
_GROUP = ["editor", "relation", "axis", "group"]


def _rows(table: pd.DataFrame, what: str, keys: list[str], named: dict[str, str], **same: str) -> pd.DataFrame:
    """Return columns under the names of a row: `named` is name -> column of the table."""
    there = {name: column for name, column in named.items() if column in table}
    out = table[[*keys, *there.values()]].set_axis([*keys, *there], axis=1)
    return out.loc[:, ~out.columns.duplicated()].assign(what=what, **same)


def _levels(results: Results) -> _Parts:
    levels = results.levels.rename(columns={"level": "holds", "control": "beside"})
    keys = ["editor", "beside", "holds", "scale"]
    counts = {name: name for name in COUNTS}
    ends = {"after": {"low": "after_low", "high": "after_high"}, "before": {}}
    parts = [_rows(levels, f"level {name}", keys, {"value": name, **ends[name]}) for name in ends]
    parts.append(_rows(levels, "level", keys, {"value": "value", "low": "low", "high": "high", **counts}))
    beside = levels[levels["beside"] != ""]
    control = {name: f"control_{name}" for name in ("value", "low", "high")}
    difference = {"value": "difference", "low": "difference_low", "high": "difference_high"}
    difference |= {name: name for name in ("p", "p_adjusted", "margin", "verdict")}
    return [
        *parts,
        _rows(beside, "level of control", keys, control),
        _rows(beside, "level beyond control", keys, difference),
    ]


def _scales(table: pd.DataFrame, what: str, keys: list[str], value: str, extra: dict[str, str]) -> _Parts:
    plain = {name: name for name in _LIMITS} | {"value": value, "half_edits": "half_edits"} | extra
    parts = [_rows(table, what, keys, plain, scale="probability")]
    for scale, column in (("log-odds", "log_odds"), ("share", "share")):
        named = {name: f"{column}_{name}" for name in (*_LIMITS, "half_edits")} | {"value": column}
        parts.append(_rows(table, what, keys, named, scale=scale))
    return parts


def _groups(results: Results) -> _Parts:
    parts: _Parts = []
    if len(effects := results.effects):
        keys, counts = [*_GROUP, "holds"], {"n": "n_prompts", "n_edits": "n_cases", "n_people": "n_subjects"}
        counts["n_unscored"] = "n_unscored"
        parts += _scales(effects, "change", keys, "D", counts)
        for what, column in (("before", "D_pre"), ("after", "D_post"), ("likelier before", "likelier_pre")):
            parts.append(_rows(effects, what, keys, {"value": column}))
    if results.audit is None:
        return parts
    for what, table, first, second in (
        ("beyond control", results.audit.excess, "editor", "control"),
        ("editors", results.audit.pairs, "first", "second"),
    ):
        if len(table):
            frame = table.rename(columns={first: "editor", second: "beside"})
            parts += _scales(_counted(frame), what, [*_GROUP, "beside"], "value", _TESTED)
    return parts


_TESTED = {"n": "n", "n_edits": "n_edits", "n_people": "n_people", "p_adjusted": "p_adjusted"}


def _counted(table: pd.DataFrame) -> pd.DataFrame:
    """Return estimates with the number of their edits and people."""
    return table.assign(
        n_edits=[clusters.get("edit") for clusters in table["clusters"]],
        n_people=[clusters.get("person") for clusters in table["clusters"]],
    )


def _contrasts(results: Results) -> _Parts:
    if results.audit is None or "verdict" not in results.audit.verdicts:
        return []
    keys = [*_GROUP, "reference", "holds", "scale"]
    named = {name: name for name in ("value", *_LIMITS, "margin", "detectable", "verdict")} | _TESTED
    return [_rows(_counted(results.audit.verdicts), "contrast", keys, named)]


def _shares(results: Results) -> _Parts:
    parts: _Parts = []
    if len(accuracy := results.accuracy):
        accuracy = accuracy.assign(relation=accuracy["edit_relation"] + "/" + accuracy["effect_relation"])
        keys = ["editor", "relation"]
        for what in ("pre", "post"):
            parts.append(_rows(accuracy, f"right {what}", keys, _limits(what)))
        change = {"value": "change", "low": "low", "high": "high", "p": "p", "n": "n", "n_unscored": "n_unscored"}
        parts.append(_rows(accuracy, "right change", keys, change))
        for what in ("chance", "majority", "lost", "gained"):
            parts.append(_rows(accuracy, f"right {what}", keys, {"value": what}))
        for scale, column in (("log-odds", "log_odds"), ("share", "share")):
            parts.append(_rows(accuracy, "right answers", keys, _limits(column), scale=scale))
    for what in ("pre", "post", "raised"):
        if what in results.efficacy:
            counts = {"n": "n_raised"} if what == "raised" else {"n": "n", "n_unscored": "n_unscored"}
            parts.append(_rows(results.efficacy, f"took {what}", ["editor", "relation"], _limits(what) | counts))
    if results.success:
        success = success_table(results.success)
        success = success[success["number"].isin(["ES", "PS", "NS"])]
        named = {"value": "value", "low": "low", "high": "high", "n": "n_prompts", "n_edits": "n_cases"}
        parts += [_rows(own, str(number), ["editor"], named) for number, own in success.groupby("number")]
    return parts


def _limits(name: str) -> dict[str, str]:
    return {"value": name, "low": f"{name}_low", "high": f"{name}_high", "p": f"{name}_p"}
