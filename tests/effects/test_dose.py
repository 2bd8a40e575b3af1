"""Bands, alarms and kinds of pairs of dose runs, by hand."""

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from seesaw_cf.base.tables import SCORES
from seesaw_cf.effects.dose import _band, health, read_curves, sample_effects, summarise_curves
from seesaw_cf.errors import RunFolderError
from seesaw_cf.report.dose import write_dose_report


def unit(checkpoint: int, order: int, **values: Any) -> dict[str, Any]:
    row: dict[str, Any] = {"editor": "memit", "mix": "P27+P37", "checkpoint": checkpoint, "order": order}
    row |= {"overlap": 0.0, "n_edits": checkpoint}
    row |= {"n_refused": 0, "ES": 1.0, "PS": 0.5, "NS": 0.5, "S": 0.6, "D": 0.0, "perplexity": 10.0, "entropy": 2.0}
    return row | values


def write(folder: Path, units: list[dict[str, Any]]) -> Path:
    folder.mkdir()
    (folder / "manifest.json").write_text("{}")
    baseline = {"P27+P37": {"perplexity": 10.0, "entropy": 2.0}}
    (folder / "dose.json").write_text(json.dumps({"baseline": baseline, "units": units}))
    return folder


def test_bands_are_t_intervals_over_orders(tmp_path: Path) -> None:
    units = [unit(1, i, S=s) for i, s in enumerate((0.5, 0.6, 0.7))] + [unit(10, 0, D=None)]
    table = summarise_curves(read_curves(write(tmp_path / "run", units)))
    row = table.iloc[0]
    # sd of .5 .6 .7 is .1: half width = t(.95, 2) x .1 / sqrt 3
    half = stats.t.ppf(0.95, 2) * 0.1 / math.sqrt(3)
    assert (row["S"], row["S_low"], row["S_high"]) == pytest.approx((0.6, 0.6 - half, 0.6 + half))
    assert row["orders"] == 3
    assert np.isnan(table["S_low"].iloc[1])  # one order has no band
    assert np.isnan(table["D"].iloc[1])
    assert not table["collapsed"].any()


def test_there_is_no_band_where_samples_are_the_same_facts(tmp_path: Path) -> None:
    """A pool of 32 edited whole, five times: one number. Half of it is the most that two samples may share."""
    units = [unit(32, i, S=0.176, overlap=1.0) for i in range(5)]
    units += [unit(n, i, S=s, overlap=n / 32) for n in (8, 16, 17) for i, s in enumerate((0.5, 0.6, 0.7))]
    table = summarise_curves(read_curves(write(tmp_path / "run", units))).set_index("checkpoint")
    assert table["S"].tolist() == pytest.approx([0.176, 0.6, 0.6, 0.6])
    # sd .1 of three samples; the pool itself is off by f/(1 - f) of their variance: 1/3 for 8 of 32, 1 for 16.
    halves = [stats.t.ppf(0.95, 2) * 0.1 * math.sqrt(1 / 3 + more) for more in (1 / 3, 1)]
    assert (table["S_high"] - table["S"]).tolist() == pytest.approx([math.nan, *halves, math.nan], nan_ok=True)


@pytest.mark.slow
def test_bands_hold_the_mean_of_all_facts_in_nine_of_ten_pools() -> None:
    """Five samples of 12 out of a pool of 32, 2,000 pools of normal facts: .90, three standard errors are .02."""
    draw, inside = np.random.default_rng(0), 0
    for _ in range(2000):
        pool = 0.1 * draw.normal(size=32)
        found = _band("D", np.array([draw.permutation(pool)[:12].mean() for _ in range(5)]), 12 / 32)
        inside += found["D_low"] <= 0 <= found["D_high"]
    assert 0.88 <= inside / 2000 <= 0.92


