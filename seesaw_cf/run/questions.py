"""From a case to the clozes that are scored before and after its edit: one question per row of the score table."""

from __future__ import annotations

import itertools
import math
import operator
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from transformers import PreTrainedTokenizerBase

from seesaw_cf.base.errors import PromptError
from seesaw_cf.base.tables import SCORES
from seesaw_cf.base.types import FORMS, AttributePrompt, Case, Cloze, ClozeScore, Entity, JsonObject, Kind, Role
from seesaw_cf.records.checks import spaced
from seesaw_cf.records.load import locality, portability
from seesaw_cf.scoring.chat import holds, template_facts
from seesaw_cf.scoring.encode import encode_cloze
from seesaw_cf.scoring.pre_scores import sort_clozes

MOST_IN_MEMORY = 2**21
"""Questions that are in memory together, about: more than the published study has."""
_SAMPLED_CASES = 100


class Question(NamedTuple):
    """One cloze with its columns of the score table."""

    kind: Kind
    prompt_id: int
    prompt: AttributePrompt
    target: str
    role: Role
    gold: bool = False
    form: str = "plain"

    @property
    def cloze(self) -> Cloze:
        """Context, target and form, as a scorer takes them; texts are read as they are in any form."""
        return Cloze(self.prompt.text, self.target, "plain" if self.kind == "text" else self.form)


Forms = Mapping[str, Sequence[str]]
"""Forms in which questions are asked, the first one in the main tables; of each the kinds, () = all of them."""
PLAIN: dict[str, Sequence[str]] = {"plain": ()}


CHAT = FORMS[1:]


def choose_forms(form: str, tokenizer: PreTrainedTokenizerBase) -> tuple[Forms, JsonObject, list[str]]:
    """Return the forms of a job, what its manifest records of them, and what a user should know.

    A model with a chat template is asked for its edits in all forms, whatever else is asked in the plain one alone: an
    edit that took in a text to continue need not be in an answer.

    Args:
        form: "plain", "chat" or "both".
        tokenizer: The model's.

    Raises:
        UnsupportedModelError: Chat without a template.
        PromptError: A template that fails; of "plain" a sentence says so.
    """
    facts, notes = dict[str, object](), list[str]()
    if form != "plain" or tokenizer.chat_template:
        try:
            facts = {"chat": template_facts(tokenizer)}
        except PromptError as error:
            if form != "plain":
                raise
            notes = [f"The edits were not asked in chat, only in texts to continue: {error}"]
    kinds: Mapping[str, Forms] = {
        "plain": PLAIN | dict.fromkeys(CHAT if facts else (), ("efficacy",)),
        "chat": dict.fromkeys(CHAT, ()),
        "both": dict.fromkeys(FORMS, ()),
    }
    return kinds[form], {"form": form, "forms": [*kinds[form]], **facts}, notes


def in_forms(asked: Iterable[Question], forms: Forms) -> list[Question]:
    """Return questions in every form: all of the first one, then all of the next."""
    own, first = list(asked), next(iter(forms))
    return [
        q._replace(form=form)
        for form, kinds in forms.items()
        for q in own
        if q.kind in kinds or (not kinds and (form == first or q.kind != "text"))
    ]


CaseQuestions = Sequence[tuple[Case, Sequence[Question]]]
"""Cases with their questions."""

_NOBODY = Entity(None, "")


class _Section(NamedTuple):
    """Prompts of one kind, each asked with every answer.

    Attributes:
        kind: Of the questions.
        prompts: Ready, or texts.
        answers: With their roles.
        about: The person of the texts.
        first: Number of the first prompt.
    """

    kind: Kind
    prompts: Sequence[AttributePrompt | str]
    answers: Sequence[tuple[str, Role]]
    about: Entity = _NOBODY
    first: int = 0


def _targets(new: str, true: str) -> list[tuple[str, Role]]:
    answers: tuple[tuple[str, Role], ...] = ((new, "target_new"), (true, "target_true"))
    return [answer for answer in answers if answer[0].strip()]


