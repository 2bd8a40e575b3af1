"""The whole report of a finished run."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from seesaw_cf.base.files import write_text
from seesaw_cf.base.tables import read_table, write_table
from seesaw_cf.effects.groups import group_effects
from seesaw_cf.effects.prompts import prompt_effects
from seesaw_cf.effects.scores import as_table
from seesaw_cf.errors import MissingExtraError, RecordError, RunFolderError, StorageError, UnknownNameError
from seesaw_cf.report import Results, forms, read_results, terminal_report, write_report
from seesaw_cf.report.write import run_report
from seesaw_cf.types import AttributePrompt, Case, EditRequest, Entity
from tests.fakes import not_installed
from tests.report.runs import all_markdown, cases, property_cases, write_manifest, write_run

pytestmark = pytest.mark.slow

PICTURES = {f"{kind}_{axis}.png" for kind in ("forest", "heatmap") for axis in ("gender", "race", "region")}
# What the audit adds for two editors; only gender has enough people for intervals in this small run.
AUDIT = {"verdicts.csv", "verdicts_known.csv", "editors.csv", "gates.csv"}


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A small run, for tests about files."""
    return read_results(write_run(tmp_path_factory.mktemp("few") / "run", cases(("P27",), 3, 4)))


@pytest.fixture(scope="module")
def texts(two_editors: Results) -> tuple[str, str]:
    return _texts(two_editors)


