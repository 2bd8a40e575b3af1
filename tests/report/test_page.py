"""`report.html`: one file that asks nobody, says what the tables say, and leads from each number to its prompts."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seesaw_cf.base.terminal import printable
from seesaw_cf.report import Results, read_results, write_report
from seesaw_cf.report.findings import find
from seesaw_cf.report.html.forest import Axis
from seesaw_cf.report.intersections import CROSSED, crossings, intersections
from seesaw_cf.report.page_cases import kept_prompts
from seesaw_cf.report.results import HOLDER
from seesaw_cf.report.write import run_report
from tests.page_reader import Read, check_alone, csv_files, in_browser
from tests.report.runs import cases, property_cases, write_run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A run of two editors, one of which has a control."""
    made = cases(("P27", "P101"), 8, 20) + property_cases(2)
    return read_results(write_run(tmp_path_factory.mktemp("page") / "run", made, ("memit", "ft", "random(memit)")))


@pytest.fixture(scope="module")
def folder(results: Results) -> Path:
    """The folder of the run, with its report."""
    run_report(results).write(results.folder / "report")
    return results.folder


@pytest.fixture(scope="module")
def page(folder: Path) -> Read:
    return Read((folder / "report" / "report.html").read_text(encoding="utf-8"))


def test_nothing_is_fetched_and_only_the_pages_own_script_and_style_may_act(folder: Path) -> None:
    check_alone((folder / "report" / "report.html").read_text(encoding="utf-8"))


def test_downloads_are_the_tables_of_the_report(folder: Path, page: Read) -> None:
    files = csv_files(page)
    assert {"effects_by_group.csv", "verdicts.csv", "accuracy.csv", "efficacy.csv"} <= files.keys()
    for name, held in files.items():
        assert held.encode() == (folder / "report" / "tables" / name).read_bytes()


def test_every_link_leads_to_prompts_and_counts_are_those_of_the_tables(
    results: Results, folder: Path, page: Read
) -> None:
    names = [column["name"] for column in page.data["columns"]]
    words = {column["name"]: column["words"] for column in page.data["columns"]}
    rows = [dict(zip(names, row, strict=True)) for row in page.data["rows"]]
    for row in rows:
        row.update({name: words[name][row[name]] for name in ("editor", "relation", "holds")})
    ids = {str(attrs["id"]) for _, attrs in page.tags if "id" in attrs}
    links = [str(tag["href"])[1:] for tag in page.all("a") if str(tag.get("href")).startswith("#")]
    views = {link for link in links if link.startswith("look?")}
    assert {link.partition("?")[0] for link in links} <= ids
    with (folder / "report" / "tables" / "effects_by_group.csv").open(encoding="utf-8", newline="") as lines:
        sizes = {
            (row["editor"], row["relation"], row["holds"], row["axis"], row["group"]): int(row["n_prompts"])
            for row in csv.DictReader(lines)
        }
    both = {(row["editor"], row["relation"], HOLDER, CROSSED, row["group"]): int(row["n_prompts"])
            for row in intersections(results).to_dict("records")}  # fmt: skip
    assert sum(parse_qs(view)["axis"] == [CROSSED] for view in views) == len(both) > 3
    sizes |= both
    for (editor, _, holds, axis, group), n in list(sizes.items()):
        pooled = (editor, "", holds, axis, group)
        sizes[pooled] = sizes.get(pooled, 0) + n
    assert len(views) > 20
    assert any("relation" not in parse_qs(view.partition("?")[2]) for view in views)
    for view in views:
        said = {"relation": ""} | {name: values[0] for name, values in parse_qs(view.partition("?")[2]).items()}
        key = (said["editor"], said["relation"], said["holds"], said["axis"], said["group"])
        assert page.data["counts"].get(json.dumps(key, separators=(",", ":")), sizes[key]) == sizes[key]
        found = [row for row in rows if all(said[name] in ("", row[name]) for name in ("editor", "relation", "holds"))]
        found = [row for row in found if said["group"] == "all" or set(said["group"].split(" · ")) <= {*row["groups"]}]
        assert "random" in said["editor"] or len(found) >= min(12, sizes[key])


