"""Premise and claim: every passage with every statement it can support or contradict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError
from seesaw_cf.texts.tables import PassageRow, SampleRow
from seesaw_cf.texts.write.passages import SIDES, CoupledEntity, EntityRecord, LongformRecord, Rewrite, entity_name

# How a recorded fact is said. "published": the words of the annotated data of LEME.
WORDINGS = {"published": "{entity} {property} {values}", "sentence": "The {property} of {entity} is {values}."}


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement about an entity.

    Attributes:
        kind: One of `CLAIM_KINDS`.
        id: "new_fact", "old_fact", or the property of a ground truth such as "P106".
        text: The statement; "" when the record cannot make it.
        status: "ok", or what is missing in the record.
    """

    kind: str
    id: str
    text: str
    status: str = "ok"


@dataclass(frozen=True, slots=True)
class ClaimPair:
    """A passage and a claim about it; the other fields name the sample, as in `tables.ANNOTATIONS`.

    Attributes:
        premise: The passage.
        claim, claim_kind, claim_id: See `Claim`.
        passage: "subject" or "related".
        editor, case_id, relation, phase, sample: Which text of which edit.
        status: "ok", or why the pair cannot be annotated.
    """

    premise: str
    claim: str
    claim_kind: str = "ground_truth"
    claim_id: str = ""
    passage: str = "subject"
    editor: str = ""
    case_id: int = 0
    relation: str = ""
    phase: str = "post"
    sample: int = 0
    status: str = "ok"


def claims_of(record: LongformRecord, wording: str = "published") -> dict[str, list[Claim]]:
    """Return the claims of a Coupled Entity record for its subject passage and its related passage.

    The edit statement and the statement before the edit are the same for both passages; ground truths are those of the
    entity that the passage is about.

    Args:
        record: A row of a `coupled_*` config.
        wording: One of `WORDINGS`.

    Returns:
        "subject" and "related" -> claims. A record without related entity gives one claim on the related passage with a
        status that tells why.

    Raises:
        UnknownNameError: Unknown wording.
        RecordError: The edit is missing in the record.

    Source: LEME, section 3.3.
    Deviates: ground truths of the related passage name the related entity (the released code names the subject); a
        value listed twice is stated once.
    """
    one_of("claim wording", wording, WORDINGS)
    request = record.get("requested_rewrite")
    if not request or request["prompt"].count("{}") != 1:
        raise RecordError(
            f"coupled record {record.get('case_id')}: requested_rewrite is {request!r}, expected an edit whose prompt "
            "has one '{}'. Make the records with `seesaw-cf build --coupled`."
        )
    facts = [_fact("new_fact", request, request["target_new"]), _fact("old_fact", request, request["target_true"])]
    return {
        passage: [*facts, *_truths(side, wording)]
        if side and entity_name(side).strip()
        else [Claim("ground_truth", "", "", f"the record has no {passage} entity")]
        for passage, side in ((passage, record.get(field)) for passage, field in SIDES.items())
    }


def _name(entity: EntityRecord | None) -> str:
    return ((entity or {}).get("str") or "").strip()


def _fact(kind: str, request: Rewrite, target: EntityRecord | None) -> Claim:
    label = _name(target)
    if not label:
        return Claim(kind, kind, "", f"the record has no target for the {kind.replace('_', ' ')}")
    return Claim(kind, kind, f"{request['prompt'].replace('{}', request['subject'])} {label}")


def _truths(side: CoupledEntity, wording: str) -> Iterable[Claim]:
    entity = entity_name(side).strip()
    for truth in side.get("ground_truth") or []:
        if values := dict.fromkeys(filter(None, map(_name, truth["values"]))):
            claim = WORDINGS[wording].replace("{property}", truth["property"]).replace("{values}", ", ".join(values))
            yield Claim("ground_truth", truth["property_id"], claim.replace("{entity}", entity))


def claim_pairs(passages: pa.Table, records: Sequence[LongformRecord]) -> list[ClaimPair]:
    """Return every subject and related passage with every claim of its record.

    Args:
        passages: `tables.PASSAGES`; other kinds of passages ("guided", "free") are left out.
        records: Rows of a `coupled_*` config.

    Returns:
        The pairs in the order of the passages. Where the text is missing, or the record cannot make the claim, `status`
        gives the reason and nothing is annotated.

    Raises:
        RecordError: Two records share a case id, a passage has no record, or the edit is missing in a record.
    """
    claims: dict[int, dict[str, list[Claim]]] = {}
    for record in records:
        if record["case_id"] in claims:
            raise RecordError(
                f"coupled records: case {record['case_id']} is there twice. Annotate one config at a time."
            )
        claims[record["case_id"]] = claims_of(record)
    rows: list[PassageRow] = [row for row in passages.to_pylist() if row["passage"] in SIDES]
    if lost := sorted({row["case_id"] for row in rows} - claims.keys()):
        raise RecordError(
            f"passages: {len(lost)} cases have no coupled record, first: {lost[:5]}; records were given for "
            f"{len(claims)} cases. Give the records that the passages were written for."
        )
    return [_pair(row, claim) for row in rows for claim in claims[row["case_id"]][row["passage"]]]


def _pair(row: PassageRow, claim: Claim) -> ClaimPair:
    text = (row["text"] or "").strip()
    whole = "ok" if row["status"] == "ok" else f"no passage: {row['status']}"
    status = whole if whole != "ok" else "the passage is empty" if not text else claim.status
    place = cast(dict[str, Any], {name: value for name, value in row.items() if name in SampleRow.__annotations__})
    return ClaimPair(text, claim.text, claim.kind, claim.id, row["passage"], status=status, **place)
