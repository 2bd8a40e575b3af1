"""Finished runs side by side: names, what disagrees, paired differences, and the papers' tables."""

from __future__ import annotations

import shutil
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from scipy import stats

from seesaw_cf.cli import main
from seesaw_cf.effects.accuracy import cross_property
from seesaw_cf.effects.audit import AuditSettings
from seesaw_cf.errors import RunFolderError
from seesaw_cf.report.results import Results, read_results
from seesaw_cf.report.rows import Manifest
from seesaw_cf.study import members
from seesaw_cf.study.conclusion import conclude
from seesaw_cf.study.members import NAMES, check_study, disagreements, read_members
from seesaw_cf.study.page import comparison_head, comparison_tables
from seesaw_cf.study.pairs import label_of
from seesaw_cf.study.tables import compare
from seesaw_cf.study.write import compare_runs
from tests.report.runs import cases, property_cases, write_run

pytestmark = pytest.mark.slow

MODEL = {"id": "tiny", "revision": "", "dtype": "float32", "fingerprint": "ab" * 32, "tokenizer": "cd" * 32}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """Two editors of one model on the same cases, and one of them on another model that was asked fewer."""
    folder = tmp_path_factory.mktemp("runs")
    made = cases(("P27", "P101"), 8, 12) + property_cases(6)
    other: dict[str, Any] = {"model": MODEL | {"id": "other", "fingerprint": "ee" * 32, "dtype": "bfloat16"}}
    return (
        write_run(folder / "memit", made, ("memit", "identity(memit)")),
        write_run(folder / "ft", made, ("identity(ft)", "ft"), refused=1),
        write_run(folder / "other", made[:12], ("memit",), data={"source": "sample", "sha256": "12" * 32}, **other),
    )


@pytest.fixture(scope="module")
def found(runs: tuple[Path, Path, Path]) -> dict[Path, Results]:
    """What the runs found: read once, for tests that only change a manifest."""
    return {run: read_results(run) for run in runs}