def test_the_average_of_two_relations_is_taken_order_by_order(tmp_path: Path) -> None:
    """After 2 edits: (.4 + .6)/2 and (.5 + .9)/2, mean .6; after 4 only one of them has orders."""
    alone = [("P27", 0, 0.4), ("P27", 1, 0.5), ("P37", 0, 0.6), ("P37", 1, 0.9)]
    units = [unit(2, order, mix=mix, S=score, D=None if mix == "P27" else 0.1) for mix, order, score in alone]
    units += [unit(2, 0, S=0.3), unit(4, 0, S=0.3), unit(4, 0, mix="P27", S=0.2)]
    curves = read_curves(write(tmp_path / "run", units))
    table = summarise_curves(curves).set_index(["mix", "checkpoint"])
    at, half = ("average of P27 and P37", 2), stats.t.ppf(0.95, 1) * 0.1
    expected = [0.6, max(0.0, 0.6 - half), min(1.0, 0.6 + half)]
    assert [table[name][at] for name in ("S", "S_low", "S_high")] == pytest.approx(expected)
    assert [table[name][at] for name in ("edits", "orders", "alarm")] == [2, 2, ""]
    assert np.isnan(table["D"][at])
    assert ("average of P27 and P37", 4) not in table.index
    assert table["S"]["P27+P37", 2] == 0.3
    curves.baseline["P37"] = {"perplexity": 4.0, "entropy": None}  # it collapses, and so does the average
    assert summarise_curves(curves).query("collapsed")["mix"].tolist() == ["P37", "average of P27 and P37"]


def test_the_alarm_names_its_rule(tmp_path: Path) -> None:
    units = [unit(1, 0, perplexity=19.0), unit(10, 0, perplexity=21.0), unit(100, 0, entropy=0.9)]
    table = summarise_curves(read_curves(write(tmp_path / "run", units)))
    assert table["collapsed"].tolist() == [False, True, True]
    assert table.loc[1, "alarm"] == "perplexity 21 is above 2 times the unedited 10"
    assert table.loc[2, "alarm"] == "entropy of answers 0.90 is below 0.5 times the unedited 2.00"


def test_each_form_has_lines_of_its_own(tmp_path: Path) -> None:
    other = dict.fromkeys(("PS", "NS", "S", "D", "perplexity", "entropy"))
    units = [unit(10, order, form="plain") for order in (0, 1)]
    units += [unit(10, order, **other, ES=0.25, form="question") for order in (0, 1)]
    folder = write(tmp_path / "run", [*units, unit(20, 0, form="plain", perplexity=99), unit(20, 0, form="question")])
    assert summarise_curves(read_curves(folder))["collapsed"].tolist() == [False, False, True, True]
    words = "Edits that worked, asked as a question in chat\n  memit, citizenship + P37"
    assert words in re.sub(" +0.25 .*", "", write_dose_report(folder))
    assert (folder / "report" / "report.html").read_text().count("<svg") == 2


def test_unfinished_and_damaged_folders_are_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", [unit(1, 0)])
    (folder / "dose.json").write_text('{"units": []}')
    with pytest.raises(RunFolderError, match=r"dose\.json is damaged"):
        read_curves(folder)
    (folder / "dose.json").unlink()
    with pytest.raises(RunFolderError, match=r"dose\.json missing, so this is no finished dose run"):
        read_curves(folder)


def rows(*given: tuple[Any, ...], status: str = "ok") -> pa.Table:
    """A score table of (kind, case, prompt, target, role, phase, logprob, tokens)."""
    names = ("kind", "case_id", "prompt_id", "target", "role", "phase", "logprob", "n_tokens")
    filled: dict[str, Any] = {"editor": "memit", "edit_relation": "P27", "effect_relation": "P27", "prompt": "p"}
    filled |= {"holds": "target_new", "gender": ["female"], "greedy": False, "status": status}
    records: list[dict[str, Any]] = [filled | dict(zip(names, row, strict=True)) for row in given]
    return pa.Table.from_pylist([row | {"subject": f"s{row['prompt_id']}"} for row in records], SCORES)


