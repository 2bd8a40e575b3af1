"""Claims name the right entity; what cannot be classified keeps its row; the lexical baseline."""

import pyarrow as pa
import pytest

from seesaw_cf.errors import RecordError
from seesaw_cf.texts.claims import CLAIMS, Lexical, claim_parts, claim_question, claim_questions
from seesaw_cf.texts.judge import rate
from seesaw_cf.texts.survey import Claim, claims_of
from seesaw_cf.texts.tables import ANNOTATIONS, PASSAGES
from tests.longform.analysis_samples import table
from tests.longform.coupled import record


def passages(*rows: tuple[str, str, str], case_id: int = 1) -> pa.Table:
    own = [{"passage": kind, "text": text, "status": status, "case_id": case_id} for kind, text, status in rows]
    return table(PASSAGES, own, editor="rome", phase="post")


def test_each_passage_has_the_facts_and_its_own_entitys_ground_truth() -> None:
    facts = [
        Claim("new_fact", "new_fact", "Marie Curie was born in London"),
        Claim("old_fact", "old_fact", "Marie Curie was born in Kraków"),
    ]
    france = {"property_id": "P17", "property": "country", "values": [{"str": "France"}] * 2}
    truths = [france, {"property_id": "P1", "property": "x", "values": []}]
    one = {**record(), "related_entity": {"entity": {"str": "Champ de Mars"}, "ground_truth": truths}}
    found = claims_of(one)
    assert found["subject"][:3] == [*facts, Claim("ground_truth", "P106", "Marie Curie occupation physicist")]
    assert found["related"] == [*facts, Claim("ground_truth", "P17", "Champ de Mars country France")]
    said = claims_of(one, "The {property} of {entity} is {values}.")["related"][2]
    assert said.text == "The country of Champ de Mars is France."


@pytest.mark.parametrize("missing", [None, {"entity": None, "ground_truth": None}, {"entity": {"str": " "}}])
def test_what_a_record_lacks_is_the_status_of_its_claims(missing: object) -> None:
    found = claims_of({**record(), "related_entity": missing})
    assert len(found["subject"]) == 4
    assert [claim.status for claim in found["related"]] == ["the record has no related entity"]
    request = record()["requested_rewrite"] | {"target_true": {"str": ""}}
    claim = claims_of({**record(), "requested_rewrite": request})["subject"][1]
    assert (claim.text, claim.status) == ("", "the record has no target for the old fact")


def test_pairs_carry_whose_they_are_and_why_they_cannot_be_annotated() -> None:
    table = passages(("subject", "It is tall.", "ok"), ("related", " ", "ok"), ("free", "x", "ok"))
    asked = claim_questions(table, [record()])
    assert [(own.row["passage"], own.row["claim_id"], own.skip) for own in asked] == [
        (side, claim, skip)
        for side, skip in (("subject", ""), ("related", "the passage is empty"))
        for claim in ("new_fact", "old_fact", "P106", "P27")
    ]
    assert (asked[0].row["editor"], asked[0].row["case_id"], asked[0].pair[0]) == ("rome", 1, "It is tall.")
    [*_, last] = claim_questions(passages(("subject", "", "time-out")), [record()])
    assert last.skip == "no passage: time-out"


def test_bad_input() -> None:
    with pytest.raises(RecordError, match=r"coupled record 1: requested_rewrite is None"):
        claims_of({**record(), "requested_rewrite": None})
    with pytest.raises(RecordError, match=r"1 cases have no coupled record, first: \[8\]"):
        claim_questions(passages(("subject", "x", "ok"), case_id=8), [record()])
    with pytest.raises(RecordError, match="case 1 is there twice"):
        claim_questions(passages(), [record(), record()])


PASSAGE = "Ann was born in Oslo. She works as a painter in Rome."


def test_one_row_per_claim_with_label_and_evidence() -> None:
    asked = [
        claim_question(PASSAGE, "Ann place of birth Oslo", {"case_id": 3, "editor": "rome", "claim_id": "P19"}),
        claim_question(PASSAGE, "Ann works in the city of Bonn", {}),
        claim_question(PASSAGE, "Ann religion Islam", {}),
        claim_question("", "x", {}, "the passage is empty"),
    ]
    table, calls = rate(CLAIMS, asked, Lexical())
    assert (table.schema, calls.num_rows) == (ANNOTATIONS, 0)
    rows = table.to_pylist()
    assert [row["label"] for row in rows] == ["supports", "contradicts", "neutral", None]
    assert [row["evidence"] for row in rows[:2]] == [["Ann was born in Oslo."], ["She works as a painter in Rome."]]
    own = ("case_id", "editor", "annotator", "claim_id", "p_supports")
    assert [rows[0][name] for name in own] == [3, "rome", "lexical", "P19", None]
    assert rows[3]["status"] == "the passage is empty"


@pytest.mark.parametrize(("words", "supports"), [(3, False), (2, True)])
def test_the_lexical_baseline_asks_for_half_of_the_words(words: int, supports: bool) -> None:
    """One word of two is half of them, one of three is not: of a value, and else of a relation."""
    value, relation = (" ".join(text[:words]) for text in (("Rome", "Bonn", "Kiel"), ("paints", "cities", "lakes")))
    pairs = [("She saw Rome.", f"Ann {relation} {value}"), ("She paints.", f"Ann {relation} Islam")]
    labels = [judgement.label for judgement in Lexical().classify(pairs)]
    assert labels == (["supports", "contradicts"] if supports else ["neutral", "neutral"])


def test_claims_are_taken_apart_by_their_capitals() -> None:
    assert claim_parts("Olu Dara place of birth Natchez") == ("place of birth", ("Natchez",))
    assert claim_parts("ASEAN founded by Indonesia, Malaysia") == ("founded by", ("Indonesia", "Malaysia"))
    assert claim_parts("Ann occupation painter") == ("occupation", ("painter",))
    assert claim_parts("Bank of England country United Kingdom")[0] == "country"
    assert claim_parts("Ann") == ("", ())