@pytest.fixture(scope="module")
def out(runs: tuple[Path, Path, Path], found: dict[Path, Results], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compared")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(members, "read_results", lambda folder, settings: found[folder])
        said = compare_runs(runs, folder, pictures=True)
    assert "report.html, papers.md, report.md" in said
    return folder


@pytest.fixture
def known(found: dict[Path, Results], monkeypatch: pytest.MonkeyPatch) -> dict[Path, Results]:
    """Folder -> results that `read_members` gets for it instead of reading the folder; a test may add some."""
    results = dict(found)
    monkeypatch.setattr(members, "read_results", lambda folder, settings: results[folder])
    return results


def changed(results: Results, **change: Any) -> Results:
    """The results with another manifest: parts that are tables get the change's entries."""
    made: dict[str, Any] = dict(results.manifest)
    for name, new in change.items():
        made[name] = made[name] | new if isinstance(new, dict) else new
    return replace(results, manifest=cast(Manifest, made))


def read(out: Path, name: str) -> pd.DataFrame:
    return pd.read_csv(out / "tables" / f"{name}.csv", keep_default_na=False, na_values=[""])


def changes(folder: Path, editor: str) -> dict[tuple[int, int], tuple[str, float]]:
    """(case, prompt) -> relation and D of people who hold the new target, by hand."""
    p: dict[tuple[int, int], dict[tuple[str, str], float]] = defaultdict(dict)
    relation = {}
    for row in pq.read_table(folder / "scores.parquet").to_pylist():
        if (row["kind"], row["editor"], row["holds"]) == ("cross_subject", editor, "target_new") and row["logprob"]:
            p[row["case_id"], row["prompt_id"]][row["role"], row["phase"]] = float(np.exp(row["logprob"]))
            relation[row["case_id"], row["prompt_id"]] = row["edit_relation"]
    sides = {key: {phase: v["target_new", phase] - v["target_true", phase] for phase in ("pre", "post")}
             for key, v in p.items() if len(v) == 4}  # fmt: skip
    return {key: (relation[key], v["post"] - v["pre"]) for key, v in sides.items()}


def test_paired_differences_are_those_of_shared_prompts(runs: tuple[Path, Path, Path], out: Path) -> None:
    memit, ft = changes(runs[0], "memit"), changes(runs[1], "ft")
    by_case: dict[int, list[float]] = defaultdict(list)
    for key in memit.keys() & ft.keys():
        if memit[key][0] == "P27":
            by_case[key[0]].append(memit[key][1] - ft[key][1])
    expected = float(np.mean([np.mean(values) for values in by_case.values()]))
    found = read(out, "differences").query("differs == 'editor' and measure == 'D' and axis == 'all'")
    found = found[found["relation"] == "P27"]
    assert found["value"].tolist() == pytest.approx([expected])
    assert found["n_cases"].tolist() == [len(by_case)]
    assert (found["low"] < found["value"]).all()
    assert (found["value"] < found["high"]).all()


def test_lines_that_differ_in_two_names_are_not_paired(out: Path) -> None:
    found = read(out, "differences")
    pairs = set(zip(found["differs"], found["first"], found["second"]))
    assert {kind for kind, *_ in pairs} == {"editor"}  # the other model's records differ, too
    assert set(found["measure"]) == {"D", "log-odds", "efficacy", "accuracy"}


@pytest.mark.usefixtures("known")
def test_models_on_the_same_records_are_paired(runs: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """Of two runs whose records differ the shared cases are paired, and the number of cases says so."""
    compare_runs([runs[0], runs[2]], tmp_path / "out")
    found = read(tmp_path / "out", "differences").query("measure == 'efficacy' and relation == 'all'")
    assert found["differs"].tolist() == ["model and records"]
    assert found["n_cases"].tolist() == [12]


def test_a_run_and_its_copy_differ_by_nothing(
    runs: tuple[Path, Path, Path], known: dict[Path, Results], tmp_path: Path
) -> None:
    known[shutil.copytree(runs[0], tmp_path / "copy")] = known[runs[0]]
    compare_runs([runs[0], tmp_path / "copy"], tmp_path / "out")
    found = read(tmp_path / "out", "differences")
    assert set(found["first"]) == {f"memit [{runs[0]}]"}
    assert found["value"].abs().max() == 0


@pytest.mark.usefixtures("known")
def test_disagreements_are_said_with_names(runs: tuple[Path, Path, Path], out: Path) -> None:
    page = (out / "report.md").read_text(encoding="utf-8")
    assert "The runs disagree in dtype: float32 in" in page
    assert "bfloat16 in" in page
    said = disagreements(read_members(runs))
    assert [line.split(":")[0] for line in said] == ["The runs disagree in dtype", "The runs disagree in records"]
    assert str(runs[2]) in said[0]


@pytest.mark.parametrize(
    ("change", "what", "values"),
    [
        ({"scoring": {"scorer": "TrieScorer"}}, "scoring (scorer)", ("HFScorer", "TrieScorer")),
        ({"model": MODEL | {"dtype": "bfloat16"}}, "dtype", ("float32", "bfloat16")),
        (
            {"data": {"source": "sample", "configs": ["cross_subject"], "cases": 64, "sha256": "12" * 32}},
            "records",
            ("sample cross_subject (efefefef), 64 cases", "sample cross_subject (12121212), 64 cases"),
        ),
        ({"model": MODEL | {"fingerprint": "00" * 32}}, "the fingerprint of tiny", ("ab" * 6, "00" * 6)),
        ({"model": MODEL | {"tokenizer": "00" * 32}}, "the tokenizer of tiny", ("cd" * 6, "00" * 6)),
        ({"versions": {"seesaw_cf": "0.0.9"}}, "version", ("0.1.0", "0.0.9")),
    ],
    ids=["scorer", "dtype", "records", "base", "tokenizer", "version"],
)
def test_every_disagreement_is_named_with_both_values_and_runs(
    runs: tuple[Path, Path, Path],
    known: dict[Path, Results],
    change: dict[str, Any],
    what: str,
    values: tuple[str, str],
) -> None:
    run = Path("run")
    known[run] = changed(known[runs[1]], **change)
    assert disagreements(read_members(runs[:2])) == []
    said = f"The runs disagree in {what}: {values[0]} in {runs[0]}; {values[1]} in {run}."
    assert disagreements(read_members([runs[0], run])) == [said]


@pytest.mark.parametrize(("column", "value"), [("holds", "target_true"), ("gender", ["female", "male"])])
def test_people_who_are_recorded_otherwise_are_counted(
    runs: tuple[Path, Path, Path], known: dict[Path, Results], column: str, value: Any
) -> None:
    results = known[runs[0]]
    assert results.prompts is not None
    prompts = results.prompts.copy()
    swapped = prompts["case_id"] == prompts["case_id"].iloc[0]
    prompts[column] = [value if own else old for own, old in zip(swapped, prompts[column])]
    run = Path("run")
    known[run] = replace(results, prompts=prompts)
    questions = prompts.drop_duplicates(["case_id", "prompt_id"])
    other = int((questions[column].astype(str) != results.prompts.loc[questions.index, column].astype(str)).sum())
    assert 0 < other < len(questions)
    assert disagreements(read_members([runs[0], run])) == [
        f"The runs disagree in what is recorded of the same people ({column}): that of the first in {runs[0]}; other "
        f"in {other} of {len(questions)} shared prompts in run."
    ]


def test_shares_of_a_batch_have_no_interval_and_the_page_says_why(
    runs: tuple[Path, Path, Path], known: dict[Path, Results]
) -> None:
    batches = runs[:2]
    known.update({run: changed(known[run], protocol="batch") for run in batches})
    made = compare(read_members(batches), AuditSettings())
    shares = made.table("differences").query("measure in ['efficacy', 'accuracy']")
    assert len(shares)
    assert shares["value"].notna().all()
    assert shares[["low", "high", "p"]].isna().all(axis=None)
    assert set(shares["note"]) == {"the cases of a batch are one edit"}
    page = comparison_head(made, conclude(made, "Two batches")).replace("\\", "")
    assert f"{batches[0]}: protocol batch, the cases of a relation are one edit" in page


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"model": MODEL | {"fingerprint": "00" * 32}},
            "A and B are of one study, but they differ in the fingerprint of",
        ),
        ({"model": MODEL | {"dtype": "bfloat16"}}, "the dtype of their model: 'float32' and 'bfloat16'"),
        ({"data": {"source": "sample", "sha256": "00" * 32}}, "they differ in the sha256 of their data"),
        ({"data": {"corpus": {"source": "other.txt"}}}, "they differ in the corpus of their data"),
        ({"editors": {"memit": {"layers": [3]}}}, "they differ in the memit of their editors"),
    ],
)
def test_runs_of_one_study_agree(
    runs: tuple[Path, Path, Path], known: dict[Path, Results], change: dict[str, Any], message: str
) -> None:
    run = Path("run")
    known[run] = changed(known[runs[0]], **change)
    names = {runs[0]: ("A", "tiny", "sample"), run: ("B", "tiny", "sample")}
    with pytest.raises(RunFolderError, match=message):
        check_study(read_members(list(names), names=names))
    check_study(read_members(runs[:2], names={runs[0]: ("A", "m", "r"), runs[1]: ("B", "m", "r")}))


