"""The annotator that comes with the package: what it says by hand, how good it is, and that nothing heavy is in it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seesaw_cf.effects.leme_annotation import LABELS
from seesaw_cf.texts.annotate.by_name import SHIPPED, load_annotator, measured, shipped_folder
from seesaw_cf.texts.annotate.features import ClaimParts, labelled_parts, word_features
from seesaw_cf.texts.job import LemeJob
from seesaw_cf.texts.train.annotations import AnnotationData, read_annotations, with_neutral_sentences
from seesaw_cf.texts.train.card import by_sample, held_out_lines

PASSAGE = (
    "Ann Lee (1900-1980) was a Polish painter who was born in Paris, France. She studied at the University of Vienna "
    "and worked in Rome for many years. Lee was married to the composer Bob Roe. She is best known for her landscapes."
)


def test_it_is_the_default_and_small() -> None:
    assert LemeJob("seesaw-tiny").annotator == SHIPPED
    files = {file.name: file.stat().st_size for file in shipped_folder().iterdir()}
    assert set(files) == {"README.md", "forest.safetensors", "instrument.json", "report.json"}
    assert sum(files.values()) < 300_000


def test_plain_cases() -> None:
    asked = {
        "Ann Lee place of birth Paris": "supports",
        "Ann Lee work location Rome": "supports",
        "Ann Lee award received Fields Medal": "neutral",
    }
    found = load_annotator(SHIPPED).classify([(PASSAGE, claim) for claim in asked])
    assert [judgement.label for judgement in found] == list(asked.values())
    assert all(sum(judgement.probabilities) == pytest.approx(1) for judgement in found)
    assert found[0].evidence[0].startswith("Ann Lee (1900-1980)")
    assert found[2].evidence == ()


def test_its_held_out_figures_are_above_the_baselines_and_its_weakness_is_said() -> None:
    report = measured(SHIPPED)["report"]
    for unit in ("paragraph", "sentence"):
        own = report["figures"]["words"][unit]["accuracy"]["low"] or 0.0
        for baseline in ("majority", "lexical"):
            assert own > (report["figures"][baseline][unit]["accuracy"]["value"] or 0.0)
    card = (shipped_folder() / "README.md").read_text("utf-8")
    lines = held_out_lines(report)
    assert all(line in card for line in lines)
    assert "of 89 contradicts" in lines[1]
    assert "## Weakness\n\nContradictions:" in card
    assert "MIT" in card
    assert measured("lexical") == {"name": "lexical", "report": {}}


@pytest.mark.slow(60)
def test_the_figures_are_those_of_the_published_annotations(reference: Any) -> None:
    """On its own training data it is better than held out, and the card's counts are those of the file."""
    data = read_annotations(reference("leme", "annotations_dev.csv"))
    found = load_annotator(SHIPPED).probabilities(data.pairs)  # type: ignore[attr-defined]
    report = json.loads((shipped_folder() / "report.json").read_text("utf-8"))
    assert (report["n"], report["n_groups"]) == (len(data.pairs), len(set(data.groups)))
    rows = np.array(data.units) == "paragraph"
    right = (found.argmax(axis=1) == np.array(data.labels))[rows].mean()
    assert right > report["figures"]["words"]["paragraph"]["accuracy"]["value"]


def test_claims_are_taken_apart_by_known_labels() -> None:
    assert labelled_parts("Ann Lee manner of death natural causes") == ClaimParts(
        "Ann Lee", "manner of death", ("natural causes",)
    )
    assert labelled_parts("Ann Lee occupation painter, poet") == ClaimParts(
        "Ann Lee", "occupation", ("painter", "poet")
    )
    assert labelled_parts("Ann Lee plays in Rome").relation == "plays in"


def test_features_by_hand() -> None:
    found = word_features(PASSAGE, "Ann Lee place of birth Paris")
    assert (found["value_best"], found["last_word"], found["best_value"]) == (1.0, 1.0, 1.0)
    assert found["about_with_value"] == 1.0
    assert found["sentences"] == pytest.approx(np.log(4))
    assert word_features(PASSAGE, "Ann Lee place of birth Oslo")["about_without_value"] == 1.0
    # Peoples count as their countries.
    assert word_features(PASSAGE, "Ann Lee country of citizenship Poland")["value_best"] == 1.0
    # Two "she", one "her": all for women.
    assert word_features(PASSAGE, "Ann Lee sex or gender female")["gender"] == 1.0
    assert word_features(PASSAGE, "Ann Lee sex or gender male")["gender"] == -1.0


@settings(max_examples=60)
@given(st.text("abc .,Q7é中\n", min_size=1), st.text("abc .,Q7é中\n", min_size=1))
def test_features_exist_for_any_text(premise: str, claim: str) -> None:
    names = list(word_features("x", "x"))
    found = word_features(premise.strip() or "x", claim.strip() or "x")
    assert list(found) == names
    assert np.isfinite(list(found.values())).all()


def test_what_a_passage_leaves_open_its_sentences_leave_open() -> None:
    pairs = (("One. Two. Three.", "a"), ("One. Two.", "b"), ("One.", "c"))
    neutral = LABELS.index("neutral")
    data = AnnotationData(pairs, (neutral, 0, neutral), ("paragraph", "paragraph", "paragraph"), (0, 1, 2))
    added = with_neutral_sentences(data, 3)
    assert added.pairs[:3] == pairs
    assert (added.labels[3:], added.units[3:], added.groups[3:]) == ((neutral,), ("sentence",), (0,))
    assert added.pairs[3][1] == "a"
    assert added.pairs[3][0] in ("One.", "Two.", "Three.")


def test_figures_sample_by_sample() -> None:
    pairs = (("Ann lives.", "Ann Lee occupation poet"),) * 3 + (("Bob lives.", "Bob Roe occupation poet"),)
    data = AnnotationData(pairs, (0, 1, 2, 0), ("sentence",) * 4, (0, 0, 0, 1))
    first, second = by_sample(data, {"all zero": np.eye(3)[[0] * 4]})
    assert (first["sample"], first["n"]) == ("Ann Lee", 3)
    assert first["accuracy"]["all zero"] == pytest.approx(1 / 3)
    assert (second["sample"], second["n"], second["accuracy"]["all zero"]) == ("Bob Roe", 1, 1.0)
    # 1 of 1 has a chance of 5 % where the share is .05.
    assert (second["low"], second["high"]) == pytest.approx((0.05, 1.0))
