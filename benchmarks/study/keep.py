"""Keep finished cells of the study in few bytes: scores in steps of 1/16 nat (ranked answers: 1/512), no wording.

    python -m benchmarks.study.keep STUDY
    python -m benchmarks.study.keep --unpack smollm2/edits1/memit FOLDER

The first keeps every finished cell of `STUDY/cells` in `benchmarks/study/results`, of edits one after another what the
report says of everybody. The second writes a kept cell as the run folder that it was, so that `seesaw-cf report FOLDER`
and every other command reads it without a model. Names of
people and wordings of prompts are those of `benchmarks/study/edits*.parquet`, by id; a prompt is its template's id.

A folder MODEL/RECORDS has `questions.parquet`: everything that was asked there, with the scores before an edit. The
folder of an editor has `changes.parquet`: in the same order, what each of its editors changed, in steps.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from seesaw_cf.base.files import atomic_path, dump_json, write_text
from seesaw_cf.base.tables import SCORES, read_table, write_table
from seesaw_cf.stats.bootstrap import Floats

KEPT = Path(__file__).with_name("results")
STEPS, RANKED_STEPS = 16, 512
"""Steps in a nat; answers to one question are ranked, so few of them may become equal."""
_QUESTIONS, _CHANGES = "questions.parquet", "changes.parquet"
_VARY = ("logprob", "greedy", "n_greedy", "n_kept")
"""Columns that an edit changes."""
_STEPPED = ("logprob", "change")
"""Columns of steps: their higher bytes repeat."""
_TESTS = ("relation", "axis", "group", "stderr", "df", "p", "margin", "note", "edit_share_for_half")
"""Columns of a report that say how a number was made."""
_WORDING = ("prompt", "subject")
_PAGE = 2**30  # bytes and rows: a column is one page, in which scores before an edit repeat


def pack(table: pa.Table, file: Path) -> None:
    """Write a table in as few bytes as Parquet allows."""
    with atomic_path(file) as path:
        pq.write_table(
            table,
            path,
            compression="brotli",
            compression_level=11,
            row_group_size=len(table),
            data_page_size=_PAGE,
            max_rows_per_page=_PAGE,
            write_batch_size=_PAGE,
            dictionary_pagesize_limit=_PAGE,
            use_dictionary=[column for field in table.schema for column in _dictionary_columns(field)],
            column_encoding={name: "BYTE_STREAM_SPLIT" for name in _STEPPED if name in table.column_names},
        )


def _dictionary_columns(field: pa.Field) -> list[str]:
    """Return the path of a column that a dictionary makes smaller, else nothing."""
    listed = pa.types.is_list(field.type)
    # prompt_id counts up, and steps are many: a dictionary adds bytes
    if pa.types.is_floating(field.type.value_type if listed else field.type) or field.name in ("prompt_id", *_STEPPED):
        return []
    return [f"{field.name}.list.element" if listed else field.name]


def _steps(table: pa.Table) -> Floats:
    """Return how many steps a nat has in each row."""
    return np.where(pc.equal(table["kind"], "cross_property"), float(RANKED_STEPS), float(STEPS))


def keep(cell: Path, folder: Path) -> None:
    """Write the tables of a finished run into another folder.

    Args:
        cell: The run folder.
        folder: The other one, MODEL/RECORDS/EDITOR; its editor's files are replaced.

    Raises:
        ValueError: The run asked other questions than those that are kept in MODEL/RECORDS.
    """
    folder.mkdir(parents=True, exist_ok=True)
    scores = read_table(cell / "scores.parquet", SCORES)
    steps = pa.array(np.rint(scores["logprob"].to_numpy() * _steps(scores)), pa.int32(), from_pandas=True)
    scores = _set_column(scores, "logprob", steps)
    for name in _WORDING:
        scores = _set_column(scores, name, pa.array([""] * len(scores), pa.string()))
    blocks = [
        scores.filter(pc.and_(pc.equal(scores["editor"], editor), pc.equal(scores["phase"], phase)))
        for editor in dict.fromkeys(scores["editor"].to_pylist())
        for phase in ("pre", "post")
    ]
    kept = folder.parent / _QUESTIONS
    if not kept.exists():
        pack(blocks[0].drop_columns(["editor", "phase", "form"]), kept)
    questions = pq.read_table(kept)
    pack(
        pa.concat_tables([_changes(pre, post, questions, cell) for pre, post in zip(blocks[::2], blocks[1::2])]),
        folder / _CHANGES,
    )
    edits = pq.read_table(cell / "edits.parquet")
    before = edits["candidates_pre"].combine_chunks()
    fine = np.round(before.values.to_numpy(zero_copy_only=False) * RANKED_STEPS) / RANKED_STEPS
    steps = pa.array(fine, from_pandas=True)
    before = pa.ListArray.from_arrays(before.offsets, steps, mask=before.is_null())
    pack(_set_column(edits, "candidates_pre", before), folder / "edits.parquet")
    manifest = json.loads((cell / "manifest.json").read_text(encoding="utf-8"))
    for change in manifest.get("edited", {}).values():
        change.pop("moved", None)
    dump_json(folder / "manifest.json", manifest)


def _changes(pre: pa.Table, post: pa.Table, questions: pa.Table, cell: Path) -> pa.Table:
    """Return what an editor changed, in steps."""
    same = [name for name in questions.column_names if name not in _VARY]
    if not pre.select(same).equals(questions.select(same)) or not post.select(same).equals(questions.select(same)):
        raise ValueError(f"{cell}: got other questions than {_QUESTIONS} has. Keep them under another name.")
    steps = [table["logprob"].to_numpy() for table in (questions, pre, post)]
    return pa.table({
        "editor": pre["editor"],
        "before": pa.array(steps[1] - steps[0], pa.int16()),
        "change": pa.array(steps[2] - steps[1], pa.int32()),
        **{name: post[name] for name in _VARY[1:]},
    })  # fmt: skip


def unpack(kept: Path, folder: Path) -> Path:
    """Write a kept cell as the run folder that it was, and return it.

    Args:
        kept: MODEL/RECORDS/EDITOR in the kept results.
        folder: Where to write.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_table(folder / "scores.parquet", kept_scores(kept))
    for name in ("edits.parquet", "manifest.json"):
        (folder / name).write_bytes((kept / name).read_bytes())
    return folder


