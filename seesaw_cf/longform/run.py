"""LEME from end to end: passages before and after edits, ratings, annotations, a report."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from seesaw_cf.corpus import LIMIT, corpus_facts, corpus_of
from seesaw_cf.errors import RecordError, StorageError, unknown_name
from seesaw_cf.files import safe_name
from seesaw_cf.generation.api import OpenAIGenerator, public_url
from seesaw_cf.generation.cached import CachedGenerator
from seesaw_cf.generation.hf import HFGenerator
from seesaw_cf.generation.types import Sampling
from seesaw_cf.job import make_editor
from seesaw_cf.longform.annotate import annotate
from seesaw_cf.longform.annotators import load_annotator
from seesaw_cf.longform.claims import make_pairs
from seesaw_cf.longform.instruments import find_raters
from seesaw_cf.longform.leme_report import write_leme_report
from seesaw_cf.longform.passages import EditedCase, coupled_cases, open_ended_cases, read_records
from seesaw_cf.longform.report import write_longform_report
from seesaw_cf.longform.simple import simple_metrics
from seesaw_cf.longform.survey import CALLS, Rater, survey, survey_samples
from seesaw_cf.longform.tables import RATINGS
from seesaw_cf.longform.writing import ApiWriter, LocalWriter, PassageRun, Writer, is_final
from seesaw_cf.manifest import RunManifest, versions
from seesaw_cf.prescores import tokenizer_hash
from seesaw_cf.pretrained import load_model
from seesaw_cf.tables import read_table, write_table
from seesaw_cf.weights import fingerprint

__all__ = ["PRESETS", "LemeJob", "read_object", "read_preset", "run_leme"]

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
        samples: Texts for each prompt.
        max_new_tokens, temperature, top_k, top_p: How texts are drawn, as published.
        chat: Ask through the chat template: "auto" = when the tokenizer has one, "yes" or "no". Models that are not
            asked so are given the entity's name as the beginning of the passage.
        raters: "lexical", "minilm", or folders of trained raters.
        annotator: "lexical", "nli:MODEL", or the folder of a trained annotator; "" for none.
        judge: A model that rates: a Hub id or folder, with `judge_url` the name of a model there; "" for none.
        judge_url, judge_key_env: Server of the judge and the variable with its key ("" = a server without keys).
        judge_shots: Rated examples shown to the judge, from `judge_examples`.
        judge_examples: Folder with passages.parquet and ratings.parquet that people rated.
        judge_tries: Times one question is asked at the most.
        base_url, key_env: Server that writes, and the variable with its key.
        editor_config: Editor name -> fields of its config to change.
        corpus, corpus_limit: Texts that the editors learn from, and how many of them; see `seesaw_cf.corpus.Corpus`.
        revision, dtype, device: How a local model is loaded.
        rows: Texts that are written at once.
        block: Cases that are edited and written together; also what is redone after a kill.
        seed: Of sampling cases and of every text.
    """

    model: str
    editors: tuple[str, ...] = ("memit",)
    data: str = "sample"
    configs: tuple[str, ...] = ("coupled_counterfact",)
    limit: int | None = None
    wording: str = "essay"
    samples: int = 1
    max_new_tokens: int = 200
    temperature: float = 0.9
    top_k: int = 50
    top_p: float = 0.95
    chat: str = "auto"
    raters: tuple[str, ...] = ("lexical", "minilm")
    annotator: str = "lexical"
    judge: str = ""
    judge_url: str = ""
    judge_key_env: str = "OPENAI_API_KEY"
    judge_shots: int = 0
    judge_examples: str = ""
    judge_tries: int = 3
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

    @property
    def sampling(self) -> Sampling:
        """How texts are drawn."""
        return Sampling(self.max_new_tokens, self.temperature, self.top_k, self.top_p)


