"""A LEME run from plain values: its options, its checks, its presets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from seesaw_cf.base.checks import at_least, one_of
from seesaw_cf.base.errors import RecordError, unknown_name
from seesaw_cf.base.text import read_json
from seesaw_cf.generation.types import Ask, Completion, Sampling
from seesaw_cf.models.corpus import LIMIT
from seesaw_cf.models.packaged import EMBEDDED
from seesaw_cf.records.open_ended import CONFIG as OPEN_ENDED
from seesaw_cf.texts.write.generation_settings import Generation, read_generation


@dataclass(frozen=True, slots=True)
class LemeJob:
    """What `seesaw-cf leme run` does; the fields are its options.

    Attributes:
        model: 'seesaw-tiny', a Hub id, a folder, or a model's name at `base_url`.
        editors: Editing method, a name of `seesaw-cf list editors`, behind an API only "ike". Repeatable.
        data: 'sample', 'sample-small', 'sample-claims', a dataset folder, a Parquet file, a file of records, or a Hub
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
        raters: lexical, minilm or the folder of a trained rater. Repeatable.
        annotator: trained (comes with the package), lexical, nli:MODEL, llm (asks `judge`) or a folder. '' for none.
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
        moments: Second moments in place of texts: a folder, a set of `moments list`, or ORG/NAME after `moments pull`.
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
    raters: tuple[str, ...] = ("lexical", "minilm")
    annotator: str = "trained"
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


# "sample": everything that comes with the package, within minutes on a CPU.
PRESETS: dict[str, LemeJob] = {"sample": LemeJob("seesaw-tiny", configs=("coupled_counterfact", OPEN_ENDED), limit=24)}


def read_preset(name: str) -> LemeJob:
    """Return a preset by name, or a JSON file with fields of `LemeJob`.

    Raises:
        UnknownNameError: No such preset, or the file has a field that no job has.
        RecordError: The file is not JSON, or names no model.
        StorageError: The file cannot be read.
    """
    if name in PRESETS:
        return PRESETS[name]
    if not name.endswith(".json"):
        raise unknown_name("preset (or JSON file)", name, PRESETS)
    fields, names = read_json(name), asdict(PRESETS["sample"])
    if "model" not in fields:
        raise RecordError(f'{name}: expected options with at least "model", got {sorted(fields)}.')
    for key in fields:
        one_of(f"option in {name}", key, names)
    options: dict[str, Any] = {k: tuple(value) if isinstance(value, list) else value for k, value in fields.items()}
    return LemeJob(**options)


# What judging will cost, before a judge is asked anything.

_BYTES = 4
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class JudgeCost:
    """Calls and tokens of a job; money is in the currency of the prices, None without them.

    Attributes:
        calls: Requests, when every reply can be read at once.
        prompt_tokens: Tokens sent by them.
        new_tokens: Tokens that the replies have at the most.
        money: Of the calls, with replies of full length.
        most: The same when every question takes all its tries.
    """

    calls: int
    prompt_tokens: int
    new_tokens: int
    money: float | None = None
    most: float | None = None

    def __add__(self, other: JudgeCost) -> JudgeCost:
        """Both jobs, at the same prices."""
        pairs = [(self.money, other.money), (self.most, other.most)]
        money, most = (None if own is None or more is None else own + more for own, more in pairs)
        sent, written = self.prompt_tokens + other.prompt_tokens, self.new_tokens + other.new_tokens
        return JudgeCost(self.calls + other.calls, sent, written, money, most)


def estimated_tokens(text: str) -> int:
    """Estimate the tokens of a text without its tokenizer: one for every four bytes of UTF-8, rounded up."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // _BYTES)


def judge_cost(
    prompts: Iterable[str],
    tokens: Callable[[str], int],
    max_new_tokens: int,
    *,
    tries: int = 1,
    price_in: float | None = None,
    price_out: float | None = None,
) -> JudgeCost:
    """Add up a job.

    Args:
        prompts: Every question that will be asked.
        tokens: Counts those of a text.
        max_new_tokens: Longest reply.
        tries: Times a question is asked at the most.
        price_in, price_out: Per million tokens sent and written; a missing one is 0 where the other is given.
    """
    sent = [tokens(prompt) for prompt in prompts]
    written = max_new_tokens * len(sent)
    if price_in is None and price_out is None:
        return JudgeCost(len(sent), sum(sent), written)
    money = (sum(sent) * (price_in or 0.0) + written * (price_out or 0.0)) / _MILLION
    return JudgeCost(len(sent), sum(sent), written, money, money * tries)


@dataclass
class Counted:
    """A generator that sends nothing: it keeps what would be asked, and gives replies that every judge can read.

    Attributes:
        name: Name of the judge that it replaces.
        prompts: Longest reply in tokens -> prompts, the turns of a conversation as one text.
    """

    name: str
    prompts: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))

    def generate(self, asks: Sequence[Ask], sampling: Sampling) -> list[Completion]:
        """Keep the prompts."""
        for ask in asks:
            turns = [ask.prompt] if isinstance(ask.prompt, str) else [turn.content for turn in ask.prompt]
            self.prompts[sampling.max_new_tokens].append("\n".join(turns))
        return [Completion("Rating: 4\nLabel: neutral") for _ in asks]
