"""Long form: what an edited model writes, and raters that are measured against people before they are believed.

What the commands of texts and people are asked is described here, as plain values; nothing heavy is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from seesaw_cf.base.fields import AtLeastZero, Count, NameOrPath, OneOf, Positive, Seed, Share, field_types
from seesaw_cf.base.system import lazy
from seesaw_cf.generation.types import Sampling
from seesaw_cf.models.corpus import LIMIT
from seesaw_cf.models.names import EMBEDDED

if TYPE_CHECKING:
    from seesaw_cf.texts.classify import load_classifier, load_rater
    from seesaw_cf.texts.report import report_people, report_run

__all__ = ["load_classifier", "load_rater", "report_people", "report_run"]

_HOMES = {"load_classifier": "classify", "load_rater": "classify", "report_people": "report", "report_run": "report"}
__getattr__, __dir__ = lazy(__name__, {name: f"{__name__}.{home}" for name, home in _HOMES.items()})
KINDS = ("flaws", "survey", "claims", "failures", "writing")
RATED = ("survey", "claims", "flaws", "answers")


@dataclass(frozen=True, slots=True)
class Generation:
    """How passages are drawn.

    Attributes:
        name: Of the published settings.
        samples: Texts for each prompt.
        sampling: How each is drawn.
    """

    name: str
    samples: int
    sampling: Sampling


# leme: the released program of LEME (600 tokens, penalty 1.1; top-k, top-p and temperature also in its appendix B.1).
# leme-gpt: the same for GPT-3.5 and GPT-4, at temperature 1 (appendix B.1).
# seesaw-cf: five texts of each prompt, top-k 5; the released program counts the prompt among its 100 tokens, the paper
# does not, and neither is done with a seed. short: for trying out.
GENERATIONS = {
    generation.name: generation
    for generation in (
        Generation("leme", 1, Sampling(600, 0.9, 50, 0.95, repetition_penalty=1.1)),
        Generation("leme-gpt", 1, Sampling(600, 1.0, 50, 0.95, repetition_penalty=1.1)),
        Generation("seesaw-cf", 5, Sampling(100, 1.0, 5, 1.0)),
        Generation("short", 1, Sampling(80, 0.9, 50, 0.95)),
    )
}


class _Options:
    def __post_init__(self) -> None:
        field_types(self)


@dataclass(frozen=True)
class WriteJob(_Options):
    """What `seesaw-cf texts write` does; the fields are its options.

    Attributes:
        model: 'seesaw-tiny', a Hub id, a folder, or a name at `base_url`.
        editors: Editing method, or a control; behind `base_url` ike only.
        data: 'sample', a dataset folder, a file, or a Hub id.
        configs: coupled_*, open_ended, or configs of cases.
        limit: Only so many cases of each config, by `seed`.
        generation: Published settings of sampling.
        samples: Texts for each prompt.
        max_new_tokens: Longest text.
        temperature: Of sampling. 0 takes the likeliest token.
        base_url: OpenAI-compatible server of the model.
        key_env: Environment variable with its key.
        editor_config: JSON file: {"memit": {"layers": [3]}}.
        corpus: Texts for second moments.
        corpus_limit: Most texts of `corpus`, drawn by `seed`.
        moments: Second moments: a folder or ORG/NAME.
        revision: Branch, tag or commit of a Hub model.
        dtype: Of weights and sums.
        device: auto, cpu, cuda:1, ..., or balanced.
        trust_remote_code: Run code from the model's repository.
        block: Cases that are edited and written together.
        rate: Rater of what is written, as of `texts rate`.
        report: Write the report, too.
        seed: Of drawing cases and of every text.
    """

    model: str
    _: KW_ONLY
    editors: tuple[str, ...] = ("memit",)
    data: NameOrPath = "sample"
    configs: tuple[str, ...] = ()
    limit: Positive | None = None
    generation: Annotated[str, OneOf(("auto", *GENERATIONS))] = "auto"
    samples: Positive | None = None
    max_new_tokens: Positive | None = None
    temperature: AtLeastZero | None = None
    base_url: str = ""
    key_env: str = "OPENAI_API_KEY"
    editor_config: str | Path | Mapping[str, Mapping[str, object]] | None = None
    corpus: str = ""
    corpus_limit: Positive = LIMIT
    moments: str | None = None
    revision: str | None = None
    dtype: str = "float32"
    device: str = "auto"
    trust_remote_code: bool = False
    block: Positive = 8
    rate: tuple[NameOrPath, ...] = ()
    report: bool = False
    seed: Seed = 0

    def texts(self) -> Generation:
        """Return how many texts, and how they are drawn."""
        short = self.model in EMBEDDED and not self.base_url
        base = GENERATIONS[self.generation if self.generation != "auto" else "short" if short else "leme"]
        changes = {name: getattr(self, name) for name in ("max_new_tokens", "temperature")}
        sampling = replace(base.sampling, **{name: value for name, value in changes.items() if value is not None})
        return Generation(base.name, self.samples or base.samples, sampling)


def _protocol(job: RateJob | ExportJob) -> str:
    """Return how pairs of texts are shown."""
    return "published" if job.published else "blind"


@dataclass(frozen=True)
class RateJob(_Options):
    """What `seesaw-cf texts rate` does; the fields are its options.

    Attributes:
        run: Run of `texts write`, of `audit --answers`; of flaws also a file of pairs.
        raters: lexical, a trained model, or a judge. Repeatable.
        what: What is rated. Repeatable (default: all it can).
        base_url: OpenAI-compatible server of the judges.
        key_env: Environment variable with its key.
        shots: Answered examples shown to judges. The paper: 8.
        examples: Run and answers of people for the examples.
        temperature: Of a judge's replies.
        wording: File with other words, such as the papers' own.
        published: Flaws. Judges know the order, as published.
        duplicates: Flaws. Share of pairs judged in both orders.
        limit: Flaws. Only so many pairs, even over relations.
        dtype: Of a local judge.
        device: Of local models: auto, cpu, cuda:1, ...
        seed: Of examples, orders and replies.
    """

    run: Path
    _: KW_ONLY
    raters: tuple[NameOrPath, ...] = ("lexical",)
    what: tuple[Annotated[str, OneOf(RATED)], ...] = ()
    base_url: str = ""
    key_env: str = "OPENAI_API_KEY"
    shots: Count = 0
    examples: tuple[Path, ...] = ()
    temperature: AtLeastZero = 0.0
    wording: Path | None = None
    published: bool = False
    duplicates: Share = 0.2
    limit: Positive | None = None
    dtype: str = "float32"
    device: str = "auto"
    seed: Seed = 0

    protocol = property(_protocol)


@dataclass(frozen=True)
class ReportJob(_Options):
    """What `seesaw-cf texts report` does; the fields are its options.

    Attributes:
        run: Folder that `texts write --out` wrote.
        people: Answers of people and judges: folders or tables.
        released: Ratings or claims as the papers' authors released them (CSV).
        judges: Which raters of flaws are models.
        scores: Run of seesaw-cf audit, same edits: short form.
        measures: nli:MODEL, bertscore:ENCODER, perplexity:MODEL.
        references: Texts about new targets (JSON).
        pictures: Write every picture as a file too.
    """

    run: Path | None = None
    _: KW_ONLY
    people: tuple[Path, ...] = ()
    released: tuple[Path, ...] = ()
    judges: tuple[str, ...] = ()
    scores: Path | None = None
    measures: tuple[NameOrPath, ...] = ()
    references: Path | None = None
    pictures: bool = False


@dataclass(frozen=True)
class TrainJob(_Options):
    """What `seesaw-cf texts train` does; the fields are its options.

    Attributes:
        data: CSV file, or a table of people's answers (Parquet).
        encoder: A folder or a Hub id.
        run: Run of `texts write` that people answered about.
        recipe: leme: the paper's, for deberta-v3-large and a GPU.
        folds: Grouped folds that measure it. 0 = do not.
        seed: Of folds, weights and order.
    """

    data: Path
    _: KW_ONLY
    encoder: NameOrPath
    run: Path | None = None
    recipe: Annotated[str, OneOf(("small", "leme"))] = "small"
    folds: Count = 4
    seed: Seed = 0


@dataclass(frozen=True)
class ExportJob(_Options):
    """What `seesaw-cf people export` does; the fields are its options.

    Attributes:
        kind: What people do.
        run: Run of `texts write`; of flaws also a file of pairs.
        limit: Only so many texts, even over relations.
        duplicates: Flaws. Share of pairs that are rated twice.
        published: Flaws. Raters know the order, as published.
        wording: File with other words, such as the papers' own.
        seed: Of the sample and of all orders.
    """

    kind: Annotated[str, OneOf(KINDS)]
    run: Path
    _: KW_ONLY
    limit: Positive | None = None
    duplicates: Share = 0.1
    published: bool = False
    wording: Path | None = None
    seed: Seed = 0

    protocol = property(_protocol)
