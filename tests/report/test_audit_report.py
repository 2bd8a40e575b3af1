"""Verdicts, excess over controls, editors side by side, gates: in the report."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from seesaw_cf.base.tables import read_table
from seesaw_cf.cli import main
from seesaw_cf.effects import audit, estimate_groups, excess_over_control, prompt_effects
from seesaw_cf.errors import SeesawError
from seesaw_cf.report import AuditSettings, Results, read_results
from seesaw_cf.report.verdicts import about_verdicts
from seesaw_cf.report.write import run_report
from seesaw_cf.stats.verdicts import NOT_MEASURED, VERDICTS
from tests.report.runs import all_markdown, cases, write_manifest, write_run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A run with two editors and a control."""
    folder = tmp_path_factory.mktemp("audit") / "run"
    return read_results(write_run(folder, cases(("P27",), 8, 16), ("memit", "ft", "identity")))


@pytest.fixture(scope="module")
def controlled(results: Results, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, str]:
    """The folder of the run, its report's folder, the terminal text."""
    out = tmp_path_factory.mktemp("out")
    return results.folder, out, run_report(results, full=True).write(out, pictures=True, full=True)


def test_verdicts_are_those_of_the_effects_module(controlled: tuple[Path, Path, str]) -> None:
    folder, out, _ = controlled
    prompts = prompt_effects(read_table(folder / "scores.parquet"))
    expected = audit(prompts, AuditSettings(margin=0.02, noise_floor=2e-7, noise_floor_log_odds=2e-6))
    found = pd.read_csv(out / "tables" / "verdicts.csv", keep_default_na=False, na_values=[""])
    keys = ["editor", "relation", "axis", "group", "reference"]  # claims come first in the file
    both = found[[*keys, "verdict", "p_adjusted"]].merge(expected, on=keys, validate="one_to_one")
    assert len(both) == len(found) == len(expected)
    assert both["verdict_x"].tolist() == both["verdict_y"].tolist()
    assert both["p_adjusted_x"].to_numpy() == pytest.approx(both["p_adjusted_y"].to_numpy(), nan_ok=True)
    assert set(found["verdict"]) <= set(VERDICTS)
    assert (found["rule"] != "").all()
    wide = found[found["low"].notna()]
    assert (wide["low"] <= wide["value"]).all()
    assert (wide["high"] >= wide["value"]).all()


def test_audit_json_says_everything_and_is_plain(controlled: tuple[Path, Path, str]) -> None:
    _, out, _ = controlled
    whole = json.loads((out / "report.json").read_text(encoding="utf-8"))
    record, verdicts = whole["audit"], pd.read_csv(out / "tables" / "verdicts.csv")
    assert whole["manifest"]
    for key in ("estimand", "method", "settings", "noise_floor", "families", "seeds", "counts"):
        assert record[key], key
    assert record["settings"]["margin"] == 0.02
    assert record["noise_floor"]["source"].startswith("from the run")
    assert sum(record["counts"].values()) == (~verdicts["mirror"]).sum() < len(verdicts)
    assert sorted(record["families"]) == ["ft", "identity", "memit"]
    excess, pairs, held = (pd.read_csv(out / "tables" / f"{name}.csv") for name in ("excess", "editors", "gates"))
    assert set(excess["control"]) == {"identity"}
    assert set(zip(pairs["first"], pairs["second"])) == {("ft", "memit")}
    gates = dict(zip(zip(held["editor"].fillna(""), held["gate"]), held["passed"]))
    assert gates == {
        ("memit", "edits took"): True,
        ("memit", "edits made"): True,
        ("ft", "edits took"): True,
        ("ft", "edits made"): True,
        ("", "scored"): True,
        ("", "protocol"): True,
    }


def test_excess_and_pairs_are_the_paired_differences(results: Results, controlled: tuple[Path, Path, str]) -> None:
    folder, out, _ = controlled
    prompts = prompt_effects(read_table(folder / "scores.parquet"))
    expected = estimate_groups(
        excess_over_control(prompts[prompts["editor"].isin(["ft", "identity"])], "identity"), axes=[]
    ).iloc[0]
    found = (
        pd.read_csv(out / "tables" / "excess.csv")
        .query("editor == 'ft' and control == 'identity' and axis == 'all'")
        .iloc[0]
    )
    for name in ("value", "low", "high", "p"):
        assert found[name] == pytest.approx(expected[name])
    pairs = pd.read_csv(out / "tables" / "editors.csv").query("axis == 'all'").iloc[0]
    means = {e: prompts[prompts["editor"] == e].groupby("case_id")["D"].mean() for e in ("ft", "memit")}
    assert pairs["value"] == pytest.approx((means["ft"] - means["memit"]).mean())
    assert "Excess over control edits" in (out / "report.md").read_text(encoding="utf-8")
    assert "| citizenship | ft | memit | all |" in all_markdown(results)


def test_sections_are_in_the_report_and_on_the_terminal(controlled: tuple[Path, Path, str]) -> None:
    _, out, shown = controlled
    markdown = (out / "report.md").read_text(encoding="utf-8")
    assert "## What can be claimed about groups" in markdown
    assert not re.search(r"\bnan\b", markdown, re.IGNORECASE)
    assert re.search(
        r"\d+ worse off, \d+ better off, \d+ equivalent, \d+ undetermined, \d+ not testable of \d+ contrasts", markdown
    )
    assert "](pictures/verdicts_gender.png)" in markdown
    assert "WHAT CAN BE CLAIMED" in shown
    assert re.sub("[·…→−“”]", "", shown).isascii()
    assert max(map(len, shown.split("\n"))) <= 100