def _sections(case: Case) -> Iterator[_Section]:
    request = case.request
    new, true = request.target_new.label, request.target_true.label
    labels = _targets(new, true)
    near = _targets(new, str(case.extra.get("loc_ans", ""))) if case.record_format == "zsre" else labels
    subject_id = case.extra.get("subject_id")
    subject = Entity(subject_id if isinstance(subject_id, str) and subject_id else None, request.subject)
    yield _Section("efficacy", (request.text,), labels, subject)
    yield _Section("paraphrase", case.paraphrase_prompts, labels, subject)
    yield _Section("neighborhood", case.neighborhood_prompts, near)
    yield _Section("cross_subject", () if case.record_format == "eff" else case.attribute_prompts, labels)
    first = len(case.neighborhood_prompts)
    for number, (text, answers) in enumerate(locality(case), first):
        yield _Section("neighborhood", (text,), [(answer, "target_true") for answer in answers], first=number)
    for number, (text, answers) in enumerate(portability(case)):
        yield _Section("portability", (text,), [(answer, "target_new") for answer in answers], first=number)
    candidates: list[tuple[str, Role]] = [(answer, "candidate") for answer in case.candidates]
    yield _Section("cross_property", case.effect_prompts, candidates)


def questions(case: Case) -> Iterator[Question]:
    """Yield every question of one case, in a fixed order.

    Kinds: "efficacy" (the edit's own prompt), "paraphrase", "neighborhood" and "cross_subject" ask for target_new and
    target_true; "cross_property" asks for every candidate. `_eff` records repeat the edit's own prompt as their only
    attribute prompt, so it is not asked twice. zsRE's locality prompt is compared with its own answer. What records of
    EasyEdit ask in addition to the edit has one answer in one or more spellings: of "portability" a target_new, of
    "neighborhood" a target_true.
    """
    gold = set(case.gold)
    for kind, prompts, answers, about, first in _sections(case):
        for number, item in enumerate(prompts, first):
            prompt = AttributePrompt(item, about) if isinstance(item, str) else item
            for answer, role in answers:
                yield Question(kind, number, prompt, answer, role, role == "candidate" and answer in gold)


def count_questions(case: Case) -> int:
    """Return how many questions a case has, without making them."""
    return sum(len(section.prompts) * len(section.answers) for section in _sections(case))


def count_spaced(case: Case) -> int:
    """Return how many questions of a case have a prompt that is `spaced`, or an answer with white space at an end."""
    odd = 0
    for section in _sections(case):
        texts = (prompt if isinstance(prompt, str) else prompt.text for prompt in section.prompts)
        whole = sum(not spaced(text) for text in texts) * sum(answer == answer.strip() for answer, _ in section.answers)
        odd += len(section.prompts) * len(section.answers) - whole
    return odd


@dataclass(frozen=True, slots=True)
class CaseRows:
    """What is known of a case's rows of the score table before any edit; every editor and state fills in the rest.

    Attributes:
        case, asked: The case and its questions.
        clozes: Of `asked`.
        before: Scores before any edit.
        first: For each pair of rows, before and after, what counts before; `several`: where others may count after.
        fixed: Two rows for each pair: the columns that no edit changes.
    """

    case: Case
    asked: Sequence[Question]
    clozes: Sequence[Cloze]
    before: Mapping[Cloze, ClozeScore]
    first: Sequence[Cloze]
    several: Mapping[int, Sequence[Question]]
    fixed: pa.Table

    def then(self, after: Mapping[Cloze, ClozeScore]) -> Sequence[Cloze]:
        """Return what counts after an edit, for each pair of rows."""
        best = {place: _best(spellings, after).cloze for place, spellings in self.several.items()}
        return [best.get(place, cloze) for place, cloze in enumerate(self.first)] if best else self.first


