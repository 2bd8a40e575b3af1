"""The first line of a report is what was found: put together from verdicts, true, and the most important thing."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from seesaw_cf.effects.locality import Locality
from seesaw_cf.report import read_results
from seesaw_cf.report.contrasts import GroupCounts, count_groups
from seesaw_cf.report.example import chance, example_of
from seesaw_cf.report.findings import find
from seesaw_cf.report.html.findings import AnswerExample, Findings, FirstScreen, findings_page
from seesaw_cf.report.html.forest import Axis
from seesaw_cf.report.levels import level_changes
from seesaw_cf.report.page import report_page
from seesaw_cf.report.results import Results
from seesaw_cf.report.run_tables import run_tables
from seesaw_cf.report.strips import Strip, StripMark
from seesaw_cf.report.title import title_of
from seesaw_cf.stats import proportion
from tests.report.runs import cases, property_cases, write_run

NAN = math.nan
CONTROL: dict[str, Any] = {"control": "random(memit)", "control_value": 0.01, "control_low": 0.0, "control_high": 0.02}
_WRITTEN = ("Did the edits take", "Not known", "Known before", "How sure")
NO_GROUPS = GroupCounts({}, (), {}, (), {}, {}, "", "")


@pytest.fixture(scope="module")
def results(run_folder: Path) -> Results:
    return read_results(run_folder, axes=("gender",))


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A run of one editor and its control, with every level."""
    asked = cases(("P27", "P101"), 6, 12, holds=("target_new", "target_true")) + property_cases(4)
    folder = write_run(tmp_path_factory.mktemp("beside") / "run", asked, ("memit", "random(memit)"))
    return read_results(folder, axes=("gender",))


def _strips(found: FirstScreen) -> list[Strip]:
    return [answer for answer in found.drawn if isinstance(answer, Strip)]


def _groups(found: FirstScreen) -> GroupCounts:
    [groups] = [answer for answer in found.drawn if isinstance(answer, GroupCounts)]
    return groups


def _text(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", page)).split())


def _row(level: str = "target_true", **changes: Any) -> dict[str, Any]:
    """A row of levels: a change of 0.1 [0.08, 0.12] without a control."""
    row = {"level": level, "scale": "probability", "decides": True, "editor": "memit", "control": ""}
    row |= {"before": -0.8, "after": -0.7, "value": 0.1, "low": 0.08, "high": 0.12, "note": ""}
    row |= dict.fromkeys(("after_low", "after_high", "control_value", "control_low", "control_high"), NAN)
    row |= {"n": 4220, "n_edits": 147, "n_people": 241}
    row |= {"margin": 0.1 if changes.get("scale") == "log-odds" else 0.02, "half_edits": 5}
    row |= {"difference": NAN, "difference_low": NAN, "difference_high": NAN, "difference_note": ""}
    return row | {"verdict": "no control"} | changes


def _beyond(difference: float, verdict: str = "worse than its control") -> dict[str, Any]:
    ends = {"difference_low": difference - 0.01, "difference_high": difference + 0.01}
    return {**CONTROL, "difference": difference, "verdict": verdict} | ends


def _title(results: Results, rows: Sequence[dict[str, Any]], groups: GroupCounts = NO_GROUPS) -> str:
    only = replace(results, levels=pd.DataFrame(list(rows)), local={}, efficacy=_took(results))
    edits = results.edits[results.edits["editor"].isin({row["editor"] for row in rows})]
    only = replace(only, edits=edits) if len(edits) else only
    return title_of(only, level_changes(only), groups)


def _took(results: Results) -> pd.DataFrame:
    return results.efficacy.assign(post=0.95, post_low=0.9, post_high=0.98)


@pytest.mark.parametrize(
    ("level", "difference", "words"),
    [
        (
            "target_true",
            0.12,
            "loses much of its confidence about people who hold the old answer.",
        ),
        ("target_true", 0.05, "is less sure about people who hold the old answer."),
        (
            "target_true",
            0.7,
            "loses much of its confidence about people who hold the old answer.",
        ),
        ("target_true", 1.2, "also gives the new answer for people who hold the old one."),
        ("target_new", -0.05, "is less sure about people who hold the new answer."),
        ("target_new", -0.3, "loses much of its confidence about people who hold the new answer."),
    ],
)
def test_a_level_that_is_worse_than_its_control_is_in_the_first_line(
    results: Results, level: str, difference: float, words: str
) -> None:
    assert words in _title(results, [_row(level, **_beyond(difference))])


@pytest.mark.parametrize(("nats", "words"), [(0.12, "is less sure"), (0.6, "loses much of"), (9.0, "loses much of")])
def test_nats_have_their_own_sizes(results: Results, nats: float, words: str) -> None:
    assert f"the model {words}" in _title(results, [_row(scale="log-odds", **_beyond(nats))])


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        (
            "better than its control",
            "One memit edit does less harm than its control to people who hold the old",
        ),
        ("no more than its control", "One memit edit does no more harm than its control to people who hold the old"),
        ("undetermined", "One memit edit is not known to do more harm than its control to people who hold the old"),
        ("not testable", "One memit edit cannot be compared with its control on people who hold the old answer."),
    ],
)
def test_what_is_not_worse_is_said_by_its_verdict(results: Results, verdict: str, words: str) -> None:
    assert words in _title(results, [_row(**_beyond(0.019, verdict), low=-0.01)])


