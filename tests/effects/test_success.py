"""CounterFact's numbers on records worked by hand, and the protocols' separation."""

from __future__ import annotations

import math
from typing import Any

import pytest

from seesaw_cf.base.tables import LATER
from seesaw_cf.effects.success import edit_success, success_of_scores
from seesaw_cf.errors import RecordError, UnknownNameError
from seesaw_cf.stats.plain import as_json, plain
from seesaw_cf.types import Phase
from tests.effects.rows import four, table

PHASES: tuple[Phase, Phase] = ("pre", "post")
NAMES = ("pre_new", "pre_true", "post_new", "post_true", "tokens_right", "tokens_kept", "n_tokens", "generated")


def columns(rows: list[dict[str, Any]]) -> dict[str, Any]:
    empty: dict[str, Any] = dict.fromkeys(NAMES)
    whole = [{"case_id": 1, "test": "rewrite"} | empty | row for row in rows]
    return {name: [row[name] for row in whole] for name in ("case_id", "test", *NAMES)}


def value(result: dict[str, Any], protocol: str, name: str) -> Any:
    return result[protocol][name]["value"]


# Two records. Probabilities after the edit (new, true):
#   1: rewrite (.8, .1); paraphrases (.6, .2), (.1, .3); neighbours (.1, .5), (.4, .3)
#   2: rewrite (.2, .2), a tie; paraphrase (.5, .1); neighbours (.2, .6)
AFTER = [
    *((1, t, n, o) for t, n, o in (("rewrite", 0.8, 0.1), ("paraphrase", 0.6, 0.2), ("paraphrase", 0.1, 0.3))),
    *((1, t, n, o) for t, n, o in (("neighborhood", 0.1, 0.5), ("neighborhood", 0.4, 0.3))),
    *((2, t, n, o) for t, n, o in (("rewrite", 0.2, 0.2), ("paraphrase", 0.5, 0.1), ("neighborhood", 0.2, 0.6))),
]


def worked() -> dict[str, Any]:
    before = {"pre_new": -1.0}
    return columns(
        [
            before | {"case_id": c, "test": t, "post_new": math.log(n), "post_true": math.log(o), "pre_true": c - 2.0}
            for c, t, n, o in AFTER
        ]
    )


def test_counterfact_score_by_hand() -> None:
    result = as_json(edit_success)(worked())
    # ES: 1 and 0 (a tie fails) -> .5; PS: mean(.5, 1) = .75; NS: mean(.5, 1) = .75
    assert [value(result, "counterfact", n) for n in ("ES", "PS", "NS")] == pytest.approx([0.5, 0.75, 0.75])
    assert value(result, "counterfact", "S") == pytest.approx(3 / (1 / 0.5 + 2 / 0.75))
    # EM: (.7 + 0) / 2; PM: ((.4 - .2) / 2 + .4) / 2 = .25; NM: ((.4 - .1) / 2 + .4) / 2 = .275
    assert [value(result, "counterfact", n) for n in ("EM", "PM", "NM")] == pytest.approx([0.35, 0.25, 0.275])
    # before: -1 > -1 is false, -1 > 0 is false; the true target wins after the edit in neither
    assert value(result, "counterfact", "already_true") == 0
    assert value(result, "counterfact", "still_true") == 0
    assert result["counterfact"]["ES"]["n_cases"] == 2
    assert value(result, "zsre", "efficacy") is None
    assert value(result, "zsre", "score") is None
    assert "ties fail" in result["counterfact"]["protocol"]


def test_unknown_test_and_empty_rows() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown test 'rephrase'\. Did you mean"):
        as_json(edit_success)(columns([{"test": "rephrase"}]))
    assert as_json(edit_success)(columns([{}]))["n_empty"] == 1


