"""Other ways to state an edit, for relations with one sentence in the papers' templates."""

from __future__ import annotations

from seesaw_cf.records.relations import Template, templates

# (relation, present, past)
_ROWS = (
    ("P21", "The gender of {} is", "The gender of {} was"),
    ("P21", "{}'s registered gender is", "{}'s registered gender was"),
    ("P21", "{} is recorded as", "{} was recorded as"),
    ("P27", "The country of citizenship of {} is", "The country of citizenship of {} was"),
    ("P27", "{}'s country of citizenship is", "{}'s country of citizenship was"),
    ("P27", "{} holds citizenship of", "{} held citizenship of"),
    ("P19", "The birthplace of {} is", "The birthplace of {} was"),
    ("P19", "{}'s place of birth is", "{}'s place of birth was"),
    ("P19", "{} came into the world in", "{} came into the world in"),
    ("P103", "{}'s mother tongue is", "{}'s mother tongue was"),
    ("P103", "{}'s native language is", "{}'s native language was"),
)
_OWN = tuple(
    Template(f"{relation_id}-paraphrase-{number:02d}", relation_id, "cloze", present, past)
    for number, (relation_id, present, past) in enumerate(_ROWS, start=1)
)


def paraphrases(relation_id: str, statement: Template) -> tuple[Template, ...]:
    """Ways to state a fact of a relation, other than the one already used.

    Args:
        relation_id: Property id.
        statement: The template of the edit itself.

    Returns:
        The papers' other cloze and property templates, then our own.
    """
    listed = {*templates(relation_id, "cloze"), *templates(relation_id, "property")} - {statement}
    own = (row for row in _OWN if row.relation_id == relation_id)
    return (*sorted(listed, key=lambda row: row.id), *own)