def test_a_change_that_may_be_that_of_the_control_is_said_with_its_size(results: Results) -> None:
    facts = _row("other_facts", scale="share", value=-0.6, low=-0.9, high=-0.2, before=1.0, after=0.375)
    facts |= _beyond(-0.6, "undetermined") | {"control_value": 0.0}
    title = _title(results, [_row(**_beyond(0.01, "undetermined"), low=-0.01), facts])
    assert title.startswith(
        "After one memit edit the model has 37.5% of the other facts about that person right, 100.0% before "
        "(control: 100.0%), in 147 edits: too few to decide. "
    )


def test_why_nothing_can_be_compared_is_said(results: Results) -> None:
    few: dict[str, Any] = {"low": NAN, "high": NAN, "note": "too few edits: 1, 5 needed (1.0 effective)"}
    row = _row(**_beyond(0.9, "not testable") | few | {"difference_note": few["note"]})
    words = "the old answer (control: lost 0.010), which cannot be tested (too few edits: 1, 5 needed)."
    assert words in _title(results, [row])
    small = _row(**_beyond(0.05, "not testable") | few | {"difference_note": few["note"]})
    assert "people who hold the old answer (too few edits: 1, 5 needed)." in _title(results, [small])
    one = _title(results, [_row(**_beyond(0.9, "undetermined"), n_edits=1)])
    assert "in 1 edit: too few to decide." in one
    assert _title(results, [_row(value=0.09, **few)]).startswith(
        "One memit edit is not shown to change anything that was asked by more than the margin "
        "(too few edits: 1, 5 needed)."
    )


@pytest.mark.parametrize(
    ("level", "control", "words"),
    [
        ("target_true", 0.089, "lost 0.089"),
        ("target_true", -0.089, "gained 0.089"),
        ("target_new", -0.089, "lost 0.089"),
        ("target_new", 0.089, "gained 0.089"),
    ],
)
def test_a_control_is_said_with_the_verb_of_its_own_change(
    results: Results, level: str, control: float, words: str
) -> None:
    row = _row(level, **_beyond(0.1, "undetermined") | {"control_value": control})
    assert f"(control: {words}), in" in _title(results, [row])
    nats = _row(level, scale="log-odds", value=2.3, **_beyond(2.2, "undetermined") | {"control_value": control})
    assert f"(control: {words} nats), in" in _title(results, [nats])


def test_a_large_size_stands_in_the_first_sentence_though_nothing_is_decided(results: Results) -> None:
    row = _row(value=0.61, low=-0.1, high=1.3, n_edits=6) | _beyond(0.6, "undetermined") | {"control_value": 0.001}
    words = "lost 0.610 of its confidence about people who hold the old answer (control: lost 0.001), in 6 edits"
    assert _title(results, [row]).startswith(f"After one memit edit the model {words}: too few to decide.")
    several = [_row(editor="ft", **_beyond(0.001, "undetermined"), low=-0.01), row]
    assert _title(results, several).startswith(
        f"After one memit edit the model {words}: too few to decide. No editor of 2 is shown to do more harm"
    )
    harm = _title(results, [row, _row("target_new", **_beyond(-0.05))])
    assert harm.startswith("After one memit edit the model is less sure about people who hold the new answer. After")
    assert f"{words}: too few to decide." in harm
    alone = [_row(value=0.61, low=-0.1, n_edits=6), _row("target_new")]
    assert _title(results, alone).startswith(
        "After one memit edit the model gained 0.100 of confidence about people who hold the new answer. After one "
        "memit edit the model lost 0.610 of its confidence about people who hold the old answer, in 6 edits: too "
        "few to decide. Without a control"
    )


