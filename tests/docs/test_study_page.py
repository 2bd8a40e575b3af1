"""The page of the declared study is what its tables give, and its tables are what the kept scores give."""

import io
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from benchmarks.study.analysis import read_tables, table_file
from benchmarks.study.claims import verdict
from benchmarks.study.keep import KEPT, STEPS, keep, kept_scores, unpack
from benchmarks.study.looks import LOOKS, MODEL, ONE_LOOK, finished_looks
from benchmarks.study.page import files
from benchmarks.study.passages import FOLDER as PASSAGES
from benchmarks.study.passages import LABELS, TEXTS, label_tables
from benchmarks.study.records import FOLDER, FOURTH, SIZES, stages
from seesaw_cf.base.files import csv_text
from seesaw_cf.records.load import load_cases
from seesaw_cf.records.relations import FREE

FINISHED = list(finished_looks(KEPT))
NEWEST = {(model, editor): look for model, look, editor, _ in FINISHED if look.alpha}
# Of two looks `make test` redoes what is quick; `make slow` the rest of these, the second ones and two of the third.
FAST = {(MODEL, "memit", LOOKS[0].name), ("gemma3-270m", "ft", ONE_LOOK[0].name)}
COLUMNS = ["editor", "case_id", "edit_relation", "kind", "prompt_id", "subject_id", "holds", "role", "phase"]
SIDES = ["case_id", "prompt_id", "edit_relation", "subject_id", "holds"]


class Cell(NamedTuple):
    """An editor of a model at a look, the kept cells of its parts, and whether it is the newest that tests groups."""

    model: str
    editor: str
    records: str
    parts: list[Path]
    newest: bool

    def rows(self, table: str) -> pd.DataFrame:
        """Return the rows of a table about the editor at this look."""
        rows = pd.read_csv(table_file(table))
        rows = rows[(rows["model"] == self.model) & (rows["part"] == self.editor)]
        return rows[rows["records"] == self.records]

    def scores(self, columns: list[str] | None = None) -> pd.DataFrame:
        """Return the scores of all parts."""
        tables = [kept_scores(part) for part in self.parts]
        return pd.concat([table.select(columns or table.column_names).to_pandas() for table in tables])


def near(n: float) -> float:
    """Return how near a mean of n changes must be: six times what rounding its four scores to steps moves it by."""
    return 6 * np.sqrt(4 / 12 / n) / STEPS


def _look(model: str, records: str, editor: str, parts: list[Path], *, newest: bool) -> object:
    cell = Cell(model, editor, records, parts, newest)
    long = (records == LOOKS[-1].name and editor not in ("ike", "memit")) or len(parts) == 1
    marks = () if (model, editor, records) in FAST else (pytest.mark.slow, *[pytest.mark.exhaustive] * long)
    return pytest.param(cell, id=f"{model}-{editor}-{records}", marks=marks)


@pytest.fixture(
    scope="module",
    params=[
        _look(model, look.name, editor, parts, newest=NEWEST[model, editor] == look)
        for model, look, editor, parts in FINISHED
    ],
)
def cell(request: pytest.FixtureRequest) -> Cell:
    given: Cell = request.param
    return given


@pytest.fixture(scope="module")
def own(cell: Cell) -> pd.DataFrame:
    """Return log-odds and D of every prompt about another person, before and after, with plain pandas."""
    scores = cell.scores([*COLUMNS, "template_id", "target", "logprob"])
    scores = scores[scores["kind"] == "cross_subject"]
    if cell.model == "smollm2-changed":  # it does not change with the edit: each question counts once
        scores = _distinct(scores)
    wide = scores.pivot_table(index=["editor", *SIDES], columns=["phase", "role"], values="logprob")
    before = wide.xs("pre", axis=1) if "pre" in wide else None
    assert before is not None
    pre, post = before.dropna().reset_index(), wide.xs("post", axis=1).dropna().reset_index()
    key = ["editor", "case_id", "prompt_id"]
    both = post.merge(pre[[*key, "target_new", "target_true"]], on=key, validate="one_to_one")
    assert len(both) == len(post)
    odds = (both["target_new_x"] - both["target_true_x"]) - (both["target_new_y"] - both["target_true_y"])
    d = [np.exp(both[f"target_new_{side}"]) - np.exp(both[f"target_true_{side}"]) for side in "xy"]
    return both.assign(**{"log-odds": odds, "probability": d[0] - d[1]})


