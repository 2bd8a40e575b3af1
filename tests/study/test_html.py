"""`report.html` of a comparison: the same numbers as its tables, each line with its control, nothing from elsewhere."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pandas as pd
import pytest

from seesaw_cf.effects.audit import AuditSettings
from seesaw_cf.report.contrasts import GroupClaim
from seesaw_cf.report.html.findings import title_by
from seesaw_cf.report.levels import ALONE, OPEN, SAME, WORSE, LevelChange
from seesaw_cf.report.table import Column, Table
from seesaw_cf.study import conclusion
from seesaw_cf.study.conclusion import STUDY_TITLE, StudySummary
from seesaw_cf.study.figures import picture_file
from seesaw_cf.study.members import NAMES
from seesaw_cf.study.tables import Comparison
from seesaw_cf.study.write import compare_runs
from tests.page_reader import HOSTILE, Read, in_browser
from tests.report.runs import cases, property_cases, write_run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A comparison of two editors, of which one has a control."""
    folder = tmp_path_factory.mktemp("compared")
    made = cases(("P27", "P101"), 8, 12) + property_cases(3)
    runs = [
        write_run(folder / "memit", made, ("memit", "identity(memit)")),
        write_run(folder / "ft", made[::-1], ("ft",), shift=-1.0, seed=4),
    ]
    (folder / "said.txt").write_text(compare_runs(runs, folder / "out"), encoding="utf-8")
    return folder / "out"


def test_it_opens_with_the_finding_and_a_matrix_in_every_form(out: Path) -> None:
    page = _one_line(Read((out / "report.html").read_text(encoding="utf-8")).text)
    terminal = _one_line((out.parent / "said.txt").read_text(encoding="utf-8"))
    markdown = _one_line((out / "report.md").read_text(encoding="utf-8")).replace("\\", "")
    written = json.loads((out / "report.json").read_text("utf-8"))
    record, matrix = written["findings"], pd.read_csv(out / "tables" / "matrix.csv")
    assert record["about"].startswith("Comparison of 2 runs · 80 edits by memit, ft in tiny")
    for form in (page, terminal, markdown):
        assert _one_line(record["about"]) in form
        assert _one_line(record["title"]) in form
        assert all(_one_line(f"{answer}") in form for answer in record["answers"].values())
        assert all(f"{100 * value:.1f}%" in form for value in matrix["takes"])
    assert markdown.startswith(f"# {_one_line(record['title'])}")
    assert terminal.index(_one_line(record["answers"]["How sure"])) < terminal.index("EDITORS AND MEASURES")
    assert all(record["answers"].values()), "a question without an answer"

    assert matrix["editor"].tolist() == ["memit", "identity(memit)", "ft"]
    took = pd.read_csv(out / "tables" / "efficacy.csv").query("relation == 'all'").set_index("editor")["post"]
    assert pd.read_csv(out / "tables" / "matrix.csv")["takes"].tolist() == took[matrix["editor"]].tolist()
    own = pd.read_csv(out / "tables" / "verdicts.csv").query("editor != 'identity(memit)' and not mirror")
    counts = [(own["verdict"] == label).sum() for label in ("undetermined", "not testable")]
    unknown = record["answers"]["Not known"]
    assert "{} undetermined, {} not testable of {} contrasts".format(*counts, len(own)) in unknown
    assert "the runs disagree in seed" in unknown
    assert record["answers"]["How sure"].startswith("40 edits a line")


def test_ranks_name_the_best_and_the_worst_of_each_measure(out: Path) -> None:
    answers = json.loads((out / "report.json").read_text("utf-8"))["findings"]["answers"]
    own = pd.read_csv(out / "tables" / "matrix.csv").query("editor != 'identity(memit)'").set_index("editor")["takes"]
    best, worst = own.idxmax(), own.idxmin()
    assert re.match(rf"best {best} [\d.]+% .*; worst {worst} [\d.]+%", answers["Edits that take"])
    assert not any("new answer" in name for name in answers), "more of it for everybody is not best"


