"""Texts from end to end: passages before and after edits, and what judges and classifiers make of them."""

from __future__ import annotations

import json
import logging
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc
import torch
from transformers import AutoConfig

from seesaw_cf.base.errors import EditError, RecordError, hide_secrets
from seesaw_cf.base.files import dump_json
from seesaw_cf.base.system import versions
from seesaw_cf.base.tables import read_table, write_table
from seesaw_cf.base.text import read_json
from seesaw_cf.base.types import Case, JsonObject
from seesaw_cf.editors import load_editor
from seesaw_cf.editors.control_names import planned, split_control
from seesaw_cf.effects.free_answers import ANSWERS as FREE_ANSWERS
from seesaw_cf.effects.instruments import read_instruments
from seesaw_cf.generation.api import OpenAIGenerator
from seesaw_cf.generation.hf import HFGenerator
from seesaw_cf.generation.types import CachedGenerator, Generator
from seesaw_cf.models.corpus import corpus_facts, corpus_of
from seesaw_cf.models.editor import Editor, LearnsFromCases
from seesaw_cf.models.identity import model_facts
from seesaw_cf.models.load import load_model
from seesaw_cf.models.names import EMBEDDED
from seesaw_cf.run.make_editors import check_texts, editor_settings, make_editors, moments_facts
from seesaw_cf.run.manifest import RunManifest, public_options
from seesaw_cf.texts import RATED, Generation, RateJob, WriteJob
from seesaw_cf.texts.answers import ANSWERS, answer_questions
from seesaw_cf.texts.claims import CLAIMS, Lexical, answered_claims, claim_questions
from seesaw_cf.texts.classify import load_classifier, load_rater, loading
from seesaw_cf.texts.judge import Instrument, Judge, Rater, TextQuestion, digest, rate
from seesaw_cf.texts.pairs import flaw_questions, flaws, sample_pairs
from seesaw_cf.texts.records import LongformRecord, cases_of, read_records, spare_cases, usual_configs
from seesaw_cf.texts.released import read_pairs
from seesaw_cf.texts.survey import answered_questions, survey, survey_questions, survey_samples
from seesaw_cf.texts.tables import TABLES, RunTexts
from seesaw_cf.texts.write import PassageRun, with_leads

_TEMPLATE = 64  # tokens that a chat template may add to a prompt
_NO_DEMONSTRATIONS = (
    "IKE was given no demonstrations: a text is written about the subject of every record. Its edits are zero-shot. "
    "Keep some records back with --limit."
)
_log = logging.getLogger(__name__)


def run_write(job: WriteJob, out: Path, *, progress: bool = True, pictures: bool = False) -> str:
    """Write passages before and after edits into a run folder, continuing it when it was interrupted; rate and report.

    Args:
        job: What to do.
        out: The run folder: passages.parquet and edits.parquet, with `rate` what `run_rate` writes, and with `report`
            the folder report.
        progress: Show progress bars.
        pictures: See `seesaw_cf.texts.report.report_run`.

    Returns:
        Plain text for a terminal.

    Raises:
        SeesawError: Any of the package's errors; what was finished is kept.
    """
    job = replace(job, editors=planned(job.editors), configs=job.configs or usual_configs(job.data))
    texts, server = job.texts(), OpenAIGenerator(job.base_url, job.model, job.key_env, chat=True)
    for name in job.editors:
        load_editor(split_control(name)[0] or name)
        if job.base_url and name != "ike":
            raise EditError(f"{job.model}: editor {name!r} changes weights, which an API does not give. Use ike.")
    if job.base_url:
        server.check()
    rating = RateJob(out, raters=job.rate, device=job.device, dtype=job.dtype, seed=job.seed) if job.rate else None
    raters = [_rater(rating, name, out) for name in rating.raters] if rating else []
    rows = read_records(job.data, job.configs)
    records, cases = cases_of(rows, job.limit, job.seed)
    generator: Generator = CachedGenerator(server, out / "cache")
    editors: Mapping[str, Editor | None] = dict.fromkeys(job.editors)
    facts: JsonObject = {"id": server.name, "chat": server.chat}
    if not job.base_url:
        spare = spare_cases([row for group in rows.values() for row in group], records)
        generator, editors, facts = _local_model(job, spare, [prompt.text for case in cases for prompt in case.prompts])
    if not facts["chat"]:
        cases = [with_leads(case) for case in cases]
    manifest = _manifest(job, texts, records, facts)
    PassageRun(generator, editors, cases, manifest, out, texts.samples, texts.sampling, job.block, progress).run()
    lines = [f"{len(cases)} edits by {', '.join(job.editors)}: passages.parquet and edits.parquet are in {out}."]
    if rating:
        lines.append(run_rate(rating, out, raters))
    if job.report:
        from seesaw_cf.texts.report import report_run

        lines.append(report_run(out, pictures=pictures))
    return "\n".join(lines)


