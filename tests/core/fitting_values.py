"""Something fitting for every argument of what the package exports."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import torch

from seesaw_cf.api import Audit
from seesaw_cf.editors.ft import FTConfig
from seesaw_cf.editors.locate.positions import prepare
from seesaw_cf.editors.memit import MEMIT, MEMITConfig
from seesaw_cf.effects import AccuracyColumns, AuditSettings, BiasColumns, SuccessColumns, audit
from seesaw_cf.effects.leme_auto import PassageColumns
from seesaw_cf.generation import Ask, CachedGenerator, HFGenerator, OpenAIGenerator, Sampling, ServedScorer
from seesaw_cf.logs import CompareSettings
from seesaw_cf.models.architectures import ARCHITECTURES, model_parts
from seesaw_cf.models.corpus import Corpus
from seesaw_cf.models.steering import SteeringVector
from seesaw_cf.models.weights import LowRank, WeightDelta
from seesaw_cf.records import cases_to_table
from seesaw_cf.records.relations import TEMPLATES
from seesaw_cf.scoring import EditedScorer, HFScorer, TrieScorer
from seesaw_cf.scoring.encode import encode_cloze
from seesaw_cf.sharing import Result, ShareOptions
from seesaw_cf.stats import Components, Crossing, Design
from seesaw_cf.stats.multiple import Adjusted
from seesaw_cf.texts.annotate.by_name import load_annotator
from seesaw_cf.texts.annotate.embed import Embedder, TextVectors
from seesaw_cf.texts.graph.identities import Identity as Group
from seesaw_cf.texts.graph.settings import CrawlSettings
from seesaw_cf.texts.tables import PASSAGES
from seesaw_cf.types import Cloze, Estimate
from tests.conftest import ROOT
from tests.core.fitting_objects import (
    CONFIGS,
    CONTROL,
    REQUEST,
    SHORT,
    classifier_folder,
    crawl,
    dataset_folder,
    delta,
    editor,
    gguf_file,
    item_log,
    log_comparison,
    made_cases,
    model,
    prompts,
    rater_folder,
    results,
    run_folder,
    scores,
)
from tests.core.public_surface import needed, surface
from tests.longform.training_models import save_tiny_encoder
from tests.records import samples
from tests.stereotypes.classifiers import KnownRegard

Made = Callable[[], Any]
N = 6

CLOZES = [Cloze("Ada Test is a citizen of", "France"), Cloze("Ada Test is a citizen of", "Japan")]
ASKS = [Ask("Ada Test is", 1)]
HERE = Path("made")
ESTIMATE = Estimate(1.0, 0.0, 2.0, 0.5, n=6, clusters={"edit": 3}, method="by hand")

COMPARED = ("base", "differences", "answers", "counts", "clusters", "settings")

# Argument -> something fitting, made when it is first needed. "FUNCTION:argument" where one name means several things.
FITTING: dict[str, Made] = {
    "candidates": lambda: [["x", "y"]],
    **dict.fromkeys(("case:case_weights", "cluster", "edit"), lambda: np.arange(N) // 2),
    **dict.fromkeys(("folder:read_results", "folder:run_", "run", "run_folder"), lambda: run_folder() / "run"),
    "pre:AccuracyColumns": lambda: [[-1.0, -2.0]],
    "post:AccuracyColumns": lambda: [[-1.0, -2.0]],
    "test:SuccessColumns": lambda: ["rewrite"],
    **dict.fromkeys(
        [f"{name}:SuccessColumns" for name in ("tokens_right", "tokens_kept", "n_tokens", "generated")], lambda: [1.0]
    ),
    "control": lambda: CONTROL,
    "values:clustered_share": lambda: np.linspace(0, 1, N),
    "weights:clustered_share": lambda: np.full(N, 1 / N),
    "again": scores,
    "kind:Demonstration": lambda: "copy",
    "candidate": lambda: TextVectors(np.zeros(2), np.eye(2)),
    "reference": lambda: TextVectors(np.zeros(2), np.eye(2)),
    "embedder": lambda: Embedder(str(save_tiny_encoder(run_folder()))),
    "row:ModelParts": lambda: ARCHITECTURES["llama"],
    "layers:Config": lambda: (1,),
    "score:Results": lambda: "summed",
    "floor": lambda: results().floor,
    "files": tuple,
    "id:Relation": lambda: "P27",
    "items": lambda: [encode_cloze(model()[1], CLOZES[0])],
    "label:Verdict": lambda: "equivalent",
    "crawl": crawl,
    "family": lambda: ["x"],
    "annotator": lambda: load_annotator(classifier_folder()),
    "ask": lambda: ASKS[0],
    "asks": lambda: ASKS,
    "axis": lambda: "gender",
    "base_url": lambda: "http://127.0.0.1:9/v1",
    "case": lambda: made_cases()[0],
    "cases": made_cases,
    "cell": lambda: "a;b",
    "cloze": lambda: CLOZES[0],
    "clozes": lambda: CLOZES,
    "clusters": lambda: {"edit": np.arange(N) // 2},
    "columns:accuracy_of_columns": lambda: built(AccuracyColumns),
    "columns:bias_of_columns": lambda: built(BiasColumns),
    "columns:edit_success": lambda: built(SuccessColumns),
    "columns:leme_auto": lambda: built(PassageColumns),
    **dict.fromkeys(("columns:nli_measures", "columns:bertscore_measures"), lambda: vars_of(built(PassageColumns))),
    "measures:leme_auto.correlations": lambda: {"ngram_entropy": [1.0]},
    "ratings:leme_auto.correlations": lambda: {"fluency": [7.0]},
    "values:AutoMeasures": lambda: {"x": [1.0]},
    **dict.fromkeys(("candidate:rouge1", "reference:rouge1"), lambda: "x"),
    "claim_kind": lambda: ["new_fact"],
    "label:leme_annotation": lambda: ["supports"],
    "item:survey_of_columns": lambda: ["fluency"],
    "rating:survey_of_columns": lambda: [3.0],
    "items:MethodRatings": lambda: plain("Mapping[str, MeanRatings]"),
    "identities:ScoredIdentities": lambda: plain("Mapping[str, IdentityScores]"),
    "identities:TopicFigures": lambda: plain("Mapping[str, IdentityTopics]"),
    "regard:overall_regard": lambda: ["positive"],
    "attack": lambda: [0.5],
    "texts:generation_quality": lambda: [["one text"]],
    "words:label_topics": lambda: {0: ["religion"]},
    "rows:as_ratings": lambda: [[1.0, 2.0]],
    "table:agreement": lambda: np.eye(3, 2),
    "file:gguf": gguf_file,
    "source:convert_gguf": lambda: {"file": "tiny.gguf"},
    "file:PackagedModel": lambda: "x.gguf",
    "components": lambda: Components(0.1, 0.1, 0.1),
    "config": lambda: "cross_subject",
    "config:editors": lambda: FTConfig(**SHORT),
    **{f"config:editors.{kind.__name__}": partial(CONFIGS.__getitem__, kind) for kind in CONFIGS},
    "configs": lambda: {"x": "about x"},
    "corpus": lambda: ["one text", "two texts"],
    "delta": delta,
    "delta:stats": lambda: 0.1,
    "draws:stats.interval": lambda: np.arange(20.0),
    "draws": lambda: 20,
    "estimate": lambda: ESTIMATE,
    "folder": lambda: HERE,
    "folder:load_rater": rater_folder,
    "folder:write_card": dataset_folder,
    "folder:from_peft": lambda: run_folder() / "adapter",
    "folder:load": lambda: run_folder() / "delta",
    "folder:load_steering": lambda: run_folder() / "steering",
    "generator": lambda: HFGenerator(*model()),
    "identities": lambda: [Group("Women", "gender identity")],
    "jobs": lambda: [(WeightDelta(), CLOZES), (delta(), CLOZES)],
    "jobs:score_encoded": lambda: [(delta(), [encode_cloze(model()[1], CLOZES[0])])],
    "jobs:generate_each": lambda: [(delta(), ASKS)],
    "left": lambda: torch.ones(2, 1),
    "member": lambda: np.arange(N) % 2 == 0,
    "model": lambda: model()[0],
    "model:OpenAIGenerator": lambda: "tiny",
    "model:corpus": lambda: "seesaw-tiny",
    "name_or_path": lambda: "seesaw-tiny",
    "name:dense": lambda: next(iter(delta().updates)),
    "name:protected_class": lambda: "religion",
    "name:model_path": lambda: "seesaw-tiny",
    "name:load_annotator": lambda: "lexical",
    "name:editors": lambda: "ft",
    "new": lambda: [-1.0, -2.0],
    "options:sharing.prepare_repo": lambda: ShareOptions(base_model="ada/tiny"),
    "p_values": lambda: [0.01, 0.5],
    "parts": lambda: [np.full(N, 1 / N)],
    "path": lambda: run_folder() / "cases.parquet",
    "path:write": lambda: HERE / "file",
    "paths": lambda: [run_folder() / "cases.parquet"],
    "parts:changes": lambda: model_parts(model()[0]),
    "keys:solve": lambda: [torch.ones(editor(MEMIT).fitted.moments[1].matrix.shape[0], 1, dtype=torch.float64)],
    "layer:solve": lambda: 1,
    "person": lambda: np.arange(N) % 3,
    "probabilities": lambda: np.full((2, 3), 1 / 3),
    "prompt:types.EditRequest": lambda: REQUEST.prompt,
    "prompts": prompts,
    "record": lambda: samples.COUNTERFACT,
    "regard:texts.graph.score_crawl": lambda: KnownRegard(lambda text: "neutral"),
    "repo": lambda: "ada/edit",
    "requests": lambda: [REQUEST],
    "results:terminal": results,
    "results:Audit": results,
    **dict.fromkeys(("model:audit", "base:compare"), lambda: "seesaw-tiny"),
    "changed:compare": lambda: "nowhere",
    "table:logs.LogComparison.to_latex": lambda: "scores",
    **dict.fromkeys(("base:compare_logs", "changed:compare_logs", "path:read_log"), item_log),
    **{f"{name}:LogComparison": partial(getattr, log_comparison(), name) for name in COMPARED},
    "folder:save": lambda: HERE / "audit",
    "source:check_configs": lambda: "sample-small",
    "configs:check_configs": lambda: ["cross_subject"],
    "results": lambda: (Result("other_people_d", ESTIMATE),),
    "right": lambda: torch.ones(1, 3),
    "rows:chunks": lambda: TrieScorer(*model()).rows([encode_cloze(model()[1], CLOZES[0])]),
    "sampling": lambda: Sampling(max_new_tokens=3),
    "scorer": lambda: TrieScorer(*model()),
    "scores": scores,
    "settings:preset_config": lambda: {"steps": 2},
    "settings:with_settings": lambda: {"steps": 2},
    "settings:audit": AuditSettings,
    "settings": lambda: CrawlSettings(triples=2, budget=4, sampling=Sampling(max_new_tokens=3)),
    "source": delta,
    "source:FileSummary": lambda: "x",
    "source:usual_configs": lambda: "sample-small",
    "source:load_cases": lambda: "sample-small",
    "source:load_revised_cases": lambda: "sample-small",
    "spec": lambda: str(ROOT / "README.md").replace("README.md", "LICENSE"),
    "splits": lambda: {"test": pa.table({"a": [1]})},
    "table": lambda: pa.table({"a": [1]}),
    "table:adjust_families": lambda: pd.DataFrame({"p": [0.01, 0.5], "x": ["a", "b"]}),
    "table:audit_record": lambda: audit(prompts(), AuditSettings()),
    "table:table_to_cases": lambda: cases_to_table(made_cases()),
    "texts": lambda: ["one text"],
    "passages": PASSAGES.empty_table,
    "tokenizer": lambda: model()[1],
    "true": lambda: [-1.0, -2.0],
    "unit": lambda: "P27-00000000",
    "use": lambda: "cloze",
    "values:cluster_sums": lambda: np.arange(float(N)),
    "values": lambda: np.arange(float(N)),
    "values:clustered_means": lambda: np.arange(float(N))[:, None],
    "values:Crossing": lambda: np.arange(float(N))[:, None],
    "words": lambda: ["religion"],
    "editor": lambda: "memit",
    "id_or_name": lambda: "P27",
    "relation_id": lambda: "P27",
}

# The objects whose methods are called.
OBJECTS: dict[str, Made] = {
    "LogComparison": log_comparison,
    "Audit": lambda: Audit(results()),
    "AuditSettings": AuditSettings,
    "CompareSettings": CompareSettings,
    "Results": results,
    "SteeringVector": lambda: SteeringVector(3, torch.ones(128)),
    "HFScorer": lambda: HFScorer(*model()),
    "TrieScorer": lambda: TrieScorer(*model()),
    "EditedScorer": lambda: EditedScorer(TrieScorer(*model())),
    "HFGenerator": lambda: HFGenerator(*model()),
    "CachedGenerator": lambda: CachedGenerator(HFGenerator(*model()), HERE),
    "OpenAIGenerator": lambda: OpenAIGenerator("http://127.0.0.1:9/v1", "tiny", "", tries=1, timeout=1.0),
    "ServedScorer": lambda: ServedScorer(
        "http://127.0.0.1:9/v1", "tiny", "", tries=1, timeout=1.0, tokenizer=model()[1]
    ),
    "WeightDelta": delta,
    "LowRank": lambda: LowRank(torch.ones(2, 1), torch.ones(1, 3)),
    "Template": lambda: TEMPLATES[0],
    "CrawlSettings": lambda: CrawlSettings(),
    "ModelParts": lambda: model_parts(model()[0]),
    "Estimate": lambda: ESTIMATE,
    "Corpus": lambda: Corpus(str(ROOT / "LICENSE")),
    "Crossing": lambda: Crossing([np.full(N, 1 / N)], {"edit": np.arange(N) // 2}),
    **{kind.__name__: partial(editor, kind) for kind in CONFIGS},
}


# Annotation -> something fitting, for arguments that are named nowhere above; columns have one row.
PLAIN: dict[str, Made] = {
    "int": lambda: 3,
    "float": lambda: 0.5,
    "bool": lambda: True,
    "str": lambda: "x",
    "str | tuple[Message, ...]": lambda: "x",
    "Change": delta,
    "tuple[str, ...]": lambda: ("x",),
    "Iterable[int]": lambda: (1,),
    **dict.fromkeys(("Sequence[int]", "Sequence[Id]"), lambda: [0]),
    **dict.fromkeys(("Sequence[float]", "Sequence[float | None]"), lambda: [-1.0]),
    "Sequence[Sequence[float | None]]": lambda: [[1.0, 2.0]],
    "Estimate": lambda: ESTIMATE,
    "Floats": lambda: np.eye(2),
    "Adjusted": lambda: Adjusted(ESTIMATE, 0.5),
    "Iterable[str]": lambda: ["x"],
    "Manifest": lambda: results().manifest,
    "KnownTables": lambda: results().known,
    "str | os.PathLike[str]": lambda: HERE,
    "Path": lambda: HERE,
    "Design": lambda: Design(people_per_edit=5),
    "Entity": lambda: REQUEST.target_new,
    "EditRequest": lambda: REQUEST,
    "pd.DataFrame": lambda: pd.DataFrame({"x": [1]}),
    "NDArray[np.bool_]": lambda: np.arange(N) % 2 == 0,
    "Tensor": lambda: torch.zeros(1, 1, 128),
    "Fitted": lambda: editor(MEMIT).fitted,
    "Sequence[Sequence[PreparedEdit]]": lambda: [[prepare(model()[0], model()[1], REQUEST, ("{}",))]],
    "type[C]": lambda: MEMITConfig,
}


RECORDS = {name.rpartition(".")[2]: found for name, found in surface().items() if inspect.isclass(found)}


def built(kind: Any) -> Any:
    """A record made of fitting fields."""
    return kind(**{p.name: fitting(kind.__name__, p.name, str(p.annotation)) for p in needed(kind)})


def vars_of(record: Any) -> dict[str, Any]:
    """Field -> value, not copied."""
    return {entry.name: getattr(record, entry.name) for entry in dataclasses.fields(record)}


def fitting(function: str, name: str, annotation: str) -> Any:
    """Something fitting for one argument: by the longest key that tells of the function, by name, by annotation.

    Raises:
        KeyError: Nothing is known; the tables above need a line.
    """
    if annotation in ("int", "float", "bool") and f"{name}:" not in "".join(FITTING):
        return PLAIN[annotation]()
    keys = [key for key in FITTING if key.split(":")[0] == name and (":" not in key or key.split(":")[1] in function)]
    return FITTING[max(keys, key=len)]() if keys else plain(annotation)


def plain(annotation: str) -> Any:
    """Something of a type: out of `PLAIN`, one item for a list or a mapping, a record with fitting fields."""
    outer, _, inner = annotation.removesuffix(" | None").removesuffix("]").partition("[")
    if annotation in PLAIN or not (inner or outer in RECORDS or annotation != outer):
        return PLAIN[annotation]()
    if outer in ("Mapping", "dict"):
        key, _, value = inner.partition(", ")
        return {plain(key): plain(value)}
    if inner:
        return [plain(inner)]
    return built(RECORDS[outer]) if outer in RECORDS else plain(outer)