@pytest.mark.parametrize(("after", "words"), [(0.05, "nearly all"), (0.37, "most"), (0.8, "some"), (0.93, "a few")])
def test_the_share_of_forgotten_facts_has_a_word(results: Results, after: float, words: str) -> None:
    row = _row("other_facts", scale="share", before=0.99, after=after, **_beyond(after - 0.99))
    assert f"After one memit edit the model forgets {words} other facts about that person." in _title(results, [row])


def test_the_largest_harm_is_said_first(results: Results) -> None:
    rows = [_row("target_true", **_beyond(0.1)), _row("target_new", **_beyond(-0.3))]
    title = _title(results, rows)
    assert title.index("who hold the new answer") < title.index("who hold the old answer")


def test_without_a_control_it_changed_and_nothing_is_put_down_to_the_edit(results: Results) -> None:
    title = _title(results, [_row()])
    assert "lost 0.100 of its confidence about people who hold the old answer." in title
    assert title.split(". ")[1].startswith("Without a control it is not known")
    still = _title(results, [_row(value=0.01, low=-0.02, high=0.04)])
    assert "One memit edit is not shown to change anything that was asked by more than the margin." in still
    assert "Without a control" not in still


def test_of_several_editors_the_worst_is_said_and_all_are_named(results: Results) -> None:
    rows = [_row(**_beyond(0.05)), _row(editor="ft", **_beyond(0.4))]
    title = _title(results, rows)
    assert title.startswith(
        "Worst of 2 editors: after one ft edit the model loses much of its confidence about people who hold the old "
        "answer."
    )
    assert "Harm is shown of memit, too." in title
    same = [_row(editor=name, **_beyond(0.001, "undetermined")) for name in ("memit", "ft")]
    assert _title(results, same).startswith("No editor of 2 is shown to do more harm than its control. ")
    still = [_row(editor=name, value=0.05, low=-0.01) for name in ("memit", "ft")]
    assert _title(results, still).startswith("No editor of 2 is shown to make anything that was asked worse by more ")


def _of_several(results: Results, rows: Sequence[dict[str, Any]]) -> str:
    names = [row["editor"] for row in rows]
    edits = pd.concat([results.edits.assign(editor=name) for name in names], ignore_index=True)
    took = pd.concat([_took(results).query("editor == 'memit'").assign(editor=name) for name in names])
    several = replace(results, edits=edits, efficacy=took, levels=pd.DataFrame(rows), local={})
    return title_of(several, level_changes(several), NO_GROUPS)


def test_no_editor_is_left_out(results: Results) -> None:
    """Neither the worst nor the best: it is named all the same, and the one of which least is known is not the best."""
    sizes = {"memit": 0.1, "ft": 0.4, "mend": 0.3, "lora": 0.2}
    rows = [_row(editor=name, **_beyond(size)) for name, size in sizes.items()]
    rows += [_row(editor="rome", **_beyond(0.001, "no more than its control"), low=-0.01)]
    rows += [_row(editor="ike", **_beyond(-0.2, "better than its control"), low=-0.01)]
    rows += [_row(editor="emmet", value=0.61, low=-0.1, high=1.3, **_beyond(0.6, "undetermined"))]
    title = _of_several(results, rows)
    assert title.startswith("Worst of 7 editors: after one ft edit ")
    assert (
        "Harm is shown of mend, lora, and memit, too. No more than its control: rome and ike. Not known of emmet. "
        in title
    )


def test_without_a_control_no_harm_is_shown_and_a_gain_is_none(results: Results) -> None:
    sizes = {"ft": 0.5, "lora": 0.3, "memit": 0.1}
    harm, gain = (
        _of_several(results, [_row(level, editor=name, value=size, low=size - 0.01) for name, size in sizes.items()])
        for level in ("target_true", "target_new")
    )
    assert harm.startswith("Worst of 3 editors: after one ft edit the model lost 0.500 of its confidence about people")
    assert "Changed for the worse, too: lora and memit. Without a control it is not known" in harm
    assert gain.startswith(
        "After one ft edit the model gained 0.500 of confidence about people who hold the new answer. No editor of 3 "
        "is shown to make anything that was asked worse by more than the margin. Without a control it is not known"
    )


