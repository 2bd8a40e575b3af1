"""What pages are made of is what the report computes, and a damaged run is named before anything is served."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from seesaw_cf.base.tables import SCORES, read_table, write_table
from seesaw_cf.effects import prompt_effects
from seesaw_cf.errors import RecordError, RunFolderError, SeesawError
from seesaw_cf.report.view.prompts import Prompts, open_prompts
from tests.report.runs import cases, write_run

KEYS = ["editor", "kind", "case_id", "prompt_id"]
SAME = [*KEYS, "edit_relation", "prompt", "subject", "holds", "target_new", "target_true", "status", "log_odds"]
SAME += ["pre_new", "pre_true", "post_new", "post_true"]


def check_same(prompts: Prompts, scores: pa.Table) -> pd.DataFrame:
    kinds = prompts.choices["kind"]
    theirs = pd.concat([prompt_effects(scores, kind=kind) for kind in kinds]).sort_values(KEYS, ignore_index=True)
    ours = pd.DataFrame(prompts.rows("SELECT * FROM prompts", {})).sort_values(KEYS, ignore_index=True)
    theirs = theirs.astype({name: "str" for name in SAME if isinstance(theirs[name].dtype, pd.CategoricalDtype)})
    pd.testing.assert_frame_equal(ours[SAME], theirs[SAME], check_dtype=False, rtol=1e-12)
    for axis in ("gender", "race", "region"):
        assert [list(tags) for tags in ours[axis]] == [list(tags) for tags in theirs[axis]]
    return ours


@pytest.mark.slow
def test_prompts_are_those_of_the_report(viewed: Path, prompts: Prompts) -> None:
    ours = check_same(prompts, read_table(viewed / "scores.parquet", SCORES))
    assert prompts.total == len(ours) > 400
    assert prompts.choices["kind"] == ("cross_subject", "efficacy")
    assert (ours["status"] == "post_new: refused: singular <b>matrix</b> | row").any()
    place = ours.set_index(KEYS)["log_odds"]
    beside = ours[(ours["editor"] == "memit") & (ours["kind"] == "cross_subject")]
    wanted = [place["random(memit)", kind, case, number] for _, kind, case, number in beside[KEYS].to_numpy()]
    np.testing.assert_array_equal(beside["random"].to_numpy(float), wanted)
    assert ours.loc[ours["editor"] != "memit", "random"].isna().all()


@pytest.mark.slow
def test_rows_before_the_edit_may_be_shared_and_numbers_missing(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", cases(("P27",), 3, 5), ("memit", "ft"))
    scores = read_table(folder / "scores.parquet", SCORES)
    pre, ft = pc.equal(scores["phase"], "pre"), pc.equal(scores["editor"], "ft")
    frame = scores.filter(pc.invert(pc.and_(pre, ft))).to_pandas()
    before = frame["phase"] == "pre"
    frame.loc[before, "editor"] = "none"
    lost = frame.index[~before & (frame["role"] == "target_new")][:3]
    frame.loc[lost[0], "logprob"] = -math.inf
    frame = frame.drop(index=lost[1])
    frame.loc[lost[2], "status"] = "token limit"
    changed = pa.Table.from_pandas(frame, SCORES, preserve_index=False)
    write_table(folder / "scores.parquet", changed)
    with open_prompts(folder) as prompts:
        ours = check_same(prompts, changed)
    assert sorted(ours.loc[ours["status"] != "ok", "status"].str.partition(": ")[2]) == [
        "missing",
        "not finite",
        "token limit",
    ]


def _twice(folder: Path) -> None:
    scores = read_table(folder / "scores.parquet", SCORES)
    write_table(folder / "scores.parquet", pa.concat_tables([scores, scores.slice(0, 1)]))


def _cut(folder: Path) -> None:
    file = folder / "scores.parquet"
    file.write_bytes(file.read_bytes()[:-100])


def _hole(folder: Path) -> None:
    file = folder / "scores.parquet"
    content = bytearray(file.read_bytes())
    content[200:4_000] = bytes(3_800)
    file.write_bytes(content)


def _column(folder: Path) -> None:
    write_table(folder / "scores.parquet", read_table(folder / "scores.parquet").drop_columns(["logprob"]))


@pytest.mark.parametrize(
    ("damage", "error", "message"),
    [
        (_twice, RecordError, r"scores\.parquet: a \(case, prompt, target, phase\) occurs more than once"),
        (_cut, RecordError, r"scores\.parquet: not a whole Parquet file .*Delete it and make it again"),
        (_hole, RecordError, r"scores\.parquet: not a whole Parquet file .*Delete it and make it again"),
        (_column, RecordError, r"columns \['logprob'\] are missing"),
        (lambda folder: (folder / "scores.parquet").unlink(), RunFolderError, "the run is not finished"),
        (lambda folder: (folder / "manifest.json").unlink(), RunFolderError, "so it is not a run folder"),
    ],
)
def test_a_damaged_run_is_named(
    tmp_path: Path, damage: Callable[[Path], object], error: type[SeesawError], message: str
) -> None:
    folder = write_run(tmp_path / "run", cases(("P27",), 2, 40))
    damage(folder)
    with pytest.raises(error, match=message), open_prompts(folder):
        pass


def test_the_run_is_left_as_it_is(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", cases(("P27",), 2, 3))
    before = {file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in folder.iterdir()}
    with open_prompts(folder) as prompts:
        assert prompts.total == 8
    assert {file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in folder.iterdir()} == before