def case_rows(case: Case, asked: Sequence[Question], before: Mapping[Cloze, ClozeScore]) -> CaseRows:
    """Prepare the rows of a case's questions.

    Of several spellings of one answer the one counts that the model would write, else the likeliest: of what must stay
    the same before and after, of what follows from the edit in each phase its own.
    """
    groups = itertools.groupby(asked, lambda q: q if q.role == "candidate" else (*q[:2], q.role, q.form))
    spellings = [list(group) for _, group in groups]
    first = [own[0] if len(own) == 1 else _best(own, before) for own in spellings]
    several = {place: own for place, own in enumerate(spellings) if len(own) > 1 and first[place].role == "target_new"}
    columns = list(zip(*(row for q in first for row in 2 * [_fixed(case, q)]))) or [()] * len(_FIXED)
    fixed = pa.table(dict(zip(_FIXED.names, columns, strict=True)), _FIXED)
    return CaseRows(case, asked, [q.cloze for q in asked], before, [q.cloze for q in first], several, fixed)


_FILLED = ("editor", "target", "phase", "logprob", "n_tokens", "greedy", "status", "n_greedy", "n_kept")
_FIXED = pa.schema([field for field in SCORES if field.name not in _FILLED])


def _fixed(case: Case, asked: Question) -> tuple[object, ...]:
    prompt, relation = asked.prompt, case.request.relation_id
    other = case.effect_relation_id if asked.kind == "cross_property" else None
    return (
        *(case.case_id, relation, other or relation, asked.kind, asked.prompt_id),
        *(prompt.template_id, prompt.text, prompt.subject.id, prompt.subject.label),
        *(prompt.gender, prompt.race, prompt.region, prompt.holds),
        *(asked.role, asked.gold, prompt.sitelinks, asked.form),
    )


def score_table(editor: str, parts: Iterable[tuple[CaseRows, Mapping[Cloze, ClozeScore]]]) -> pa.Table:
    """Return the score table (`SCORES`): two rows for every question, before and after the edit.

    Args:
        editor: What made it.
        parts: Cases with the scores after the edit.
    """
    parts = list(parts)
    then = [rows.then(after) for rows, after in parts]
    was = [rows.before[cloze] for (rows, _), own in zip(parts, then, strict=True) for cloze in own]
    now = [after[cloze] for (_, after), own in zip(parts, then, strict=True) for cloze in own]
    # At how many tokens of the answer the first choice is the one from before the edit; None where unknown.
    kept = [
        None if before.first is None or score.first is None else sum(map(operator.eq, before.first, score.first))
        for before, score in zip(was, now, strict=True)
    ]
    targets = [cloze.target for (rows, _), own in zip(parts, then) for pair in zip(rows.first, own) for cloze in pair]
    pre = [rows.before[cloze] for rows, _ in parts for cloze in rows.first]
    scores = [score for pair in zip(pre, now, strict=True) for score in pair]
    # not zip(*scores), whose many iterators set off the garbage collector
    columns = {name: list(map(operator.attrgetter(name), scores)) for name in ClozeScore._fields}
    filled = {
        **columns,
        "logprob": [value if text == "ok" else None for value, text in zip(columns["logprob"], columns["status"])],
        "editor": [editor] * len(scores),
        "target": targets,
        "phase": ["pre", "post"] * len(now),
        "n_kept": [part for kept_by in kept for part in (None, kept_by)],
    }
    fixed = pa.concat_tables([rows.fixed for rows, _ in parts]).combine_chunks()
    return pa.table({name: filled[name] if name in filled else fixed[name] for name in SCORES.names}, SCORES)


def _best(spellings: Sequence[Question], scores: Mapping[Cloze, ClozeScore]) -> Question:
    def rank(question: Question) -> tuple[bool, bool, float]:
        score = scores[question.cloze]
        scored = score.status == "ok"
        return scored, scored and bool(score.greedy), score.logprob if scored else -math.inf

    return max(spellings, key=rank)


