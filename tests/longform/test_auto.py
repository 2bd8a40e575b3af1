"""Simple measures: by hand, by law, and beside ratings."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from seesaw_cf.effects.instruments import ITEMS
from seesaw_cf.effects.leme_auto import STANDS_FOR, correlations, leme_auto, rouge1, text_measures
from seesaw_cf.effects.texts import leme_annotation
from seesaw_cf.errors import RecordError, UnknownNameError
from seesaw_cf.stats.plain import as_json
from seesaw_cf.texts.report.measures import bert_score, bertscore_measures, nli_measures, perplexities
from tests.fakes import tiny_model, tiny_tokenizer
from tests.longform.training_models import save_tiny_encoder

COLUMNS: dict[str, Any] = {
    "subject": ["Ann", "Bob"],
    "related": ["Rome", "Oslo"],
    "subject_passage": ["Ann lives in Rome. Ann sings.", ""],
    "related_passage": ["Rome is a city.", "Oslo is a city. Bob lives in Oslo."],
    "new_fact": ["Ann lives in Oslo", "Bob lives in Bonn"],
    "subject_facts": [["Ann sings", "Ann works in Rome"], ["Bob sings"]],
    "related_facts": [[], ["Oslo is a city"]],
}


def test_every_measure_stands_for_an_item_of_the_survey() -> None:
    assert set(STANDS_FOR.values()) == {item.name for item in ITEMS}


def test_rouge_by_hand() -> None:
    # 3 of 4 words of the claim, 3 of 6 of the passage (Ann counts once per side): F = 2 * .75 * .5 / 1.25 = 0.6.
    assert rouge1("Ann lives in Oslo", "Ann lives in Rome. Ann sings.") == pytest.approx(0.6)
    assert rouge1("x", "y") == 0.0


def test_each_measure_compares_what_the_appendix_says() -> None:
    seen: list[tuple[str, str]] = []

    def watch(one: str, other: str) -> float:
        seen.append((one, other))
        return float(len(seen))

    found = text_measures(pd.DataFrame(COLUMNS)[:1], similarity=watch, prefix="m")
    subject, related = COLUMNS["subject_passage"][0], COLUMNS["related_passage"][0]
    assert seen == [
        ("Ann", subject), ("Rome", related), ("Ann lives in Oslo", subject), ("Ann sings", subject),
        ("Ann works in Rome", subject), ("Ann sings.", "Ann lives in Rome."), ("Ann lives in Oslo", related),
        (subject, related),
    ]  # fmt: skip
    assert found["m_topicality"] == [1.5]
    assert found["m_factual_subject"] == [4.5]
    assert math.isnan(found["m_factual_related"][0])  # no facts
    assert math.isnan(found["m_internal_related"][0])  # one sentence
    assert {f"rouge1{name[1:]}" for name in found} <= set(STANDS_FOR)


def test_empty_passages_have_no_value_and_lower_n() -> None:
    found = as_json(leme_auto)(COLUMNS | {"case_id": [1, 2]}, draws=50)
    assert found["values"]["rouge1_edit_subject"][1] is None
    assert found["means"]["rouge1_edit_subject"]["n"] == 1
    assert found["means"]["rouge1_edit_related"]["n"] == 2
    assert found["values"]["tfidf_factual_related"][0] is None


def test_correlation_with_the_item_a_measure_stands_for() -> None:
    # Ranks 1 2 3 4 5 against 2 1 4 3 5: 1 - 6 * (1+1+1+1) / (5 * 24) = 0.8.
    found = as_json(correlations)(
        [1, 2, 3, 4, 5, 6], {"perplexity": [1, 2, 3, 4, 5, 9]}, {"fluency": [2, 1, 4, 3, 5, None]}, draws=200
    )["perplexity"]
    assert (found["item"], found["n"], found["n_cases"]) == ("fluency", 5, 5)
    assert found["spearman"] == pytest.approx(0.8)
    assert found["low"] <= 0.8 <= found["high"]
    # 16 of the 120 orders are as near as this to 1 or to -1
    assert found["p"] == pytest.approx(16 / 120)


@pytest.mark.parametrize("edits", [3, 4, 5, 8])
def test_few_edits_have_no_p_below_what_their_orders_allow(edits: int) -> None:
    rows = list(range(1, edits + 1))
    ratings = [7 - row / 2 for row in rows]
    found: Any = correlations(rows, {"perplexity": rows}, {"fluency": ratings}, draws=20)["perplexity"]
    assert found["spearman"] == pytest.approx(-1)
    if edits < 5:
        assert all(math.isnan(number) for number in (found["low"], found["high"], found["p"]))
    else:
        assert found["p"] >= 2 / math.factorial(edits)


def test_repeating_an_edits_rows_does_not_make_evidence() -> None:
    measure, rating, case = [1.0, 2, 3, 4, 5], [2.0, 1, 4, 3, 5], [1, 2, 3, 4, 5]
    once = as_json(correlations)(case, {"perplexity": measure}, {"fluency": rating}, draws=0)["perplexity"]
    often = as_json(correlations)(case * 9, {"perplexity": measure * 9}, {"fluency": rating * 9}, draws=0)["perplexity"]
    assert often["p"] == pytest.approx(once["p"])
    assert often["n"] == 45


def test_bad_input() -> None:
    with pytest.raises(UnknownNameError, match="unknown measure 'perplexty'"):
        as_json(leme_auto)(COLUMNS | {"case_id": [1, 2]}, measures={"perplexty": [1.0, 2.0]})
    with pytest.raises(RecordError, match="but no measure stands for one of them"):
        as_json(leme_auto)(COLUMNS | {"case_id": [1, 2]}, ratings={"beauty": [1.0, 2.0]})
    with pytest.raises(RecordError, match=r"rating 99.0, item 'topicality'. Expected ratings from 1 to 7"):
        as_json(leme_auto)(COLUMNS | {"case_id": [1, 2]}, ratings={"topicality": [99.0, 2.0]})
    with pytest.raises(RecordError):
        as_json(leme_auto)(COLUMNS | {"case_id": [1]})


def test_bert_score_by_hand() -> None:
    # Candidate (1,0), (0,1); reference (1,0), (.6,.8), (-1,0). Cosines: 1 .6 -1 / 0 .8 0.
    # Precision: (1 + .8) / 2 = .9. Recall: (1 + .8 + 0) / 3 = .6. F: 2 * .9 * .6 / 1.5 = .72.
    candidate = np.array([[1.0, 0.0], [0.0, 1.0]])
    reference = np.array([[1.0, 0.0], [0.6, 0.8], [-1.0, 0.0]])
    assert bert_score(candidate, reference) == pytest.approx(0.72)
    assert bert_score(reference, candidate) == pytest.approx(0.72)


def test_bert_score_of_a_text_with_itself_is_one(tmp_path: Path) -> None:
    encoder = str(save_tiny_encoder(tmp_path))
    columns = COLUMNS | {"subject_passage": ["Ann lives in Oslo", ""]}
    found = bertscore_measures(pd.DataFrame(columns), encoder)
    assert found["bertscore_edit_subject"][0] == pytest.approx(1.0)
    assert math.isnan(found["bertscore_edit_subject"][1])
    assert set(found) <= set(STANDS_FOR)


class Fixed:
    """An annotator that is sure of what the passage says word by word."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def probabilities(self, pairs: Any) -> np.ndarray:
        self.asked += pairs
        return np.array([[0.7, 0.2, 0.1] if claim in premise else [0.1, 0.1, 0.8] for premise, claim in pairs])


