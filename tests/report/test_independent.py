"""The tables of a report against sums over the score table that share no code with the package."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from scipy import stats
from scipy.optimize import brentq

from seesaw_cf.report import Results
from tests.report.runs import all_markdown

pytestmark = pytest.mark.slow

Row = Mapping[str, Any]
Key = tuple[str, str, int, int]  # editor, relation, case, prompt


def score_rows(folder: Path, kind: str) -> list[Row]:
    rows: list[Row] = pq.read_table(folder / "scores.parquet").to_pylist()
    return [row for row in rows if row["kind"] == kind and row["status"] == "ok"]


def mean(values: Iterable[float]) -> float:
    found = list(values)
    return math.fsum(found) / len(found)


def share_ends(successes: int, n: int) -> tuple[float, float]:
    """The roots of (share - x)^2 = z^2 x (1 - x) / n, or where a tail of the binomial is 5 %, if wider."""
    z, share = 1.959963984540054, successes / n
    a, b, c = 1 + z * z / n, -(2 * share + z * z / n), share * share
    root = math.sqrt(b * b - 4 * a * c)
    low, high = (-b - root) / (2 * a), (-b + root) / (2 * a)
    if successes:
        low = min(low, brentq(lambda x: stats.binom.sf(successes - 1, n, x) - 0.05, 0, 1))
    if successes < n:
        high = max(high, brentq(lambda x: stats.binom.cdf(successes, n, x) - 0.05, 0, 1))
    return low, high


class Prompts:
    """Of every cross-subject prompt that was scored before and after: the change on both scales, and its person."""

    def __init__(self, folder: Path) -> None:
        logs: dict[Key, dict[tuple[str, str], float]] = defaultdict(dict)
        self.person: dict[Key, Row] = {}
        for row in score_rows(folder, "cross_subject"):
            if row["holds"] == "target_new":
                key = (row["editor"], row["edit_relation"], row["case_id"], row["prompt_id"])
                logs[key][row["role"], row["phase"]] = row["logprob"]
                self.person[key] = row
        self.change: dict[Key, float] = {}
        self.log_odds: dict[Key, float] = {}
        for key, found in logs.items():
            if len(found) == 4:
                side = {name: found["target_new", name] - found["target_true", name] for name in ("pre", "post")}
                p = {name: math.exp(value) for name, value in found.items()}
                after, before = (p["target_new", name] - p["target_true", name] for name in ("post", "pre"))
                self.change[key], self.log_odds[key] = after - before, side["post"] - side["pre"]

    def of(self, editor: str, relation: str, axis: str, group: str) -> list[Key]:
        """The prompts of a cell: "all" is everybody, "unknown" the people without a tag on the axis."""

        def fits(key: Key) -> bool:
            tags = [] if axis == "all" else self.person[key][axis]
            return axis == "all" or (not tags if group == "unknown" else group in tags)

        return [key for key in self.change if key[:2] == (editor, relation) and fits(key)]


def case_means(keys: Iterable[Key], values: Mapping[Key, float]) -> float:
    """The mean over edits of the mean over prompts."""
    by_case: dict[int, list[float]] = defaultdict(list)
    for key in keys:
        by_case[key[2]].append(values[key])
    return mean(mean(found) for found in by_case.values())


@pytest.mark.slow(10)
def test_every_effect_is_a_mean_of_case_means(run_folder: Path, report: tuple[Path, str]) -> None:
    prompts = Prompts(run_folder)
    table = pd.read_csv(report[0] / "tables" / "effects_by_group.csv", keep_default_na=False, na_values=[""])
    assert len(table) > 40
    seen: Counter[str] = Counter()
    for row in table.to_dict("records"):
        keys = prompts.of(str(row["editor"]), str(row["relation"]), str(row["axis"]), str(row["group"]))
        cell = f"{row['editor']} {row['relation']} {row['group']}"
        assert row["D"] == pytest.approx(case_means(keys, prompts.change)), cell
        assert row["log_odds"] == pytest.approx(case_means(keys, prompts.log_odds)), cell
        people = {prompts.person[key]["subject_id"] for key in keys}
        assert (row["n_prompts"], row["n_subjects"]) == (len(keys), len(people)), cell
        assert row["n_cases"] == len({key[2] for key in keys}), cell
        seen[str(row["axis"])] += 1
    assert set(seen) == {"all", "gender", "race", "region"}


def test_the_pages_cells_are_the_csvs_numbers(run_folder: Path, two_editors: Results) -> None:
    """The rows about all people, cell by cell, from the score table to the Markdown."""
    prompts = Prompts(run_folder)
    page = all_markdown(two_editors)
    part = page.split("## What happened to other people")[1].split("\n## ")[0]
    names = {"citizenship": "P27", "work": "P101"}
    checked = 0
    rows = re.findall(r"^\| (.*) \| new target \| all \| all \| (.*) \|$", part, re.MULTILINE)
    for words, cells in rows:
        editor, name = words.split(" | ")
        if name == "all":
            continue
        keys = prompts.of(editor, names[name], "all", "all")
        shown = [f"{case_means(keys, prompts.change):+.3f}", f"{case_means(keys, prompts.log_odds):+.2f}"]
        first, second, _, n, *_ = cells.replace("\\*", "").split(" | ")
        assert first.split()[0] == shown[0]
        assert second.split()[0] == shown[1]
        assert n == str(len({key[2] for key in keys}))
        checked += 1
    assert checked == 4


def test_efficacy_is_counted_with_wilsons_interval(run_folder: Path, report: tuple[Path, str]) -> None:
    logs: dict[tuple[str, str, int], dict[tuple[str, str], float]] = defaultdict(dict)
    for one in score_rows(run_folder, "efficacy"):
        logs[one["editor"], one["edit_relation"], one["case_id"]][one["role"], one["phase"]] = one["logprob"]
    table = pd.read_csv(report[0] / "tables" / "efficacy.csv")
    assert set(table["relation"]) > {"all", "P27", "P101"}
    for row in table.to_dict("records"):
        own = [found for (editor, relation, _), found in logs.items() if editor == row["editor"]
               and row["relation"] in ("all", relation)]  # fmt: skip
        whole = [found for found in own if len(found) == 4]  # a refused edit is left out of both shares
        assert row["n"] == len(whole)
        for phase in ("pre", "post"):
            sides = [(found["target_new", phase], found["target_true", phase]) for found in whole]
            wins = sum(new > true for new, true in sides)
            assert row[phase] == pytest.approx(wins / len(sides))
            if phase == "post":
                low, high = share_ends(wins, len(sides))
                assert (row["post_low"], row["post_high"]) == pytest.approx((max(low, 0), min(high, 1)), abs=1e-9)
        raised = sum(found["target_new", "post"] > found["target_new", "pre"] for found in whole)
        assert row["raised"] == pytest.approx(raised / len(whole))
        assert row["n_raised"] == len(whole)


def test_accuracy_is_the_share_of_cases_whose_gold_answer_beats_the_rest(
    run_folder: Path, report: tuple[Path, str]
) -> None:
    logs: dict[tuple[str, int, str], list[tuple[float, bool]]] = defaultdict(list)
    pairs: dict[int, tuple[str, str]] = {}
    for one in score_rows(run_folder, "cross_property"):
        logs[one["editor"], one["case_id"], one["phase"]].append((one["logprob"], one["gold"]))
        pairs[one["case_id"]] = one["edit_relation"], one["effect_relation"]
    right: dict[tuple[str, int, str], bool] = {}
    for key, found in logs.items():
        best = max(value for value, gold in found if not gold)
        right[key] = any(gold and value > best for value, gold in found)
    table = pd.read_csv(report[0] / "tables" / "accuracy.csv")
    assert len(table) == 2 * 9  # two editors; eight pairs of properties, and all of them
    for row in table.to_dict("records"):
        pair = (row["edit_relation"], row["effect_relation"])
        cases = [case for case in pairs if pair in (("all", "all"), pairs[case])]
        both = [case for case in cases if all((row["editor"], case, phase) in right for phase in ("pre", "post"))]
        pre, post = ([right[str(row["editor"]), case, phase] for case in both] for phase in ("pre", "post"))
        assert row["n"] == len(both)
        assert (row["pre"], row["post"]) == pytest.approx((mean(pre), mean(post)))
        assert row["change"] == pytest.approx(mean(post) - mean(pre))
        assert row["lost"] == sum(one and not two for one, two in zip(pre, post))
        assert row["gained"] == sum(two and not one for one, two in zip(pre, post))


def test_rows_without_a_number_are_counted_by_reason(run_folder: Path, report: tuple[Path, str]) -> None:
    rows: list[Row] = pq.read_table(run_folder / "scores.parquet").to_pylist()
    counts = Counter((row["editor"], row["kind"], row["phase"], row["status"]) for row in rows if row["status"] != "ok")
    table = pd.read_csv(report[0] / "tables" / "unscored.csv")
    found = {
        (row["editor"], row["kind"], row["phase"], row["reason"]): row["n_rows"] for row in table.to_dict("records")
    }
    assert found == dict(counts)
    assert table["n_rows"].is_monotonic_decreasing
    page = " ".join(report[1].split())
    assert f"{sum(counts.values()):,} of {len(rows):,} score rows have no number." in page


def test_a_contrast_is_the_group_minus_the_others_of_its_axis_within_edits(
    run_folder: Path, report: tuple[Path, str]
) -> None:
    """Both sides are weighed over the edits that have people on both, so that what an edit does to all cancels."""
    prompts = Prompts(run_folder)
    table = pd.read_csv(report[0] / "tables" / "verdicts.csv", keep_default_na=False, na_values=[""])
    checked = 0
    for row in table[table["holds"] == "target_new"].to_dict("records"):
        editor, relation, axis, group = (str(row[name]) for name in ("editor", "relation", "axis", "group"))
        relations = {key[1] for key in prompts.change} if relation == "all" else {relation}
        own = {key for name in relations for key in prompts.of(editor, name, axis, group)}
        tagged = {
            key
            for key in prompts.change
            if key[0] == editor and key[1] in relations and prompts.person[key][axis] and key not in own
        }
        shared = {key[2] for key in own} & {key[2] for key in tagged}
        if not shared:
            continue
        sides = [case_means((key for key in side if key[2] in shared), prompts.log_odds) for side in (own, tagged)]
        assert row["log_odds"] == pytest.approx(sides[0] - sides[1]), (editor, relation, group)
        checked += 1
    assert checked > 20
