"""From people's ratings to the papers' tables, without a judge: by hand, and on the public ratings."""

from __future__ import annotations

import csv
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from seesaw_cf.base.tables import read_table, write_table
from seesaw_cf.cli import main
from seesaw_cf.errors import RecordError, UnknownNameError
from seesaw_cf.stats import adjust
from seesaw_cf.texts.flaws.released import released_work
from seesaw_cf.texts.report.agreement import rater_plan
from seesaw_cf.texts.report.collected import collect
from seesaw_cf.texts.report.flaws import flaw_sections
from seesaw_cf.texts.wording import FLAWS_BY_NAME
from seesaw_cf.texts.write.pairs import FlawAnswer, flaw_row, flaw_table

from .flaw_samples import pair

# Sums of ratings over all 300 public rows, by edited property; Table 6 prints those of 252 of them.
SUMS = {
    "P101": [-16, 7, 6, -2, -1, 1, -10],
    "P21": [-3, 154, -1, -4, 7, -3, -4],
    "P27": [-3, 1, 21, 55, 15, 19, 4],
}


def rated(folder: Path, name: str = "flaws", **by_rater: Sequence[int | None]) -> Path:
    """A table of sexism in pairs of alternating relations."""
    rows = [
        flaw_row(pair(number, relation=("P21", "P27")[number % 2]), "sexism", rater, "pre", FlawAnswer(change))
        for rater, answers in by_rater.items()
        for number, change in enumerate(answers)
    ]
    write_table(folder / f"{name}.parquet", flaw_table(rows))
    return folder / f"{name}.parquet"


