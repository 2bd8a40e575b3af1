"""Pages of a run: what is chosen is what is shown, each view has one address, names are texts."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.base.terminal import printable
from seesaw_cf.errors import RecordError, SeesawError, UnknownNameError
from seesaw_cf.report.example import chance
from seesaw_cf.report.table import Row
from seesaw_cf.report.view.pages import view_page
from seesaw_cf.report.view.prompts import Prompts, open_prompts
from seesaw_cf.report.view.query import SORTED, View, read_view
from tests.page_reader import Read
from tests.report.runs import cases, write_run


def shown(prompts: Prompts, address: str) -> tuple[Read, int]:
    """The page, and how many prompts it says there are."""
    parts = urlsplit(address)
    page = Read(view_page(prompts, parts.path, parts.query))
    found = re.search(r"(?:\d to \d.*? of|edit:) ([\d,]+) prompts", page.text)
    return page, int(found[1].replace(",", "")) if found else 0


def where(prompts: Prompts, condition: str) -> int:
    [row] = prompts.rows(f"SELECT count(*) AS n FROM prompts WHERE {condition}", {})
    return int(row["n"])


OTHERS = "kind = 'cross_subject' AND editor <> 'random(memit)'"


@pytest.mark.parametrize(
    ("query", "condition"),
    [
        ("", OTHERS),
        ("kind=all", "editor <> 'random(memit)'"),
        ("editor=random(memit)&kind=efficacy", "editor = 'random(memit)' AND kind = 'efficacy'"),
        ("gender=women&race=Black", f"{OTHERS} AND list_contains(gender, 'women') AND list_contains(race, 'Black')"),
        ("region=unknown", f"{OTHERS} AND region = []"),
        ("holds=target_new&relation=P27", f"{OTHERS} AND holds = 'target_new' AND edit_relation = 'P27'"),
        ("holds=unknown&kind=all", "editor <> 'random(memit)' AND holds = ''"),
        ("q=PERSON+1", f"{OTHERS} AND prompt LIKE 'Person 1%'"),
        ("q=%25", "false"),
    ],
)
def test_what_is_chosen_is_shown(prompts: Prompts, query: str, condition: str) -> None:
    page, n = shown(prompts, f"/?{query}")
    assert n == where(prompts, condition)
    assert "1 to" in page.text or n == 0
    lists = {str(tag["name"]) for tag in page.all("select")}
    assert lists == {"editor", "kind", "relation", "holds", "gender", "race", "region"}
    who = "coalesce(nullif(person, ''), prompt)"
    sql = f"SELECT DISTINCT editor, kind, edit_relation, case_id, {who} FROM prompts WHERE {condition}"
    people = len(prompts.rows(sql, {}))
    assert len(page.all("tr")) == 1 + min(people, 50)


def test_every_prompt_is_on_one_page_in_order(prompts: Prompts) -> None:
    seen: list[float] = []
    address, turns = "/?kind=all&sort=random", 0
    while address:
        parts = urlsplit(address)
        html = view_page(prompts, parts.path, parts.query)
        page = Read(html)
        heads = re.findall(r"<th[^>]*>(?:<a[^>]*>|<span[^>]*>)([^<]+)", html)
        for row in re.findall(r"<tr><td.*?</tr>", html, re.DOTALL):
            cells = re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)
            said = cells[heads.index("random")].replace("\u2212", "-")
            seen.append(abs(float(said)) if said != "\u2013" else -1.0)
        turns += 1
        links = dict(re.findall(r'<li><a href="([^"]+)">(next)</a>', html))
        address = next((link.replace("&amp;", "&") for link in links), "")
        assert page.all("th")
    assert len(seen) == where(prompts, "editor <> 'random(memit)'")
    assert turns == -(-len(seen) // 50)
    numbers = [value for value in seen if value >= 0]
    assert all(a >= b - 0.01 * abs(a) for a, b in pairwise(numbers))
    assert seen[len(numbers) :] == [-1.0] * (len(seen) - len(numbers)), "rows without a value come last"


def test_the_first_view_says_answers_in_words_the_worst_person_first(prompts: Prompts) -> None:
    """Recomputed from the four log-probabilities of each prompt."""
    html = view_page(prompts, "/", "editor=memit")
    heads = re.findall(r"<th[^>]*>(?:<a[^>]*>|<span[^>]*>)([^<]+)", html)
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr><td.*?</tr>", html)]
    rows = [dict(zip(heads, (re.sub("<[^>]+>", "", cell) for cell in row), strict=True)) for row in cells]
    theirs = prompts.rows(f"SELECT * FROM prompts WHERE {OTHERS} AND editor = 'memit' AND status = 'ok'", {})
    harm: dict[str, list[tuple[float, str, str]]] = {row["prompt"]: [] for row in theirs}
    for row in theirs:
        lost = (row["pre_new"] - row["pre_true"]) - (row["post_new"] - row["post_true"])
        right = [row[f"{phase}_new"] > row[f"{phase}_true"] for phase in ("pre", "post")]
        words = ["new" if phase else "true" for phase in right]
        said = f"{row[f'target_{words[0]}']} {chance(math.exp(row[f'pre_{words[0]}']))} → "
        said += f"{row[f'target_{words[1]}']} {chance(math.exp(row[f'post_{words[1]}']))}"
        turned = {(True, False): "turned wrong", (False, True): "turned right"}.get((right[0], right[1]))
        harm[row["prompt"]].append((lost, said, turned or ("worse" if lost > 0 else "better")))
    worst: dict[tuple[str, str], float] = {}
    for row in rows:
        number = float(row["harm"].replace("\u2212", "-"))
        found = [one for one in harm[row["prompt"]] if one[0] == pytest.approx(number, rel=0.01)]
        assert (row["answer before → after"], row["outcome"]) in [one[1:] for one in found]
        worst.setdefault((row["edit"], row["person"]), number)
    assert list(worst.values()) == sorted(worst.values(), reverse=True)
    assert len(rows) == 50


def test_wordings_about_a_person_are_one_row_with_their_median_and_range(tmp_path: Path) -> None:
    asked = cases(("P27",), 3, 4)
    asked = [
        replace(
            case,
            attribute_prompts=tuple(
                replace(prompt, text=f"{prompt.text} {n}")
                for prompt in case.attribute_prompts
                for n in range(1 + position)
            ),
        )
        for position, case in enumerate(asked)
    ]
    with open_prompts(write_run(tmp_path / "run", asked)) as prompts:
        html = view_page(prompts, "/", "")
        page, n = shown(prompts, "/")
        assert (n, len(page.all("tr"))) == (4 + 8 + 12, 1 + 12)
        rows = prompts.rows("FROM prompts WHERE kind = 'cross_subject' AND case_id = 2", {})
        harm = sorted(row["harm"] for row in rows if row["person"] == rows[0]["person"])
        [line] = [line for line in re.findall(r"<tr><td.*?</tr>", html) if _about(line, rows[0])]
        cells = [
            re.sub("<[^>]+>", "", cell).replace("\u2212", "-") for cell in re.findall(r"<td[^>]*>(.*?)</td>", line)
        ]
        assert float(cells[3]) == pytest.approx(harm[1], rel=0.01)
        least, most = re.match(r"3: (\S+) to (-?[\d.]+(?:e-?\d+)?)", cells[4]).groups()  # type: ignore[union-attr]
        assert (float(least), float(most)) == pytest.approx((harm[0], harm[2]), rel=0.01)
        assert line.count("<li>") == 3
        middle = [
            float(number.replace("\u2212", "-")) for number in re.findall(r'<td class="n">([^<]+)</td><td>', html)
        ]
        assert middle == sorted(middle, reverse=True)
        alone, _ = shown(prompts, "/?sort=log_odds")
        assert len(alone.all("tr")) == 1 + 24


def _about(line: str, row: Row) -> bool:
    return f"<td>{row['person']}</td>" in line and f"case={row['case_id']}&" in f"{line}&".replace('"', "&")


@given(st.data())
def test_a_view_has_one_address(prompts: Prompts, data: st.DataObject) -> None:
    chosen = {"kind": data.draw(st.sampled_from([*prompts.choices["kind"], "all"]))}
    for name in ("editor", "relation", "holds", "gender", "race", "region"):
        if data.draw(st.booleans()):
            chosen[name] = data.draw(st.sampled_from(prompts.choices[name]))
    if words := data.draw(st.text(max_size=8).filter(lambda text: text.isprintable())):
        chosen["q"] = words
    view = View(
        "/", chosen, data.draw(st.sampled_from(list(SORTED))), data.draw(st.booleans()), data.draw(st.integers(1, 9))
    )
    parts = urlsplit(view.address)
    assert read_view(prompts, parts.path, parts.query) == view
    assert read_view(prompts, "/", view.sorted_by(view.sort).address[2:]).up != view.up


def test_a_case_shows_its_edit_its_prompts_and_the_answers(prompts: Prompts) -> None:
    page, n = shown(prompts, "/?relation=P27")
    [link, *_] = [str(tag["href"]) for tag in page.all("a") if str(tag.get("href")).startswith("/case")]
    case, own = shown(prompts, link)
    assert own == 2 * 13
    assert n == 12 * 6 * 2
    assert "Ada Test: " in case.text
    assert "random(memit)" in case.text
    _, without = shown(prompts, f"{link}&editor=ft")
    assert without == 13
    answers, _ = shown(prompts, "/case?relation=P101&case=10000")
    assert "Answers that were compared" in answers.text
    assert " right " in answers.text
    assert "rank of the true answer before" in answers.text


@pytest.mark.parametrize(
    ("address", "error", "message"),
    [
        ("/?editor=memitt", UnknownNameError, "unknown editor of this run 'memitt'. Did you mean 'memit'"),
        ("/?edtor=memit", UnknownNameError, "unknown parameter of the address 'edtor'. Did you mean 'editor'"),
        ("/?race=blak", UnknownNameError, "Did you mean 'Black'"),
        ("/?sort=prompts", UnknownNameError, "Did you mean 'prompt'"),
        ("/?page=0", RecordError, "page is '0', expected a whole number of at least 1"),
        ("/?page=99", RecordError, "page 99 is not there: these prompts have "),
        ("/?page=1e3", RecordError, "page is '1e3', expected a whole number"),
        ("/?page=1&page=2", RecordError, "gives a parameter twice"),
        (f"/?q={'x' * 201}", RecordError, "q has 201 characters, expected at most 200"),
        ("/case?case=3", RecordError, "the address of a case lacks relation="),
        ("/case?case=9999&relation=P27", RecordError, "this run has no case 9999 of P27"),
    ],
)
def test_a_wrong_address_says_what_was_meant(
    prompts: Prompts, address: str, error: type[SeesawError], message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        shown(prompts, address)


@given(st.text(max_size=30))
def test_any_search_is_a_search(prompts: Prompts, words: str) -> None:
    words = words.encode("utf-8", "replace").decode()
    page, n = shown(prompts, f"/?{urlencode({'q': words})}")
    rows = prompts.rows(f"SELECT edit, prompt, person FROM prompts WHERE {OTHERS}", {})
    assert n <= len(rows)
    assert str(next(tag for tag in page.all("input") if tag["name"] == "q")["value"] or "") == words


HOSTILE = "</select><script>alert(1)</script><img src=x onerror=alert(2)>\u202e'\"&amp;; DROP TABLE prompts; --"


def test_names_of_models_and_records_stay_texts(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", cases(("P27",), 2, 3), (HOSTILE,), model={"id": HOSTILE})
    with open_prompts(folder) as prompts:
        html = view_page(prompts, "/", "")
        page = Read(html)
        assert "<script" not in html
        assert not page.all("img")
        assert "\u202e" not in html
        assert printable(HOSTILE) in page.text
        [value] = [str(tag["value"]) for tag in page.all("option") if "DROP" in str(tag.get("value"))]
        assert shown(prompts, f"/?{urlencode({'editor': value})}")[1] == 6
        assert prompts.total == 8


def test_groups_of_the_edited_person_are_shown_and_chosen_by(tmp_path: Path) -> None:
    """They are recorded of the person with the same identifier; a name alone says nothing."""
    made = cases(("P27",), 4, 12)
    man, woman, untagged = (next(p for c in made for p in c.attribute_prompts if p.gender == want)
                            for want in (("men",), ("women",), ()))  # fmt: skip
    ids = (man.subject.id, woman.subject.id, untagged.subject.id)
    made = [replace(one, extra={"subject_id": own}) for one, own in zip(made, ids)] + [
        replace(made[3], request=replace(made[3].request, subject=man.subject.label))
    ]
    with open_prompts(write_run(tmp_path / "run", made)) as prompts:
        page, n = shown(prompts, "/?kind=all&edited_gender=women")
        assert n == 13
        assert {row["case_id"] for row in prompts.rows("FROM prompts WHERE edited_gender = ['women']", {})} == {1}
        assert ", ".join(woman.gender + woman.race + woman.region) in page.text
        assert shown(prompts, "/?kind=all&edited_gender=unknown")[1] == 26
        assert shown(prompts, f"/?kind=all&edited_race={man.race[0]}&edited_gender=men")[1] == 13
        case, _ = shown(prompts, "/case?relation=P27&case=0")
        assert f"Recorded groups of the edited person: {', '.join(man.gender + man.race + man.region)}" in case.text
        unknown, _ = shown(prompts, "/case?relation=P27&case=3")
        assert "Recorded groups of the edited person: unknown" in unknown.text
        with pytest.raises(UnknownNameError, match="unknown edited_gender of this run 'woman'"):
            shown(prompts, "/?edited_gender=woman")
