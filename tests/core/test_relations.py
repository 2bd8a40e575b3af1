"""The papers' templates, and tense that never touches a name."""

from __future__ import annotations

import pytest

from seesaw_cf.records.relations import PAIRS, RELATIONS, TEMPLATES


def test_the_23_templates_of_appendix_a() -> None:
    """Gender 1; work 3 open, 10 cloze, 1 cross-property; citizenship 1; birth 1; language 3 and 2; free 1."""
    assert len(TEMPLATES) == 23
    assert len({t.id for t in TEMPLATES}) == 23
    assert all(t.present.count("{}") == 1 and t.past.count("{}") == 1 for t in TEMPLATES)
    counts = {
        (p, use): sum(t.relation_id == p and t.use == use for t in TEMPLATES)
        for p in RELATIONS
        for use in ("cloze", "property", "open")
    }
    assert counts["P101", "cloze"] == 10
    assert counts["P101", "open"] == counts["P103", "open"] == 3
    assert counts["P103", "cloze"] == 2
    assert counts["P21", "cloze"] == counts["P27", "cloze"] == counts["P19", "cloze"] == counts["P101", "property"] == 1


def test_the_eight_pairs_of_table_7() -> None:
    assert len(PAIRS) == len(set(PAIRS)) == 8
    assert all(a in RELATIONS and b in RELATIONS and a != b for a, b in PAIRS)


@pytest.mark.parametrize("name", ["Sophistic works of Antiphon", "Ana is Aslan", "Where was Wally"])
def test_tense_changes_the_template_and_never_the_name(name: str) -> None:
    for template in TEMPLATES:
        past = template.fill(name, living=False)
        assert name in past
        assert " is" not in past.replace(name, "")
        assert " works " not in past.replace(name, "")
        assert template.fill(name) == template.fill(name, living=True) == template.present.replace("{}", name)