@pytest.mark.usefixtures("known")
def test_families_can_span_runs(runs: tuple[Path, Path, Path]) -> None:
    settings = AuditSettings(permutations=0)  # which no families of several runs have
    members = read_members(runs[:2], settings)
    apart, together = compare(members, settings), compare(members, settings, [])
    sizes = apart.table("verdicts").groupby(["model", "records", "protocol", "editor"])["family_size"].first()
    assert apart.table("verdicts")["family"].nunique() == len(sizes)
    assert set(together.table("verdicts")["family_size"]) == {sizes.sum()}
    both = apart.table("verdicts")["p_adjusted"], together.table("verdicts")["p_adjusted"]
    assert (both[0].dropna() <= both[1].dropna() + 1e-12).all()


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(
    ("family", "how"),
    [(None, "step-down min-p, 1,999 or more permutations"), (NAMES, "step-down min-p, 1,999 or more permutations"),
     (("model",), "holm")],
)  # fmt: skip
def test_pages_name_the_correction_that_was_made(
    runs: tuple[Path, Path, Path], family: tuple[str, ...] | None, how: str
) -> None:
    made = compare(read_members(runs[:2]), AuditSettings(), family)
    sure = str(conclude(made, "Two").answers["How sure"])
    assert f"families of verdicts ({how}) and" in sure
    assert "families of differences (holm)," in sure
    (verdicts,) = (table for table in comparison_tables(made) if table.name == "verdict_counts")
    assert f"p corrected ({how}) in" in verdicts.about
    assert f"({how})" in made.settings.promise(family)


def test_tables_have_the_numbers_of_the_effects(out: Path) -> None:
    tables, effects = read(out, "papers"), read(out, "effects_by_group")
    cell = tables.query("table == 10 and row == 'citizenship / memit' and column == 'Black'")
    cell = cell[cell["about"].str.contains("tiny")]
    row = effects.query("model == 'tiny' and editor == 'memit' and relation == 'P27' and group == 'Black'")
    row = row[row["holds"] == "target_new"]
    assert cell[["value", "low", "high"]].to_numpy() == pytest.approx(row[["D", "low", "high"]].to_numpy(), nan_ok=True)
    assert {4, 5, 8, 9, 10, 11, 12, 13, 14, 15} == set(tables["table"])
    assert {"men", "women"} == set(tables.query("table == 14")["column"])


def test_counts_of_tables_8_and_9_agree_with_each_other_and_with_the_papers_test(
    runs: tuple[Path, Path, Path], out: Path
) -> None:
    tables = read(out, "papers")
    totals = tables[(tables["row"] == "Total")].groupby(["about", "column", "table"])[["value", "n", "papers"]].first()
    counts = tables[tables["table"].isin((8, 9)) & (tables["row"] != "Total")]
    summed = counts.groupby(["about", "column", "table"])[["value", "n", "papers"]].sum()
    assert totals.to_numpy().tolist() == summed.to_numpy().tolist()
    by_case: dict[int, list[float]] = defaultdict(list)
    for (case, _), (relation, value) in changes(runs[0], "memit").items():
        if relation == "P27":
            by_case[case].append(value)
    effects = read(out, "effects_by_group")
    row = effects.query("model == 'tiny' and editor == 'memit' and relation == 'P27' and axis == 'all'")
    row = row[row["holds"] == "target_new"]
    p = float(stats.ttest_1samp([np.mean(values) for values in by_case.values()], 0.0).pvalue)
    assert row["paper_p"].tolist() == pytest.approx([p])