def kept_scores(kept: Path) -> pa.Table:
    """Return the scores of a kept cell, in the order of the run: one editor after another."""
    questions, changes = pq.read_table(kept.parent / _QUESTIONS), pq.read_table(kept / _CHANGES)
    questions = _set_column(questions, "prompt", questions["template_id"])  # the same question in another edit is known
    questions = questions.append_column("form", pa.array(["plain"] * len(questions)))
    blocks = []
    for number in range(len(changes) // len(questions)):
        own = changes.slice(number * len(questions), len(questions))
        before = questions["logprob"].to_numpy() + own["before"].to_numpy()
        change = own["change"].to_numpy()
        after = {name: own[name] for name in _VARY[1:]}
        for phase, steps, values in (("pre", before, {}), ("post", before + change, after)):
            block = questions
            for name, column in values.items():
                block = _set_column(block, name, column)
            block = _set_column(block, "logprob", pa.array(steps / _steps(questions), pa.float64()))
            phases = pa.array([phase] * len(block))
            blocks.append(block.append_column("editor", own["editor"]).append_column("phase", phases))
    # pre and post of a question are neighbours
    pairs = np.arange(len(changes)).repeat(2).reshape(-1, len(questions), 2)
    order = (pairs + len(questions) * (np.arange(len(pairs))[:, None, None] + [0, 1])).ravel()
    return pa.concat_tables(blocks).select(SCORES.names).take(order)


def keep_curves(study: Path, out: Path) -> None:
    """Keep what the report of edits one after another says of everybody: the curves, the levels, which edits hold."""
    for name in ("curve", "levels", "efficacy"):
        table = pd.read_csv(study / "report" / "tables" / f"{name}.csv")
        for column in {"relation", "axis"} & {*table.columns}:
            table = table[table[column] == "all"]
        if name == "efficacy":
            table = table[table["what"] == "efficacy_after"]
        table = table.drop(columns=[name for name in _TESTS if name in table])
        text = table.dropna(axis=1, how="all").to_csv(index=False, float_format="%.5g", lineterminator="\n")
        write_text(out / study.name / f"{name}.csv", text)


def _set_column(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, values)


def main() -> None:
    """Keep what is finished."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", type=Path, help="the folder of `seesaw-cf study`, or to write")
    parser.add_argument("--out", type=Path, default=KEPT)
    parser.add_argument("--unpack", metavar="MODEL/RECORDS/EDITOR", help="write this kept cell to the folder instead")
    given = parser.parse_args()
    if given.unpack:
        unpack(given.out / given.unpack, given.study)
        return
    for done in sorted(given.study.glob("cells/*/*/single/*/edits.parquet")):
        model, records, _, editor = done.parent.relative_to(given.study / "cells").parts
        keep(done.parent, given.out / model / records / editor)
    if (given.study / "report" / "tables" / "curve.csv").exists():
        keep_curves(given.study, given.out / "sequences")


if __name__ == "__main__":
    main()
