"""The kinds of tasks."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from seesaw_cf.people.claims import CLAIM_TASK
from seesaw_cf.people.failures import FAILURE_TASK
from seesaw_cf.people.flaws import FLAW_TASK
from seesaw_cf.people.making import Kind
from seesaw_cf.people.survey import SURVEY_TASK
from seesaw_cf.people.writing import WRITING_TASK

KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "flaws": FLAW_TASK,
        "survey": SURVEY_TASK,
        "claims": CLAIM_TASK,
        "writing": WRITING_TASK,
        "failures": FAILURE_TASK,
    }
)
"""Name -> what is asked, and the tables that it gives."""
