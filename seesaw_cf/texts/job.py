"""A LEME run from plain values: its options and its checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from seesaw_cf.base.checks import at_least
from seesaw_cf.models.corpus import LIMIT
from seesaw_cf.models.names import EMBEDDED
from seesaw_cf.texts.write.generation_settings import Generation, read_generation


@dataclass(frozen=True, slots=True)
class LemeJob:
    """What `seesaw-cf leme run` does; the fields are its options.

    Attributes:
        model: 'seesaw-tiny', a Hub id, a folder, or a model's name at `base_url`.
        editors: Editing method, a name of `seesaw-cf list editors`, behind an API only "ike". Repeatable.
        data: 'sample', a dataset folder, a Parquet file, a file of records, or a Hub
            id.
        configs: coupled_counterfact, coupled_zsre, or open_ended and configs of cases, which are written and not
            surveyed. Repeatable.
        limit: Only this many cases of each config, sampled with `seed`.
        wording: Which of LEME's two prompts.
        relationship: End prompts about coupled entities with "- relationship to X", as the released code does.
        generation: leme, leme-gpt, seesaw-cf (as published), short, or a JSON file (default: leme, short for an
            embedded model).
        samples: Texts for each prompt (default: that of `generation`, as for the next five).
        max_new_tokens: Longest text.
        temperature: Of sampling. 0 takes the likeliest token.
        top_k: Draw from this many likeliest tokens. 0 = all.
        top_p: Draw from the likeliest tokens that hold this probability.
        repetition_penalty: 1 = none.
        chat: Ask through the chat template. auto: when the tokenizer has one. Without it a passage begins with the
            entity's name.
        raters: Folder of a rater that `seesaw-cf leme train-rater` made. Repeatable.
        annotator: lexical, llm (asks `judge`), or folder or Hub id of a trained classifier or NLI model. '' for none.
        judge: Model that rates: a Hub id, a folder, or a model's name at `judge_url`. '' for none.
        judge_url: OpenAI-compatible server of the judge.
        judge_key_env: Environment variable with its key. '' for a server without keys.
        judge_shots: Rated examples shown to the judge. The paper shows 8.
        judge_examples: Folder with passages.parquet and ratings.parquet that people rated.
        judge_tries: Times one question is asked at the most.
        judge_wording: JSON or YAML with other words for the judge, such as the paper's own.
        base_url: OpenAI-compatible server, such as http://localhost:8000/v1.
        key_env: Environment variable with the server's key. '' for a server without keys.
        editor_config: JSON file: {"memit": {"layers": [3, 4]}, ...}.
        corpus: Texts for second moments: a text file (one a line), FILE.jsonl:COLUMN, FILE.parquet:COLUMN, or a Hub
            data set ORG/NAME:CONFIG:SPLIT:COLUMN (default: those of the embedded model).
        corpus_limit: Most texts of `corpus`, drawn with `seed` (default: 100,000).
        moments: Second moments in place of texts: a folder that `share --moments` names, or ORG/NAME on the Hub.
        revision: Branch, tag or commit of a Hub model.
        dtype: Of weights and sums.
        device: auto, cpu, cuda:1, ..., or balanced: one model over all GPUs.
        trust_remote_code: Run code from the model's repository.
        rows: Texts that are written at once.
        block: Cases that are edited and written together, and redone after a kill.
        seed: Seed of sampling cases and of every text.

    Raises:
        RecordError: A count is not a whole number of at least 1, or the seed is not a whole number from 0.
    """

    model: str
    editors: tuple[str, ...] = ("memit",)
    data: str = "sample"
    configs: tuple[str, ...] = ("coupled_counterfact",)
    limit: int | None = None
    wording: str = "essay"
    relationship: bool = True
    generation: str = "auto"
    samples: int | None = None
    max_new_tokens: int | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    repetition_penalty: float | None = None
    chat: str = "auto"
    raters: tuple[str, ...] = ()
    annotator: str = "lexical"
    judge: str = ""
    judge_url: str = ""
    judge_key_env: str = "OPENAI_API_KEY"
    judge_shots: int = 0
    judge_examples: str = ""
    judge_tries: int = 3
    judge_wording: str = ""
    base_url: str = ""
    key_env: str = "OPENAI_API_KEY"
    editor_config: Mapping[str, Mapping[str, object]] | None = None
    corpus: str = ""
    corpus_limit: int = LIMIT
    moments: str | None = None
    revision: str | None = None
    dtype: str = "float32"
    device: str = "auto"
    trust_remote_code: bool = False
    rows: int = 32
    block: int = 8
    seed: int = 0

    def __post_init__(self) -> None:
        at_least("leme run", self, _LEAST)

    def texts(self) -> Generation:
        """Return how many texts, and how they are drawn.

        Raises:
            SeesawError: See `read_generation`.
        """
        name = self.generation
        if name == "auto":
            name = "short" if self.model in EMBEDDED and not self.base_url else "leme"
        return read_generation(name, **{field: getattr(self, field) for field in _DRAWN})


_LEAST = {"limit": 1, "samples": 1, "rows": 1, "block": 1, "judge_tries": 1, "judge_shots": 0, "seed": 0}
_DRAWN = ("samples", "max_new_tokens", "temperature", "top_k", "top_p", "repetition_penalty")
