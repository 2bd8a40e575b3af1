"""LEME from end to end: passages before and after edits, ratings, annotations, a report."""

from __future__ import annotations

import importlib
import json
import logging
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch

from seesaw_cf.checks import whole
from seesaw_cf.controls import planned, split_control
from seesaw_cf.corpus import LIMIT, corpus_facts, corpus_of
from seesaw_cf.errors import EditError, RecordError, unknown_name
from seesaw_cf.files import write_text
from seesaw_cf.generation.api import OpenAIGenerator, public_url
from seesaw_cf.generation.cached import CachedGenerator
from seesaw_cf.generation.hf import HFGenerator
from seesaw_cf.longform.annotate import annotate
from seesaw_cf.longform.annotators import SHIPPED, measured
from seesaw_cf.longform.claims import make_pairs
from seesaw_cf.longform.demonstrations import NONE_LEFT, pool_digest, spare_cases
from seesaw_cf.longform.generation_settings import Generation, read_generation
from seesaw_cf.longform.instruments import find_annotator, find_raters, judge_of
from seesaw_cf.longform.leme_report import write_leme_report
from seesaw_cf.longform.passages import EditedCase, coupled_cases, open_ended_cases, read_records
from seesaw_cf.longform.rating import rate
from seesaw_cf.longform.report import write_longform_report
from seesaw_cf.longform.simple import simple_metrics
from seesaw_cf.longform.survey import survey_samples
from seesaw_cf.longform.writing import ApiWriter, LocalWriter, PassageRun, Writer
from seesaw_cf.making import make_editor, settings_of
from seesaw_cf.manifest import RunManifest, versions
from seesaw_cf.preflight import check_texts
from seesaw_cf.prescores import tokenizer_hash
from seesaw_cf.pretrained import EMBEDDED, load_model
from seesaw_cf.tables import write_table
from seesaw_cf.textfiles import read_json
from seesaw_cf.types import Case
from seesaw_cf.weights import fingerprint

__all__ = ["PRESETS", "LemeJob", "read_preset", "run_leme"]

OPEN_ENDED = "open_ended"
_TEMPLATE = 64  # tokens that a chat template may add to a prompt

_log = logging.getLogger(__name__)


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
        corpus, corpus_limit: Texts that the editors learn from, and how many of them; see `seesaw_cf.corpus.Corpus`.
        revision, dtype, device: How a local model is loaded.
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
    editor_config: Mapping[str, Mapping[str, Any]] | None = None
    corpus: str = ""
    corpus_limit: int = LIMIT
    revision: str | None = None
    dtype: str = "float32"
    device: str = "auto"
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
        if key not in known:
            raise unknown_name(f"option in {name}", key, known)
    options: dict[str, Any] = {k: tuple(value) if isinstance(value, list) else value for k, value in found.items()}
    return LemeJob(**options)


def run_leme(job: LemeJob, out: Path, *, progress: bool = True) -> str:
    """Runs a job into a folder, continuing it when it was interrupted.

    Args:
        job: What to do.
        out: The run folder: passages.parquet, edits.parquet, ratings.parquet, calls.parquet, annotations.parquet,
            report.json, report.md, and the papers' tables below tables/.
        progress: Show progress bars.

    Returns:
        The report as Markdown.

    Raises:
        SeesawError: Any of the package's errors; what was finished is kept.
    """
    job = replace(job, editors=planned(job.editors))
    texts = job.texts()
    _check_editors(job)
    judge = judge_of(job, out)
    annotator, raters = find_annotator(job, judge), find_raters(job, judge)
    rows = {config: read_records(job.data, config) for config in job.configs}
    records, cases = _cases(job, rows, lead=False)
    spare = spare_cases([row for found in rows.values() for row in found], records)
    writer, model = _writer(job, out, spare, [prompt.text for case in cases for prompt in case.prompts])
    if not model["chat"]:
        records, cases = _cases(job, rows, lead=True)
    manifest = _manifest(job, texts, records, model)
    passages = PassageRun(
        writer, job.editors, cases, manifest, out, texts.samples, texts.sampling, job.seed, job.block, progress
    ).run()
    coupled = [record for record in records if "subject_entity" in record]
    samples = survey_samples(passages, coupled)
    ratings = rate(out, raters, samples, manifest.identity)
    annotations = annotate(make_pairs(passages, coupled), annotator) if annotator is not None else None
    if annotations is not None:
        write_table(out / "annotations.parquet", annotations)
        write_text(out / "annotator.json", json.dumps(measured(job.annotator), indent=1) + "\n")
    factual = {record["case_id"] for record in coupled if record["kind"] == "factual"}
    simple = simple_metrics(samples)
    write_longform_report(out / "tables", passages, ratings, annotations, simple=simple, factual=factual)
    return write_leme_report(out)