def _local_model(
    job: WriteJob, spare: Sequence[Case], prompts: Sequence[str]
) -> tuple[HFGenerator, dict[str, Editor | None], JsonObject]:
    """Return the model that writes, its editors, not fitted yet, and its entry in the manifest."""
    corpus = corpus_of(job.corpus, job.model, job.corpus_limit, job.seed)
    overrides = editor_settings(job.editor_config, job.editors, job.moments, job.seed)
    if corpus is None:
        check_texts(job.editors, overrides)
    how = {name: getattr(job, name) for name in ("device", "dtype", "revision", "trust_remote_code")}
    model, tokenizer = load_model(job.model, **how)
    chat = bool(tokenizer.chat_template)
    if "ike" in job.editors:
        longest = max(len(tokenizer(prompt)["input_ids"]) for prompt in prompts)
        room = longest + _TEMPLATE + job.texts().sampling.max_new_tokens
        overrides["ike"] = {"room": room} | overrides.get("ike", {})
    editors = make_editors(job.editors, model, overrides, corpus, spare)
    configs = {}
    for name, editor in editors.items():
        configs[name] = asdict(editor.config)
        if isinstance(editor, LearnsFromCases):
            pool = json.dumps([example.text for example in editor.pool])
            configs[name]["demonstrations"] = sha256(pool.encode()).hexdigest()[:16]
            if name == "ike" and not editor.pool:
                _log.warning(_NO_DEMONSTRATIONS)
    facts = {**model_facts(job.model, model, tokenizer, job.revision, job.dtype), "chat": chat, "editors": configs}
    facts |= {**corpus_facts(corpus), **moments_facts(overrides, model, tokenizer)}
    return HFGenerator(model, tokenizer, chat), dict(editors), facts


def _manifest(
    job: WriteJob, texts: Generation, records: Sequence[LongformRecord], facts: Mapping[str, object]
) -> RunManifest:
    rows = json.dumps(list(records), sort_keys=True, ensure_ascii=False, default=str).encode()
    data = {"source": hide_secrets(job.data), "configs": list(job.configs), "records": len(records)}
    own = {"generation": texts.name, "sampling": asdict(texts.sampling), "samples": texts.samples}
    return RunManifest(
        model={key: value for key, value in facts.items() if key not in ("editors", "corpus", "moments")},
        editors=cast(JsonObject, facts.get("editors", dict.fromkeys(job.editors, "LEME, Appendix B.2"))),
        data=data
        | {"sha256": sha256(rows).hexdigest()}
        | {name: facts[name] for name in ("corpus", "moments") if name in facts},
        protocol="leme",
        seed=job.seed,
        settings=own | {"wording": "essay", "block": job.block},
        job=public_options(job),
        machine={"platform": platform.platform(), "threads": torch.get_num_threads()},
        versions=versions(),
    )


_TABLE = {"survey": "ratings", "claims": "annotations", "flaws": "flaws", "answers": "judged"}


def _rater(job: RateJob, name: str, out: Path) -> Rater:
    """Return a rater of a job, loaded first, so that a wrong name costs nothing; `out` keeps replies of judges."""
    if name == Lexical.name:
        return Lexical()
    if job.base_url:
        server = OpenAIGenerator(job.base_url, name, job.key_env, chat=True)
        server.check()
        return _judge(job, server, out)
    if name not in EMBEDDED:
        with loading("rater", name, "'lexical', a classifier or a language model, or --base-url with a name there"):
            config = AutoConfig.from_pretrained(name)
        if any("SequenceClassification" in kind for kind in config.architectures or ()):
            device = "cpu" if job.device == "auto" else job.device
            return load_rater(name, device) if hasattr(config, "survey_items") else load_classifier(name, device=device)
    model, tokenizer = load_model(name, device=job.device, dtype=job.dtype)
    return _judge(job, HFGenerator(model, tokenizer, chat=bool(tokenizer.chat_template)), out)


def _judge(job: RateJob, generator: Generator, out: Path) -> Judge:
    examples = _examples(job.examples) if job.shots and job.examples else {}
    learned = frozenset(digest(text) for own in examples.values() for question, _ in own for text in question.texts)
    wording, store = read_instruments(job.wording).sha256, CachedGenerator(generator, out / "cache")
    return Judge(store, job.shots, examples, learned, job.temperature, seed=job.seed, wording=wording)


