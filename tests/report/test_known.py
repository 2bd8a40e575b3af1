"""What a report says about facts that the model knew, and about runs that do not say it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from seesaw_cf.base.tables import read_table, write_table
from seesaw_cf.cli import main
from seesaw_cf.effects import group_effects, prompt_effects
from seesaw_cf.report import Results, read_results, terminal_report, write_report
from seesaw_cf.report.findings import knowledge_sentence
from seesaw_cf.run.edit_table import EDITS
from tests.report.runs import all_markdown, cases, property_cases, write_run

SCALES = ("log_odds", "share")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which half of the edited facts are known: those with an even number."""
    made = write_run(tmp_path_factory.mktemp("known") / "run", cases(("P27",), 12, 8) + property_cases(2))
    edits = pq.read_table(made / "edits.parquet").to_pandas()
    edits["known"] = edits["case_id"] % 2 == 0
    write_table(made / "edits.parquet", pq.read_table(made / "edits.parquet").from_pandas(edits, EDITS))
    return made


@pytest.fixture(scope="module")
def results(folder: Path) -> Results:
    return read_results(folder, axes=("gender",))


@pytest.mark.slow
def test_known_tables_are_those_of_the_known_rows(results: Results, folder: Path) -> None:
    prompts = prompt_effects(read_table(folder / "scores.parquet"))
    chosen = {
        "edited fact known": prompts[prompts["case_id"] % 2 == 0],
        "asked fact known": prompts[prompts["pre_new"] > prompts["pre_true"] + 1e-4],
    }
    assert set(results.known.effects["facts"]) == set(chosen)
    for facts, rows in chosen.items():
        expected = group_effects(rows, axes=("gender",))
        found = results.known.effects[results.known.effects["facts"] == facts].reset_index(drop=True)
        for name in ("D", "low", "high", *SCALES, "log_odds_low", "share_low", "share_high", "n_prompts", "n_cases"):
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-12, err_msg=f"{facts} {name}")


@pytest.mark.slow
def test_right_answers_known_before_are_all_right_before(results: Results) -> None:
    asked = results.known.accuracy[results.known.accuracy["facts"] == "asked fact known"]
    every = results.accuracy[results.accuracy["edit_relation"] == "all"].iloc[0]
    pooled = asked[asked["edit_relation"] == "all"].iloc[0]
    assert (asked["pre"] == 1).all()
    assert pooled["n"] == round(every["pre"] * every["n"])
    assert pooled["lost"] == every["lost"]
    edited = results.known.accuracy[results.known.accuracy["facts"] == "edited fact known"]
    assert edited[edited["edit_relation"] == "all"].iloc[0]["n"] == every["n"] / 2


def test_verdicts_among_known_facts_are_apart_and_say_that_they_are_a_second_look(results: Results) -> None:
    assert results.audit is not None
    assert "facts" not in results.audit.verdicts
    assert set(results.audit.known["facts"]) <= {"edited fact known", "asked fact known"}
    assert {"probability", "log_odds", "share"} <= set(results.audit.verdicts.columns)
    assert results.audit.known["p_t"].equals(results.audit.known["p"])  # without permutations
    assert "supports none of its own." in all_markdown(results)


@pytest.mark.slow
def test_report_and_terminal_show_knowledge_and_scales(results: Results) -> None:
    shown, page = terminal_report(results), all_markdown(results)
    for title in ("WHAT DID THE MODEL KNOW BEFORE?", "EFFECTS AMONG KNOWN FACTS"):
        assert title in shown
    assert re.sub("[·…→−“”]", "", shown).isascii()
    assert max(map(len, shown.split("\n")[1:])) <= 100
    for title in (
        "## What did the model know before?",
        "## Effects among known facts",
        "## Other properties among known facts",
    ):
        assert title in page
    row = results.effects[results.effects["axis"] == "all"].iloc[0]
    (line,) = [line for line in page.split("\n") if line.startswith("| memit | citizenship | new target | all | ")]
    share = line.split(" | ")[7]
    numbers = [float(number) for number in re.findall(r"[-+\d][-+.e\d]*", share)]
    assert numbers == pytest.approx([row["share"], row["share_low"], row["share_high"]], abs=0.005)
    assert line.endswith(f" {row['n_cases']} | {row['n_subjects']} | {row['n_prompts']} |")


@pytest.mark.slow
def test_files_hold_the_tables(folder: Path, tmp_path: Path) -> None:
    write_report(folder, tmp_path / "out")
    edits = pd.read_csv(tmp_path / "out" / "tables" / "edits.csv")
    assert {"n_candidates", "true_rank", "true_share", "known"} <= set(edits)
    assert not {"candidates", "candidates_pre"} & set(edits)
    assert 18 in pd.read_csv(tmp_path / "out" / "tables" / "knowledge.csv")["n"].tolist()  # 12 and three pairs of 2
    for name in ("effects_known", "accuracy_known", "verdicts_known"):
        assert set(pd.read_csv(tmp_path / "out" / "tables" / f"{name}.csv")["facts"]) <= {
            "edited fact known",
            "asked fact known",
        }
    main(["metrics", str(folder), "--json", str(tmp_path / "metrics.json")])
    written = json.loads((tmp_path / "metrics.json").read_text(encoding="utf-8"))
    for name in ("knowledge", "edit_bias_known", "cross_property_accuracy_known", "verdicts_known"):
        assert written[name][0]["facts"]
    assert {"share", "share_low", "log_odds_low"} <= set(written["edit_bias"][0])


@pytest.mark.slow
def test_a_run_of_an_older_version_says_that_it_does_not_know(folder: Path, tmp_path: Path) -> None:
    old = write_run(tmp_path / "old", cases(("P27",), 6, 8))
    table = pq.read_table(old / "edits.parquet")
    since = EDITS.names[EDITS.names.index("candidates") :]
    pq.write_table(table.drop_columns(since), old / "edits.parquet")
    results = read_results(old, axes=("gender",))
    assert set(results.known.effects["facts"]) == {"asked fact known"}  # the scores say that much
    for said in (knowledge_sentence(results), terminal_report(results), all_markdown(results)):
        assert "Whether the model knew the edited facts is unknown" in " ".join(said.split())
    assert "repeat the run into a new folder" in results.known.note


@pytest.mark.slow
def test_a_run_that_asked_nobody_and_knew_nothing_is_a_report(folder: Path, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", property_cases(1))
    results = read_results(run)
    bare = replace(results, known=replace(results.known, accuracy=pd.DataFrame()))
    assert "known facts" not in all_markdown(bare)
    assert results.known.effects.empty
    assert "beats all candidates (exact match)" in " ".join(terminal_report(results).split())
    paper = terminal_report(read_results(run, mode="paper"))
    assert "beats all candidates (substring match)" in " ".join(paper.split())
