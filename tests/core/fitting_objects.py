"""A model, editors, a run, scores and a crawl: what arguments are made of, each made once and only if it is needed."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import torch
from transformers import AutoConfig, AutoModelForSequenceClassification

from seesaw_cf.base.tables import read_table, write_table
from seesaw_cf.editors.alphaedit import AlphaEdit, AlphaEditConfig
from seesaw_cf.editors.controls import ControlConfig, IdentityControl, RandomControl, UnrelatedControl
from seesaw_cf.editors.emmet import EMMET, EMMETConfig
from seesaw_cf.editors.ft import FT, FTConfig
from seesaw_cf.editors.ike import IKE, IKEConfig
from seesaw_cf.editors.lora import LoRA, LoRAConfig
from seesaw_cf.editors.memit import MEMIT, MEMITConfig
from seesaw_cf.editors.mend.mend import MEND, MENDConfig
from seesaw_cf.editors.mend.training import MENDTraining
from seesaw_cf.editors.rome import ROME, ROMEConfig
from seesaw_cf.effects import prompt_effects
from seesaw_cf.generation import HFGenerator, Sampling
from seesaw_cf.logs import CompareSettings, LogComparison, compare_logs
from seesaw_cf.models.load import load_model, sample_corpus
from seesaw_cf.models.steering import SteeringVector
from seesaw_cf.models.weights import WeightDelta
from seesaw_cf.records import cases_to_table, write_config
from seesaw_cf.report import Results, read_results
from seesaw_cf.sharing import save_delta, to_peft
from seesaw_cf.texts.graph.crawl import crawl_identities
from seesaw_cf.texts.graph.identities import Identity as Group
from seesaw_cf.texts.graph.settings import CrawlSettings
from seesaw_cf.types import Case, EditRequest, Entity
from tests.longform.training_models import save_tiny_encoder
from tests.models.gguf_file import llama, write_gguf
from tests.report.runs import cases, property_cases, write_manifest, write_run
from tests.stereotypes.classifiers import save_classifier

REQUEST = EditRequest("{} is a citizen of", "Ada Test", "P27", Entity(None, "France"), Entity(None, "Japan"))
CONTROL = "identity(memit)"

SHORT: dict[str, Any] = {"layers": (1,), "steps": 2}
_VALUES: dict[str, Any] = {**SHORT, "context_templates": ("{}",)}
CONFIGS: dict[Any, Any] = {
    FT: FTConfig(**SHORT),
    ROME: ROMEConfig(**_VALUES),
    MEMIT: MEMITConfig(**_VALUES),
    EMMET: EMMETConfig(**_VALUES),
    AlphaEdit: AlphaEditConfig(**_VALUES),
    LoRA: LoRAConfig(**SHORT),
    IKE: IKEConfig(k=2),
    MEND: MENDConfig(layers=(1,), rank=4, training=MENDTraining(steps=1)),
    **dict.fromkeys((IdentityControl, RandomControl, UnrelatedControl), ControlConfig(editor="ft", settings=SHORT)),
}


@cache
def model() -> Any:
    return load_model("seesaw-tiny", device="cpu", progress=False)


@cache
def editor(kind: Any) -> Any:
    """An editor that edits in a moment, fitted."""
    return kind(CONFIGS[kind], corpus=sample_corpus(40)).fit(*model())


@cache
def delta() -> WeightDelta:
    found: WeightDelta = editor(LoRA).edit(*model(), [REQUEST])
    return found


@cache
def made_folder() -> Path:
    """Where files are made; gone when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="seesaw-surface-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def run_folder() -> Path:
    """A finished run."""
    folder, made, editors = made_folder(), [*made_cases(), *property_cases(1)], ("memit", CONTROL)
    write_manifest(write_run(folder / "run", made, editors), editors, len(made))
    save_delta(delta(), folder / "delta")
    SteeringVector(3, torch.ones(128)).save(folder / "steering")
    to_peft(delta(), model()[0], folder / "adapter")
    write_table(folder / "cases.parquet", cases_to_table(made))
    return folder


@cache
def item_log() -> Path:
    """A log of an evaluation, as a table."""
    file = made_folder() / "log.csv"
    file.write_text("item,acc\n" + "".join(f"{number},{number % 2}\n" for number in range(8)), encoding="utf-8")
    return file


@cache
def log_comparison() -> LogComparison:
    return compare_logs(item_log(), {"changed": item_log()}, CompareSettings(permutations=9))


@cache
def results() -> Results:
    return read_results(run_folder() / "run")


@cache
def scores() -> pa.Table:
    return read_table(run_folder() / "run" / "scores.parquet")


@cache
def crawl() -> Any:
    settings = CrawlSettings(triples=1, budget=4, sampling=Sampling(max_new_tokens=3))
    return crawl_identities(
        HFGenerator(*model()), [Group("Women", "gender identity")], settings, run_folder() / "crawl"
    )


@cache
def prompts() -> pd.DataFrame:
    return prompt_effects(scores())


@cache
def made_cases() -> list[Case]:
    return cases(("P27", "P101"), 3, 3)


@cache
def gguf_file() -> Path:
    """A small Llama model."""
    return write_gguf(llama(), made_folder() / "tiny.gguf")


@cache
def rater_folder() -> Path:
    """A survey rater with random weights."""
    folder = made_folder() / "rater"
    encoder = save_tiny_encoder(folder)
    shape = AutoConfig.from_pretrained(encoder, num_labels=1, survey_items=["fluency"])
    AutoModelForSequenceClassification.from_config(shape).save_pretrained(folder)
    return folder


@cache
def classifier_folder() -> str:
    """A classifier of claims with random weights."""
    return str(save_classifier(made_folder() / "classifier", ("supports", "neutral", "contradicts")))


@cache
def dataset_folder() -> Path:
    """A data set with one config, "x", and no card."""
    write_config(made_folder() / "dataset", "x", {"test": cases_to_table(made_cases())})
    return made_folder() / "dataset"