@pytest.mark.slow
def test_edits_that_did_not_take_are_said_first(beside: Results) -> None:
    low = beside.efficacy.assign(post=0.2, post_low=0.1, post_high=0.4)
    title = find(replace(beside, efficacy=low)).title
    assert title.startswith("Edits by memit did not take (20.0% of ")
    half = find(replace(beside, efficacy=beside.efficacy.assign(post=0.45, post_low=0.3, post_high=0.6))).title
    assert half.startswith("Edits by memit are not shown to take (45.0% of ")
    most = find(replace(beside, efficacy=beside.efficacy.assign(post=0.6, post_low=0.4, post_high=0.8))).title
    assert most.index("After one memit edit") < most.index("Edits by memit are not shown to take (60.0% of ")
    fine = beside.efficacy.assign(post=0.9, post_low=0.8, post_high=1.0)
    assert " take" not in find(replace(beside, efficacy=fine)).title


@pytest.mark.slow
def test_a_broken_model_is_said_first(beside: Results) -> None:
    spoilt = Locality("neighbours", 0.66, 0.11, 40, proportion(1, 8))
    broken = replace(beside, efficacy=_took(beside), local={"memit": spoilt, "random(memit)": spoilt})
    found = find(broken)
    assert found.title.startswith("Most edits by memit break the model: neighbours right 66% before, 11% after. ")
    assert "random(memit)" not in found.title
    assert "Gate not held: memit, edits are local" in dict(found.lines)["Did the edits take"]


def test_an_open_level_with_an_interval_off_0_says_its_corrected_p(beside: Results) -> None:
    rows = [_row(level, **_beyond(0.148, "undetermined"), p_adjusted=p)
            for level, p in (("target_true", 0.077), ("target_new", 0.02))]  # fmt: skip
    open_, other = _strips(find(replace(beside, levels=pd.DataFrame(rows), local={})))
    assert open_.chips[0].note.endswith("beyond random(memit), corrected p=0.077")
    assert other.chips[0].note.endswith("beyond random(memit)")


def test_a_verdict_says_what_the_other_scale_says_against_it(beside: Results) -> None:
    """Rare answers: nothing in probability, nats in log-odds; rows of another control and another level say less."""
    same = _row(**_beyond(0.001, "no more than its control"), against="beyond its margin of 0.1")
    nats = _row(**_beyond(2.3), scale="log-odds", decides=False)
    others = [nats | change | {"difference": 9.9} for change in ({"control": "identity"}, {"level": "target_new"})]
    result = replace(beside, levels=pd.DataFrame([same, nats, *others]), local={}, efficacy=_took(beside))
    (strip,) = _strips(find(result))
    assert re.search(r"; in log-odds \+2\.300 nats \[.+\], beyond its margin of 0\.1$", strip.chips[0].note)
    assert "no more harm than its control to people who hold the old answer (in probability)" in find(result).title
    (plain,) = _strips(find(replace(result, levels=pd.DataFrame([same | {"against": ""}, nats]))))
    assert "nats" not in plain.chips[0].note


def test_an_open_level_of_few_edits_says_that_they_can_miss_rare_harm(beside: Results) -> None:
    few = _row(**_beyond(0.001, "undetermined"), p_adjusted=0.9, n_edits=12, rule="12 edits can miss rare harm (60)")
    strip = _strips(find(replace(beside, levels=pd.DataFrame([few]), local={})))[0]
    assert re.search(r"; 12 edits can miss rare harm \(\d+ needed\)$", strip.chips[0].note)


def test_counts_are_those_of_each_editor_where_they_differ(beside: Results) -> None:
    rows = [_row(**CONTROL), _row(editor="ft", n=9, n_people=1, n_edits=4)]
    edits = pd.concat([beside.edits, beside.edits.assign(editor="ft")], ignore_index=True)
    strip = _strips(find(replace(beside, edits=edits, levels=pd.DataFrame(rows), local={})))[0]
    counts = "4,220 prompts, 241 people, 147 edits (memit), 9 prompts, 1 person, 4 edits (ft)"
    assert strip.about.endswith(f"; probability; {counts}, 5 of 4 edits carry half of it (ft)")