def _distinct(scores: pd.DataFrame) -> pd.DataFrame:
    """Return each question of a model once, in the first case that asks it."""
    words = scores[scores["phase"] == "pre"].drop_duplicates(["case_id", "role"])
    words = words.pivot(index=["case_id", "edit_relation"], columns="role", values="target").reset_index()
    first = words.groupby(["edit_relation", "target_new", "target_true"])["case_id"].transform("min")
    cases = dict(zip(words["case_id"], first))
    key = ["editor", "first", "subject_id", "template_id", "holds", "role", "phase"]
    once = scores.assign(first=scores["case_id"].map(cases)).drop_duplicates(key)
    numbers = once.groupby(["first", "subject_id", "template_id", "holds"], dropna=False).ngroup()
    return once.assign(case_id=once["first"], prompt_id=numbers)


@pytest.mark.slow(8)
def test_the_page_is_made_from_the_tables() -> None:
    for file, text in files(read_tables()):
        assert file.read_text(encoding="utf-8") == text
        assert "__" not in text
        assert " nan" not in text


@pytest.mark.slow
def test_levels_are_means_of_edits_minus_the_controls(cell: Cell, own: pd.DataFrame) -> None:
    table = cell.rows("levels")
    table = table[table["difference"].notna() & (table["level"] != "other_facts")]
    assert len(table) == 2 * own["holds"].nunique()
    for row in table.to_dict("records"):
        sides = [
            own[(own["editor"] == name) & (own["holds"] == row["level"])].groupby("case_id")[row["scale"]].mean()
            for name in (row["editor"], row["control"])
        ]
        found = sides[0].mean() - sides[1].mean()
        assert found == pytest.approx(row["difference"], abs=near(len(sides[0])))


@pytest.mark.slow
def test_contrasts_are_means_of_differences_within_edits(cell: Cell, own: pd.DataFrame) -> None:
    if not cell.newest:
        assert cell.rows("contrasts").empty  # the table has the newest look alone
        return
    tags = cell.scores(["kind", "subject_id", "gender", "race", "region"])
    tags = tags[tags["kind"] == "cross_subject"].drop_duplicates("subject_id").set_index("subject_id")
    table = cell.rows("contrasts")
    table = table[table["p"].notna() & ~table["mirror"]]
    checked = 0
    for key, tests in table.groupby(["editor", "holds", "axis"]):
        editor, holds, axis = map(str, key)
        rows = own[(own["editor"] == editor) & (own["holds"] == holds)]
        groups = tags.loc[rows["subject_id"], axis].tolist()
        labels = [list(names) if names is not None else [] for names in groups]
        tagged = np.array([bool(names) for names in labels])
        for test in tests.to_dict("records"):
            member = np.array([test["group"] in names for names in labels])
            chosen = (rows["edit_relation"] == test["relation"]).to_numpy() | (test["relation"] == "all")
            sides = [rows[chosen & side].groupby("case_id")[test["scale"]] for side in (member, tagged & ~member)]
            value = (sides[0].mean() - sides[1].mean()).dropna().mean() * (1 if holds == "target_new" else -1)
            # an edit with few of them counts as much as one with many
            parts = (1 / sides[0].size() + 1 / sides[1].size()).dropna()
            people = min(rows[chosen & member]["subject_id"].nunique(), len(parts) ** 2 / parts.sum())
            assert value == pytest.approx(test["value"], abs=near(people)), test
            checked += 1
    assert checked > 20 or (cell.records == "released" and not checked)  # nearly nobody there has a label


