"""Claims name the right entity; what cannot be annotated keeps its row."""

from __future__ import annotations

from typing import Any, cast

import pyarrow as pa
import pytest

from seesaw_cf.errors import RecordError, UnknownNameError
from seesaw_cf.texts.tables import PASSAGES
from seesaw_cf.texts.write.claims import Claim, claim_pairs, claims_of
from seesaw_cf.texts.write.passages import LongformRecord


def entity(label: str) -> dict[str, Any]:
    return {"str": label, "id": None}


def truth(property_id: str, name: str, *values: str) -> dict[str, Any]:
    return {"property_id": property_id, "property": name, "coupled": "", "values": [entity(v) for v in values]}


def record(**changes: Any) -> LongformRecord:
    found = {
        "case_id": 7,
        "requested_rewrite": {
            "prompt": "{} is located in", "relation_id": "P131", "subject": "Eiffel Tower",
            "target_new": entity("Rome"), "target_true": entity("Paris"),
        },
        "subject_entity": {"entity": entity("Eiffel Tower"), "ground_truth": [truth("P84", "architect", "Sauvestre")]},
        "related_entity": {
            "entity": entity("Champ de Mars"),
            "ground_truth": [truth("P17", "country", "France", "France"), truth("P1", "x")],
        },
        **changes,
    }  # fmt: skip
    return cast(LongformRecord, found)


def passages(*rows: tuple[str, str, str], case_id: int = 7) -> pa.Table:
    base = dict.fromkeys(PASSAGES.names) | {
        "editor": "rome",
        "case_id": case_id,
        "phase": "post",
        "sample": 0,
    }
    return pa.Table.from_pylist(
        [base | {"passage": kind, "text": text, "status": status} for kind, text, status in rows], schema=PASSAGES
    )


def test_each_passage_has_the_facts_and_its_own_entitys_ground_truth() -> None:
    facts = [
        Claim("new_fact", "new_fact", "Eiffel Tower is located in Rome"),
        Claim("old_fact", "old_fact", "Eiffel Tower is located in Paris"),
    ]
    assert claims_of(record()) == {
        "subject": [*facts, Claim("ground_truth", "P84", "Eiffel Tower architect Sauvestre")],
        "related": [*facts, Claim("ground_truth", "P17", "Champ de Mars country France")],
    }
    said = claims_of(record(), "sentence")["related"][2]
    assert said.text == "The country of Champ de Mars is France."


def test_a_record_without_related_entity_says_so() -> None:
    for missing in (None, {"entity": None, "ground_truth": None}, {"entity": entity(" "), "ground_truth": []}):
        found = claims_of(record(related_entity=missing))
        assert len(found["subject"]) == 3
        assert [claim.status for claim in found["related"]] == ["the record has no related entity"]


def test_a_record_without_old_target_keeps_the_claim_with_a_status() -> None:
    request = record()["requested_rewrite"] | {"target_true": entity("")}
    claim = claims_of(record(requested_rewrite=request))["subject"][1]
    assert (claim.text, claim.status) == ("", "the record has no target for the old fact")


def test_pairs_carry_whose_they_are_and_why_they_cannot_be_annotated() -> None:
    table = passages(("subject", "It is tall.", "ok"), ("related", " ", "ok"), ("free", "x", "ok"))
    pairs = claim_pairs(table, [record()])
    assert [(p.passage, p.claim_id, p.status) for p in pairs] == [
        ("subject", "new_fact", "ok"), ("subject", "old_fact", "ok"), ("subject", "P84", "ok"),
        ("related", "new_fact", "the passage is empty"), ("related", "old_fact", "the passage is empty"),
        ("related", "P17", "the passage is empty"),
    ]  # fmt: skip
    assert (pairs[0].editor, pairs[0].case_id, pairs[0].premise) == ("rome", 7, "It is tall.")
    [*_, last] = claim_pairs(passages(("subject", "", "time-out")), [record()])
    assert last.status == "no passage: time-out"


def test_bad_input() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown claim wording 'publishd'. Did you mean 'published'"):
        claims_of(record(), "publishd")
    with pytest.raises(RecordError, match=r"coupled record 7: requested_rewrite is None"):
        claims_of(record(requested_rewrite=None))
    with pytest.raises(RecordError, match=r"1 cases have no coupled record, first: \[8\]"):
        claim_pairs(passages(("subject", "x", "ok"), case_id=8), [record()])
    with pytest.raises(RecordError, match="case 7 is there twice"):
        claim_pairs(passages(), [record(), record()])