def test_success_of_a_score_table_is_that_of_its_columns() -> None:
    """Three prompts of one edit, worked by hand: ES 1, PS 0, NS 1, so S = 0."""
    rows: list[dict[str, Any]] = []
    for kind, number, values, greedy in (
        ("efficacy", 0, (-3, -1, -0.5, -2), True),
        ("paraphrase", 0, (-3, -1, -2, -1), False),
        ("neighborhood", 0, (-3, -1, -3, -1), True),
    ):
        four_rows = four(*values, kind=kind, prompt_id=number)
        for row in four_rows:
            wanted = "target_true" if kind == "neighborhood" else "target_new"
            row["greedy"] = greedy and row["phase"] == "post" and row["role"] == wanted
        rows += four_rows
    found = plain(success_of_scores(table(rows))["memit"])
    counterfact = {name: found["counterfact"][name]["value"] for name in ("ES", "PS", "NS", "S", "already_true")}
    assert counterfact == {"ES": 1, "PS": 0, "NS": 1, "S": 0, "already_true": 0}
    # EM = exp(-.5) - exp(-2); NM = exp(-1) - exp(-3)
    assert found["counterfact"]["EM"]["value"] == pytest.approx(math.exp(-0.5) - math.exp(-2))
    assert found["counterfact"]["NM"]["value"] == pytest.approx(math.exp(-1) - math.exp(-3))
    generated = {name: found["generation"][name]["value"] for name in ("rewrite", "paraphrase", "neighborhood")}
    assert generated == {"rewrite": 1, "paraphrase": 0, "neighborhood": 1}
    assert found["zsre"]["efficacy"]["value"] is None  # as in a table of an older version
    for name in LATER:
        old = success_of_scores(table(rows).drop_columns(name))["memit"]
        assert plain(old) == found
        assert plain(success_of_scores(table(rows).to_pandas().drop(columns=name))["memit"]) == found
    with pytest.raises(RecordError, match=r"no rows of kinds \['efficacy', .*'portability'\]; kinds there"):
        success_of_scores(table([row | {"kind": "cross_subject"} for row in rows]))


def test_token_shares_of_a_score_table() -> None:
    """Two edits; shares of the expected answer's tokens: 2/2 and 1/2, 0/2 once, 0/4 and 0/1, 1/3 once.

    EasyEdit's locality: of the neighbour's tokens 3/4 have the first choice of before, then 0/1; no other row counts.
    """
    rows: list[dict[str, Any]] = []
    for case, kind, wanted, right, kept, tokens in (
        (1, "efficacy", "target_new", 2, 0, 2),
        (2, "efficacy", "target_new", 1, 1, 2),
        (1, "paraphrase", "target_new", 0, 2, 2),
        (1, "neighborhood", "target_true", 0, 3, 4),
        (2, "neighborhood", "target_true", 0, 0, 1),
        (1, "portability", "target_new", 1, 0, 3),
    ):
        for row in four(-3, -1, -2, -1, kind=kind, case_id=case, n_tokens=tokens):
            expected = row["phase"] == "post" and row["role"] == wanted
            rows += [row | {"n_greedy": right if expected else 0, "n_kept": kept if expected else 1}]
    found = plain(success_of_scores(table(rows))["memit"])
    zsre = {name: found["zsre"][name]["value"] for name in ("efficacy", "paraphrase", "specificity", "score")}
    assert zsre == {"efficacy": 0.75, "paraphrase": 0, "specificity": 0, "score": 0}
    assert found["easyedit"]["portability"]["value"] == pytest.approx(1 / 3)
    assert found["easyedit"]["locality"]["value"] == pytest.approx((3 / 4 + 0 / 1) / 2)


def test_before_the_edit_the_wanted_answers_are_counted_in_the_unedited_model() -> None:
    """Before: log-probabilities of new and true -3 and -1, then -1 and -3; 1 of 2 tokens of the wanted answer right.

    ES = (0 + 1) / 2, tokens 1/2 each, whole answer in neither; after the edit all of it is otherwise.
    """
    rows: list[dict[str, Any]] = []
    for case, before in ((1, (-3, -1)), (2, (-1, -3))):
        for row in four(*before, -0.5, -2, kind="efficacy", case_id=case, n_tokens=2):
            after, wanted = row["phase"] == "post", row["role"] == "target_new"
            kept = {"n_kept": 2} if after else {}
            rows.append(row | kept | {"greedy": after and wanted, "n_greedy": wanted + (after and wanted)})
    unedited, edited = (plain(success_of_scores(table(rows), phase=at)["memit"]) for at in PHASES)
    places = (("counterfact", "ES"), ("counterfact", "already_true"), ("zsre", "efficacy"), ("generation", "rewrite"))
    assert [unedited[protocol][name]["value"] for protocol, name in places] == [0.5, 0.5, 0.5, 0]
    assert [edited[protocol][name]["value"] for protocol, name in places] == [1, 0.5, 1, 1]