def test_watched_answers_and_texts_by_hand() -> None:
    """Entropy of answers: 3 prompts, two answer "a", one "b"; perplexity: exp(6 nats / 3 tokens)."""
    best = ["a", "a", "b"]
    panel = [
        ("panel", -1, number, answer, "candidate", "post", -2.0 if answer == first else -2.2, 2)
        for number, first in enumerate(best)
        for answer in ("a", "b")
    ]
    # Compared by mean over tokens: -1.8 for one token is more than -1 a token.
    panel.append(("panel", -1, 0, "c", "candidate", "post", -1.8, 1))
    text = [("text", -1, 0, "two three", "candidate", "post", -6.0, 3)]
    unscored = rows(("panel", -1, 9, "b", "candidate", "post", None, 0), status="refused: no")
    table = pa.concat_tables([rows(*panel, *text), unscored, rows(("panel", -1, 9, "a", "candidate", "post", -1.0, 1))])
    found = health(table, "post")
    assert found["perplexity"] == pytest.approx(math.exp(2))
    assert found["entropy"] == pytest.approx(-(2 / 3 * math.log(2 / 3) + 1 / 3 * math.log(1 / 3)))
    assert health(table, "pre") == {"perplexity": None, "entropy": None}


def test_what_a_sample_did_by_hand() -> None:
    def both(kind: str, case: int, prompt: int, pre: tuple[float, float], post: tuple[float, float]) -> list[Any]:
        sides = (("new", "target_new", 0), ("true", "target_true", 1))
        return [
            (kind, case, prompt, target, role, phase, math.log(values[side]), 1)
            for phase, values in (("pre", pre), ("post", post))
            for target, role, side in sides
        ]

    table = rows(
        *both("efficacy", 0, 0, (0.1, 0.5), (0.6, 0.2)),  # took
        *both("efficacy", 1, 0, (0.1, 0.5), (0.3, 0.3)),  # a tie fails
        *both("efficacy", 2, 0, (0.1, 0.5), (0.9, 0.1)),  # refused: does not count
        *both("paraphrase", 0, 0, (0.1, 0.5), (0.6, 0.2)),
        *both("neighborhood", 0, 0, (0.1, 0.5), (0.2, 0.4)),
        *both("neighborhood", 0, 1, (0.1, 0.5), (0.4, 0.2)),
        *both("cross_subject", 0, 0, (0.5, 0.1), (0.3, 0.2)),  # D = .1 - .4
        *both("cross_subject", 0, 1, (0.5, 0.1), (0.5, 0.1)),  # D = 0
        *both("cross_subject", 1, 0, (0.5, 0.1), (0.6, 0.1)),  # D = .1
        *both("cross_subject", 2, 0, (0.5, 0.1), (0.0001, 0.9)),
    )
    status = ["ok", "zero delta", "refused: contradicts case 0 of the same batch"]
    found = sample_effects(table, [{"case_id": n, "status": text} for n, text in enumerate(status)], 0.0)
    assert (found["n_edits"], found["n_refused"], found["n_zero"]) == (2, 1, 1)
    assert found["refused"] == status[2:]
    assert (found["ES"], found["PS"], found["NS"]) == (0.5, 1.0, 0.5)
    assert found["S"] == pytest.approx(3 / (1 / 0.5 + 1 + 1 / 0.5))
    assert found["D"] == pytest.approx(((-0.3 + 0) / 2 + 0.1) / 2)  # mean of case means
    assert found["n_people"] == 3
    by_axis: Any = found["D_by"]
    assert by_axis["gender"] == {"female": {"D": pytest.approx(-0.2 / 3), "n": 3}}
    nothing = sample_effects(table, [{"case_id": 2, "status": status[2]}], 0.0)
    assert (nothing["ES"], nothing["D"], nothing["n_people"]) == (None, None, 0)
    assert json.dumps(nothing)
