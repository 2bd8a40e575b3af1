"""Ten questions of an auditor, each answered on the page in a few clicks; the answers are computed again here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from seesaw_cf.effects import prompt_effects
from seesaw_cf.effects.needed import needs
from seesaw_cf.report import read_results
from tests.pages.browser import opened
from tests.pages.conftest import Address
from tests.pages.made import run_folder

pytestmark = pytest.mark.slow(25)
_KEY = ["editor", "case_id", "prompt_id"]
_AXES = ("gender", "race", "region")
_HEADS = ("editor", "edit", "relation", "person", "groups", "holds", "prompt", "new", "new_after", "true", "true_after")


@pytest.fixture(scope="module")
def scores(folder: Path) -> pd.DataFrame:
    return pd.read_parquet(run_folder(folder) / "scores.parquet")


@pytest.fixture(scope="module")
def asked(scores: pd.DataFrame) -> pd.DataFrame:
    """One row for each scored prompt about a person: tags, changes of p(new) - p(true) and of log-odds, nats."""
    rows = scores[(scores["kind"] == "cross_subject") & scores["logprob"].notna()]
    wide = rows.pivot_table(index=_KEY, columns=["phase", "role"], values="logprob").dropna()
    after, before = wide["post"], wide["pre"]
    change = {
        "D": np.exp(after).diff(axis=1)["target_true"] * -1 - np.exp(before).diff(axis=1)["target_true"] * -1,
        "log_odds": (after["target_new"] - after["target_true"]) - (before["target_new"] - before["target_true"]),
    }
    about = rows.drop_duplicates(_KEY).set_index(_KEY)[["subject", "prompt", "holds", *_AXES]]
    return about.join(pd.DataFrame(change), how="inner").reset_index()


@pytest.fixture(scope="module")
def page(browser: Any, address: Address) -> Iterator[Any]:
    with opened(browser, address("report")) as found:
        yield found


_SEVERAL = {"test_which_prompts_lost_most_confidence": 2, "test_can_it_be_trusted_repeated_and_cited": 3}  # questions


@pytest.fixture(autouse=True)
def clicks(page: Any, request: pytest.FixtureRequest) -> Iterator[None]:
    """Count the reader's clicks in the page; a question takes at most two."""
    page.evaluate("window.clicks ?? addEventListener('click', event => { clicks += event.isTrusted; }, true)")
    page.evaluate("window.clicks = 0")
    yield
    assert page.evaluate("clicks") <= 2 * _SEVERAL.get(request.node.name, 1)


def _mean(rows: pd.DataFrame, column: str) -> float:
    """Every edit counts the same, whatever it asks."""
    return float(rows.groupby("case_id")[column].mean().mean())


def _of(asked: pd.DataFrame, editor: str, group: str) -> pd.DataFrame:
    rows = asked[(asked["editor"] == editor) & (asked["holds"] == "target_new")]
    there = [group == "everybody" or any(group in row[axis] for axis in _AXES) for _, row in rows.iterrows()]
    return rows[there]