def _links(page: Read) -> list[str]:
    return [str(tag["href"]) for tag in page.all("a") if "href" in tag]


def test_cells_about_other_properties_lead_to_their_cases(folder: Path, page: Read) -> None:
    """A cell's number is that of the cases that its link shows, or of which it shows those that moved most."""
    block = page.blocks["cases-data"]
    names = [column["name"] for column in block["columns"]]
    words = [column["words"] for column in block["columns"]]
    rows = [{n: v if w is None else w[v] for n, v, w in zip(names, row, words, strict=True)} for row in block["rows"]]
    with (folder / "report" / "tables" / "accuracy.csv").open(encoding="utf-8", newline="") as lines:
        table = {(row["editor"], row["edit_relation"], row["effect_relation"]): row for row in csv.DictReader(lines)}
    views = [link for link in _links(page) if link.startswith("#cases?")]
    assert len(views) == sum(row[name] != "0" for row in table.values() for name in ("lost", "gained", "n"))
    for view in views:
        said = {name: values[0] for name, values in parse_qs(view.partition("?")[2]).items()}
        cell = table[said["editor"], said.get("edited", "all"), said.get("asked", "all")]
        key = [said.get(name, "") for name in block["key"]]
        whole = int(cell[{"lost": "lost", "gained": "gained"}.get(said.get("outcome", ""), "n")])
        assert block["counts"].get(json.dumps(key, separators=(",", ":")), 0) == whole
        kept = [row for row in rows if all(row[name] == value for name, value in said.items())]
        assert min(12, whole) <= len(kept) <= whole
    for row in rows:
        assert (
            row["outcome"]
            == {
                (True, True): "right both times",
                (True, False): "lost",
                (False, True): "gained",
                (False, False): "wrong both times",
            }[row["rank_pre"] == 1, row["rank_post"] == 1]
        )


def test_every_control_of_an_editor_is_shown(tmp_path: Path) -> None:
    editors = ("memit", "identity(memit)", "random(memit)")
    results = read_results(write_run(tmp_path / "run", cases(("P27",), 8, 20), editors))
    html = run_report(results).pages["report.html"]
    page = Read(html)
    assert "its controls: identity (solid), random (dashed)." in page.text
    marks = [str(tag["aria-label"]) for tag in page.all("svg") if str(tag.get("aria-label")).startswith("memit:")]
    assert all("control identity(memit): " in said and "control random(memit): " in said for said in marks)
    assert html.count('class="control d0"') == html.count('class="control d1"') == len(marks) > 5
    assert [column["name"] for column in page.data["columns"]][-2:] == ["identity", "random"]
    prompts = results.prompts
    assert prompts is not None
    for name in ("identity", "random"):
        place = [column["name"] for column in page.data["columns"]].index(name)
        theirs = {f"{value:.3g}" for value in prompts.loc[prompts["editor"] == f"{name}(memit)", "log_odds"]}
        assert {f"{row[place]:.3g}" for row in page.data["rows"]} <= theirs


def test_a_row_is_a_prompt_of_the_scores(results: Results, page: Read) -> None:
    assert results.prompts is not None
    names = [column["name"] for column in page.data["columns"]]
    words = [column["words"] for column in page.data["columns"]]
    control = results.prompts[results.prompts["editor"] == "random(memit)"]
    both = {(row["case_id"], row["prompt_id"]): row["log_odds"] for row in control.to_dict("records")}
    columns = ["pre_new", "post_new", "pre_true", "post_true"]
    theirs = set()
    for row in results.prompts.to_dict("records"):
        beside = f"{float(both[row['case_id'], row['prompt_id']]):.3g}" if row["editor"] == "memit" else "-"
        shares = (f"{math.exp(row[name]):.3g}" for name in columns)
        theirs.add(
            (row["editor"], row["prompt"], row["edit_relation"], *shares, f"{row['log_odds']:.3g}", beside),
        )
    numbers = ["new_pre", "new_post", "true_pre", "true_post", "log_odds", "random"]
    for row in page.data["rows"]:
        said = {n: v if w is None else w[v] for n, v, w in zip(names, row, words, strict=True)}
        shown = ("-" if said[name] is None else f"{said[name]:.3g}" for name in numbers)
        assert (said["editor"], said["prompt"], said["relation"], *shown) in theirs


