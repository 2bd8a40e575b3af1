"""The numbers: by hand where they are small, by simulation where they are estimates."""

import numpy as np
import pytest

from seesaw_cf.effects.regard import attack_summary, overall_regard
from seesaw_cf.effects.topics import topic_disparity
from seesaw_cf.errors import RecordError, UnknownNameError
from seesaw_cf.stats.plain import as_json


def test_overall_regard_by_hand() -> None:
    # A: 2 positive, 1 negative, 1 neutral of 4 -> +1, 0.25. B: 1 other, 1 negative, one unscored -> -1, -0.5.
    labels = ["positive", "positive", "negative", "neutral", "other", "negative", None]
    found = as_json(overall_regard)({"identity": ["A"] * 4 + ["B"] * 3, "regard": labels})
    a, b = found["identities"]["A"], found["identities"]["B"]
    assert (a["overall"], a["normalised"], a["n"], a["n_positive"], a["n_neutral"]) == (1, 0.25, 4, 2, 1)
    assert (b["overall"], b["normalised"], b["n"], b["n_unscored"], b["n_other"]) == (-1, -0.5, 2, 1, 1)
    assert a["contrast"]["value"] == pytest.approx(0.75)
    assert b["contrast"]["value"] == pytest.approx(-0.75)
    assert "too few " in b["contrast"]["note"]
    assert found["n_unscored"] == 1
    assert (a["low"], a["note"]) == (None, "too few clusters: 4, 5 needed (4.0 effective)")
    uneven = {"identity": ["A"] * 100, "regard": labels[1:3] * 50, "cluster": [0] * 96 + [1, 2, 3, 4]}
    one_makes_most = as_json(overall_regard)(uneven)["identities"]["A"]
    assert (one_makes_most["low"], one_makes_most["overall_low"]) == (None, None)
    assert one_makes_most["note"] == "too few clusters: 5, 5 needed (1.0 effective)"
    with pytest.raises(UnknownNameError, match="unknown regard 'positiv'"):
        as_json(overall_regard)({"identity": ["A"], "regard": ["positiv"]})


def test_attack_by_hand() -> None:
    found = as_json(attack_summary)({"identity": ["A"] * 5 + ["B"], "attack": [0.0, 0.2, 0.4, 0.9, 1.0, None]})
    a = found["identities"]["A"]
    # Positions 1, 2, 3 of the sorted scores.
    assert (a["mean"], a["q25"], a["median"], a["q75"]) == pytest.approx((0.5, 0.2, 0.4, 0.9))
    assert a["iqr"] == pytest.approx(0.7)
    assert a["median_low"] <= a["median"] <= a["median_high"]
    assert found["identities"]["B"]["mean"] is None
    with pytest.raises(RecordError, match=r"attack: range 0\.5\.\.2, expected 0\.\.1"):
        as_json(attack_summary)({"identity": ["A", "B"], "attack": [0.5, 2.0]})


def test_no_share_is_shown_below_the_stated_number() -> None:
    columns = {"identity": ["A"] * 40 + ["B"] * 29, "topic": [0, 1] * 34 + [-1]}
    found = as_json(topic_disparity)(columns, draws=20)["identities"]
    assert found["A"]["shares"] is not None
    assert (found["B"]["shares"], found["B"]["relative_entropy"], found["B"]["n_without_topic"]) == (None, None, 1)
    assert found["B"]["note"] == "28 triples with a topic, fewer than 30: nothing is shown"
    with pytest.raises(RecordError, match="smoothing is 0, expected a finite number above 0"):
        as_json(topic_disparity)({"identity": ["A"], "topic": [0]}, smoothing=0)


@pytest.mark.slow
def test_planted_entropy_is_within_its_interval_and_no_difference_is_not_found() -> None:
    rng, hits, false = np.random.default_rng(3), 0, 0
    mixes = {"A": [0.5, 0.2, 0.1, 0.1, 0.1], "B": [0.2] * 5, "C": [0.2] * 5}
    rest = np.array([0.2] * 5)
    truth = float((np.array(mixes["A"]) * np.log(np.array(mixes["A"]) / rest)).sum())
    trials = 40
    for trial in range(trials):
        names = [name for name in mixes for _ in range(200)]
        topics = [int(t) for mix in mixes.values() for t in rng.choice(5, 200, p=mix)]
        columns = {"identity": names, "topic": topics}
        found = as_json(topic_disparity)(columns, draws=200, seed=trial)["identities"]["A"]["relative_entropy"]
        hits += found["low"] <= truth <= found["high"]
        same = [int(t) for t in rng.choice(5, 600)]
        columns = {"identity": names, "topic": same}
        blind = as_json(topic_disparity)(columns, draws=99, seed=trial)["identities"]["A"]["relative_entropy"]
        false += blind["p"] < 0.05
        assert found["p"] < 0.05
    assert hits >= 0.85 * trials
    assert false <= 7  # 2 are expected of 40
