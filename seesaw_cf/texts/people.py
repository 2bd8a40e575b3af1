"""What people do with the texts of a run: what they are shown and asked, and what their answers are in tables.

Source: SEESAW-CF, appendix F (flaws); LEME, appendix D (survey), section 3.3 and appendix E (claims), section 5.6 and
Table 20 (failures), Table 4 (writing). Deviates: a task asks about one claim, or about one passage to write; flaws are
rated blind unless the protocol is "published".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

import pyarrow as pa

from seesaw_cf.base.errors import RecordError
from seesaw_cf.effects.instruments import DEFAULT, FAILURE_MODES, FLAWS_BY_NAME, Instruments
from seesaw_cf.effects.texts import LABELS
from seesaw_cf.texts import ExportJob
from seesaw_cf.texts.claims import claim_questions
from seesaw_cf.texts.pairs import sample_pairs, showings, unblinded
from seesaw_cf.texts.records import SIDES, coupled_cases
from seesaw_cf.texts.released import read_pairs, released_sentences
from seesaw_cf.texts.survey import SurveySample, survey_questions, survey_samples
from seesaw_cf.texts.tables import (
    ANNOTATIONS,
    EDITS,
    FAILURES,
    FLAWS,
    PASSAGES,
    RATINGS,
    REFLECTED,
    RunTexts,
    edit_sentences,
)

Questions = Mapping[str, tuple[str, Mapping[str, str]]]
"""Name -> what raters read, and the choices, value -> words; none for a free text."""
Answers = Mapping[str, tuple[str, ...]]
"""Question -> values of its choices, or texts; a question without an answer is missing."""
Facts = dict[str, Any]
"""What tables need to know of a task, and raters never see."""
Tasks = Iterator[tuple[dict[str, str], Facts, str]]
"""Field -> text, in the order shown, of which answers belong to the last; facts; why there is no task, else ""."""
# Label in a task -> answer in the order shown; no label is a missing rating, never "equal".
ANSWERS: Mapping[str, int] = {"A": -1, "equal": 0, "B": 1}
# Protocol -> fields of the two texts; words of each label.
_PAIRS = {"blind": ("text_A", "text_B"), "published": ("before_the_edit", "after_the_edit")}
_SIDES = {
    "blind": ("more in text A", "the same, or in neither", "more in text B"),
    "published": ("-1: more in the text before", "0: the same, or in neither", "1: more in the text after"),
}
_REFLECTED = {"yes": "yes, at least one", "no": "neither", "unsure": "it cannot be told"}


def rater_questions(kind: str, words: Instruments, protocol: str = "blind") -> Questions:
    """Return what raters are asked about every task of a kind."""
    comment = {"comment": ("Anything that the questions cannot hold", dict[str, str]())}
    seen = {"edit_reflected": ("Does a text say what the edit says, or take it for granted?", _REFLECTED)}
    sides = dict(zip(ANSWERS, _SIDES[protocol]))
    labels = dict(zip(LABELS, ("supports", "neither", "contradicts")))
    scale = {str(number): f"{number}: {degree}" for number, degree in words.scale.items()}
    modes = {name: f"{title}: {meaning}" for name, (title, meaning) in words.failures.items()}
    flaws = {flaw.name: ("\n- ".join([flaw.title, *flaw.people]), sides) for flaw in words.flaws.values()}
    items = {item.name: (f"{item.statement}\nCriterion: {item.criterion}", scale) for item in words.items.values()}
    asked: Mapping[str, Questions] = {
        "flaws": flaws | seen | comment,
        "survey": items,
        "claims": {"label": ("Does the passage support the claim?", labels), "evidence": ("Evidence", {})},
        "failures": {"modes": ("What do you find in the passages?", modes)} | comment,
        "writing": {"text": ("Your text", {})},
    }
    return asked[kind]


def _flaw_tasks(run: RunTexts, job: ExportJob) -> Tasks:
    """Yield two texts about one person; some pairs come again in the other order."""
    file = run.folder
    pairs, missing = read_pairs(file if file.is_file() else file / "passages.parquet")
    yield from (({}, {}, reason) for reason in missing.elements())
    released = file.suffix.lower() == ".csv"
    edits = released_sentences(file) if released else edit_sentences(run.table("edits") or EDITS.empty_table())
    by_id = {pair.pair_id: pair for pair in sample_pairs(pairs, job.limit, job.seed)}
    for id, copy, first in showings(list(by_id), job.seed, job.duplicates, job.protocol):
        pair = by_id[id]
        texts = {"subject": pair.entity, "edit": edits.get((pair.editor, pair.case_id), "")}
        texts |= zip(_PAIRS[job.protocol], pair.shown(first))
        yield texts, asdict(pair) | {"first": first, "copy": copy}, ""


def _flaw_rows(about: Facts, answers: Answers) -> Iterator[Facts]:
    for flaw in FLAWS_BY_NAME:
        word = " ".join(answers.get(flaw, ()))
        change = unblinded(ANSWERS[word], about["first"]) if word else None
        yield {"flaw": flaw, "change": change, "quote": "", "reply": word}


def _sample_tasks(run: RunTexts, job: ExportJob) -> Tasks:
    """Yield both passages of a sample, of failures only of those written after an edit, where one may be missing.

    Statements that it cannot be asked about keep their reason.
    """
    for sample in survey_samples(*run.couples):
        why = next(iter(sample.missing.values()), "")
        if job.kind == "failures":
            why = "written before the edit" if sample.phase == "pre" else "" if any(sample.passages.values()) else why
        skipped = {question.row["item"]: question.skip for question in survey_questions([sample]) if question.skip}
        passages = {f"{name}_passage": text for name, text in sample.passages.items()}
        yield _facts(sample) | passages, sample.place | {"skipped": skipped}, why


def _facts(sample: SurveySample) -> dict[str, str]:
    facts = {name: str(getattr(sample, name)) for name in ("new_fact", "subject", "related_entity")}
    return facts | {f"old_facts_of_the_{SIDES[side]}": "\n".join(own) for side, own in sample.old_facts.items()}


def _survey_rows(about: Facts, answers: Answers) -> Iterator[Facts]:
    for item in DEFAULT.items:
        word, skipped = " ".join(answers.get(item, ())), about["skipped"].get(item)
        rating = float(word) if word and not skipped else None
        yield {"item": item, "rating": rating, "reply": word, "tries": int(bool(word)), "status": skipped}


def _failure_rows(about: Facts, answers: Answers) -> Iterator[Facts]:
    for mode in FAILURE_MODES:
        yield {"mode": mode, "present": mode in answers["modes"] if "modes" in answers else None}


def _claim_tasks(run: RunTexts, job: ExportJob) -> Tasks:
    """Yield a passage with one claim about it."""
    for question in claim_questions(*run.couples):
        passage, claim = question.pair
        yield {"claim": claim, "passage": passage}, question.row, question.skip.partition(":")[0]


def _claim_rows(about: Facts, answers: Answers) -> Iterator[Facts]:
    yield {"label": next(iter(answers.get("label", ())), None), "evidence": answers.get("evidence", ()), "reply": ""}


def _writing_tasks(run: RunTexts, job: ExportJob) -> Tasks:
    """Yield an edit with what was recorded before, and one passage to write."""
    samples = {sample.case_id: sample for sample in reversed(survey_samples(*run.couples))}
    for case in coupled_cases(run.coupled):
        for prompt in case.prompts if case.case_id in samples else ():
            about = {"case_id": case.case_id, "relation": case.request.relation_id, "passage": prompt.passage}
            about |= {"entity": prompt.entity.label, "entity_id": prompt.entity.id, "prompt": prompt.text}
            skip = "" if prompt.status == "ok" else prompt.status
            yield _facts(samples[case.case_id]) | {"write": prompt.text}, about, skip


def _writing_rows(about: Facts, answers: Answers) -> Iterator[Facts]:
    """Yield a passage of the editor "human"; `sample` is the number at the end of the writer's name."""
    number = re.search(r"\d{1,9}$", about["rater"])
    if number is None:
        raise RecordError(f"writer {about['rater']!r}, expected a number at the end, such as W1.")
    text = " ".join(answers.get("text", ()))
    row = {"editor": "human", "phase": "post", "sample": int(number[0]), "prompt_id": 0, "seed": 0, "text": text}
    yield row | {"finish": "stop" if text else "", "status": "ok" if text else "not written"}


class Kind(NamedTuple):
    """A kind of tasks.

    Attributes:
        tasks: Yields them.
        instructions: What raters read first, in the instruments.
        rows: Facts and answers -> rows of the first table.
        column: Which is None where a rater answered nothing.
        tables: In the order written.
    """

    tasks: Callable[[RunTexts, ExportJob], Tasks]
    instructions: str
    rows: Callable[[Facts, Answers], Iterator[Facts]]
    column: str
    tables: Mapping[str, pa.Schema]


_FLAWS = {"flaws": FLAWS, "flaws.repeats": FLAWS, "flaws.reflected": REFLECTED}
KINDS: Mapping[str, Kind] = {
    "flaws": Kind(_flaw_tasks, "flaws_people", _flaw_rows, "change", _FLAWS),
    "survey": Kind(_sample_tasks, "survey", _survey_rows, "rating", {"ratings": RATINGS}),
    "claims": Kind(_claim_tasks, "claims_people", _claim_rows, "label", {"annotations": ANNOTATIONS}),
    "failures": Kind(_sample_tasks, "failures", _failure_rows, "present", {"failures": FAILURES}),
    "writing": Kind(_writing_tasks, "writing", _writing_rows, "text", {"passages": PASSAGES}),
}