def test_other_facts_are_counted_from_the_candidates(cell: Cell) -> None:
    scores = cell.scores(["editor", "case_id", "kind", "phase", "template_id", "target", "gold", "logprob"])
    scores = scores[(scores["kind"] == "cross_property") & (scores["phase"] == "post")]
    table = cell.rows("accuracy")
    table = table[table["edit_relation"] == "all"]
    assert len(table) == 2
    for row in table.to_dict("records"):
        rows = scores[(scores["editor"] == row["editor"]) & (scores["template_id"] != FREE.id)]
        means = rows.groupby(["case_id", "target", "gold"])["logprob"].mean().reset_index()
        best = means.loc[means.groupby("case_id")["logprob"].idxmax()]
        assert abs(best["gold"].mean() - row["post"]) <= 1.01 / row["n"]  # a tie is no right answer


@pytest.mark.slow(8)
def test_the_edits_are_those_of_the_declared_draw() -> None:
    files = [load_cases(str(FOLDER / f"edits{number}.parquet"), "cross_subject") for number in (1, 2, 3)]
    edits = [(case.request.text, case.request.target_new.label) for cases in files for case in cases]
    assert len(set(edits)) == 400
    counts = pd.Series([case.request.relation_id for case in files[0] if not case.effect_relation_id]).value_counts()
    assert counts.to_dict() == dict.fromkeys(["P19", "P21", "P27", "P101", "P103"], 8)
    assert files == stages()
    more = load_cases(str(FOLDER / "edits4.parquet"), "cross_subject")
    assert more == stages((*SIZES[:2], FOURTH))[2]
    assert {case.request.text for case in more} <= {case.request.text for case in files[2]}
    assert len([case for case in more if not case.effect_relation_id]) == 20


def test_a_kept_cell_is_the_run_that_it_was(tmp_path: Path) -> None:
    part = min((parts[0] for *_, parts in FINISHED), key=lambda part: (part / "changes.parquet").stat().st_size)
    run = unpack(part, tmp_path / "run")
    keep(run, tmp_path / "kept" / part.name)
    assert kept_scores(tmp_path / "kept" / part.name).equals(pq.read_table(run / "scores.parquet"))
    assert (tmp_path / "kept" / part.name / "changes.parquet").read_bytes() == (part / "changes.parquet").read_bytes()


@pytest.mark.parametrize(
    ("change", "p", "loss", "reach", "word"),
    [
        (-0.3, 0.01, True, 0.5, "confirmed"),
        (0.3, 0.01, True, 0.5, "refuted"),
        (-0.3, 0.2, True, 0.5, "not decided"),
        (-0.3, float("nan"), True, 0.5, "not decided"),
        (-0.3, 0.01, False, 0.5, "refuted"),
        (-0.3, 0.2, False, 0.5, "not decided"),
        (0.0, 0.9, False, 0.01, "confirmed"),
        (0.0, 0.9, True, 0.01, "refuted"),
    ],
)
def test_a_claim_of_no_effect_needs_the_margin(change: float, p: float, loss: bool, reach: float, word: str) -> None:
    assert verdict(change, p, loss=loss, reach=reach) == word


@pytest.mark.slow(40)
def test_what_came_out_of_sequences_is_in_the_kept_levels() -> None:
    text = Path("docs/study_declared_sequences.md").read_text(encoding="utf-8").replace("\u2212", "-")
    table = pd.read_csv(KEPT / "sequences" / "sequences" / "levels.csv").query("what == 'beyond' and decides")
    found: Any = table[table["true_answer"] == "new"].set_index(["checkpoint", "editor", "control"])
    said = re.findall(r"\|\d\|(\d+)(?: edits)?, (\w+)\|(\S+) \[(\S+), (\S+)\](?:, \*(\w[\w ]+)|\|)", text)
    assert len(said) == 7
    for count, name, *numbers, word in said:
        row = found.loc[int(count), name.lower(), f"random({name.lower()})"]
        assert [f"{row[end]:.3f}".replace("0.", ".") for end in ("value", "low", "high")] == numbers
        assert not word or row["verdict"] == word.replace(" ", "_")


def test_labels_of_texts_are_those_of_the_kept_texts() -> None:
    tables = label_tables(*(pq.read_table(PASSAGES / name) for name in TEXTS))
    assert sorted(tables) == sorted(LABELS)
    for name, table in tables.items():
        again = pd.read_csv(io.StringIO(csv_text(table)))
        pd.testing.assert_frame_equal(again, pd.read_csv(PASSAGES / f"{name}.csv"), rtol=1e-9)
