"""A LEME run from plain values: its options, its checks, its presets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from seesaw_cf.checks import one_of, whole
from seesaw_cf.errors import RecordError, unknown_name
from seesaw_cf.io.text import read_json
from seesaw_cf.longform.annotate.by_name import SHIPPED
from seesaw_cf.longform.write.generation_settings import Generation, read_generation
from seesaw_cf.models.corpus import LIMIT
from seesaw_cf.models.embedded import EMBEDDED

OPEN_ENDED = "open_ended"


@dataclass(frozen=True, slots=True)
class LemeJob:
    """What `seesaw-cf leme run` does; the fields are its options.

    Attributes:
        model: "seesaw-tiny", a Hub id, a folder; with `base_url` the name of a model there.
        editors: Names out of `seesaw_cf.editors.EDITORS`; behind an API only "ike".
        data, configs: Where records come from; `coupled_*` configs are surveyed, "open_ended" is only written.
        limit: Keep this many cases of each config, sampled with `seed`.
        wording: "essay" or "article".
        relationship: End prompts about coupled entities with "- relationship to X", as the released code does.
        generation: How texts are drawn: a name out of `generation_settings.GENERATIONS` or a JSON file; "auto" is
            "short" for an embedded model and "leme", as published, for every other one.
        samples: Texts for each prompt; None = what `generation` says, as for the next five.
        max_new_tokens, temperature, top_k, top_p, repetition_penalty: See `Sampling`.
        chat: Ask through the chat template: "auto" = when the tokenizer has one, "yes" or "no". Models that are not
            asked so are given the entity's name as the beginning of the passage.
        raters: "lexical", "minilm", or folders of trained raters.
        annotator: "trained" (comes with the package), "lexical", "nli:MODEL", "llm" (asks the judge), or the folder of
            an annotator trained with `leme train-annotator`; "" for none.
        judge: A model that rates: a Hub id or folder, with `judge_url` the name of a model there; "" for none.
        judge_url, judge_key_env: Server of the judge and the variable with its key ("" = a server without keys).
        judge_shots: Rated examples shown to the judge, from `judge_examples`.
        judge_examples: Folder with passages.parquet and ratings.parquet that people rated.
        judge_tries: Times one question is asked at the most.
        judge_wording: File with other words for the judge's task and the annotation guidelines; see
            `seesaw_cf.longform.wording`.
        base_url, key_env: Server that writes, and the variable with its key.
        editor_config: Editor name -> fields of its config to change.
        corpus, corpus_limit: Texts that the editors learn from, and how many of them; see
            `seesaw_cf.models.corpus.Corpus`.
        moments: Second moments that the editors take in place of texts; see
            `seesaw_cf.editors.locate.moment_sets.find_set`.
        revision, dtype, device, trust_remote_code: How a local model is loaded.
        rows: Texts that are written at once.
        block: Cases that are edited and written together; also what is redone after a kill.
        seed: Of sampling cases and of every text.

    Raises:
        RecordError: A count is no whole number of at least 1, or the seed is no whole number from 0.
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
    annotator: str = SHIPPED
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
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is not None:
                whole(f"leme run: {name}", value, least)

    def texts(self) -> Generation:
        """How many texts, and how they are drawn.

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
PRESETS: dict[str, LemeJob] = {
    "sample": LemeJob("seesaw-tiny", configs=("coupled_counterfact", OPEN_ENDED), limit=24),
}


def read_preset(name: str) -> LemeJob:
    """A preset by name, or a JSON file with fields of `LemeJob`.

    Raises:
        UnknownNameError: No such preset, or the file has a field that no job has.
        RecordError: The file is not JSON, or names no model.
        StorageError: The file cannot be read.
    """
    if name in PRESETS:
        return PRESETS[name]
    if not name.endswith(".json"):
        raise unknown_name("preset (or JSON file)", name, PRESETS)
    found, known = read_json(name), asdict(PRESETS["sample"])
    if "model" not in found:
        raise RecordError(f'{name}: expected options with at least "model", got {sorted(found)}.')
    for key in found:
        one_of(f"option in {name}", key, known)
    options: dict[str, Any] = {k: tuple(value) if isinstance(value, list) else value for k, value in found.items()}
    return LemeJob(**options)