def test_a_batch_run_makes_no_claims(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", cases(("P27",), 6, 8), protocol="batch")
    results = read_results(run)
    assert results.audit is not None
    assert set(results.audit.verdicts["verdict"]) == {"not testable"}
    assert results.audit.verdicts["note"].str.contains("too few edits: 1 ").all()
    run_report(results).write(run / "report")
    gates = pd.read_csv(run / "report" / "tables" / "gates.csv")
    assert gates.loc[gates["gate"] == "protocol", "passed"].tolist() == [False]
    assert "| run | protocol |" in (run / "report" / "report.md").read_text(encoding="utf-8")


def test_measured_noise_is_the_floor_of_claims(tmp_path: Path) -> None:
    made = cases(("P27",), 12, 24)
    run = write_run(tmp_path / "run", made)
    write_manifest(run, ("memit",), len(made), machine={"noise": {"p99": 0.5}})
    results = read_results(run)
    assert results.audit is not None
    floor = results.audit.floor
    value = 2 * math.expm1(0.5)
    assert (floor.probability, floor.log_odds) == pytest.approx((value, 1.0))
    assert "from the run" in floor.source
    claimed = results.audit.verdicts.query("verdict in ['worse off', 'better off']")
    assert (claimed["value"].abs() > value).all()
    stated = read_results(run, settings=AuditSettings(noise_floor=10.0, noise_floor_log_odds=10.0)).audit
    assert stated is not None
    assert not set(stated.verdicts["verdict"]) & {"worse off", "better off"}


def test_options_of_the_command_reach_the_audit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "run", cases(("P27",), 8, 12))
    options = [
        "--margin",
        "0.2",
        "--correction",
        "by",
        "--family",
        "editor,axis",
        "--alpha",
        "0.1",
        "--noise-run",
        str(run),
    ]
    assert main(["report", str(run), *options]) == 0
    record = json.loads((run / "report" / "report.json").read_text(encoding="utf-8"))["audit"]
    assert (
        record["settings"] | {"margin": 0.2, "correction": "by", "family": ["editor", "axis"], "alpha": 0.1}
        == record["settings"]
    )
    assert list(record["families"]) == ["memit/gender", "memit/race", "memit/region"]
    assert record["noise_floor"] == {"value": 0.0, "log_odds": 0.0, "source": "stated"}
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(["report", str(run), "--correction", "hol"])
    assert "argument --correction: unknown value 'hol'. Did you mean 'holm'" in capsys.readouterr().err
    assert main(["report", str(run), "--family", "x,y"]) == 1
    assert (
        "unknown family column 'x'. Known: axis, editor, group, holds, reference, relation." in capsys.readouterr().err
    )
    for words in (["--margin", "0"], ["--margin", "nan"], ["--noise-floor", "inf"], ["--noise-floor", "-1"]):
        with pytest.raises(SystemExit):
            main(["report", str(run), *words])
        assert f"argument {words[0]}: got '{words[1]}', expected a finite number" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"noise_floor": math.nan}, "noise_floor is nan, expected a finite number of at least 0"),
        ({"noise_floor": math.inf}, "noise_floor is inf, expected a finite number of at least 0"),
        ({"noise_floor": -1.0}, "noise_floor is -1.0, expected a finite number of at least 0"),
        ({"noise_floor_log_odds": math.nan}, "noise_floor_log_odds is nan"),
        ({"margin": math.inf}, "margin is inf, expected a finite number between 0 and 0.25"),
        ({"margin_log_odds": 0.0}, "margin_log_odds is 0.0, expected a finite number above 0"),
        ({"alpha": math.nan}, "alpha is nan, expected a finite number between 0 and 1"),
        ({"family": ("x", "y")}, "unknown family column 'x'"),
    ],
)
def test_what_cannot_be_declared_is_refused(declared: dict[str, Any], message: str) -> None:
    with pytest.raises(SeesawError, match=message):
        AuditSettings(**declared)


def test_an_unmeasured_noise_floor_means_no_verdict(tmp_path: Path) -> None:
    made = cases(("P27",), 12, 24)
    run = write_run(tmp_path / "run", made)
    write_manifest(run, ("memit",), len(made), machine={})
    audited = read_results(run).audit
    assert audited is not None
    assert set(audited.verdicts["verdict"]) <= {"undetermined", "not testable"}
    stated = read_results(run, settings=AuditSettings(noise_floor=1e-6)).audit
    assert stated is not None
    tested = stated.verdicts[stated.verdicts["low"].notna()]
    waits = tested["rule"].str.endswith(NOT_MEASURED)
    assert (tested["scale"] == "probability").any()
    assert waits.tolist() == (tested["scale"] == "log-odds").tolist()
    assert audited.verdicts.loc[tested.index, "rule"].str.endswith(NOT_MEASURED).all()


def test_nobody_tagged_is_a_report_without_verdicts(tmp_path: Path) -> None:
    made: Any = cases(("P27",), 3, 4)
    from dataclasses import replace

    bare = [
        replace(
            case,
            attribute_prompts=tuple(replace(p, gender=(), race=(), region=()) for p in case.attribute_prompts),
        )
        for case in made
    ]
    results = read_results(write_run(tmp_path / "run", bare))
    assert about_verdicts(results) == ()
    record: Any = run_report(results).record
    assert record["audit"]["counts"] == {}
