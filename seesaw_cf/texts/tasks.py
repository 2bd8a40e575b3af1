"""Tasks for people from the texts of a run: what they see, and what un-blinds an answer.

Source: SEESAW-CF, appendix F (flaws); LEME, appendix D (survey), section 3.3 and appendix E (claims), section 5.6 and
Table 20 (failures), Table 4 (writing). Deviates: a task asks about one claim, or about one passage to write; flaws are
rated blind unless the protocol is "published".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from seesaw_cf.effects.instruments import ITEMS
from seesaw_cf.texts.claims import claim_pairs, foreign
from seesaw_cf.texts.job import ExportJob
from seesaw_cf.texts.pairs import showings
from seesaw_cf.texts.prompts import coupled_cases
from seesaw_cf.texts.released import read_pairs, released_sentences
from seesaw_cf.texts.runs import RunTexts, edit_sentences
from seesaw_cf.texts.survey import SurveyQuestion, SurveySample
from seesaw_cf.texts.tables import SampleRow

# Protocol -> names of the two texts.
_TEXTS = {"blind": ("Text A", "Text B"), "published": ("Before the edit", "After the edit")}


@dataclass(frozen=True, slots=True)
class Task:
    """A task.

    Attributes:
        relation: Of the edit; samples are drawn evenly over relations.
        name: What tells the task from others of its kind; copies of one pair share it.
        texts: Title -> text, in the order shown; answers belong to the last.
        about: What the tables need; never shown.
    """

    relation: str
    name: str
    texts: Mapping[str, str]
    about: dict[str, Any]


def flaw_tasks(run: RunTexts, job: ExportJob, left_out: Counter[str]) -> Iterator[Task]:
    """Yield two texts about one person; some pairs come again in the other order."""
    file = run.folder
    pairs, missing = read_pairs(file if file.is_file() else file / "passages.parquet")
    left_out += missing
    edits = {} if job.hide_edit else _edits(run)
    by_id = {pair.pair_id: pair for pair in pairs}
    for id, copy, first in showings(list(by_id), job.seed, job.duplicates, job.protocol):
        pair = by_id[id]
        texts = {"Subject": pair.entity, "Edit": edits.get((pair.editor, pair.case_id), "")}
        texts |= dict(zip(_TEXTS[job.protocol], pair.shown(first)))
        yield Task(pair.relation, id, _nonempty(texts), {"pair": asdict(pair), "first": first, "copy": copy})


def _edits(run: RunTexts) -> dict[tuple[str, int], str]:
    """Return what raters are told about edits: (editor, case_id) -> a sentence, where it is known."""
    if run.folder.suffix.lower() == ".csv":
        return released_sentences(run.folder)
    return edit_sentences(run.edits) if run.folder.is_dir() and run.edits is not None else {}


def survey_tasks(run: RunTexts, job: ExportJob, left_out: Counter[str]) -> Iterator[Task]:
    """Yield both passages of a sample; statements that it cannot be asked about keep their reason."""
    for sample in run.samples:
        if sample.missing:
            left_out[next(iter(sample.missing.values()))] += 1
            continue
        skipped = {item.name: SurveyQuestion(item, sample).skip_reason for item in ITEMS}
        if job.hide_edit:
            hidden = [item.name for item in ITEMS if "new_fact" in item.fields]
            skipped |= dict.fromkeys(hidden, "the edit was not told")
        yield _sample_task(sample, job, skipped={name: why for name, why in skipped.items() if why})


def failure_tasks(run: RunTexts, job: ExportJob, left_out: Counter[str]) -> Iterator[Task]:
    """Yield both passages of every sample that was written after an edit."""
    for sample in run.samples:
        if sample.phase == "pre":
            left_out["written before the edit"] += 1
        elif not any(sample.passages.values()):
            left_out[next(iter(sample.missing.values()))] += 1
        else:
            yield _sample_task(sample, job)


def claim_tasks(run: RunTexts, job: ExportJob, left_out: Counter[str]) -> Iterator[Task]:
    """Yield a passage with one claim about it."""
    for pair in claim_pairs(run.coupled_passages, run.coupled):
        why = pair.status if pair.status != "ok" else "not English" if foreign(pair.premise) else ""
        if why or (job.hide_edit and pair.claim_kind == "new_fact"):
            left_out[why or "the edit was not told"] += 1
            continue
        about = {name: getattr(pair, name) for name in ("passage", "claim_kind", "claim_id", "claim")}
        name = "|".join(map(str, (*_place(pair).values(), *about.values())))
        texts = {"Claim": pair.claim, "Passage": pair.premise}
        yield Task(pair.relation, name, texts, {"place": _place(pair), **about})


def writing_tasks(run: RunTexts, job: ExportJob, left_out: Counter[str]) -> Iterator[Task]:
    """Yield an edit with what was recorded before, and one passage to write."""
    samples = {sample.case_id: sample for sample in reversed(run.samples)}
    for case in coupled_cases(run.coupled):
        for prompt in case.prompts if case.case_id in samples else ():
            if prompt.status != "ok":
                left_out[prompt.status] += 1
                continue
            about = {"case_id": case.case_id, "relation": case.request.relation_id, "passage": prompt.passage}
            about |= {"entity": prompt.entity.label, "entity_id": prompt.entity.id, "prompt": prompt.text}
            texts = _facts(samples[case.case_id]) | {"Write": prompt.text}
            yield Task(case.request.relation_id, f"{case.case_id}|{prompt.passage}", texts, about)


def _place(sample: Any) -> dict[str, Any]:
    return {name: getattr(sample, name) for name in SampleRow.__annotations__}


def _facts(sample: SurveySample, hide_edit: bool = False) -> dict[str, str]:
    return _nonempty({
        "New fact": "" if hide_edit else sample.new_fact,
        "Subject": sample.subject,
        "Related entity": sample.related_entity,
        "Old facts about the subject": "\n".join(sample.old_facts.get("subject", ())),
        "Old facts about the related entity": "\n".join(sample.old_facts.get("related", ())),
    })  # fmt: skip


def _nonempty(texts: Mapping[str, str]) -> dict[str, str]:
    return {title: text for title, text in texts.items() if text}


def _sample_task(sample: SurveySample, job: ExportJob, **more: object) -> Task:
    passages = {"Main passage": sample.passages["main"], "Related passage": sample.passages["related"]}
    name = "|".join(map(str, _place(sample).values()))
    texts = _facts(sample, job.hide_edit) | _nonempty(passages)
    return Task(sample.relation, name, texts, {"place": _place(sample), **more})