def _cases(
    job: LemeJob, everything: Mapping[str, Sequence[dict[str, Any]]], lead: bool
) -> tuple[list[dict[str, Any]], list[EditedCase]]:
    """Records and what is to be written for them, config by config."""
    records: list[dict[str, Any]] = []
    cases: list[EditedCase] = []
    for config, rows in everything.items():
        found = (
            open_ended_cases(rows) if config == OPEN_ENDED
            else coupled_cases(rows, job.wording, lead=lead, relationship=job.relationship)
        )  # fmt: skip
        if job.limit is not None and job.limit < len(found):
            chosen = sorted(np.random.default_rng(job.seed).permutation(len(found))[: job.limit])
            found = [found[index] for index in chosen]
        kept = {case.case_id for case in found}
        if clash := kept & {case.case_id for case in cases}:
            raise RecordError(f"configs {job.configs}: case {min(clash)} is in two of them. Run them apart.")
        records += [row for row in rows if row["case_id"] in kept]
        cases += found
    if not cases:
        raise RecordError(f"{job.data} {job.configs}: nothing to write. Check --data, --configs and --limit.")
    return records, cases


def _check_editors(job: LemeJob) -> None:
    """Refuses names that would be found wrong only after texts were written."""
    if job.chat not in ("auto", "yes", "no"):
        raise unknown_name("value of chat", job.chat, ("auto", "yes", "no"))
    for name, fields in (job.editor_config or {}).items():
        known = {part for editor in job.editors for part in split_control(editor) if part}
        if name not in known:
            raise unknown_name("editor of this run", name, known)
        if not isinstance(fields, Mapping):
            raise RecordError(f'editor config: {name} is {fields!r:.80}, expected an object such as {{"layers": [3]}}.')
    for name in job.editors:
        # By name, not by import: the library must not depend on the editors.
        importlib.import_module("seesaw_cf.editors").load_editor(split_control(name)[0] or name)
        if job.base_url and name != "ike":
            raise EditError(f"{job.model}: editor {name!r} changes weights, which an API does not give. Use ike.")


def _writer(job: LemeJob, out: Path, spare: Sequence[Case], prompts: Sequence[str]) -> tuple[Writer, dict[str, Any]]:
    """The model that writes, and what the manifest says of it."""
    if job.base_url:
        api = OpenAIGenerator(job.base_url, job.model, job.key_env, chat=job.chat != "no")
        api.check()
        return ApiWriter(CachedGenerator(api, out / "cache")), {"id": api.name, "chat": api.chat}
    corpus = corpus_of(job.corpus, job.model, job.corpus_limit, job.seed)
    model, tokenizer = load_model(job.model, device=job.device, dtype=job.dtype, revision=job.revision)
    chat = job.chat == "yes" or (job.chat == "auto" and bool(tokenizer.chat_template))
    overrides = {name: dict(fields) for name, fields in (job.editor_config or {}).items()}
    if "ike" in job.editors:
        longest = max(len(tokenizer(prompt)["input_ids"]) for prompt in prompts)
        room = longest + _TEMPLATE + job.texts().sampling.max_new_tokens
        overrides["ike"] = {"room": room} | overrides.get("ike", {})
    editors = {name: make_editor(name, model, settings_of(name, overrides), corpus, spare) for name in job.editors}
    check_texts(editors, corpus is not None)
    pools = {name: getattr(editor, "pool", None) for name, editor in editors.items()}
    if pools.get("ike") == ():
        _log.warning(NONE_LEFT)
    facts = {
        "id": job.model,
        "revision": job.revision or getattr(model.config, "_commit_hash", None) or "",
        "dtype": job.dtype,
        "fingerprint": fingerprint(model),
        "tokenizer": tokenizer_hash(tokenizer),
        "chat": chat,
        "editors": {
            name: asdict(editor.config)
            | ({"demonstrations": pool_digest(pool)} if (pool := pools[name]) is not None else {})
            for name, editor in editors.items()
        },
    }
    facts |= corpus_facts(corpus)
    return LocalWriter(HFGenerator(model, tokenizer, chat, job.rows), editors), facts


def _manifest(
    job: LemeJob, texts: Generation, records: Sequence[Mapping[str, Any]], model: dict[str, Any]
) -> RunManifest:
    rows = json.dumps(list(records), sort_keys=True, ensure_ascii=False, default=str)
    written = {"generation": texts.name, "sampling": asdict(texts.sampling), "samples": texts.samples}
    written |= {"wording": job.wording, "relationship": job.relationship}
    shown = replace(job, base_url=public_url(job.base_url), judge_url=public_url(job.judge_url))
    batches = {"rows": job.rows, "block": job.block}
    return RunManifest(
        model={key: value for key, value in model.items() if key not in ("editors", "corpus")},
        editors=model.get("editors", dict.fromkeys(job.editors, "LEME, Appendix B.2")),
        data={
            "source": job.data,
            "configs": list(job.configs),
            "records": len(records),
            "sha256": sha256(rows.encode()).hexdigest(),
            **({"corpus": model["corpus"]} if "corpus" in model else {}),
        },
        protocol="leme",
        seed=job.seed,
        scoring={**written, **batches},
        job=json.loads(json.dumps(asdict(shown), default=str)),
        machine={"platform": platform.platform(), "threads": torch.get_num_threads()},
        versions=versions(),
    )