def _numbers(said: str) -> list[float]:
    return [float(one) for one in re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", said.replace("−", "-").replace("+", ""))]


def _cells(page: Any, section: str) -> list[list[str]]:
    rows = page.locator(f"#{section} tbody tr").evaluate_all(
        "all => all.map(row => [...row.cells].map(c => c.innerText))"
    )
    return [[str(cell).strip() for cell in row] for row in rows]


def _shown(page: Any) -> list[dict[str, str]]:
    """The rows of the list of prompts; the column of the control is the last."""
    heads = (*_HEADS, "log_odds", "random")
    return [dict(zip(heads, row, strict=True)) for row in _cells(page, "look")]


def _opened_at(page: Any, group: str) -> None:
    """The prompts behind a mark: a click on the group's name in the table of who lost most."""
    row = page.locator("#most tbody tr").filter(has=page.get_by_role("cell", name="memit", exact=True))
    before = page.evaluate(
        "turned = new Promise(done => addEventListener('hashchange', done, { once: true })); location.hash"
    )
    row.get_by_role("link", name=group, exact=True).click()
    if page.evaluate("location.hash") != before:
        page.evaluate("turned")  # after the page's own listener has shown the rows


def test_which_group_lost_most_and_is_it_more_than_its_control(page: Any, asked: pd.DataFrame) -> None:
    group, _, _, effect, excess, edits, people = next(row for row in _cells(page, "most") if row[1] == "memit")
    rows, control = _of(asked, "memit", group), _of(asked, "random(memit)", group)
    assert _numbers(effect)[0] == pytest.approx(_mean(rows, "D"), rel=0.01)
    assert _numbers(excess)[0] == pytest.approx(_mean(rows, "D") - _mean(control, "D"), abs=6e-4)
    assert (int(edits), int(people)) == (rows["case_id"].nunique(), rows["subject"].nunique())
    others = [_mean(_of(asked, "memit", row[0]), "D") for row in _cells(page, "most") if row[1] == "memit"]
    assert others == sorted(others)


def test_which_prompts_are_behind_a_mark(page: Any, asked: pd.DataFrame) -> None:
    _opened_at(page, "women")
    rows, shown = _of(asked, "memit", "women"), _shown(page)
    found = re.match(r"(\d+) prompts shown; this group has (\d+)", page.inner_text("#look-found"))
    assert found is not None
    assert [int(found[1]), int(found[2])] == [len(shown), len(rows)]
    assert {row["prompt"] for row in shown} <= set(rows["prompt"])
    assert all("women" in row["groups"] and row["editor"] == "memit" for row in shown)
    largest = rows["log_odds"].abs().max()
    assert abs(_numbers(shown[0]["log_odds"])[0]) == pytest.approx(largest, rel=0.01)


def test_what_does_the_control_do_to_the_same_prompts(page: Any, asked: pd.DataFrame) -> None:
    _opened_at(page, "men")
    beside = {name: _of(asked, name, "men").set_index("prompt") for name in ("memit", "random(memit)")}
    for row in _shown(page):
        for column, editor in (("log_odds", "memit"), ("random", "random(memit)")):
            values = beside[editor].loc[[row["prompt"]], "log_odds"]
            assert np.isclose(values, _numbers(row[column])[0], rtol=0.01).any()


def test_a_view_is_passed_on_by_its_address(browser: Any, page: Any) -> None:
    _opened_at(page, "women")
    page.fill("#look-q", "person 1")
    page.wait_for_url(re.compile(r"[?&]q=person\+1"))
    with opened(browser, page.url) as other:
        assert other.inner_text("#look-found") == page.inner_text("#look-found")
        assert _shown(other) == _shown(page)


def test_which_prompts_lost_most_confidence(page: Any, asked: pd.DataFrame) -> None:
    _opened_at(page, "women")
    for way in ("descending", "ascending"):
        page.get_by_role("button", name="log-odds", exact=True).first.click()
        assert page.get_attribute("#look th:nth-child(12)", "aria-sort") == way
    shown = [_numbers(row["log_odds"])[0] for row in _shown(page)]
    assert shown == sorted(shown)
    assert shown[0] == pytest.approx(_of(asked, "memit", "women")["log_odds"].min(), rel=0.01)


def test_what_became_of_one_person(page: Any, asked: pd.DataFrame) -> None:
    _opened_at(page, "men")
    person = _shown(page)[0]["person"]
    page.fill("#look-q", person.lower())
    shown = [row for row in _shown(page) if row["person"] == person]
    rows = _of(asked, "memit", "men")
    assert 0 < len(shown) <= (rows["subject"] == person).sum()
    assert all(person.lower() in " ".join(row.values()).lower() for row in _shown(page))


def test_did_the_edits_take(page: Any, scores: pd.DataFrame) -> None:
    after = scores[(scores["kind"] == "efficacy") & (scores["editor"] == "memit") & (scores["phase"] == "post")]
    after = after.pivot_table(
        index=["case_id", "edit_relation", "prompt_id"], columns="role", values="logprob"
    ).dropna()
    row = next(row for row in _cells(page, "efficacy") if row[:2] == ["memit", "all"])
    assert _numbers(row[4])[0] == pytest.approx(100 * (after["target_new"] > after["target_true"]).mean(), abs=0.06)
    edits = scores[(scores["editor"] == "memit") & (scores["kind"] == "efficacy")]
    assert int(row[2]) == edits["case_id"].nunique()


def test_of_how_many_people_is_no_group_known(page: Any, asked: pd.DataFrame, scores: pd.DataFrame) -> None:
    people = scores[scores["kind"] == "cross_subject"].drop_duplicates("subject")
    shown = {row[0]: int(row[2]) for row in _cells(page, "coverage") if row[1] == "unknown"}
    assert shown == {axis: int((people[axis].map(len) == 0).sum()) for axis in _AXES}
    assert min(shown.values()) > 0


def test_what_is_the_noise_floor(page: Any, folder: Path) -> None:
    """Twice the noise that the run measured: a difference of two scores."""
    noise = json.loads((run_folder(folder) / "manifest.json").read_text())["machine"]["noise"]
    said = re.search(r"noise floor (\S+) in probability, (\S+) in log-odds", page.inner_text("#conclusion"))
    assert said is not None
    assert [float(one) for one in said.groups()] == pytest.approx([2 * noise["p99_probability"], 2 * noise["p99"]])


def test_a_table_is_taken_away_and_read(page: Any, asked: pd.DataFrame) -> None:
    with page.expect_download() as waiting:
        page.get_by_role("link", name="effects_by_group.csv", exact=True).click()
    table = pd.read_csv(waiting.value.path())
    found = table[(table["axis"] == "gender") & (table["holds"] == "target_new") & (table["group"] != "unknown")]
    for editor in ("memit", "random(memit)"):
        for row in found[found["editor"] == editor].to_dict("records"):
            assert row["D"] == pytest.approx(_mean(_of(asked, editor, row["group"]), "D"), abs=1e-9)
            assert row["log_odds"] == pytest.approx(_mean(_of(asked, editor, row["group"]), "log_odds"), abs=1e-9)
    assert set(found["group"]) == {"men", "women"}


def test_did_it_do_more_than_its_control(page: Any, asked: pd.DataFrame) -> None:
    """On the first screen, without a click."""
    strip = page.locator("#findings .strip").filter(has_text="People who hold the new answer")
    said = strip.locator(".scale > span").all_inner_texts()
    rows = asked[asked["holds"] == "target_new"]
    for editor in ("memit", "random(memit)"):
        [number] = [one.removeprefix(f"{editor} ") for one in said if one.startswith(f"{editor} ")]
        assert _numbers(number)[0] == pytest.approx(_mean(rows[rows["editor"] == editor], "D"), abs=6e-4)


def test_which_edit_is_the_worst(page: Any, asked: pd.DataFrame, scores: pd.DataFrame) -> None:
    """One click to the table; its largest damage is that of the score table."""
    page.get_by_role("navigation").get_by_role("link", name="Worst edits", exact=True).click()
    shown = [row for row in _cells(page, "edit_damage") if row[1] == "memit"]
    own = scores[(scores["kind"] == "cross_property") & (scores["editor"] == "memit") & scores["logprob"].notna()]
    first = own.sort_values("logprob").groupby(["edit_relation", "case_id", "phase"]).last()["gold"].unstack()
    lost = (first["pre"].astype(bool) & ~first["post"].astype(bool)).astype(float)
    new = -asked[(asked["editor"] == "memit") & (asked["holds"] == "target_new")].groupby("case_id")["D"].mean()
    damage = sorted([*lost, *new], reverse=True)[: len(shown)]
    assert [_numbers(row[3])[0] for row in shown] == pytest.approx(damage, abs=6e-3)


def test_can_it_be_trusted_repeated_and_cited(page: Any, folder: Path) -> None:
    """One click each: gates, the command and the papers."""
    job = json.loads((run_folder(folder) / "manifest.json").read_text())["job"]
    answers = {
        "Can I trust it?": ("#gates", "edits took"),
        "How do I repeat it?": ("#method", f"seesaw-cf run --model {job['model']} --editor memit"),
        "What do I cite?": ("#cite", "10.18653/v1/2024.emnlp-main.494"),
    }
    for question, (place, answer) in answers.items():
        page.get_by_role("navigation").get_by_role("link", name=question, exact=True).click()
        assert page.url.endswith(place)
        assert answer in page.inner_text(place)


def test_are_the_people_known(page: Any, scores: pd.DataFrame) -> None:
    """One click: how often what people hold was the likelier answer before any edit (of the editor named first)."""
    page.get_by_role("navigation").get_by_role("link", name="What did the model know before?", exact=True).click()
    asked = scores[(scores["editor"] == "memit") & (scores["kind"] == "cross_subject")]
    before = asked[(asked["phase"] == "pre") & (asked["holds"] == "target_new")]
    first = before.pivot_table(index=["case_id", "prompt_id"], columns="role", values="logprob").dropna()
    _, _, share, n, *_ = next(
        row for row in _cells(page, "knowledge") if row[0].startswith("questions") and row[1] == "all"
    )
    assert int(n) == len(first)
    assert _numbers(share)[0] == pytest.approx(100 * (first["target_new"] > first["target_true"]).mean(), abs=0.06)


def test_how_many_more_do_i_need(page: Any, folder: Path, scores: pd.DataFrame) -> None:
    """Without a click: the middle of the open contrasts, planned again from the score table."""
    found = read_results(run_folder(folder)).audit
    assert found is not None
    own = found.verdicts[~found.verdicts["editor"].str.startswith("random(")]
    open_ = own[(own["verdict"] == "undetermined") & ~own["mirror"]]
    planned = needs(prompt_effects(scores), open_, family=own).sort_values("times", kind="stable")
    middle = planned[planned["times"].notna()].iloc[(planned["times"].notna().sum() - 1) // 2]
    said = re.search(r"needs ([\d,.e+]+) times the edits", page.inner_text("#findings"))
    assert said is not None
    assert float(said[1]) == pytest.approx(middle["edits_needed"] / middle["edits"], rel=0.05)
