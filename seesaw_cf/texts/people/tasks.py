"""Tasks of five kinds from the texts of a run: what a rater sees, what is asked, and what un-blinds an answer.

Source: SEESAW-CF, appendix F (flaws); LEME, appendix D (survey), section 3.3 and appendix E (claims), section 5.6 and
Table 20 (failures), Table 4 (writing). Deviates: a task asks about one claim, or about one passage to write; flaws are
rated blind unless the protocol is "published".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from seesaw_cf.base.types import JsonObject
from seesaw_cf.effects.leme_annotation import LABELS
from seesaw_cf.effects.survey_items import ITEMS, SCALE
from seesaw_cf.texts.annotate.annotate import foreign
from seesaw_cf.texts.flaws.edits import edit_sentences
from seesaw_cf.texts.flaws.protocols import PROTOCOLS
from seesaw_cf.texts.rate.judge import INTRO
from seesaw_cf.texts.rate.survey import SurveyQuestion, SurveySample
from seesaw_cf.texts.released import read_pairs, released_sentences
from seesaw_cf.texts.runs import RunTexts
from seesaw_cf.texts.tables import SampleRow
from seesaw_cf.texts.wording import FAILURE_MODES, FLAWS_BY_NAME, OURS, Wording
from seesaw_cf.texts.write.claims import claim_pairs
from seesaw_cf.texts.write.pairs import passage_pairs, showings
from seesaw_cf.texts.write.passages import coupled_cases

EVIDENCE = "evidence"
"""Question whose answer is words of the passage."""
REFLECTED = "edit_reflected"
"""Question that only raters who see the edit can answer."""


@dataclass(frozen=True, slots=True)
class TaskQuestion:
    """What is asked about every task of a kind.

    Attributes:
        name: In answers.
        text: What raters read.
        choices: (value, words); none for a free text.
        help: What counts, one line each.
        several: Any of the choices.
    """

    name: str
    text: str
    choices: tuple[tuple[str, str], ...] = ()
    help: tuple[str, ...] = ()
    several: bool = False


@dataclass(frozen=True, slots=True)
class PeopleTask:
    """A task.

    Attributes:
        group: The edited relation, over which samples are drawn evenly.
        name: What tells the task from others of its kind; copies of one pair share it.
        texts: Title -> text, in the order shown; the last one is what is judged first.
        about: What the tables need; never shown.
    """

    group: str
    name: str
    texts: Mapping[str, str]
    about: JsonObject = field(hash=False)


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """What is asked of a run.

    Attributes:
        hide_edit: Raters do not see the edit.
        passages: Kinds of passages that are paired (flaws).
        protocol: Name out of `PROTOCOLS` (flaws).
        duplicates: Share of pairs that come a second time, in the other order (flaws).
        wording: Instructions and definitions.
        seed: Of the order of two texts, and of which pairs come again.
    """

    hide_edit: bool = False
    passages: tuple[str, ...] = ("free", "guided")
    protocol: str = "blind"
    duplicates: float = 0.1
    wording: Wording = OURS
    seed: int = 0


_COMMENT = TaskQuestion("comment", "Anything that the questions cannot hold")
_SCALE = tuple((str(number), f"{number}: {words}") for number, words in SCALE.items())
_SUPPORT = tuple(zip(LABELS, ("supports", "neither", "contradicts"), strict=True))
_LABEL = TaskQuestion("label", "Does the passage support the claim?", _SUPPORT)
_REFLECTED = TaskQuestion(
    REFLECTED,
    "Does a text say what the edit says, or take it for granted?",
    (("yes", "yes, at least one"), ("no", "neither"), ("unsure", "it cannot be told")),
)
_CLAIMS = (
    "Say whether the passage supports the claim, contradicts it, or neither. Claims are in short form: “Lena Arvid "
    "occupation engineer” says that the occupation of Lena Arvid is that of an engineer.\n\n"
    "Supports: there is evidence for the claim in the passage, even if only for a part of it. Contradicts: there is "
    "evidence against it; a passage that contradicts a claim even a little, and supports it elsewhere, contradicts it. "
    "Neither: the passage has no evidence. What you know yourself does not count. Highlight all that is evidence."
)
_FAILURES = (
    "A language model was taught a new fact and then wrote about its subject (the main passage) and about a related "
    "entity (the related passage). Choose everything that you find; where nothing is wrong and the edit is there, "
    "choose “Good edit”. Do not judge whether the new fact is true in the world."
)
_WRITING = (
    "You are given an edit: one fact about a subject that is to be taken for true. Write a short article as if it "
    "were. Discuss every property in the list. What the edit does not change stays as it is, and what must change with "
    "it you change. Write by yourself, without a program that writes; 80 to 150 words are usual."
)


def flaw_tasks(run: RunTexts, options: TaskOptions, left_out: Counter[str]) -> Iterator[PeopleTask]:
    """Yield two texts about one person, blind unless the protocol is "published"; some pairs come again."""
    file = run.folder
    pairs, missing = (
        read_pairs(file, options.passages) if file.is_file() else passage_pairs(run.passages, options.passages)
    )
    left_out += missing
    edits = {} if options.hide_edit else _edits(run)
    protocol = PROTOCOLS[options.protocol]
    by_id = {pair.pair_id: pair for pair in pairs}
    for id, copy, drawn in showings(list(by_id), options.seed, options.duplicates):
        pair, first = by_id[id], drawn if protocol.blind else "pre"
        edit = edits.get((pair.editor, pair.case_id), "")
        texts = {"Subject": pair.entity, "Edit": edit} | dict(zip(protocol.titles, pair.shown(first)))
        yield PeopleTask(pair.relation, id, _without_empty(texts), {"pair": asdict(pair), "first": first, "copy": copy})


def _edits(run: RunTexts) -> dict[tuple[str, int], str]:
    """Return what raters are told about edits: (editor, case_id) -> a sentence, where it is known."""
    if run.folder.suffix.lower() == ".csv":
        return released_sentences(run.folder)
    return edit_sentences(run.edits) if not run.folder.is_file() and run.edits is not None else {}


def _flaw_questions(options: TaskOptions) -> Sequence[TaskQuestion]:
    choices = PROTOCOLS[options.protocol].choices
    flaws = [
        TaskQuestion(flaw.name, flaw.title, choices, flaw.people) for flaw in options.wording.chosen(FLAWS_BY_NAME)
    ]
    return (*flaws, _REFLECTED, _COMMENT)


def _flaw_instructions(options: TaskOptions) -> str:
    wording = options.wording
    return wording.task if "task" in wording.replaced else PROTOCOLS[options.protocol].task


def survey_tasks(run: RunTexts, options: TaskOptions, left_out: Counter[str]) -> Iterator[PeopleTask]:
    """Yield both passages of a sample; statements that it cannot be asked about keep their reason."""
    for sample in run.samples:
        if sample.missing:
            left_out[next(iter(sample.missing.values()))] += 1
            continue
        skipped = {item.name: SurveyQuestion(item, sample).skip_reason for item in ITEMS}
        if options.hide_edit:
            skipped |= {item.name: "the edit was not told" for item in ITEMS if "new_fact" in item.fields}
        reasons = {name: why for name, why in skipped.items() if why}
        yield _sample_task(sample, options, skipped=reasons)


def failure_tasks(run: RunTexts, options: TaskOptions, left_out: Counter[str]) -> Iterator[PeopleTask]:
    """Yield both passages of every sample that was written after an edit."""
    for sample in run.samples:
        if sample.phase == "pre":
            left_out["written before the edit"] += 1
        elif not any(sample.passages.values()):
            left_out[next(iter(sample.missing.values()))] += 1
        else:
            yield _sample_task(sample, options)


def claim_tasks(run: RunTexts, options: TaskOptions, left_out: Counter[str]) -> Iterator[PeopleTask]:
    """Yield a passage with one claim about it."""
    for pair in claim_pairs(run.coupled_passages, run.coupled):
        why = pair.status if pair.status != "ok" else "not English" if foreign(pair.premise) else ""
        if why or (options.hide_edit and pair.claim_kind == "new_fact"):
            left_out[why or "the edit was not told"] += 1
            continue
        about = {name: getattr(pair, name) for name in ("passage", "claim_kind", "claim_id", "claim")}
        place = _place(pair)
        name = "|".join(map(str, (*place.values(), *about.values())))
        yield PeopleTask(pair.relation, name, {"Claim": pair.claim, "Passage": pair.premise}, {"place": place, **about})


def writing_tasks(run: RunTexts, options: TaskOptions, left_out: Counter[str]) -> Iterator[PeopleTask]:
    """Yield an edit with what was recorded before, and one passage to write."""
    samples = {sample.case_id: sample for sample in reversed(run.samples)}
    for case in coupled_cases(run.coupled):
        for prompt in case.prompts if case.case_id in samples else ():
            if prompt.status != "ok":
                left_out[prompt.status] += 1
                continue
            about = {"case_id": case.case_id, "relation": case.request.relation_id, "passage": prompt.passage}
            about |= {"entity": prompt.entity.label, "entity_id": prompt.entity.id, "prompt": prompt.text}
            texts = _facts(samples[case.case_id], hide_edit=False) | {"Write": prompt.text}
            yield PeopleTask(case.request.relation_id, f"{case.case_id}|{prompt.passage}", texts, about)


def _place(sample: Any) -> dict[str, Any]:
    return {name: getattr(sample, name) for name in SampleRow.__annotations__}


def _facts(sample: SurveySample, hide_edit: bool) -> dict[str, str]:
    facts = {
        "New fact": "" if hide_edit else sample.new_fact,
        "Subject": sample.subject,
        "Related entity": sample.related_entity,
        "Old facts about the subject": "\n".join(sample.old_facts.get("subject", ())),
        "Old facts about the related entity": "\n".join(sample.old_facts.get("related", ())),
    }
    return _without_empty(facts)


def _without_empty(texts: Mapping[str, str]) -> dict[str, str]:
    return {title: text for title, text in texts.items() if text}


def _sample_task(sample: SurveySample, options: TaskOptions, **more: object) -> PeopleTask:
    place = _place(sample)
    passages = {"Main passage": sample.passages["main"], "Related passage": sample.passages["related"]}
    texts = _facts(sample, options.hide_edit) | _without_empty(passages)
    return PeopleTask(sample.relation, "|".join(map(str, place.values())), texts, {"place": place, **more})


_Tasks = Callable[[RunTexts, TaskOptions, "Counter[str]"], Iterator[PeopleTask]]
_Questions = Callable[[TaskOptions], Sequence[TaskQuestion]]


@dataclass(frozen=True, slots=True)
class TaskKind:
    """A kind of task.

    Attributes:
        needs: What a run must have for it.
        tasks: (run, options, reasons of what is left out, which it fills) -> tasks.
        questions, instructions: What raters are asked, and told first.
    """

    needs: str
    tasks: _Tasks
    questions: _Questions
    instructions: Callable[[TaskOptions], str]


def _survey_questions(options: TaskOptions) -> Sequence[TaskQuestion]:
    words = options.wording.items
    return [TaskQuestion(i.name, words.get(i.name, i.statement), _SCALE, (f"Criterion: {i.criterion}",)) for i in ITEMS]


def _failure_questions(options: TaskOptions) -> Sequence[TaskQuestion]:
    words = options.wording.items
    modes = tuple((name, f"{title}: {words.get(name, means)}") for name, (title, means) in FAILURE_MODES.items())
    return (TaskQuestion("modes", "What do you find in the passages?", modes, several=True), _COMMENT)


KINDS: Mapping[str, TaskKind] = {
    "flaws": TaskKind(
        "open-ended descriptions before and after edits", flaw_tasks, _flaw_questions, _flaw_instructions
    ),
    "survey": TaskKind(
        "passages about coupled entities", survey_tasks, _survey_questions, lambda own: own.wording.survey or INTRO
    ),
    "claims": TaskKind(
        "passages about coupled entities",
        claim_tasks,
        lambda _: (
            TaskQuestion("label", "Does the passage support the claim?", _SUPPORT),
            TaskQuestion(EVIDENCE, "Evidence"),
        ),
        lambda own: own.wording.guidelines or _CLAIMS,
    ),
    "failures": TaskKind(
        "passages about coupled entities after edits",
        failure_tasks,
        _failure_questions,
        lambda own: own.wording.failures or _FAILURES,
    ),
    "writing": TaskKind(
        "coupled records",
        writing_tasks,
        lambda _: (TaskQuestion("text", "Your text"),),
        lambda own: own.wording.writing or _WRITING,
    ),
}
"""Name -> what raters do."""