def test_what_is_kept_moved_most(results: Results) -> None:
    prompts = results.prompts
    assert prompts is not None
    kept, counts = kept_prompts(prompts)
    assert not kept["editor"].str.startswith("random").any()
    for (editor, relation, holds, axis, group), n in counts.items():
        own = prompts[(prompts["editor"] == editor) & ((prompts["edit_relation"] == relation) | (relation == ""))]
        own = own[own["holds"].fillna("") == holds]
        if axis != "all":
            theirs = crossings(own) if axis == CROSSED else own[axis]
            own = own[[group in tags if group != "unknown" else not len(tags) for tags in theirs]]
        assert len(own) == n
        there = kept.merge(own[["editor", "case_id", "prompt_id"]])
        least = own["log_odds"].abs().nlargest(12).min()
        assert (there["log_odds"].abs() >= least * (1 - 1e-12)).sum() >= min(12, n)


def test_the_first_table_says_who_lost_most_and_more_than_its_control(results: Results, folder: Path) -> None:
    html = (folder / "report" / "report.html").read_text(encoding="utf-8")
    table = html.partition('<section id="most">')[2].partition("</section>")[0]
    rows = [
        re.findall(r"<td[^>]*>(?:<a [^>]*>)?(.*?)(?:</a>)?</td>", row)
        for row in re.findall("<tr>(.*?)</tr>", table)[1:]
    ]
    assert results.audit is not None
    effects = results.effects[(results.effects["holds"] == HOLDER) & (results.effects["group"] != "unknown")]
    assert [row[1] for row in rows] == ["memit"] * 8 + ["ft"] * 8
    for editor in ("memit", "ft"):
        there = effects[(effects["editor"] == editor) & effects["low"].notna()]
        said = [row[3] for row in rows if row[1] == editor]
        assert [one.split(" ")[0] for one in said] == [f"{v:+.3f}".replace("-", "−") for v in there["D"].nsmallest(8)]
        assert all(re.search(r" \[\S+, \S+\]$", one) for one in said)
    excess = {f"{row['value']:+.3f}".replace("-", "−") for row in results.audit.excess.to_dict("records")}
    assert {row[4].split(" ")[0] for row in rows if row[1] == "memit"} <= excess
    assert all(row[4].endswith("(random)") for row in rows if row[1] == "memit")
    assert {row[4] for row in rows if row[1] == "ft"} == {"–"}


def test_the_page_opens_with_the_findings_and_hides_no_group(results: Results, folder: Path, page: Read) -> None:
    said = " ".join(page.text.split())
    found = find(results)
    words = [found.about, found.title, *(answer for _, answer in found.written)]
    assert all(" ".join(word.split()) in said for word in words)
    html = (folder / "report" / "report.html").read_text(encoding="utf-8")
    assert re.findall(r"<h1>(.*?)</h1>", html) == [found.title]
    assert html.index("<h1>") < html.index("<nav")
    assert "no tag" in said
    assert "women · " in said or "men · " in said
    titles = [attrs.get("aria-label") for attrs in page.all("svg") if attrs.get("role") == "img"]
    assert titles
    assert all(re.search(r"\d edits, \d+ people", str(title)) for title in titles)
    assert any("control" in str(title) for title in titles)


def test_marks_have_the_colours_of_the_legend(folder: Path, page: Read) -> None:
    """Also where the tables have the editors in another order than the run."""
    html = (folder / "report" / "report.html").read_text(encoding="utf-8")
    legend = dict(re.findall(r'<span class="key (k\d)"><svg.*?</svg> ([^<]+)</span>', html))
    assert list(legend.values()) == ["memit", "ft"]
    marks = re.findall(r'aria-label="(\w+): .*?<g class="mark (k\d)">', html, re.DOTALL)
    assert len(marks) > 20
    assert {(legend[colour], editor) for editor, colour in marks} == {("memit", "memit"), ("ft", "ft")}
    said = [str(tag["aria-label"]) for tag in page.all("svg") if str(tag.get("aria-label")).startswith("memit:")]
    assert all("control random(memit): " in mark for mark in said)