def frames(*places: Path, **options: Any) -> dict[str, pd.DataFrame]:
    return {one.name: one.frame for one in flaw_sections(collect(places, ["flaws"]), draws=50, **options)}


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Five people and a judge on twelve pairs; the judge says "more after" to everything."""
    answers: list[int | None] = [1, 0, 1, 0, 1, 0, 1, 1, 1, 0, 1, -1]
    people = {f"r{n}": [*answers[:11], None] if n == 4 else answers for n in range(5)}
    rated(tmp_path, "flaws", **people, judge=[1] * 12)
    return tmp_path


@pytest.mark.slow
def test_people_alone_make_the_tables_and_a_judge_is_never_among_them(study: Path) -> None:
    found = frames(study, judges=["judge"])
    cell = found["flaws"].set_index("relation").loc["P21"]
    assert (round(cell["value"], 9), cell["n"], cell["n_cases"], cell["n_missing"]) == (1, 30, 6, 0)
    assert cell["note"] == "all values equal: no error to estimate"
    other = found["flaws"].set_index("relation").loc["P27"]
    assert (round(other["value"] * 29, 9), other["n"], other["n_missing"]) == (5 - 4, 29, 1)
    assert other["note"].startswith("too few raters: 5 that count as 4.9 equal ones"), "one of the five left a pair out"
    own = found["flaws_these_raters"].set_index("relation").loc["P27"]
    assert own["low"] < own["value"] == other["value"] < own["high"]
    assert found["raters"].set_index("rater")["is a"].to_dict() == {f"r{n}": "person" for n in range(5)} | {
        "judge": "judge"
    }
    percent = found["agreement_percent"].set_index("raters")
    assert (percent.loc["r0/r1", "value"], percent.loc["all", "n"]) == (100.0, 11)
    assert found["agreement"].loc[0, "alpha"] == 1.0
    right = found["judges"].set_index(["answer", "rule"])["value"]
    assert right[("judge", "median")] == pytest.approx(7 / 12)
    assert right[("equal", "median")] == pytest.approx(4 / 12)
    assert "judge" not in frames(study, judges=["judge"])["agreement_percent"]["raters"].str.cat()
    by_editor = frames(study, judges=["r0"])["flaws_editors"]
    assert set(by_editor["rated_by"]) == {"people", "r0"}
    p = dict(zip(by_editor["rated_by"], by_editor["p"]))
    assert np.isnan(p["people"]), "they are 4.9 raters"
    assert p["r0"] < 1, "a judge stands for itself"
    adjusted = adjust(by_editor["p"].tolist()).tolist()
    assert by_editor["p_adjusted"].tolist() == pytest.approx(adjusted, nan_ok=True)


@pytest.mark.parametrize(("hits", "missed_in_twos"), [(280, 10), (264, 13)], ids=["religion", "conservatism"])
def test_the_published_rule_counts_pairs_not_edits(tmp_path: Path, hits: int, missed_in_twos: int) -> None:
    """The public 300 pairs are about 269 edits: 238 have one pair and 31 have two.

    The released judge agrees with somebody on 280 pairs about religion (.933), 264 about conservatism (.880). The mean
    of edits' means was .944 = 1 - (10 + 10 / 2) / 269 and .890 = 1 - (23 + 13 / 2) / 269.
    """
    doubled = [replace(pair(case % 269), pair_id=f"{case}") for case in range(300)]  # edits 0 to 30 have two pairs
    missed = {*range(missed_in_twos), *range(31, 331 - hits - missed_in_twos)}
    rows = [
        flaw_row(one, "religion", rater, "pre", FlawAnswer(int(rater == "judge" and number in missed)))
        for rater in ("a", "b", "judge")
        for number, one in enumerate(doubled)
    ]
    write_table(tmp_path / "flaws.parquet", flaw_table(rows))
    found = frames(tmp_path / "flaws.parquet", judges=["judge"])["judges"]
    own = found[found["answer"] == "judge"]
    assert own["value"].tolist() == pytest.approx([hits / 300] * 2)
    assert set(zip(own["n"], own["n_cases"])) == {(300, 269)}


def test_other_raters_need_five_and_are_told_apart_from_these(tmp_path: Path) -> None:
    few = rated(tmp_path / "few", a=[1, 0, 1, 0, 1, 0] * 2, b=[0, 0, 1, 0, 1, 1] * 2)
    found = frames(few)
    note = found["flaws"]["note"]
    assert note.str.startswith("too few raters: 2").any()
    assert found["flaws"]["p_adjusted"].isna().all(), "no star for raters like these"
    assert found["flaws_these_raters"]["p"].notna().all(), "these two alone have an interval over edits"
    mixed: dict[str, Any] = {f"r{n}": random.Random(n).choices((0, 1), k=12) for n in range(6)}
    many = frames(rated(tmp_path / "many", **mixed))["flaws"]
    assert (many["low"] < many["value"]).all()
    assert (many["value"] < many["high"]).all()


def test_a_plan_asks_for_more_where_raters_differ(study: Path) -> None:
    rows = [
        {"flaw": "sexism", "group": item, "rater": rater, "value": shift + (item + at) % 3 - 1}
        for item in range(30)
        for at, (rater, shift) in enumerate((("a", 0.0), ("b", 0.5), ("c", -0.5)))
    ]
    found = rater_plan(pd.DataFrame(rows), "flaw", [0.1, 0.3], 20)
    assert set(found["per_edit"]) == {1, 2, 3, 5}
    need = found.pivot(index="per_edit", columns="effect", values="raters")
    assert (need[0.1] > need[0.3]).all(), "a smaller effect takes more raters"
    assert (found["ratings"] == found["per_edit"] * found["edits"]).all()
    assert (found["detectable"] <= found["effect"]).all()
    assert found["sd_rater"].iloc[0] == pytest.approx(0.5, abs=0.1)
    alone = rater_plan(pd.DataFrame(rows[::3]), "flaw", [0.1])
    assert alone["note"].tolist() == ["one rater or one edit: how raters differ is not known"]


def test_a_plan_counts_edits_however_many_statements_each_has() -> None:
    draw = np.random.default_rng(3)
    rows = [
        {
            "type": "all",
            "item": f"{case}|{item}",
            "group": case,
            "rater": rater,
            "value": 0.5 + edit + draw.normal(0, 0.3),
        }
        for case, edit in enumerate(draw.normal(0, 1, 40))
        for item in range(9)
        for rater in "abc"
    ]
    found = rater_plan(pd.DataFrame(rows), "type", [0.5])
    assert found["sd_edit"].iloc[0] == pytest.approx(1, abs=0.3)
    assert found["edits"].min() > 20, "at least (1.96 + 0.84)² · sd² / 0.5² edits"
    assert found["n_cases"].tolist() == [40] * 4
    once = pd.DataFrame(rows[:2] + rows[27:29])
    thrice = pd.concat([once] * 3)
    same = ["edits", "raters", "ratings", "per_rater", "sd_edit"]
    assert rater_plan(once, "type", [0.5])[same].equals(rater_plan(thrice, "type", [0.5])[same])


def test_intervals_of_shares_stay_within_0_and_1(tmp_path: Path) -> None:
    folder = rated(tmp_path, "flaws", a=[*[0] * 11, 1], b=[0] * 12, c=[0] * 12, judge=[*[0] * 11, 1]).parent
    found = frames(folder, judges=["judge"])
    for name, column in (("raters", "equal"), ("judges", "value")):
        shares = found[name].dropna(subset="high")
        assert shares[column].between(0.9, 0.99).any(), "a share near 1 has an interval"
        assert shares["high"].max() == 1


def test_folders_are_read_by_what_their_files_hold(study: Path, tmp_path: Path) -> None:
    write_table(study / "calls.parquet", pa.table({"prompt": ["x"]}))
    again = study / "swapped.parquet"
    write_table(again, read_table(study / "flaws.parquet").filter(pa.array([n < 12 for n in range(72)])))
    found = collect([study, study / "flaws.parquet"], ["flaws"])
    assert found.get("flaws").num_rows == 72, "a file that is named twice is read once"
    assert found.again("flaws").num_rows == 12
    assert frames(study, judges=["judge"])["repeats"]["value"].tolist() == [100.0]
    write_table(tmp_path / "empty" / "calls.parquet", pa.table({"prompt": ["x"]}))
    with pytest.raises(RecordError, match=r"empty: no table of flaws with a row in it\. Expected Parquet files"):
        collect([tmp_path / "empty"], ["flaws"])
    rated(study, "other", r0=[0])
    with pytest.raises(
        RecordError, match=r"other.parquet, row 1: change is 0 for pair_id .*flaws.parquet, row 1 has 1"
    ):
        collect([study], ["flaws"])
    with pytest.raises(UnknownNameError, match=r"unknown rater 'jugde'\. Did you mean 'judge'"):
        flaw_sections(found, ["jugde"])


@pytest.mark.slow
def test_the_command_writes_tables_and_says_them(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["flaws", "report", str(study), "--judge", "judge", "--out", str(study / "out"), "--effect", "0.5"]
    assert main([*words, "--per-rater", "12"]) == 0
    shown = capsys.readouterr().out
    assert "FLAWS BY EDITED PROPERTY" not in shown
    assert len(shown.splitlines()) <= 40
    tables = study / "out" / "tables"
    assert set(pd.read_csv(tables / "plan.csv")["effect"]) == {0.5}
    assert (tables / "flaws.csv").exists()
    assert main(["flaws", "report", str(study), "--out", str(study)]) == 1
    assert "is read by the same command" in capsys.readouterr().err


@pytest.fixture(scope="module")
def public(reference: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The three public files as a reader imports them: the second in another order of rows and the other coding."""
    folder = tmp_path_factory.mktemp("public")
    for name in ("a1", "a2", "a3"):
        with reference("annotators", f"{name}.csv").open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
        if name == "a2":
            signed = {"1": "-1", "1.5": "0", "2": "1"}
            columns = [flaw.released for flaw in FLAWS_BY_NAME.values()]
            rows = [row | {column: signed.get(row[column], "") for column in columns} for row in rows]
            random.Random(1).shuffle(rows)
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        words = ["flaws", "import", str(folder / f"{name}.csv"), "--rater", name.upper()]
        like = ["--like", str(folder / "in" / "a1.parquet")] if name != "a1" else []
        assert main([*words, *like, "--out", str(folder / "in" / f"{name}.parquet")]) == 0
    return folder