def find_indistinct(
    tokenizer: PreTrainedTokenizerBase,
    cases: Iterable[tuple[Case, Sequence[Question]]],
    scores: Mapping[Cloze, ClozeScore],
) -> dict[Cloze, ClozeScore]:
    """Return, for each answer that has the tokens of another answer of its question, a score that marks this.

    Args:
        tokenizer: The model's.
        cases: Cases with their questions.
        scores: Of all questions; only answers with equal scores are encoded.
    """
    refused: dict[Cloze, ClozeScore] = {}
    for _, qs in cases:
        alike: dict[tuple[object, ...], dict[str, Cloze]] = {}
        for q in qs:
            score = scores[q.cloze]
            if q.form in CHAT and holds(q.prompt.text, q.target):  # also in a line above the last
                refused[q.cloze] = ClozeScore(math.nan, 0, False, "the question in the chat template holds its answer")
            elif score.status == "ok":
                key = (q.kind, q.prompt_id, q.form, score.logprob, score.first)
                alike.setdefault(key, {})[q.target.strip()] = q.cloze
        for clozes in (list(group.values()) for group in alike.values() if len(group) > 1):
            ids = [encode_cloze(tokenizer, cloze) for cloze in clozes]
            for cloze, own in zip(clozes, ids):
                if others := [c.target for c, other in zip(clozes, ids) if other == own and c != cloze]:
                    why = f"the answer {others[0]!r} to this question has the same tokens: no score tells them apart"
                    refused[cloze] = ClozeScore(math.nan, 0, False, why)
    return refused


def sample_clozes(cases: Sequence[Case], count: int, seed: int = 0) -> list[Cloze]:
    """Return distinct clozes that these cases ask, drawn without replacement; all when there are fewer.

    Args:
        cases: Where they come from; a hundred of them, drawn too, where there are more.
        count: How many.
        seed: Of the draw.
    """
    drawn = np.random.default_rng(seed).permutation(len(cases))[:_SAMPLED_CASES]
    clozes = sort_clozes(q.cloze for index in drawn for q in questions(cases[index]))
    chosen = np.random.default_rng(seed).permutation(len(clozes))[:count]
    return [clozes[index] for index in sorted(chosen)]


# What the true target of an edit is ranked among, before the edit.

MOST_CANDIDATES = 32
"""Candidates of one edit, its two targets among them. Each costs its own tokens once, before any edit."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """What an edit's true target is compared with.

    Attributes:
        by_relation: Relation -> answers that occur for it, at most `MOST_CANDIDATES`.
        true: (subject, relation) -> answers that the records say are true of the subject: no competitors.
        form: How they are asked.
    """

    by_relation: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    true: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    form: str = "plain"

    def of(self, case: Case) -> tuple[str, ...]:
        """Return the true and the new target of a case, then the other candidates; none when either target is empty."""
        request = case.request
        own = (request.target_true.label, request.target_new.label)
        if not all(label.strip() for label in own):
            return ()
        true_names = {*own, *self.true.get((request.subject, request.relation_id), ())}
        others = (name for name in self.by_relation.get(request.relation_id, ()) if name not in true_names)
        return tuple(dict.fromkeys((*own, *others)))[:MOST_CANDIDATES]

    def clozes(self, case: Case) -> list[Cloze]:
        """Return the edit's own prompt with each of the case's candidates."""
        return [Cloze(case.request.text, name, self.form) for name in self.of(case)]


def candidates_of(cases: Iterable[Case], seed: int = 0, form: str = "plain") -> Candidates:
    """Collect the candidates that records offer.

    An answer of a relation is a target of one of its edits, or a candidate of a cross-property case that asks for it.
    zsRE's questions have no relation in common: there is nothing to take from other records.

    Args:
        cases: All records at hand, so that the candidates do not depend on how many of them are edited.
        seed: Of the draw where a relation has more than `MOST_CANDIDATES`.
        form: How they are asked.
    """
    answers: dict[str, set[str]] = defaultdict(set)
    true: dict[tuple[str, str], set[str]] = defaultdict(set)
    for case in cases:
        request, other = case.request, case.effect_relation_id
        answers[request.relation_id] |= {request.target_true.label, request.target_new.label}
        true[request.subject, request.relation_id].add(request.target_true.label)
        if other is not None:
            answers[other].update(case.candidates)
            true[request.subject, other].update(case.gold)
    drawn = {}
    for relation in filter(None, answers):
        names = sorted(label for label in answers[relation] if label.strip())
        places = np.random.default_rng([seed, len(names)]).permutation(len(names))[:MOST_CANDIDATES]
        drawn[relation] = tuple(names[place] for place in places)
    return Candidates(drawn, {key: frozenset(names) for key, names in true.items()}, form)
