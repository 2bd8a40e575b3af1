"""Score bias benchmarks by a model and its changed versions, and compare what they answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.errors import RecordError
from seesaw_cf.logs.bias import GROUPS, METRICS, authors_scores, bias_clozes, write_bias_log
from seesaw_cf.logs.bias_items import BiasItem, read_bias_items
from seesaw_cf.logs.comparison import LogComparison, compare_logs
from seesaw_cf.logs.settings import CompareSettings
from seesaw_cf.report.table import Column, Table
from seesaw_cf.run.given import examined, find_all, read_all
from seesaw_cf.run.jobs import Job
from seesaw_cf.scoring.choose import make_scorer

_NO_START = "Sentence:"  # for tokenizers without a token that begins a text


@dataclass(frozen=True, slots=True)
class BiasJob:
    """What is scored.

    Attributes:
        items: Of all benchmarks.
        changed: "NAME=WHERE" of each changed model: checkpoint, adapter, delta, steering vector or GGUF file.
        out: Folder of the logs, one per model.
    """

    items: tuple[BiasItem, ...]
    changed: tuple[str, ...]
    out: Path


def bias_items(benchmarks: Sequence[str]) -> tuple[BiasItem, ...]:
    """Return the items of benchmarks.

    Args:
        benchmarks: "NAME=WHERE" each.

    Raises:
        RecordError: Not NAME=WHERE.
        SeesawError: See `read_bias_items`.
    """
    items: list[BiasItem] = []
    for word in benchmarks:
        name, is_, where = word.partition("=")
        if not is_ or not where:
            raise RecordError(f"--benchmark: got {word!r}, expected NAME=WHERE, such as bbq=FOLDER.")
        items += read_bias_items(name, where)
    return tuple(items)


_MEASURED = 24  # questions on which the noise of a served model or of a narrower dtype is measured


def bias_comparison(job: BiasJob, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> LogComparison:
    """Score every model, write `NAME.parquet` of each and `base.parquet`, and compare them.

    Args:
        job: What is scored.
        model: The base; as before afterwards.
        tokenizer: Of the base.

    Raises:
        RecordError: A changed model has the name of the base.
        SeesawError: A changed model cannot be read, or a file cannot be written.
    """
    start = str(tokenizer.bos_token or tokenizer.eos_token or _NO_START)
    clozes = bias_clozes(job.items, start)
    audited = Job("base", changed=job.changed, controls=("none",))
    found = find_all(audited, ())
    if "base" in found:
        raise RecordError("--changed: the name 'base' is that of the model before the change. Choose another.")
    models, _ = read_all(found, model, tokenizer, audited, {}, examined(()), clozes[:_MEASURED])
    scorer = make_scorer(model, tokenizer)[0]
    files = {"base": job.out / "base.parquet"} | {name: job.out / f"{name}.parquet" for name in models}
    write_bias_log(files["base"], job.items, scorer.score(clozes))
    for name, given in models.items():
        write_bias_log(files[name], job.items, given.score(model, scorer, clozes))
    settings = CompareSettings(groups=GROUPS, metrics=METRICS)
    comparison = compare_logs(files["base"], {name: files[name] for name in models}, settings)
    return replace(comparison, more_tables=(_authors_table(files),))


def _authors_table(files: dict[str, Path]) -> Table:
    scores = {name: authors_scores(pd.read_parquet(file)) for name, file in files.items()}
    names = dict.fromkeys(name for own in scores.values() for name in own)
    rows = [{"score": name} | {model: own.get(name) for model, own in scores.items()} for name in names]
    about = (
        "As the authors of the benchmarks define them, times 100, of each model alone. The tables above test changes "
        "of the parts that are means over items."
    )
    columns = [Column("score", words=True), *(Column(model, digits=1) for model in files)]
    return Table("authors_scores", "The authors' scores", about, columns, pd.DataFrame(rows))
