"""Sentences end the terminal's text and open the report; what cannot be interpreted is said loudly."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from seesaw_cf.editors.control_names import is_control
from seesaw_cf.effects.locality import Locality
from seesaw_cf.report import read_results
from seesaw_cf.report.conclusion import conclude, conclusion_markdown, conclusion_text
from seesaw_cf.report.results import Results
from seesaw_cf.stats import proportion


@pytest.fixture(scope="module")
def results(run_folder: Path) -> Results:
    return read_results(run_folder, axes=("gender",))


def test_sentences_end_the_terminal_and_open_the_report(report: tuple[Path, str], run_folder: Path) -> None:
    out, shown = report
    head, *lines = shown.split("\n\n")[-1].split("\n")
    assert head == "CONCLUSION"
    assert [line.split(":")[0] for line in lines if not line.startswith("  ")] == [
        *("Edited", "Took", "Other facts", "Old answer", "New answer", "Groups", "Knew", "Not known", "How sure")
    ]
    title, heading, conclusion, *_ = (out / "report.md").read_text().split("\n\n")
    assert title.startswith("# ")
    assert heading == "## Conclusion"
    assert len(conclusion.split("\n")) == 9


def test_every_number_of_it_is_that_of_the_tables(results: Results) -> None:
    said = conclude(results)
    edited, knew, took, unknown, sure = (said[head] for head in ("Edited", "Knew", "Took", "Not known", "How sure"))
    assert edited.startswith(f"{len(results.edits)} edits (")
    assert all(name in took for name in results.editors)
    facts = results.edits.drop_duplicates("case_id")["known"]
    assert f"{100 * facts.mean():.1f}% [" in knew
    assert f"of {len(facts)} edited facts" in knew
    assert results.audit is not None
    contrasts = results.audit.verdicts.query("not mirror")
    contrasts = contrasts[~contrasts["editor"].map(is_control)]
    counts = [int((contrasts["verdict"] == label).sum()) for label in ("undetermined", "not testable")]
    expected = "{} undetermined, {} not testable of {} contrasts (controls left out)".format(*counts, len(contrasts))
    assert unknown.startswith(expected)
    assert f"margin {results.audit.settings.margin:g}" in sure


def test_edits_that_do_not_take_are_said_loudly(results: Results) -> None:
    low = results.efficacy.assign(post=0.2, post_low=0.1, post_high=0.4)
    assert "EFFICACY NOT SHOWN for" in conclude(replace(results, efficacy=low))["Took"]
    high = results.efficacy.assign(post=0.9, post_low=0.8, post_high=1.0)
    assert "EFFICACY NOT SHOWN" not in conclude(replace(results, efficacy=high))["Took"]


def test_edits_that_spoil_others_are_said_loudly(results: Results) -> None:
    assert "NOT LOCAL" not in conclude(results)["Took"]
    spoilt = Locality("neighbours", 0.66, 0.11, 40, proportion(1, 8))
    took = conclude(replace(results, local={"memit": spoilt, "identity(memit)": spoilt}))["Took"]
    assert f"EDITS ARE NOT LOCAL, so the numbers of side effects are those of a broken model: memit: {spoilt}." in took
    assert "identity" not in took.split("NOT LOCAL")[1]


def test_what_a_control_did_is_no_effect_of_an_edit(results: Results) -> None:
    assert results.audit is not None
    verdicts = results.audit.verdicts.assign(verdict="worse off")
    editor = verdicts["editor"].iloc[0]
    own, controls = verdicts.assign(verdict="undetermined"), verdicts.assign(editor=f"random({editor})")
    both = replace(results, audit=replace(results.audit, verdicts=pd.concat([own, controls], ignore_index=True)))
    affected = conclude(both)["Groups"]
    assert affected.startswith("No group is shown to be affected more or less than the others.")
    n = len(own) - own["mirror"].sum()
    assert f"Other contrasts: {n} undetermined." in affected
    assert affected.endswith(f"After control edits {n} of {n} contrasts are worse off or better off.")


def test_what_a_run_did_not_ask_is_said(results: Results) -> None:
    bare = replace(results, effects=results.effects.iloc[:0], levels=results.levels.iloc[:0], audit=None)
    said = conclude(bare)
    assert said["Other facts"].startswith("Nothing was asked about the edited people's other properties")
    assert said["Old answer"] == "Nothing was asked about people who hold the old answer."
    assert said["New answer"] == "Nothing was asked about people who hold the new answer."
    assert said["Groups"].startswith("Nobody was compared")
    assert said["How sure"].endswith("no test was made.")


def test_names_from_data_are_escaped(results: Results) -> None:
    manifest = results.manifest | {"model": {"id": "a*b*<c>\x1b[31m", "dtype": "float32"}}
    bad = replace(results, manifest=manifest)
    assert "a\\*b\\*&lt;c&gt;" in conclusion_markdown(bad)
    assert "\x1b" not in conclusion_text(bad)


def test_what_records_lack_is_said_in_both_with_what_adds_it(results: Results) -> None:
    assert "The records lack" not in conclusion_text(results) + conclusion_markdown(results)
    note = "None of the prompts carries a <b>race</b>. `seesaw-cf tag RECORDS --from wikidata --out DIR` adds them."
    lacking = replace(results, manifest={**results.manifest, "notes": [note]})
    assert " ".join(conclusion_text(lacking).split()).endswith(f"The records lack something: {note}")
    last = conclusion_markdown(lacking).split("\n")[-1]
    assert last.startswith("- **The records lack something:** None of the prompts carries a")
    assert "seesaw-cf tag RECORDS" in last
    assert "<b>" not in last
