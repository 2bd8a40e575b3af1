"""Small run folders made from invented scores, through the functions the runner itself uses."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from seesaw_cf.base.files import write_text
from seesaw_cf.base.tables import write_table
from seesaw_cf.records.relations import PAIRS, templates
from seesaw_cf.run.edits import Outcome
from seesaw_cf.run.questions import Candidates, case_rows, questions, score_table
from seesaw_cf.run.store import write_edits
from seesaw_cf.types import AttributePrompt, Case, Cloze, ClozeScore, EditRequest, Entity

RACES = ("Black", "East Asian", "Jewish", "South Asian", "Latine", "white", "Arab")
REGIONS = ("North America", "East Asia", "Eastern Europe", "South Asia", "Western Europe", "Africa", "Middle East")
_SHIFTS = {"P21": 0.9, "P101": -0.1, "P27": -0.8, "P19": 0.0, "P103": -0.5}
FIELDS = {"P21": ("male", "female"), "P101": ("physics", "poetry", "law"), "P27": ("France", "Japan", "Chad")}
FIELDS |= {"P19": ("Paris", "Vienna", "Lagos"), "P103": ("French", "Yoruba", "Thai")}


def person(number: int, rng: np.random.Generator) -> dict[str, Any]:
    """Tags of an invented person; one in five has none."""
    subject = {"subject": Entity(f"Q{number}", f"Person {number}")}
    if number % 5 == 4:
        return subject
    race, region = (str(rng.choice(names)) for names in (RACES, REGIONS))
    return {**subject, "gender": (("men", "women")[number % 2],), "race": (race,), "region": (region,)}


def cases(
    relations: Sequence[str], n_cases: int, n_people: int, seed: int = 0, holds: Sequence[str] = ("target_new",)
) -> list[Case]:
    """Cross-subject cases, each about `n_people` others, who hold these answers in turn."""
    rng = np.random.default_rng(seed)
    people = [person(number, rng) for number in range(4 * n_people)]
    made: list[Case] = []
    for relation in relations:
        template = templates(relation, "cloze")[0]
        for _ in range(n_cases):
            true, new = (Entity(None, str(name)) for name in rng.choice(FIELDS[relation], 2, replace=False))
            request = EditRequest(template.present, "Ada Test", relation, new, true)
            asked = [(people[i], holds[i % len(holds)]) for i in rng.choice(len(people), n_people, replace=False)]
            prompts = tuple(
                AttributePrompt(f"{own['subject'].label} prompt", template_id=template.id, holds=held, **own)
                for own, held in asked
            )
            made.append(Case(len(made), request, attribute_prompts=prompts))
    return made


def property_cases(n_cases: int, first_id: int = 10_000) -> list[Case]:
    """Cross-property cases for the eight pairs."""
    made: list[Case] = []
    for edited, asked in PAIRS:
        template = templates(asked, "property")[0]
        for number in range(n_cases):
            true, new = FIELDS[edited][:2]
            request = EditRequest("{} has", f"Bo {number}", edited, Entity(None, new), Entity(None, true))
            prompt = AttributePrompt(template.fill(f"Bo {number}"), Entity(None, f"Bo {number}"), template.id)
            gold, number_of = (FIELDS[asked][number % 2],), first_id + len(made)
            made.append(Case(number_of, request, asked, effect_prompts=(prompt,), candidates=FIELDS[asked], gold=gold))
    return made


def write_run(
    folder: Path, made: Sequence[Case], editors: Sequence[str] = ("memit",), *, refused: int = 0, shift: float = 0,
    **manifest: Any,
) -> Path:  # fmt: skip
    """Writes a finished run; the first `refused` cases of each editor are refused; `shift` moves answers further."""
    rng = np.random.default_rng(7)
    tables: list[pa.Table] = []
    edits: list[dict[str, Any]] = []
    for editor in editors:
        parts = []
        for position, case in enumerate(made):
            status = "refused: singular <b>matrix</b> | row" if position < refused else "ok"
            own = list(questions(case))
            scores: dict[str, dict[Cloze, ClozeScore]] = {"pre": {}, "post": {}}
            for asked in own:
                before = -float(rng.uniform(0.5, 4.0)) - (2.0 if asked.role == "target_new" else 0.0)
                shift = {"efficacy": 4.0, "cross_property": rng.normal(0, 1.5)}.get(
                    asked.kind, rng.normal(_SHIFTS[case.request.relation_id] + shift, 1.0)
                )
                after = min(-0.01, before + (shift if asked.role != "target_true" else 0.3))
                if asked.gold:
                    before = -0.05
                later = ClozeScore(after, 1, False) if status == "ok" else ClozeScore(math.nan, 0, False, status)
                scores["pre"][asked.cloze], scores["post"][asked.cloze] = ClozeScore(before, 1, False), later
            rows = case_rows(case, own, scores["pre"])
            parts.append((rows, scores["post"]))
            norm = 1.0 if status == "ok" else math.nan
            outcome = Outcome({case.case_id: status}, norm=norm, scores=scores["post"])
            edits.append(outcome.edit_row(editor, rows, Candidates()))
        tables.append(score_table(editor, parts))
    write_table(folder / "scores.parquet", pa.concat_tables(tables).combine_chunks())
    write_edits(folder / "edits.parquet", edits)
    write_manifest(folder, editors, len(made), **manifest)
    return folder


def write_manifest(folder: Path, editors: Sequence[str], n_cases: int, **changes: Any) -> None:
    """A manifest like the runner's."""
    made: dict[str, Any] = {
        "model": {"id": "tiny", "revision": "", "dtype": "float32", "fingerprint": "ab" * 32, "tokenizer": "cd" * 32},
        "editors": {name: {"layers": [1, 2]} for name in editors},
        "data": {"source": "sample", "configs": ["cross_subject"], "cases": n_cases, "sha256": "ef" * 32},
        "scoring": {"scorer": "HFScorer", "max_tokens": 2048, "device": "cpu"},
        "job": {"model": "tiny", "editors": list(editors)},
        "machine": {"platform": "test", "threads": 1, "device": "cpu", "noise": {"p99": 1e-6, "p99_probability": 1e-7}},
        "versions": {"python": "3.11", "seesaw_cf": "0.1.0", "torch": "2.13.0"},
    }
    made |= {"protocol": "single", "seed": 3, "settings": {"block": None}, "edited": {}, "notes": []}
    write_text(folder / "manifest.json", json.dumps(made | changes))