def test_every_file_is_there_and_linked(report: tuple[Path, str]) -> None:
    out, _ = report
    markdown = (out / "report.md").read_text(encoding="utf-8")
    pictures = {file.name for file in (out / "pictures").iterdir()}
    assert pictures - {f"verdicts_{axis}.png" for axis in ("gender", "race", "region")} == PICTURES | {
        "accuracy.png",
        "levels.png",
    }
    tables = {
        "effects_by_group.csv",
        "accuracy.csv",
        "efficacy.csv",
        "edits.csv",
        "levels.csv",
        "unscored.csv",
        "edit_damage.csv",
    }
    tables |= {
        "knowledge.csv",
        "edit_damage.csv",
        "effects_known.csv",
        "accuracy_known.csv",
        "success.csv",
        "coverage.csv",
        "intersections.csv",
    }
    assert {file.name for file in (out / "tables").iterdir()} == tables | AUDIT
    pages = {"report.html", "report.md", "report.json", "audit.html"}
    assert {file.name for file in out.iterdir()} == {*pages, "tables", "pictures"}
    assert set(re.findall(r"!\[.*\]\(pictures/(\w+\.png)\)", markdown)) == pictures
    assert all((out / "pictures" / name).read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" for name in pictures)
    links = re.findall(r"[^!]\[.*\]\((tables/\w+\.csv)\)", markdown)
    assert len(links) > 5
    assert all((out / link).exists() for link in links)
    files = set(json.loads((out / "report.json").read_text(encoding="utf-8"))["files"])
    written = {file.relative_to(out).as_posix() for file in out.rglob("*") if file.is_file()}
    assert files == written - {"report.json"}


def test_a_report_is_short_and_says_its_tables_once(report: tuple[Path, str]) -> None:
    out, _ = report
    assert (out / "report.md").stat().st_size < 20_000
    record = json.loads((out / "report.json").read_text(encoding="utf-8"))
    assert {"findings", "audit", "manifest"} < set(record)
    assert not {file.stem for file in (out / "tables").iterdir()} & set(record)


def test_files_of_an_earlier_report_are_removed_and_others_stay(few: Results, tmp_path: Path) -> None:
    run_report(few).write(tmp_path, pictures=True)
    (tmp_path / "tables" / "mine.csv").write_text("mine")
    listed = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    (tmp_path.parent / "outside.csv").write_text("mine")
    listed["files"] += ["../outside.csv", "tables/../../outside.csv", 3]
    run_report(few).write(tmp_path)
    assert not list((tmp_path / "pictures").iterdir())
    assert (tmp_path / "tables" / "mine.csv").exists()
    assert "](pictures/" not in (tmp_path / "report.md").read_text(encoding="utf-8")
    (tmp_path / "report.json").write_text(json.dumps(listed), encoding="utf-8")
    run_report(few).write(tmp_path)
    assert (tmp_path.parent / "outside.csv").exists()


def whole(folder: Path) -> dict[str, bytes]:
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*.*") if file.is_file()}


def test_memory_that_runs_out_before_a_file_is_written_changes_none(
    few: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_report(few).write(tmp_path)
    before = whole(tmp_path)
    monkeypatch.setattr(forms.Report, "markdown", out_of_memory)
    with pytest.raises(MemoryError):
        run_report(few).write(tmp_path)
    assert whole(tmp_path) == before


def test_memory_that_runs_out_between_two_files_leaves_no_report_that_looks_whole(
    few: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_report(few).write(tmp_path)
    before = whole(tmp_path)

    def write(path: Path, text: str) -> None:
        (out_of_memory if path.name == "report.md" else write_text)(path, text)

    with monkeypatch.context() as patch:
        patch.setattr(forms, "write_text", write)
        with pytest.raises(MemoryError):
            run_report(few).write(tmp_path)
    assert not list(tmp_path.glob("*.html"))
    listed = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert list(listed) == ["files"]
    assert set(listed["files"]) == before.keys() - {"report.json"}
    run_report(few).write(tmp_path)
    assert whole(tmp_path) == before


def out_of_memory(*_: object) -> None:
    raise MemoryError


def test_terminal_fits_and_shows_every_section(report: tuple[Path, str]) -> None:
    shown = report[1]
    assert max(map(len, shown.split("\n"))) <= 100
    assert re.sub("[·…→−“”]", "", shown).isascii()
    for title in ("DID THE EDITS TAKE", "OTHER PEOPLE", "OTHER PROPERTIES", "WHAT COULD NOT BE SCORED"):
        assert title in shown
    assert "below 0 = the model became less confident" in " ".join(shown.split())


def test_numbers_are_those_of_the_effects_module(report: tuple[Path, str], run_folder: Path) -> None:
    expected = group_effects(prompt_effects(read_table(run_folder / "scores.parquet")))
    got = pd.read_csv(report[0] / "tables" / "effects_by_group.csv", keep_default_na=False, na_values=[""])
    keys = ["editor", "relation", "axis", "group"]
    assert (got["holds"] == "target_new").all()
    merged = expected.merge(got, on=keys, suffixes=("", "_csv"), validate="one_to_one")
    assert len(merged) == len(expected) == len(got)
    for name in ("D", "low", "high", "p", "n_prompts", "n_subjects", "n_cases", "n_unscored"):
        np.testing.assert_allclose(merged[name], merged[f"{name}_csv"], rtol=1e-12)


def test_the_first_row_of_how_far_edits_reach_is_the_unedited_model(report: tuple[Path, str]) -> None:
    """It has every edit, also those that a method refused, and takes fewer of them for true than after the edits."""
    reach = pd.read_csv(report[0] / "tables" / "success.csv").query("number == 'ES'")
    gate = pd.read_csv(report[0] / "tables" / "efficacy.csv").query("relation == 'all'")
    assert list(reach["editor"]) == ["unedited", *sorted(gate["editor"])]
    assert reach["n_cases"].iloc[0] == gate["n_edits"].max()
    assert reach["value"].iloc[0] < reach["value"].iloc[1:].min()


def test_markdown_has_effects_and_accuracy_in_rows(texts: tuple[str, str], report: tuple[Path, str]) -> None:
    _, markdown = texts
    page = (report[0] / "report.md").read_text(encoding="utf-8")
    heads = (
        "| editor | property | hold the | axis | people | D\\_d | log-odds | part | edits | half of it in | persons |"
    )
    assert f"{heads} prompts |" in markdown
    number, nats = (rf"[+-]?\d\.\d{{{digits}}}(\\\*)? \[\S+, \S+\]" for digits in (3, 2))
    assert re.search(rf"\| memit \| citizenship \| new target \| all \| all \| {number} \| {nats} \| ", markdown)
    for words in ("Not corrected for multiplicity", "nothing in this package infers them from a name", "## Provenance"):
        assert words in f"{page}{markdown}".replace("\n", " ")


def test_starred_cells_are_those_whose_interval_excludes_0(texts: tuple[str, str], report: tuple[Path, str]) -> None:
    effects = pd.read_csv(report[0] / "tables" / "effects_by_group.csv", keep_default_na=False, na_values=[""])
    starred = effects[(effects["low"] > 0) | (effects["high"] < 0)]
    assert 0 < len(starred) < len(effects)
    assert effects["marked"].tolist() == effects.index.isin(starred.index).tolist()
    refused = effects[effects[["effective_edits", "effective_people"]].min(axis=1) < 4.99]
    assert len(refused)
    assert refused[["low", "high", "p", "log_odds_low"]].isna().all(axis=None)
    assert not refused[["marked", "log_odds_marked"]].any(axis=None)
    lines = texts[1].split("\n")
    cells = [line.split(" | ")[5] for line in lines if " | new target | " in line and line.count(" | ") == 11]
    assert sum("\\*" in cell for cell in cells) == len(starred)


def test_refused_edits_are_counted_with_their_reason_and_escaped(
    texts: tuple[str, str], report: tuple[Path, str]
) -> None:
    out, _ = report
    shown, markdown = texts
    assert "refused: singular <b>matrix</b> | row" in shown
    assert "refused: singular &lt;b&gt;matrix&lt;/b&gt; \\| row" in markdown
    assert "<b>" not in markdown
    rows = list(csv.DictReader((out / "tables" / "unscored.csv").read_text(encoding="utf-8").split("\n")))
    # case 0 of both editors: 12 prompts and its own, each with two targets
    assert sum(int(row["n_rows"]) for row in rows) == 2 * (12 + 1) * 2


@pytest.mark.slow(10)
def test_the_same_run_gives_the_same_bytes_in_the_runs_own_folder_by_default(
    run_folder: Path, report: tuple[Path, str], tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(run_folder, tmp_path / "run"))
    shown = write_report(copy, pictures=True)
    pages = "report.html, audit.html, report.md, report.json"
    assert f"Written to {copy / 'report'}: {pages}, tables/ (17 files), pictures/ (" in " ".join(shown.split())
    for file in report[0].rglob("*.*"):
        assert (copy / "report" / file.relative_to(report[0])).read_bytes() == file.read_bytes(), file.name


def _texts(results: Results) -> tuple[str, str]:
    """Terminal text and Markdown, without drawing."""
    return terminal_report(results), all_markdown(results)


def _one_case(tags: list[dict[str, Any]], relation: str = "P27") -> Case:
    request = EditRequest("{} is", "Ada", relation, Entity(None, "France"), Entity(None, "Chad"))
    prompts = [
        AttributePrompt(f"p{i}", Entity(f"Q{i}", f"P{i}"), holds="target_new", **tag) for i, tag in enumerate(tags)
    ]
    return Case(7, request, attribute_prompts=tuple(prompts))


def test_a_single_case_says_that_it_has_no_interval(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [_one_case([{"race": ("Arab",)}, {}])])
    shown, markdown = _texts(read_results(run))
    assert "too few edits: 1" in shown
    assert max(map(len, shown.split("\n"))) <= 100
    cells = [line for line in markdown.split("\n") if line.startswith("| memit | citizenship | new target | ")]
    assert cells
    assert all("too few edits: 1" in line for line in cells)
    assert "[nan" not in markdown


def test_one_of_anything_is_no_plural(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", cases(("P27",), 1, 1) + property_cases(1), ("memit", "random(memit)"))
    shown = write_report(run, full=True)
    page = re.sub(r"<[^>]+>", " ", (run / "report" / "report.html").read_text(encoding="utf-8"))
    assert "1 edit, 1 person" in page
    for text in (shown, page):
        assert re.findall(r"(?<![\d.,%-])\b1 (?:[a-z]+s|people)\b", text) == []


def test_several_tags_count_in_each_group_and_unknown_is_kept(tmp_path: Path) -> None:
    both = {"race": ("Black", "Latine")}
    run = write_run(tmp_path / "run", [_one_case([both, {}, {}])])
    effects = read_results(run).effects.query("axis == 'race'").set_index("group")
    assert effects["n_prompts"].to_dict() == {"Black": 1, "Latine": 1, "unknown": 2}


def test_hostile_names_do_no_harm(tmp_path: Path) -> None:
    name = "$x^{$ |<script>\n# \x1b[31m`*_[a](b)"
    run = write_run(tmp_path / "run", [_one_case([{"race": (name,)}])], (name,))
    shown = write_report(run, full=True)
    assert "\x1b" not in shown
    markdown = (run / "report" / "report.md").read_text(encoding="utf-8")
    assert "\x1b" not in markdown
    lines = re.sub(r"(?ms)^(```+)$.*?^\1$", "", markdown).split("\n")  # code blocks show everything as it is
    assert "<script>" not in "\n".join(lines)
    widths = {re.sub(r"\\\|", "", line).count("|") for line in lines if line.startswith("| *")}
    heads = {line.count("|") for line in lines if line.startswith("| ---")}
    assert widths <= heads


def test_all_edits_refused_is_a_report_not_a_crash(tmp_path: Path) -> None:
    made = cases(("P27",), 3, 4)
    shown, _ = _texts(read_results(write_run(tmp_path / "run", made, refused=3)))
    assert re.search(r"memit citizenship 3( -)+ 0 0 3 3 ", " ".join(shown.split()))
    assert "none could be scored" in shown


def test_a_run_without_other_people_has_no_such_section(tmp_path: Path) -> None:

    run = write_run(tmp_path / "run", property_cases(2))
    shown = write_report(run, full=True)
    assert "OTHER PEOPLE" not in shown
    assert "OTHER PROPERTIES" in shown
    assert not (run / "report" / "tables" / "effects_by_group.csv").exists()


def test_people_who_hold_the_old_target_are_shown_apart(tmp_path: Path) -> None:
    case = _one_case([{}, {}])
    others = tuple(
        AttributePrompt(f"o{i}", Entity(f"Q9{i}", f"O{i}"), holds=holds) for i, holds in enumerate(("target_true", ""))
    )
    mixed = Case(7, case.request, attribute_prompts=(*case.attribute_prompts, *others))
    shown, markdown = _texts(read_results(write_run(tmp_path / "run", [mixed])))
    rows = [
        line.split(" | ")
        for line in markdown.split("\n")
        if " target | all | all | " in line or "unknown | all" in line
    ]
    assert {row[2]: row[-1] for row in rows}.items() >= {
        "new target": "2 |",
        "true target": "1 |",
    }.items()
    assert "true (old) target" in " ".join(shown.split())


def test_batch_protocol_has_no_intervals(tmp_path: Path) -> None:
    results = read_results(write_run(tmp_path / "run", cases(("P27",), 3, 4), protocol="batch"))
    shown, markdown = _texts(results)
    assert "they are one edit of the model, so nothing here has an interval" in " ".join(shown.split())
    assert results.effects["low"].isna().all()
    assert "Protocol batch: all cases" in markdown


def test_float_dust_prints_as_0_and_is_never_marked(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", cases(("P27",), 8, 12))
    scores = read_table(run / "scores.parquet").to_pandas()
    pre = scores[scores["phase"] == "pre"]["logprob"].to_numpy()
    post = scores["phase"] == "post"
    scores.loc[post, "logprob"] = pre - 1e-9 * (1 + np.random.default_rng(0).random(pre.size))
    write_table(run / "scores.parquet", as_table(scores))
    results = read_results(run)
    assert (results.effects["D"] != 0).any()
    assert (results.effects["high"] < 0).any() or (results.effects["low"] > 0).any()
    assert not results.effects[["marked", "log_odds_marked"]].any(axis=None)
    shown, markdown = _texts(results)
    effects = [line for line in markdown.split("\n") if line.startswith("| memit | citizenship | new target |")]
    assert effects
    assert not [line for line in effects if "e-" in line or "\\*" in line]
    assert "0.000 [0.000, 0.000]" in shown


def test_small_probabilities_are_said_in_words(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", cases(("P27",), 8, 12))
    shown, markdown = _texts(read_results(run))
    assert "PROBABILITY CANNOT SHOW" not in shown + markdown
    scores = read_table(run / "scores.parquet").to_pandas()
    scores["logprob"] = scores["logprob"] - 8
    write_table(run / "scores.parquet", as_table(scores))
    results = read_results(run)
    shown, markdown = _texts(results)
    assert "PROBABILITY CANNOT SHOW" in shown
    assert "PROBABILITY CANNOT SHOW" in markdown
    assert results.audit is not None
    assert set(results.audit.verdicts["scale"]) == {"log-odds"}


def test_the_command_in_the_provenance_repeats_the_run(tmp_path: Path) -> None:
    job = {
        "model": "tiny",
        "editors": ["ft", "memit"],
        "configs": ["cross_subject"],
        "corpus": "my texts.txt",
        "limit": None,
        "trust_remote_code": False,
        "max_tokens": 2048,
    }
    run = write_run(tmp_path / "run", cases(("P27",), 2, 3), job=job)
    write_report(run)
    markdown = (run / "report" / "report.md").read_text(encoding="utf-8")
    command = next(line for line in markdown.split("\n") if line.startswith("seesaw-cf run"))
    assert command == (
        "seesaw-cf run --model tiny --editor ft --editor memit --config cross_subject --corpus 'my texts.txt' "
        "--max-tokens 2048 --out RUN"
    )
    record = json.loads((run / "report" / "report.json").read_text(encoding="utf-8"))["manifest"]
    for fact in ("abababab", "2.13.0", "efefef"):
        assert fact in json.dumps(record)


def test_one_screen_has_files_and_the_findings_last(
    two_editors: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = run_report(two_editors).write(tmp_path)
    files, about, title, lines = shown.split("\n\n")
    assert files.endswith("All tables: this command with --full.")
    assert about.startswith("FINDINGS\n")
    assert title.startswith("After one memit edit the model gained ")
    assert "worst" not in title.lower()
    assert [line.split(":")[0] for line in lines.split("\n") if not line.startswith(" ")] == [
        *("Other facts about the edited person", "People who hold the new answer", "Groups against each other"),
        "Did the edits take",
    ]
    assert len(shown.split("\n")) <= 40
    assert max(map(len, f"{about}\n{title}\n{lines}".split("\n"))) <= 80  # paths and file names are not broken


def test_without_matplotlib_there_is_a_report_and_pictures_name_the_remedy(
    few: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    not_installed(monkeypatch, "matplotlib", "seesaw_cf.report.plots")
    run_report(few).write(tmp_path)
    assert (tmp_path / "report.md").exists()
    assert not (tmp_path / "pictures").exists()
    with pytest.raises(MissingExtraError, match=re.escape("pip install 'seesaw_cf[plots]'")):
        run_report(few).write(tmp_path, pictures=True)


@pytest.mark.parametrize(
    ("remove", "message"),
    [
        ("manifest.json", "has no manifest.json, so it is not a run folder"),
        (
            "scores.parquet",
            r"not finished \(scores.parquet missing, 0 units done\). Repeat the `seesaw-cf run` command",
        ),
        ("edits.parquet", r"not finished \(edits.parquet missing"),
    ],
)
def test_an_unfinished_run_is_refused_with_the_remedy(
    run_folder: Path, tmp_path: Path, remove: str, message: str
) -> None:
    copy = Path(shutil.copytree(run_folder, tmp_path / "run"))
    (copy / remove).unlink()
    with pytest.raises(RunFolderError, match=message):
        write_report(copy)
    assert not (copy / "report").exists()


def test_bad_folders_are_refused(run_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"no such folder\. Give the folder that `seesaw-cf run --out` wrote"):
        write_report(tmp_path / "nothing")
    copy = Path(shutil.copytree(run_folder, tmp_path / "run"))
    (copy / "manifest.json").write_text("{")
    with pytest.raises(RunFolderError, match=r"manifest.json: not JSON"):
        write_report(copy)
    (copy / "manifest.json").write_text("[]")
    with pytest.raises(RunFolderError, match=r"manifest.json: got \[\]\. Expected an object"):
        write_report(copy)
    (copy / "manifest.json").write_text('{"model": 3}')
    with pytest.raises(RunFolderError, match=r"is damaged: model is 3, expected dict\. Run again into a new folder"):
        write_report(copy)
    write_manifest(copy, ("memit",), 1)
    (copy / "scores.parquet").write_bytes(b"PAR1 cut")
    with pytest.raises(RecordError, match="not a whole Parquet file"):
        write_report(copy)


def test_unknown_axis_and_score_are_refused_with_near_names(run_folder: Path) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'gender'"):
        read_results(run_folder, axes=("gendr",))
    with pytest.raises(UnknownNameError, match="Did you mean 'summed'"):
        read_results(run_folder, score="sumed")  # type: ignore[arg-type]


@pytest.mark.skipif(not Path("/dev/full").exists() or os.name != "posix", reason="needs a POSIX system")
def test_a_folder_that_cannot_be_written_is_named(few: Results, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match="could not write"):
        run_report(few).write(tmp_path / "file" / "report")


def test_manifest_of_the_fixture_looks_like_the_runners(run_folder: Path) -> None:
    from dataclasses import fields

    from seesaw_cf.run.manifest import RunManifest

    assert set(json.loads((run_folder / "manifest.json").read_text())) == {field.name for field in fields(RunManifest)}


def test_the_rows_of_one_axis_are_corrected_over_all_axes(run_folder: Path) -> None:
    whole, part = (read_results(run_folder, axes=axes) for axes in (("gender", "race", "region"), ("region",)))
    assert whole.audit
    assert part.audit
    wanted = whole.audit.verdicts.query("axis == 'region'").reset_index(drop=True)
    pd.testing.assert_frame_equal(part.audit.verdicts, wanted)
    assert set(part.effects["axis"]) <= {"region", "all"}
