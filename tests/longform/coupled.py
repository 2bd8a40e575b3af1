"""Small coupled records, samples and passages for the tests of the survey."""

from typing import Any

import pyarrow as pa

from seesaw_cf.base.types import TableRow
from seesaw_cf.generation import Completion
from seesaw_cf.texts.records import LongformRecord, coupled_cases
from seesaw_cf.texts.survey import SurveySample, survey_samples
from seesaw_cf.texts.tables import PASSAGES
from seesaw_cf.texts.write import passage_rows

FACTS = {"P106": ("occupation", "physicist"), "P27": ("country of citizenship", "Poland")}
MAIN = "Marie Curie was born in London. She was a physicist and a citizen of Poland."
RELATED = "Pierre Curie was born in Paris. He was a physicist who worked with Marie Curie."


def side(name: str) -> dict[str, Any]:
    """One entity of a record."""
    truths: list[dict[str, Any]] = [
        {"property_id": id, "property": label, "values": [{"str": value, "id": None}]}
        for id, (label, value) in FACTS.items()
    ]
    essay = f"Write an essay about {name}\nInclude the following information:\n- occupation"
    return {"entity": {"str": name, "id": "Q1"}, "ground_truth": truths, "essay": essay, "article": f"About {name}:"}


def record(case_id: int = 1, related: bool = True) -> LongformRecord:
    """One coupled record: Marie Curie's place of birth becomes London."""
    return {
        "case_id": case_id,
        "kind": "counterfactual",
        "requested_rewrite": {
            "prompt": "{} was born in",
            "relation_id": "P19",
            "subject": "Marie Curie",
            "target_new": {"str": "London", "id": "Q84"},
            "target_true": {"str": "Kraków", "id": "Q31487"},
        },
        "subject_entity": side("Marie Curie"),
        "related_entity": side("Pierre Curie") if related else None,
    }


def passages(
    records: list[LongformRecord], main: str = MAIN, related: str = RELATED, editor: str = "memit"
) -> pa.Table:
    """Passages of all records, after an edit."""
    rows: list[TableRow] = []
    for case in coupled_cases(records):
        found = [Completion(text, new_tokens=9) for text, p in zip((main, related), case.prompts) if p.status == "ok"]
        rows += passage_rows(case, editor, 1, 0, found)
    return pa.Table.from_pylist(rows, PASSAGES)


def sample(main: str = MAIN, related: str = RELATED, case_id: int = 1) -> SurveySample:
    """One sample."""
    records = [record(case_id)]
    return survey_samples(passages(records, main, related), records)[0]