def test_nli_is_entailment_minus_contradiction() -> None:
    annotator = Fixed()
    found = nli_measures(pd.DataFrame(COLUMNS), annotator.probabilities)
    assert found["nli_factual_subject"][0] == pytest.approx((0.6 - 0.7) / 2)
    assert math.isnan(found["nli_factual_subject"][1])
    assert math.isnan(found["nli_factual_related"][0])
    assert len(annotator.asked) == len(set(annotator.asked))


def test_perplexity_of_a_model_that_guesses_is_its_vocabulary() -> None:
    model, tokenizer = tiny_model("gpt2"), tiny_tokenizer()
    model.state_dict()["transformer.wte.weight"].zero_()  # the head's, too
    assert perplexities(["Ann sang"], model, tokenizer) == [pytest.approx(len(tokenizer), rel=1e-5)]
    assert math.isnan(perplexities(["a"], model, tokenizer)[0])


def test_shares_per_claim_kind() -> None:
    rows: dict[str, Any] = {
        "case_id": [1, 1, 1, 2, 2], "group": ["ft"] * 5, "passage": ["subject"] * 5,
        "claim_kind": ["ground_truth"] * 5, "label": ["contradicts", "contradicts", "supports", "supports", None],
    }  # fmt: skip
    found = as_json(leme_annotation)(rows, draws=50)
    share = found["shares"]["ft"]["subject"]["ground_truth"]
    assert share["contradicts"]["value"] == pytest.approx(1 / 3)  # mean of 2/3 and 0
    assert share["contradicts"]["pooled"] == 0.5
    assert (share["n"], share["n_cases"], share["n_missing"], found["n_missing"]) == (4, 2, 1, 1)
    assert as_json(leme_annotation)(rows | {"label": ["", *rows["label"][1:]]})["n_missing"] == 2
    with pytest.raises(RecordError, match=r"label 'agrees'. Expected supports, neutral, contradicts"):
        as_json(leme_annotation)(rows | {"label": ["agrees"] * 5})
    with pytest.raises(RecordError, match="claim_kind"):
        as_json(leme_annotation)(rows | {"claim_kind": ["truth"] * 5})