def test_pictures_are_drawn(out: Path) -> None:
    names = {file.name.split("_")[1] for file in (out / "pictures").glob("figure_*.png")}
    assert names == {"2", "3", "4"}
    page = (out / "report.md").read_text(encoding="utf-8")
    assert all(f"(pictures/{file.name})" in page for file in (out / "pictures").iterdir())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["{0}", "{1}"], "got 2 runs to compare, and --out is missing. Name a folder"),
        (["{0}", "{1}", "--out", "x", "--dose-run", "y"], "--dose-run is about one run. Leave it out"),
        (["{0}", "{0}", "--out", "x"], "is named twice"),
        (["{0}", "{1}", "--out", "{1}"], "it is read by the same command"),
        (["{0}", "nowhere", "--out", "x"], "nowhere: no such folder"),
    ],
)
def test_what_cannot_be_compared_is_said(
    runs: tuple[Path, Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main(["report", *(word.format(*runs) for word in words)]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


@pytest.mark.slow(15)
def test_published_averages_and_denominators(runs: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """SEESAW-CF: the last row of Tables 4 and 5 is the mean of the rows; 15 and 13 cells a property, 73 in all.

    6 races, 7 regions and 2 genders of five properties, without gender by gender: 30, 35 and 8 cells, as Figure 4 says.
    """
    compare_runs(runs, tmp_path, mode="paper")
    tables = read(tmp_path, "papers")
    for number, measure in ((4, "change"), (5, "post")):
        cells = tables[tables["table"] == number]
        for (about, column), own in cells[cells["column"] != "Pre-edit"].groupby(["about", "column"]):
            values = own.set_index("row")["value"]
            mean = values.pop("mean of the rows")
            assert mean == pytest.approx(values.mean()), (about, column, measure)
            assert own.set_index("row")["n"]["mean of the rows"] == len(values), "pairs"
    counts = tables[tables["table"] == 8]
    assert set(counts.loc[counts["row"] == "Total", "n"]) == {73}
    assert counts.set_index("row")["n"].drop("Total").groupby(level=0).first().to_dict() == {
        "citizenship": 15, "work": 15, "birth": 15, "language": 15, "gender": 13,
    }  # fmt: skip
    by_group = tables[tables["table"] == 9].groupby("row")["n"].first()
    assert (by_group["men"], by_group["Black"], by_group["Total"]) == (4, 5, 73)
    shares = read(tmp_path, "decreases")
    assert set(zip(shares["axis"], shares["cells"])) == {("race", 30), ("region", 35), ("gender", 8)}
    assert (shares["share"] * shares["cells"]).tolist() == pytest.approx(shares["papers"].tolist())
    page = (tmp_path / "papers.md").read_text(encoding="utf-8")
    assert "an answer is right where the right one is part of it" in page
    assert "exact match" not in page


def test_the_published_match_counts_male_in_female(runs: tuple[Path, Path, Path]) -> None:
    """Accuracy of the comparison is that of `cross_property` in the same mode, pair by pair."""
    scores = pq.read_table(runs[0] / "scores.parquet")
    own = cross_property(scores, mode="paper").set_index(["editor", "edit_relation", "effect_relation"])["post"]
    table = compare(read_members(runs[:1]), AuditSettings(), mode="paper").table("accuracy")
    shown = table[table["edit_relation"] != "all"].set_index(["editor", "edit_relation", "effect_relation"])["post"]
    assert shown.to_dict() == own.to_dict()


def test_the_papers_rules_are_for_several_runs(
    runs: tuple[Path, Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(runs[0]), "--paper"]) == 1
    assert f"seesaw-cf metrics {runs[0]} --paper" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("keys", "labels"),
    [
        ([("one", "mine", "single", "ft"), ("two", "other", "single", "lora")], ["one/mine/ft", "two/other/lora"]),
        ([("org/a", "b", "single", "ft"), ("org", "a/b", "single", "ft")], ["org/a, b", "org, a/b"]),
        ([("one", "mine", "single", "ft")], ["ft"]),
    ],
)
def test_lines_are_called_by_the_names_that_differ(keys: list[tuple[str, ...]], labels: list[str]) -> None:
    lines: list[Any] = [SimpleNamespace(key=key, names=dict(zip(NAMES, key, strict=True))) for key in keys]
    assert [label_of(line, lines) for line in lines] == labels