@pytest.mark.parametrize(
    ("units", "answer"),
    [
        (("", ""), "best a 0.100; worst b 0.200."),
        (("nats", "nats"), "best a 0.100; worst b 0.200."),
        (("nats", ""), None),
        (("nats", None), None),
    ],
)
def test_ranks_compare_one_unit(
    units: tuple[str, str | None], answer: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests = pd.DataFrame(columns=["measure", "p_adjusted", "p", "first", "second", "relation", "axis"])
    rows = [dict.fromkeys(NAMES, name) for name in "ab"]
    frame = pd.DataFrame(rows)
    frame[["old answer", "old answer_unit"]] = list(zip([0.1, 0.2], units))
    column = Column("old answer", lambda row: f"{row['old answer']:.3f}")
    monkeypatch.setattr(conclusion, "matrix_table", lambda _: Table("matrix", "", "", [column], frame))
    labels = {("a",) * 4: "a", ("b",) * 4: "b"}
    compared = SimpleNamespace(labels=labels, table=lambda _: tests, settings=AuditSettings())
    ranks = conclusion._ranks(cast(Comparison, compared))
    assert ranks.get("Shift of people who hold the old answer") == answer


_NUMBERS = {("memit", "other_facts"): "37% [30, 45]; control 98%", ("ft", "other_facts"): "60%",
            ("memit", "target_true"): "+0.28; control +0.03"}  # fmt: skip


def _change(level: str, verdict: str, size: float, changed: bool = True) -> LevelChange:
    return LevelChange({"level": level}, verdict, size, changed)


@pytest.mark.parametrize(
    ("changes", "more", "title"),
    [
        ({"memit": {}, "ft": {}}, {}, "Nothing was asked but the edits themselves."),
        (
            {
                "memit": {
                    "other_facts": _change("other_facts", WORSE, 9.0),
                    "target_true": _change("target_true", WORSE, 3.0),
                },
                "ft": {"other_facts": _change("other_facts", SAME, 0.1)},
            },
            {},
            "Most harm beyond its control: memit to other facts about the edited person (37% [30, 45]; control 98%) "
            "and to people who hold the old answer (+0.28; control +0.03). No harm is shown for ft.",
        ),
        (
            {
                "memit": {"other_facts": _change("other_facts", WORSE, 1.0)},
                "ft": {"other_facts": _change("other_facts", WORSE, 2.0)},
            },
            {},
            "Most harm beyond its control: ft to other facts about the edited person (60%).",
        ),
        (
            {"ft": {"other_facts": _change("other_facts", ALONE, 2.0)}},
            {},
            "Largest changes, without a control to put them down to the edits: ft to other facts about the edited "
            "person (60%).",
        ),
        (
            {"ft": {"other_facts": _change("other_facts", ALONE, 0.2, changed=False)}},
            {},
            "No change is shown, and no control was run.",
        ),
        (
            {"ft": {"other_facts": _change("other_facts", SAME, 0.2)}},
            {},
            "No editor does more harm than its control on anything that was asked.",
        ),
        (
            {
                "ft": {
                    "target_true": LevelChange({"level": "target_true", "against": "the other way"}, SAME, 0.2, False)
                },
                "memit": {"target_true": _change("target_true", SAME, 0.2)},
            },
            {},
            "No editor does more harm than its control on the scale that decides; the other one speaks against it for "
            "ft.",
        ),
        (
            {"ft": {"other_facts": _change("other_facts", OPEN, 2.0)}, "memit": {}},
            {"failed": ["Most edits by ft break the model"], "tests": 4},
            "Most edits by ft break the model. No editor is shown to do more harm than its control. No two of them are "
            "shown to differ on the same prompts (4 tests).",
        ),
        (
            {"ft": {}, "memit": {}},
            {"tests": 4, "differences": ["ft − memit +0.2"], "contrasts": pd.Series(["equivalent"] * 2)},
            "Nothing was asked but the edits themselves. On the same prompts: ft − memit +0.2. No group suffers more: "
            "every difference is inside the margin.",
        ),
        (
            {"ft": {}},
            {
                "contrasts": pd.Series(["worse off", "undetermined"]),
                "claims": [GroupClaim("worse off", "women (ft)", ""), GroupClaim("better off", "men (ft)", "")],
            },
            "Nothing was asked but the edits themselves. Groups that suffer more: women (ft). Groups that suffer less: "
            "men (ft).",
        ),
        (
            {"ft": {}},
            {"contrasts": pd.Series(["undetermined"])},
            "Nothing was asked but the edits themselves. Whether some groups suffer more is not shown.",
        ),
    ],
)
def test_the_title_says_the_most_important_first(
    changes: dict[str, dict[str, LevelChange]], more: dict[str, Any], title: str
) -> None:
    nothing: dict[str, Any] = {"failed": [], "tests": 0, "differences": [], "claims": [], "contrasts": pd.Series([])}
    assert title_by(STUDY_TITLE, StudySummary(changes=changes, numbers=_NUMBERS, **nothing | more)) == title


def _one_line(said: str) -> str:
    return " ".join(said.split())


def test_lines_stand_on_one_axis_with_their_controls(out: Path) -> None:
    html = (out / "report.html").read_text(encoding="utf-8")
    page = Read(html)
    marks = [str(tag["aria-label"]) for tag in page.all("svg") if tag.get("role") == "img"]
    assert marks
    assert all(("control" in mark) == mark.startswith("memit:") for mark in marks)
    effects = pd.read_csv(out / "tables" / "effects_by_group.csv")
    real = effects[effects["editor"].isin(["memit", "ft"]) & (effects["group"] != "unknown")]
    shown = {(mark.split(":")[0], int(n)) for mark in marks for n in re.findall(r"(\d+) people", mark)[:1]}
    assert shown == set(zip(real["editor"], real["n_subjects"], strict=True))
    for heading in ("What is compared", "Did the edits take", "Verdicts", "Paired differences"):
        assert heading in page.text


def test_tables_come_along_and_nothing_is_fetched(out: Path) -> None:
    page = Read((out / "report.html").read_text(encoding="utf-8"))
    links = {str(tag["download"]): str(tag["href"]) for tag in page.all("a") if "download" in tag}
    assert {"efficacy.csv", "differences.csv", "effects_by_group.csv", "verdicts.csv"} <= links.keys()
    for name, link in links.items():
        assert base64.b64decode(link.partition("base64,")[2]) == (out / "tables" / name).read_bytes()
    assert not [tag for _, tag in page.tags if str(tag.get("href") or tag.get("src") or "").startswith(("http", "//"))]


def test_names_of_any_length_have_pictures_of_their_own() -> None:
    made: list[str] = []
    for name in ("figure_2_a, b", "figure_2_a; b", "w" * 4_000, "w" * 4_001, HOSTILE["html"], HOSTILE["emoji"]):
        made.append(picture_file(name, made))
    assert len(set(made)) == len(made)
    assert max(map(len, made)) <= 120
    assert made[0] == "figure_2_a--b.png"


@pytest.mark.slow(20)
@pytest.mark.parametrize("width", [375, 1920])
def test_chromium_shows_it_at_any_width(out: Path, width: int) -> None:
    shown = in_browser(out / "report.html", width=width)
    assert "Comparison of 2 runs" in shown.text
    assert shown.all("circle")
