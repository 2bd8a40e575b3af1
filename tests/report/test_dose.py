"""The mass-editing study, end to end on the embedded model."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from seesaw_cf.cli import main
from seesaw_cf.effects import group_effects, prompt_effects, success_of_scores
from seesaw_cf.effects.dose import Curves, read_curves, summarise_curves
from seesaw_cf.errors import RecordError, RunFolderError
from seesaw_cf.report import read_run
from seesaw_cf.run.jobs import Job
from seesaw_cf.run.units import checkpoint_units
from tests.report.runs import cases

OPTIONS = ["seesaw-tiny", "--control", "none", "--config", "cross_subject", "--protocol", "batch"]
OPTIONS += ["--editor", "memit", "--pair", "P27,P101", "--checkpoints", "1", "8"]
SMALL = [*OPTIONS, "--data", "sample", "--orders", "2", "--quiet"]


@pytest.mark.slow(30)
@pytest.mark.exhaustive
def test_end_to_end_resumed_and_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "dose"
    assert main(["audit", *SMALL, "--out", str(out), "--pictures"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 25
    assert max(len(line) for line in lines if str(tmp_path) not in line) <= 110
    shown = " ".join(" ".join(lines).split())
    assert "citizenship + work" in shown
    curves = read_curves(out)
    assert len(curves.units) == (2 * 2 + 1) * 2  # P27, P101 after 1 and 8 edits, both after 8; two orders
    table = summarise_curves(curves).set_index(["mix", "checkpoint"])
    assert table.loc[("P27+P101", 8), "edits"] == 8
    assert table.loc[("P27", 1), "ES"] == 1
    together, *apart = (table["S"][mix, 8] for mix in ("average of P27 and P101", "P27", "P101"))
    assert together == pytest.approx(np.mean(apart))
    assert "average of citizenship and work" in shown
    assert (curves.units["perplexity"] > 1).all()
    assert curves.units["n_people"].min() >= 1
    for name in ("report.html", "report.json", "tables/dose.csv", "tables/dose_groups.csv", "pictures/dose.png"):
        assert (out / "report" / name).stat().st_size, name
    tables = ("dose.json", "scores.parquet", "edits.parquet")
    before = [(out / name).read_bytes() for name in tables]
    shards = sorted(out.glob("shards/*/*.parquet"))
    assert len(shards) == len(curves.units)
    kept = {file: file.stat().st_mtime_ns for file in shards[4:]}
    for file in shards[:3]:
        file.unlink()
    shards[3].write_bytes(shards[3].read_bytes()[:-9])  # damaged
    assert main(["audit", *SMALL, "--out", str(out)]) == 0
    assert [(out / name).read_bytes() for name in tables] == before
    assert all(file.stat().st_mtime_ns == time for file, time in kept.items())
    _the_tables_give_the_numbers(out, curves)
    capsys.readouterr()
    assert main(["audit", *SMALL[:-2], "3", "--quiet", "--out", str(out)]) == 1
    said = capsys.readouterr().err
    assert "belongs to another run" in said
    assert "settings.orders: the folder has 2, this run 3" in said
    with pytest.raises(RunFolderError, match="a dose run"):
        read_run(out)


def _the_tables_give_the_numbers(out: Path, curves: Curves) -> None:
    """Whoever reads the score table finds what `dose.json` says."""
    scores, edits = (pq.read_table(out / name) for name in ("scores.parquet", "edits.parquet"))
    for unit in curves.units.to_dict("records"):
        chosen = [pc.equal(scores[name], unit[name]) for name in ("mix", "checkpoint", "order")]
        sample = scores.filter(pc.and_(pc.and_(*chosen[:2]), chosen[2]))
        effects = group_effects(prompt_effects(sample), holds="target_new")
        pooled = effects[(effects["axis"] == "all")]
        assert unit["D"] == pytest.approx(np.average(pooled["D"], weights=pooled["n_cases"]))
        assert unit["n_people"] == pooled["n_prompts"].sum()
        assert unit["ES"] == success_of_scores(sample)["memit"].numbers["counterfact"]["ES"].value
    assert edits.num_rows == 2 * (2 * (1 + 8) + 8)  # one fact is of one relation
    assert {"mix", "checkpoint", "order", "raised", "success"} <= set(edits.column_names)


def test_checkpoints_are_the_first_facts_of_an_order_and_half_of_each_relation() -> None:
    pool, pairs = cases(("P27", "P101"), 10, 3), [("P27", "P101")]
    planned = checkpoint_units(pool, (2, 8), 2, pairs)
    assert planned == checkpoint_units(pool, (2, 8), 2, pairs)
    assert list(dict.fromkeys(unit.labels["mix"] for unit in planned)) == ["P27", "P101", "P27+P101"]
    few, other, many, last = planned[-4:]
    assert [case.request.relation_id for case in many.cases] == ["P27"] * 4 + ["P101"] * 4
    assert len({case.case_id for case in many.cases}) == 8
    assert {case.case_id for case in few.cases} < {case.case_id for case in many.cases}
    assert {case.case_id for case in other.cases} < {case.case_id for case in last.cases}


@pytest.mark.parametrize("pair", ["P27,P27", "P27", "P27,P101,P19"])
def test_bad_pairs_are_named(pair: str) -> None:
    with pytest.raises(RecordError, match=pair):
        Job("m", editors=("ft",), protocol="batch", pairs=(pair,))


_PAIR = [("P27", "P101")]


@pytest.mark.parametrize(
    ("counts", "pairs", "found"),
    [
        ((30,), [], "30 facts edited together, and P101 has 12. Give --checkpoints of at most that"),
        ((13, 1), [], "13 facts edited together, and P101 has 12"),
        ((26,), _PAIR, "26 facts edited together, and P101 has 12"),
        ((3,), _PAIR, "are 3, expected an even number for the pair P27+P101"),
        ((1,), [("P27", "P19")], "no cases of relation ['P19']; cases per relation: {'P27': 32, 'P101': 12}"),
        ((), [], [("P101", 1), ("P101", 10), ("P27", 1), ("P27", 10)]),
        ((12, 12, 1), [], [("P101", 1), ("P101", 12), ("P27", 1), ("P27", 12)]),
        ((1, 4, 5), _PAIR, [("P27", 1), ("P27", 4), ("P27", 5), ("P101", 1), ("P101", 4), ("P101", 5),
         ("P27+P101", 4)]),
    ],
)  # fmt: skip
def test_a_checkpoint_is_of_as_many_facts_as_it_says(counts: Any, pairs: Any, found: Any) -> None:
    pool = [*cases(("P27",), 32, 1), *cases(("P101",), 12, 1)]
    if isinstance(found, str):
        with pytest.raises(RecordError, match=re.escape(found)):
            checkpoint_units(pool, counts, 1, pairs)
        return
    planned = checkpoint_units(pool, counts, 2, pairs)
    assert [(unit.labels["mix"], unit.labels["checkpoint"]) for unit in planned[::2]] == found
    for one, other in zip(planned[::2], planned[1::2], strict=True):
        first, second = ({case.case_id for case in unit.cases} for unit in (one, other))
        assert len(first) == len(second) == one.labels["checkpoint"]
        assert (one.labels["overlap"] == 1) == (first == second)