def _examples(places: Sequence[Path]) -> dict[str, list[tuple[TextQuestion, str]]]:
    """Return questions that people answered: the first place is their run, the others have their tables."""
    examples: dict[str, list[tuple[TextQuestion, str]]] = {"survey": [], "claims": []}
    texts, *answers = map(RunTexts, places)
    for own in answers:
        if (ratings := own.table("ratings")) is not None:
            rated = answered_questions(survey_samples(*texts.couples), ratings)
            examples["survey"] += [(question, f" Rating: {rating}") for question, rating in rated]
        if (labels := own.table("annotations")) is not None:
            labelled = answered_claims(claim_questions(*texts.couples), labels)
            examples["claims"] += [(question, f"Label: {judgement.label}") for question, judgement in labelled]
    return examples


def run_rate(job: RateJob, out: Path | None = None, raters: Sequence[Rater] | None = None) -> str:
    """Rate the texts of a finished run: its survey, claims and flaws.

    Args:
        job: What is rated, and how.
        out: Folder of the tables: ratings.parquet, annotations.parquet, flaws.parquet, swapped.parquet and
            calls.parquet; the run's own when None. Rows of other raters that are there stay.
        raters: Those of the job, where they are loaded already.

    Returns:
        One line per table.

    Raises:
        SeesawError: Any of the package's errors; every reply is kept and not asked for again.
    """
    file = job.run if job.run.is_file() else None
    if file and out is None:
        raise RecordError(f"{file}: pairs from a file have no run folder. Say where the tables go with --out.")
    out = out or job.run
    raters = raters or [_rater(job, name, out) for name in job.raters]
    asked, again = _asked(job)
    tables: dict[str, list[pa.Table]] = {name: [] for name in TABLES}
    for rater in raters:
        able = [kind for kind in rater.kinds if kind in (job.what or RATED) and kind in asked]
        if not able:
            raise RecordError(
                f"{job.run}: nothing that {rater.name!r} can rate. It does {', '.join(rater.kinds)}; "
                f"the run has texts for {', '.join(asked) or 'nothing'}."
            )
        for kind in able:
            rows, calls = rate(*asked[kind], rater)
            first = rows.num_rows - (again if kind == "flaws" else 0)
            parts = {_TABLE[kind]: rows.slice(0, first), "swapped": rows.slice(first), "calls": calls}
            for name, part in parts.items():
                tables[name] += [part] if part.num_rows else []
            if kind == "claims":
                _write_facts(out, rater)
    return "\n".join(_write(out / f"{name}.parquet", own, TABLES[name]) for name, own in tables.items() if own)


def _asked(job: RateJob) -> tuple[dict[str, tuple[Instrument, list[TextQuestion]]], int]:
    """Return what can be rated, by kind, and how many of the questions about flaws are repeated ones."""
    run, words, again = RunTexts(job.run), read_instruments(job.wording), 0
    if (written := job.run / "answers.parquet").exists():
        return {"answers": (ANSWERS, answer_questions(read_table(written, FREE_ANSWERS), words))}, 0
    asked: dict[str, tuple[Instrument, list[TextQuestion]]] = {}
    if not job.run.is_file() and run.coupled:
        asked["survey"] = survey(words), survey_questions(survey_samples(*run.couples), words)
        asked["claims"] = CLAIMS, claim_questions(*run.couples, words)
    if pairs := read_pairs(job.run if job.run.is_file() else job.run / "passages.parquet")[0]:
        drawn = sample_pairs(pairs, job.limit, job.seed)
        once, swapped = flaw_questions(drawn, words, job.seed, job.duplicates, job.protocol)
        asked["flaws"], again = (flaws(job.protocol), once + swapped), len(swapped)
    return asked, again


def _write_facts(out: Path, rater: Rater) -> None:
    """Keep the name of a classifier, and the report of its training, empty without one."""
    file = Path(rater.source) / "report.json"
    report = read_json(file, any_number=True) if rater.source and file.is_file() else {}
    dump_json(out / "annotator.json", {"name": rater.name, "report": report})


def _write(file: Path, parts: Sequence[pa.Table], schema: pa.Schema) -> str:
    """Write rows beside those of other raters that are there."""
    column = "annotator" if "annotator" in schema.names else "rater"
    table = pa.concat_tables(parts)
    if file.exists():
        before = read_table(file, schema)
        names = pa.array(sorted(set(table[column].to_pylist())), pa.string())
        table = pa.concat_tables([before.filter(pc.invert(pc.is_in(before[column], names))), table])
    write_table(file, table)
    statuses = table["status"].to_pylist()
    return f"{file}: {table.num_rows} rows, {len(statuses) - statuses.count('ok')} without an answer."