@given(st.lists(st.floats(-50, 50), min_size=1), st.floats(0.1, 5))
@example([5e-324], 1.0)  # the least number above 0
def test_an_axis_shows_every_value_and_is_symmetric(values: list[float], spread: float) -> None:
    axis = Axis.around(values, [value + spread for value in values])
    assert axis.high >= max(map(abs, values)) * (1 - 1e-9)
    for value in values:
        assert 0 <= axis.at(value) <= 100
        assert axis.at(value) + axis.at(-value) == pytest.approx(100, abs=0.011)
        span = axis.span(value - spread, value + spread)
        assert span is not None
        assert span.left <= axis.at(value) <= span.right
        assert span.cut_right == (value + spread > axis.high)
    assert [place for place, _ in axis.ticks] == sorted(place for place, _ in axis.ticks)
    assert axis.span(math.nan, 1.0) is None


HOSTILE = "</script><script>alert(1)</script><!--\u202e\u2028&amp;\"'"


def test_texts_of_models_and_records_stay_texts(tmp_path: Path) -> None:
    made = cases(("P27",), 6, 12)
    folder = write_run(tmp_path / "run", made, (HOSTILE,))
    write_report(folder)
    html = (folder / "report" / "report.html").read_text(encoding="utf-8")
    page = Read(html)
    assert html.count("<script") == 2
    assert "<script>alert" in page.text
    assert "\u202e" not in html
    assert "\u2028" not in html
    words = next(column["words"] for column in page.data["columns"] if column["name"] == "editor")
    assert words == [printable(HOSTILE)]


def test_a_run_without_questions_about_others_has_a_page(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", property_cases(3), ("memit",))
    write_report(folder)
    page = Read((folder / "report" / "report.html").read_text(encoding="utf-8"))
    assert list(page.blocks) == ["cases-data"]
    ids = {str(attrs["id"]) for _, attrs in page.tags if "id" in attrs}
    assert {"accuracy", "cases", "efficacy", "method"} <= ids
    assert not {"look", "groups", "verdicts", "coverage"} & ids


@pytest.mark.slow(20)
def test_a_view_opens_in_chromium(folder: Path, page: Read) -> None:
    """A permalink shows its prompts, sorted; a search narrows them."""
    file = folder / "report" / "report.html"
    view = "#look?editor=memit&relation=P27&holds=target_new&axis=gender&group=women"
    shown = in_browser(file, view)
    n = int(re.search(r"(\d+) prompts shown; this group has (\d+)", shown.text)[1])  # type: ignore[index]
    assert n >= 12
    before = len(page.all("tr")) + len(page.blocks["cases-data"]["rows"])
    assert len(shown.all("tr")) == before + n
    assert " citizenship " in shown.text
    assert "target_new" not in shown.text
    sorted_by = [head.get("aria-sort") for head in shown.all("th") if "aria-sort" in head]
    assert sorted_by.count("other") == len(page.blocks)
    narrowed = in_browser(file, f"{view}&q=person+1")
    assert 0 < len(narrowed.all("tr")) - before < n
    assert "0 prompts shown" in in_browser(file, "#look?editor=nobody").text
    lost = next(link for link in _links(page) if link.startswith("#cases") and "outcome=lost" in link)
    found = re.search(r"(\d+) cases shown; this group has (\d+)", in_browser(file, lost).text)
    assert found is not None
    assert found[1] == found[2] != "0"


def test_csv_in_the_page_is_csv(page: Read) -> None:
    rows = list(csv.DictReader(io.StringIO(csv_files(page)["efficacy.csv"])))
    assert {row["editor"] for row in rows} == {"memit", "ft", "random(memit)"}