@pytest.mark.slow
def test_the_public_ratings_give_tables_6_and_21(public: Path) -> None:
    from tests.stats.test_agreement import ALPHA, TABLE21

    found = frames(public / "in")
    means = found["flaws"].pivot(index="relation", columns="flaw", values="value")
    for name, sums in SUMS.items():
        assert (300 * means.loc[[name], list(FLAWS_BY_NAME)]).to_numpy()[0].tolist() == pytest.approx(sums)
    percent = found["agreement_percent"].pivot(index="raters", columns="flaw", values="value")
    for raters, row in TABLE21.items():
        assert [percent.loc[raters, flaw] for flaw in FLAWS_BY_NAME] == pytest.approx(row, abs=0.051)
    assert found["agreement"]["alpha"].tolist() == pytest.approx(ALPHA, abs=0.0051)
    assert found["reflected"]["n"].tolist() == [299, 298, 288]
    assert found["flaws"]["p_adjusted"].isna().all(), "three raters are too few to speak of others"
    stars = (
        found["flaws_these_raters"]
        .query("p_adjusted < 0.05")
        .groupby("relation", observed=True)["flaw"]
        .agg(list)
        .to_dict()
    )
    assert {"sexism"} <= set(stars["P21"])
    assert {"xenophobia"} <= set(stars["P27"])


@pytest.mark.slow
def test_a_text_that_differs_is_named_with_file_and_row(public: Path, tmp_path: Path) -> None:
    like = read_table(public / "in" / "a1.parquet")
    lines = (public / "a2.csv").read_text(encoding="utf-8")
    with (public / "a2.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    broken = tmp_path / "a2.csv"
    broken.write_text(lines.replace(rows[4]["post_text"].replace('"', '""'), "Another text."), encoding="utf-8")
    start = r"a2\.csv: 1 of 300 pairs are not among those of 'A1', and"
    with pytest.raises(RecordError, match=rf"{start} 1 of theirs are not here; first in row 6, .*: its post_text diff"):
        released_work(broken, "A2", like=like)
    some = like.filter(pa.compute.not_equal(like["case_id"], like["case_id"][0].as_py()))
    with pytest.raises(RecordError, match=rf"{start} 0 of theirs are not here; first in row \d+, .*: no such edit"):
        released_work(public / "a2.csv", "A2", like=some)
    with broken.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows[1:])
    with pytest.raises(RecordError, match=r"0 of 299 pairs .* 1 of theirs are not here, first that of .*Add the rows"):
        released_work(broken, "A2", like=like)