# "sample": everything that comes with the package, within minutes on a CPU.
PRESETS: dict[str, LemeJob] = {
    "sample": LemeJob("seesaw-tiny", configs=("coupled_counterfact", OPEN_ENDED), limit=24, max_new_tokens=80),
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
    found, known = read_object(Path(name)), asdict(PRESETS["sample"])
    if "model" not in found:
        raise RecordError(f'{name}: expected options with at least "model", got {sorted(found)}.')
    for key in found:
        if key not in known:
            raise unknown_name(f"option in {name}", key, known)
    options: dict[str, Any] = {k: tuple(value) if isinstance(value, list) else value for k, value in found.items()}
    return LemeJob(**options)


def read_object(path: Path) -> dict[str, Any]:
    """A JSON object from a file.

    Raises:
        RecordError: The file is something else.
        StorageError: It cannot be read.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error.strerror}). Check the path.") from error
    except ValueError as error:
        raise RecordError(f"{path}: not JSON ({error}). Expected an object.") from error
    if not isinstance(found, dict):
        raise RecordError(f"{path}: expected a JSON object, got {found!r:.80}.")
    return found


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
    raters = find_raters(job, out)
    annotator = load_annotator(job.annotator) if job.annotator else None
    writer, model = _writer(job, out)
    records, cases = _cases(job, lead=not model["chat"])
    manifest = _manifest(job, records, model)
    passages = PassageRun(
        writer, job.editors, cases, manifest, out, job.samples, job.sampling, job.seed, job.block, progress
    ).run()
    coupled = [record for record in records if "subject_entity" in record]
    samples = survey_samples(passages, coupled)
    rated = [_rated(out, rater, samples, manifest.identity) for rater in raters]
    _merge(out / "ratings.parquet", [out / "ratings" / file for file in rated], RATINGS)
    _merge(out / "calls.parquet", [out / "calls" / file for file in rated], CALLS)
    ratings = read_table(out / "ratings.parquet", RATINGS)
    annotations = annotate(make_pairs(passages, coupled), annotator) if annotator is not None else None
    if annotations is not None:
        write_table(out / "annotations.parquet", annotations)
    factual = {record["case_id"] for record in coupled if record["kind"] == "factual"}
    simple = simple_metrics(samples)
    write_longform_report(out / "tables", passages, ratings, annotations, simple=simple, factual=factual)
    return write_leme_report(out)


def _cases(job: LemeJob, lead: bool) -> tuple[list[dict[str, Any]], list[EditedCase]]:
    """Records and what is to be written for them, config by config."""
    records: list[dict[str, Any]] = []
    cases: list[EditedCase] = []
    for config in job.configs:
        rows = read_records(job.data, config)
        found = open_ended_cases(rows) if config == OPEN_ENDED else coupled_cases(rows, job.wording, lead=lead)
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


def _writer(job: LemeJob, out: Path) -> tuple[Writer, dict[str, Any]]:
    """The model that writes, and what the manifest says of it."""
    if job.chat not in ("auto", "yes", "no"):
        raise unknown_name("value of chat", job.chat, ("auto", "yes", "no"))
    if job.base_url:
        api = OpenAIGenerator(job.base_url, job.model, job.key_env, chat=job.chat != "no")
        return ApiWriter(CachedGenerator(api, out / "cache")), {"id": api.name, "chat": api.chat}
    corpus = corpus_of(job.corpus, job.model, job.corpus_limit, job.seed)
    model, tokenizer = load_model(job.model, device=job.device, dtype=job.dtype, revision=job.revision)
    chat = job.chat == "yes" or (job.chat == "auto" and bool(tokenizer.chat_template))
    overrides = job.editor_config or {}
    for name in overrides:
        if name not in job.editors:
            raise unknown_name("editor of this run", name, job.editors)
    editors = {name: make_editor(name, model, overrides.get(name, {}), corpus) for name in job.editors}
    facts = {
        "id": job.model,
        "revision": job.revision or getattr(model.config, "_commit_hash", None) or "",
        "dtype": job.dtype,
        "fingerprint": fingerprint(model),
        "tokenizer": tokenizer_hash(tokenizer),
        "chat": chat,
        "editors": {name: asdict(editor.config) for name, editor in editors.items()},
    }
    facts |= corpus_facts(corpus)
    return LocalWriter(HFGenerator(model, tokenizer, chat, job.rows), editors), facts


def _manifest(job: LemeJob, records: Sequence[Mapping[str, Any]], model: dict[str, Any]) -> RunManifest:
    rows = json.dumps(list(records), sort_keys=True, ensure_ascii=False, default=str)
    written = {"sampling": asdict(job.sampling), "samples": job.samples, "wording": job.wording}
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


def _rated(out: Path, rater: Rater, samples: Sequence[Any], run: str) -> str:
    """Rates with one rater unless that is done; the name of its two files. A server that gave up is asked again."""
    name = f"{safe_name(rater.name)}-{sha256(f'{run} {rater.name}'.encode()).hexdigest()[:12]}.parquet"
    if not is_final(out / "ratings" / name):
        ratings, calls = survey(samples, rater)
        write_table(out / "calls" / name, calls)
        write_table(out / "ratings" / name, ratings)
    return name


def _merge(file: Path, parts: Sequence[Path], schema: Any) -> None:
    tables = [read_table(part, schema) for part in parts]
    write_table(file, pa.concat_tables(tables) if tables else schema.empty_table())