def test_a_refused_edit_is_not_made(beside: Results) -> None:
    edits = beside.distinct.assign(status="ok")
    few = edits["case_id"].isin(edits["case_id"].unique()[:3])
    found = find(replace(beside, distinct=edits.assign(status=edits["status"].mask(few, "refused: singular matrix"))))
    assert f" {edits['editor'].eq('memit').sum()} edits by memit, 3 refused; " in found.about
    assert dict(found.lines)["How sure"].startswith(f"{edits['case_id'].nunique() - 3} facts edited, ")
    assert "refused" not in find(replace(beside, distinct=edits)).about


def test_the_picture_of_levels_has_the_colours_and_the_counts_of_the_strips(
    beside: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plots = pytest.importorskip("seesaw_cf.report.plots")
    better = [_row(level, **_beyond(0.1, "better than its control")) for level in ("target_true", "target_new")]
    rows = [*better, _row("target_new", editor="ft", n=9, n_edits=4)]
    figures: list[Any] = []
    monkeypatch.setattr(plots, "save_picture", lambda figure, _: figures.append(figure))
    plots.draw_levels(replace(beside, levels=pd.DataFrame(rows)), tmp_path)
    old, new = figures[0].axes
    said = [{one.get_text(): one.get_color() for one in panel.texts} for panel in (old, new)]
    assert [words["better than its control"] for words in said] == [plots.COLOURS[2], "black"]
    assert "+0.100 [+0.080, +0.120]" in said[0]
    names = [label.get_text() for label in new.get_yticklabels()]
    assert names[0] == "ft\n9 prompts, 241 people, 4 edits"
    assert names[1] == "memit\n4,220 prompts, 241 people, 147 edits"


def test_no_estimate_lies_beyond_the_axis_of_its_strip(beside: Results) -> None:
    """Small changes of one editor and of controls cut nothing off from the large one of another."""
    rows = [_row(**_beyond(0.01, "undetermined"), value=0.01, low=-0.01, high=0.02)]
    rows += [_row(editor="ft", **_beyond(0.9), value=0.9, low=0.6, high=9.0)]
    edits = pd.concat([beside.edits, beside.edits.assign(editor="ft")], ignore_index=True)
    strip = _strips(find(replace(beside, edits=edits, levels=pd.DataFrame(rows), local={})))[0]
    assert strip.axis.low <= 0
    assert 0.9 <= strip.axis.high < 9


def test_of_controls_alone_it_says_what_they_changed(results: Results) -> None:
    name = "random(memit)"
    controls = replace(results, edits=results.edits.assign(editor=name), local={})
    for row, words in (
        (
            _row(editor=name),
            "after one random(memit) edit the model lost 0.100 of its confidence about people",
        ),
        (_row(editor=name, value=0.05, low=-0.01), "one random(memit) edit is not shown to change anything that was"),
    ):
        found = find(replace(controls, levels=pd.DataFrame([row]), audit=None))
        assert found.title.startswith(f"Only control edits were made, {len(controls.distinct)}: {words}")
        assert "Without a control" not in found.title
        assert _strips(found)[0].chips[0].said in ("changed by a control", "no change beyond the margin shown")
    assert title_of(controls, [], NO_GROUPS).endswith(": nothing was asked but the edits themselves.")


@pytest.mark.slow
def test_a_page_of_controls_alone_is_written(tmp_path: Path) -> None:
    asked = cases(("P27",), 6, 8) + property_cases(1)
    only = read_results(write_run(tmp_path / "run", asked, ("random(memit)",)), axes=("gender",))
    found = find(only)
    assert found.title in html.unescape(findings_page(report_page(only, found, run_tables(only))))


def test_a_model_edited_elsewhere_is_no_edit_that_may_take(results: Results) -> None:
    """A given model without a file of the facts that it was edited for."""
    name = "prune50"
    given = replace(results, edits=results.edits.assign(editor=name), efficacy=pd.DataFrame(), local={})
    manifest: Any = dict(given.manifest) | {"edited": {name: {}}}
    given = replace(given, manifest=manifest, levels=pd.DataFrame([_row(editor=name)]))
    title = title_of(given, level_changes(given), NO_GROUPS)
    assert title.startswith("The model prune50 lost 0.100 of its confidence about people who hold the old answer")
    assert "took" not in title


def test_harm_is_in_the_title_even_where_edits_fail_or_break_the_model(beside: Results) -> None:
    spoilt = Locality("neighbours", 0.66, 0.11, 40, proportion(1, 8))
    low = beside.efficacy.assign(post=0.2, post_low=0.1, post_high=0.4)
    rows = pd.DataFrame([_row("target_new", **_beyond(-0.3))])
    title = find(replace(beside, efficacy=low, local={"memit": spoilt}, levels=rows)).title
    parts = ["Most edits by memit break the model", "Edits by memit did not take", "loses much of its confidence"]
    places = [title.index(part) for part in parts]
    assert places == sorted(places)


def test_nothing_asked_is_said(results: Results) -> None:
    bare = replace(results, effects=results.effects.iloc[:0], levels=results.levels.iloc[:0], audit=None)
    found = find(replace(bare, efficacy=_took(results), local={}))
    assert found.title == "Nothing was asked but the edits themselves. Groups were not compared."
    assert _groups(found).headline() == "no two groups could be compared"
    assert dict(found.lines)["How sure"].endswith("no contrast was tested.")
    assert found.example is None


def _decided(results: Results, edits: int) -> Results:
    assert results.audit is not None
    rows = results.audit.verdicts.assign(verdict="undetermined", p=0.5).to_dict("records")
    own = next(row for row in rows if row["editor"] == "memit")
    own |= {"verdict": "worse off", "clusters": {"edit": edits, "person": 99}, "group": "women", "value": -0.05}
    own |= {"low": -0.08, "high": -0.02, "p_adjusted": 0.003}
    verdicts = pd.DataFrame(rows)
    return replace(results, audit=replace(results.audit, verdicts=verdicts))


def test_a_decided_contrast_is_named_and_sized_only_with_enough_edits(beside: Results) -> None:
    many, few = (find(_decided(beside, edits)) for edits in (80, 79))
    assert "Groups that suffer more: women (by 0.05, all properties)" in many.title
    assert "Groups that suffer more: women (all properties)" in few.title
    assert "women who hold the new answer are worse off than" in _groups(many).lines()[0]
    assert "−0.050 [−0.080, −0.020]" in _groups(many).lines()[0]
    assert "no size is claimed below 80 edits" in _groups(few).lines()[0]
    assert "−0.050" not in _groups(few).lines()[0]


def test_a_group_with_an_interval_that_reaches_0_is_in_the_findings_and_in_no_title(beside: Results) -> None:
    for edits in (80, 79):
        decided = _decided(beside, edits)
        assert decided.audit is not None
        verdicts = decided.audit.verdicts
        wide = verdicts.assign(high=verdicts["high"].mask(verdicts["verdict"] == "worse off", 0.001))
        found = find(replace(decided, audit=replace(decided.audit, verdicts=wide)))
        assert "women" not in found.title
        assert found.title.endswith("Whether some groups suffer more: not shown.")
        assert _groups(found).lines()[0].endswith("; its interval reaches 0).")


def test_a_named_group_comes_before_levels_of_which_nothing_is_shown(beside: Results) -> None:
    decided = replace(_decided(beside, 79), efficacy=_took(beside), local={})
    assert find(replace(decided, levels=pd.DataFrame([_row(low=-0.01)]))).title.startswith(
        "Groups that suffer more: women"
    )
    harm = find(replace(decided, levels=pd.DataFrame([_row(**_beyond(0.1))]))).title
    assert harm.index("loses much of its confidence") < harm.index("Groups that suffer more: women")


def test_equivalent_is_a_decision_and_no_impossible_difference_is_promised(beside: Results) -> None:
    assert beside.audit is not None
    verdicts = beside.audit.verdicts.assign(verdict="equivalent", p=0.5)
    counts = count_groups(replace(beside, audit=replace(beside.audit, verdicts=verdicts)))
    assert counts.headline().endswith(f": {counts.total} decided ({counts.total} of them inside the margin)")
    assert counts.chip == ("no difference that matters", "same")
    open_ = verdicts.assign(verdict="undetermined", scale="probability", detectable=4.9)
    lines = count_groups(replace(beside, audit=replace(beside.audit, verdicts=open_))).lines()
    assert "The undetermined could show no possible difference in probability (median; 80 % power)." in lines


def test_controls_are_never_counted_with_edits(beside: Results) -> None:
    assert beside.audit is not None
    verdicts = beside.audit.verdicts
    control = verdicts["editor"] == "random(memit)"
    changed = verdicts.assign(verdict="undetermined", p=0.5)
    changed.loc[control, "verdict"] = "worse off"
    counts = count_groups(replace(beside, audit=replace(beside.audit, verdicts=changed)))
    n = int((~control & ~verdicts["mirror"]).sum())
    assert counts.headline() == f"{n} contrasts of edits: 0 decided, {n} undetermined"
    assert counts.lines()[-1] == f"In {n} of {n} contrasts of control edits groups differ."
    means = replace(counts, seeds=3).lines()[-1]
    assert means == f"In {n} of {n} contrasts of control edits (mean of 3 seeds) groups differ."
    manifest: Any = {**beside.manifest, "editors": dict.fromkeys(["memit", "random(memit)", "random(memit, 2)"])}
    assert count_groups(replace(beside, manifest=manifest)).seeds == 2


def test_what_cannot_be_tested_is_apart_from_what_is_open(beside: Results) -> None:
    assert beside.audit is not None
    verdicts = beside.audit.verdicts.assign(verdict="not testable", p=NAN)
    counts = count_groups(replace(beside, audit=replace(beside.audit, verdicts=verdicts)))
    assert counts.headline().endswith(f"0 decided, {counts.total} not testable")
    assert (counts.tested, counts.chip[0]) == (0, "not testable")
    title = title_of(beside, level_changes(beside), counts)
    assert title.endswith("Whether some groups suffer more: not testable with these people.")


def test_the_example_is_in_the_middle_of_its_edit_and_of_all_edits(beside: Results) -> None:
    """Recomputed from the rows: no extreme, and its numbers are those of the prompt."""
    assert beside.prompts is not None
    levels = pd.DataFrame([_row(**_beyond(0.2))])
    example = example_of(replace(beside, levels=levels), level_changes(replace(beside, levels=levels)))
    own = beside.prompts.query("editor == 'memit' and holds == 'target_true' and status == 'ok'")
    turned = own[(own["pre_true"] > own["pre_new"]) & (own["post_true"] <= own["post_new"])]
    turned = turned.assign(size=turned["log_odds"].abs()).sort_values("size")
    middles = [rows.iloc[[(len(rows) - 1) // 2]] for _, rows in turned.groupby("case_id")]
    middle = pd.concat(middles).sort_values("size")
    row = middle.iloc[(len(middle) - 1) // 2]
    assert len(middle) > 2
    assert example is not None
    assert f"for {len(turned)} of {len(own)} prompts" in example.rule
    assert f"“{row['prompt']}”" in example.sentence
    assert (
        f"({chance(float(np.exp(row['post_new'])))}; before, {chance(float(np.exp(row['pre_new'])))})"
        in example.sentence
    )
    same = pd.DataFrame([_row(**_beyond(0.001, "no more than its control"))])
    gain = pd.DataFrame([_row(value=-0.3, low=-0.4, high=-0.2)])
    for levels in (same, gain):
        assert example_of(replace(beside, levels=levels), level_changes(replace(beside, levels=levels))) is None


@pytest.mark.parametrize(
    ("probability", "words"),
    [
        (0.87, "87 %"),
        (2e-5, "0.002 %"),
        (1e-9, "under 0.001 %"),
        (0.9987, "99.9 %"),
        (1.0, "100 %"),
        (0.0046, "0.46 %"),
    ],
)
def test_probabilities_are_said_with_the_digits_that_matter(probability: float, words: str) -> None:
    assert chance(probability) == words


def test_every_form_says_the_same(beside: Results) -> None:
    example = AnswerExample("“Ann speaks Dutch” by memit: the model now says Dutch (87 %).", "Chosen by rule.")
    found = replace(find(beside), example=example)
    record = json.loads(json.dumps(found.record()))
    terminal, markdown = " ".join(found.terminal().split()), found.markdown().replace("\\", "")
    page = _text(findings_page(report_page(beside, found, [])))
    for sentence in (found.title, found.about, example.sentence, *dict(found.lines).values()):
        assert " ".join(sentence.split()) in terminal
        assert sentence.replace(">", "&gt;") in markdown
    assert [record[name] for name in ("title", "about")] == [found.title, found.about]
    assert record["answers"] == dict(found.lines)
    assert list(record["answers"]) == [*(part.title for part in _strips(found)), "Groups against each other", *_WRITTEN]
    for words in (found.title, found.about, example.sentence, *sum(found.written, ())):
        assert " ".join(words.split()) in page
    for strip in _strips(found):
        words = [strip.title, strip.about, *(mark.said for mark in strip.marks), *(chip.said for chip in strip.chips)]
        assert all(part in page and part in terminal for part in words)
    assert all(" ".join(words.split()) in page for words in (_groups(found).headline(), *_groups(found).lines()))


def test_numbers_of_what_is_drawn_are_in_the_record(beside: Results) -> None:
    found = find(beside)
    *levels, groups = json.loads(json.dumps(found.record()))["drawn"]
    assert [level["level"] for level in levels] == ["other_facts", "target_true", "target_new"]
    marks = [mark.value for strip in _strips(found) for mark in strip.marks]
    assert [mark["value"] for level in levels for mark in level["estimates"]] == marks
    assert groups == {"kind": "groups", "counts": _groups(found).counts, "counts of controls": _groups(found).controls}


@pytest.mark.parametrize(("low", "high"), [(-0.1, 0.9), (-9.0, 0.9), (-0.1, 9.0), (-9.0, 9.0)])
def test_a_strip_shows_that_an_interval_goes_on_beyond_its_axis(low: float, high: float) -> None:
    axis = Axis(-1.0, 1.0)
    mark = StripMark("memit", "0.5", 0.5, low, high, 0)
    page = findings_page(
        Findings(FirstScreen("about", "title", {"x": Strip("x", "x", "", axis, ("-1", "1"), [mark], [])}))
    )
    assert ("‹</text>" in page, "›</text>" in page) == (low < -1, high > 1)


@pytest.mark.parametrize(("low", "shown"), [(-0.25, False), (-0.4, True), (-2.5, True), (-4.0, False)])
def test_a_strip_says_where_0_is_unless_it_is_too_near_an_end(low: float, shown: bool) -> None:
    strip = Strip("x", "x", "", Axis(low, 1.0), ("-1", "1"), [], [])
    page = findings_page(Findings(FirstScreen("about", "title", {"x": strip})))
    assert (f'<text x="{strip.axis.zero}%" y="13">0</text>' in page) is shown


def test_strips_show_editor_and_control_on_one_scale(beside: Results) -> None:
    rows = beside.levels[beside.levels["decides"]].set_index(["level", "editor"])
    for strip in _strips(find(beside)):
        assert [mark.name for mark in strip.marks] == ["memit", "random(memit)"]
        name = "after" if strip.level == "other_facts" else "value"
        for mark in strip.marks:
            assert mark.value == rows.loc[(strip.level, mark.name), name]
            assert strip.axis.low <= mark.value <= strip.axis.high


def test_names_from_data_are_escaped(beside: Results) -> None:
    manifest = beside.manifest | {"model": {"id": "a*b*<c>\x1b[31m", "dtype": "float32"}}
    found = find(replace(beside, manifest=manifest))
    assert "a\\*b\\*&lt;c&gt;" in found.markdown()
    assert "\x1b" not in found.terminal() + found.markdown()


def test_what_records_lack_is_said_with_what_adds_it(results: Results) -> None:
    assert "The records lack" not in find(results).terminal() + find(results).markdown()
    note = "None of the prompts carries a <b>race</b>. `seesaw-cf tag RECORDS --from wikidata --out DIR` adds them."
    lacking = find(replace(results, manifest={**results.manifest, "notes": [note]}))
    assert " ".join(lacking.terminal().split()).endswith(f"The records lack something: {note}")
    last = lacking.markdown().split("\n")[-1]
    assert last.startswith("- **The records lack something:** None of the prompts carries a")
    assert "<b>" not in last


@pytest.mark.slow
def test_without_an_interval_it_says_why(beside: Results, tmp_path: Path) -> None:
    asked = cases(("P27",), 6, 12, holds=("target_new", "target_true"))
    batch = read_results(write_run(tmp_path / "batch", asked, ("memit", "random(memit)"), protocol="batch"))
    found = find(batch)
    assert all("no interval: the cases of a relation are one edit" in strip.line() for strip in _strips(found))
    words = "), which cannot be tested (the cases of a relation are one edit"
    assert words in found.title


def test_where_probabilities_are_tiny_log_odds_speak(results: Results) -> None:
    row = _row(scale="log-odds", before=-1e-6, after=1e-6, value=2.3, low=2.0, high=2.6)
    title = _title(results, [row])
    assert "lost 2.300 nats of its confidence about people who hold the old answer" in title
    back = _title(results, [_row("target_new", value=-0.075, low=-0.1, high=-0.05)])
    assert "lost 0.075 of its confidence about people who hold the new answer." in back
    [strip] = _strips(find(replace(results, levels=pd.DataFrame([row]))))
    assert "nats of log-odds" in strip.about
    assert strip.marks[0].said == "+2.300 nats [+2.000, +2.600]"
