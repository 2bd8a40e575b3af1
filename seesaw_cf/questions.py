"""From a case to the clozes that are scored before and after its edit: one question per row of the score table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from seesaw_cf.tables import SCORES
from seesaw_cf.types import AttributePrompt, Case, Cloze, ClozeScore, Entity, Phase

__all__ = ["Question", "questions", "rows_to_table", "score_row", "some_clozes"]


@dataclass(frozen=True, slots=True)
class Question:
    """One cloze with what the score table says about it; field names are the columns of `seesaw_cf.tables.SCORES`."""

    kind: str
    prompt_id: int
    prompt: AttributePrompt
    target: str
    role: str
    gold: bool = False

    @property
    def cloze(self) -> Cloze:
        """Context and target, as a scorer takes them."""
        return Cloze(self.prompt.text, self.target)


def questions(case: Case) -> Iterator[Question]:
    """Every question of one case, in a fixed order.

    Kinds: "efficacy" (the edit's own prompt), "paraphrase", "neighborhood" and "cross_subject" ask for target_new and
    target_true; "cross_property" asks for every candidate. `_eff` records repeat the edit's own prompt as their only
    attribute prompt, so it is not asked twice. zsRE's locality prompt is compared with its own answer.
    """
    request = case.request
    both = ((request.target_new.label, "target_new"), (request.target_true.label, "target_true"))
    subject = Entity(None, request.subject)
    locality = ((request.target_new.label, "target_new"), (str(case.extra.get("loc_ans", "")), "target_true"))
    sections: tuple[tuple[str, Sequence[AttributePrompt], tuple[tuple[str, str], ...]], ...] = (
        ("efficacy", [AttributePrompt(request.text, subject)], both),
        ("paraphrase", [AttributePrompt(text, subject) for text in case.paraphrase_prompts], both),
        (
            "neighborhood",
            [AttributePrompt(text, Entity(None, "")) for text in case.neighborhood_prompts],
            locality if case.record_format == "zsre" else both,
        ),
        ("cross_subject", () if case.record_format == "eff" else case.attribute_prompts, both),
    )
    for kind, prompts, targets in sections:
        for number, prompt in enumerate(prompts):
            for target, role in targets:
                if target.strip():
                    yield Question(kind, number, prompt, target, role)
    gold = set(case.gold)
    for number, prompt in enumerate(case.effect_prompts):
        for candidate in case.candidates:
            yield Question("cross_property", number, prompt, candidate, "candidate", candidate in gold)


def score_row(editor: str, case: Case, asked: Question, phase: Phase, score: ClozeScore) -> tuple[Any, ...]:
    """One row of the score table, in the order of `SCORES`."""
    prompt = asked.prompt
    effect = case.effect_relation_id if asked.kind == "cross_property" else None
    return (
        editor,
        case.case_id,
        case.request.relation_id,
        effect or case.request.relation_id,
        asked.kind,
        asked.prompt_id,
        prompt.template_id,
        prompt.text,
        prompt.subject.id,
        prompt.subject.label,
        prompt.gender,
        prompt.race,
        prompt.region,
        prompt.holds,
        asked.target,
        asked.role,
        asked.gold,
        phase,
        score.logprob if score.status == "ok" else None,
        score.n_tokens,
        score.greedy,
        score.status,
    )


def rows_to_table(rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """Rows made by `score_row` as an Arrow table with the schema `SCORES`."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(SCORES)
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, SCORES, strict=True)], SCORES)


def some_clozes(cases: Sequence[Case], count: int, seed: int = 0) -> list[Cloze]:
    """Distinct clozes that these cases ask, drawn without replacement; all when there are fewer.

    Args:
        cases: Where they come from.
        count: How many.
        seed: Of the draw.
    """
    found = sorted({q.cloze for case in cases for q in questions(case)})
    chosen = np.random.default_rng(seed).permutation(len(found))[:count]
    return [found[index] for index in sorted(chosen)]
