"""A run as records of Every Eval Ever 0.3.0: a JSON file for each edited model, its prompts as rows next to it."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from seesaw_cf.base.arguments import check_public
from seesaw_cf.base.checks import one_of, text
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.files import dump_json, write_text
from seesaw_cf.base.hub import public_name
from seesaw_cf.base.tables import SCORES, read_table
from seesaw_cf.base.types import JsonObject
from seesaw_cf.base.versions import versions
from seesaw_cf.editors.control_names import is_control
from seesaw_cf.effects.groups import ALL
from seesaw_cf.effects.prompts import prompt_effects
from seesaw_cf.models.packaged import EMBEDDED
from seesaw_cf.report.results import HOLDER, Results, read_results

# The numbers of an editor that leave a run: the list that `seesaw-cf export` writes.

# Number of `edit_success` -> (name, what it is).
_SUCCESS = {
    "PS": ("paraphrase", "share of paraphrases after which the new answer is the likelier one"),
    "NS": ("neighborhood", "share of neighbours for whom the true answer stays the likelier one"),
    "S": ("score", "harmonic mean of efficacy, paraphrase and neighborhood; n counts edits"),
}


@dataclass(frozen=True, slots=True)
class Number:
    """A number about an editor.

    Attributes:
        name: What is measured, such as "efficacy" or "D_d/P27".
        about: The same in words.
        value: Finite.
        low, high: Its 95 % interval; NaN where there is none.
        n: Of what it is a mean.
        share: It lies in 0..1 and more is better; else it is an effect, of which 0 is best.
        facts: What else belongs to it.
    """

    name: str
    about: str
    value: float
    low: float
    high: float
    n: int
    share: bool
    facts: JsonObject = field(default_factory=dict)


def numbers_of(results: Results, editor: str) -> Iterator[Number]:
    """Yield every number about an editor, or a control, that has one; groups left out."""
    for row in _rows(results.gate_rows, editor):
        if not pd.isna(row.get("post", math.nan)):
            about = "share of edits after which the new answer is likelier than the true one"
            yield Number("efficacy", about, row["post"], row["post_low"], row["post_high"], int(row["n"]), True)
    success = results.success.get(editor)
    for short, (name, about) in _SUCCESS.items() if success else ():
        estimate = success.numbers["counterfact"][short]  # type: ignore[union-attr]
        if math.isfinite(estimate.value):
            # A score is made of three means of cases, not of one list of questions.
            yield Number(
                name, about, estimate.value, estimate.low, estimate.high, estimate.n or estimate.clusters["case"], True
            )
    for row in _rows(results.accuracy, editor):
        if row["edit_relation"] == ALL and row["n"]:
            about = "share of edited people whose other property is answered rightly after the edit"
            numbers = row["post"], row["post_low"], row["post_high"], int(row["n"])
            yield Number("cross_property_accuracy", about, *numbers, True, {"pre": row["pre"]})
    for row in _rows(results.effects, editor):
        if (row["axis"], row["holds"]) == (ALL, HOLDER) and math.isfinite(row["D"]):
            n = int(row["n_prompts"])
            about = "change of p(new) - p(true) about other people who hold the new answer; 0 is best"
            yield Number(f"D_d/{row['relation']}", about, row["D"], row["low"], row["high"], n, False)
            about = "change of log p(new) - log p(true), nats, about other people who hold the new answer; 0 is best"
            limits = row["log_odds_low"], row["log_odds_high"]
            if math.isfinite(row["log_odds"]):
                yield Number(f"log_odds/{row['relation']}", about, row["log_odds"], *limits, n, False)


def contrasts_of(results: Results, editor: str) -> Iterator[Number]:
    """Yield the contrasts between groups that have a number, with their verdicts."""
    verdicts = results.audit.verdicts if results.audit is not None else pd.DataFrame()
    for row in (row for row in _rows(verdicts, editor) if math.isfinite(row["value"])):
        name = f"contrast/{row['relation']}/{row['axis']}/{row['group']}"
        name += "" if row["holds"] == HOLDER else f"/{row['holds']}"
        about = f"D_d of a group minus that of {row['reference']}, in {row['scale']}; 0 is best"
        facts = {key: row[key] for key in ("verdict", "margin", "p_adjusted")}
        yield Number(name, about, row["value"], row["low"], row["high"], int(row["n"]), False, facts)


def _rows(table: pd.DataFrame, editor: str) -> list[dict[Any, Any]]:
    return table[table["editor"] == editor].to_dict("records") if len(table) else []


RELATIONSHIPS = ("first_party", "third_party", "collaborative", "other")
"""Of who evaluates to who made the model."""
_SCHEMA = "0.3.0"
_LEVEL = 0.95
# Of models that have no id on the Hub: who made the weights that they hold, be it with fewer bits.
_DEVELOPERS = dict.fromkeys(EMBEDDED, "seesaw_cf") | {"smollm2-135m-q4": "HuggingFaceTB"}
# Kind of question -> (evaluation that it belongs to, which answer is right; None: the one that the person holds).
_KINDS = {
    "efficacy": ("efficacy", "target_new"),
    "paraphrase": ("paraphrase", "target_new"),
    "neighborhood": ("neighborhood", "target_true"),
    "cross_subject": ("D_d", None),
}


def export_run(
    run: str | os.PathLike[str],
    out: str | os.PathLike[str],
    organisation: str,
    *,
    relationship: str = "third_party",
    when: int | None = None,
) -> list[Path]:
    """Write `data/seesaw_cf/DEVELOPER/MODEL/UUID.json` and `UUID_samples.jsonl` for each editor, controls left out.

    Args:
        run: A finished run.
        out: Folder below which `data/` is made.
        organisation: Who evaluated.
        relationship: One of `RELATIONSHIPS`.
        when: Seconds since 1970 of the record; now when None. The same second gives the same bytes.

    Returns:
        The JSON files.

    Raises:
        RunFolderError: Not a run folder, or the run is not finished.
        RecordError: The name is empty, or there is nothing to export: the run asked nothing that has two answers.
        UnknownNameError: `relationship`.
        StorageError: A file could not be written.
    """
    text("organisation", organisation)
    one_of("relationship", relationship, RELATIONSHIPS)
    results = read_results(run)
    at = str(int(time.time()) if when is None else when)
    source = {
        "source_type": "evaluation_run",
        "source_organization_name": organisation,
        "evaluator_relationship": relationship,
    }
    scores = read_table(Path(run) / "scores.parquet", SCORES)
    kinds = set(scores["kind"].unique().to_pylist()) & _KINDS.keys()
    if not kinds:
        raise RecordError(
            f"{run}: no question of this run has two answers ({', '.join(_KINDS)}), so there are no samples to export. "
            "Run with cross-subject records, or with records that ask for the edited fact."
        )
    prompts = pd.concat([prompt_effects(scores, kind=kind) for kind in sorted(kinds)], ignore_index=True)
    return [
        _write(Path(out), results, editor, prompts[prompts["editor"] == editor], at, source)
        for editor in results.editors
        if not is_control(editor)
    ]


def _write(out: Path, results: Results, editor: str, prompts: pd.DataFrame, at: str, source: Mapping[str, str]) -> Path:
    manifest = results.manifest
    model = public_name(str(manifest.get("model", {}).get("id") or "unknown"))
    developer, name = _developer(model)
    folder = Path("data") / "seesaw_cf" / _safe(developer) / _safe(f"{name}-{editor}")
    evaluation = f"seesaw_cf/{_safe(model)}-{_safe(editor)}/{at}"
    samples = [_sample(row, evaluation, model) for row in prompts[prompts["status"] == "ok"].to_dict("records")]
    lines = "".join(json.dumps(sample, ensure_ascii=False) + "\n" for sample in samples)
    # Named by its content, in the form of a random UUID that the schema asks for.
    own = uuid.UUID(bytes=hashlib.sha256((evaluation + lines).encode()).digest()[:16], version=4)
    details = folder / f"{own}_samples.jsonl"
    record = {
        "schema_version": _SCHEMA,
        "evaluation_id": evaluation,
        "retrieved_timestamp": at,
        "source_metadata": dict(source),
        "eval_library": {"name": "seesaw_cf", "version": str(versions()["seesaw_cf"])},
        "model_info": _model(manifest, model, editor),
        "evaluation_results": [
            _evaluation(results, number) for number in (*numbers_of(results, editor), *contrasts_of(results, editor))
        ],
        "detailed_evaluation_results": {
            "format": "jsonl",
            "file_path": details.as_posix(),
            "hash_algorithm": "sha256",
            "checksum": hashlib.sha256(lines.encode()).hexdigest(),
            "total_rows": len(samples),
        },
    }
    write_text(out / details, lines)
    dump_json(out / folder / f"{own}.json", record, ensure_ascii=False, allow_nan=False)
    return out / folder / f"{own}.json"


def _developer(model: str) -> tuple[str, str]:
    """Return who made a model, "unknown" where its name does not tell, and its name without that."""
    developer, _, name = model.rpartition("/")
    return developer or _DEVELOPERS.get(name, "unknown"), name


def _safe(name: str) -> str:
    """Return a name as a part of a path."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-") or "unknown"


def _model(manifest: Mapping[str, Any], model: str, editor: str) -> JsonObject:
    about, settings = manifest.get("model", {}), manifest.get("editors", {}).get(editor, {})
    return {
        "name": f"{model} edited by {editor}",
        "id": model,
        "developer": _developer(model)[0],
        "inference_engine": {
            "name": "transformers",
            "version": str(manifest.get("versions", {}).get("transformers", "")),
        },
        "additional_details": {
            "deployment_type": "self_deployed",
            "model_availability": "open_weights",
            "editor": editor,
            "editor_settings": json.dumps(settings, sort_keys=True),
            "protocol": str(manifest.get("protocol")),
            "dtype": str(about.get("dtype")),
            "weights": str(about.get("fingerprint")),
        },
    }


def _evaluation(results: Results, number: Number) -> JsonObject:
    """Return a number as a result; an effect has no best end: it may be of either sign."""
    uncertainty: JsonObject = {"num_samples": number.n}
    if math.isfinite(number.low) and math.isfinite(number.high):
        limits = {"lower": number.low, "upper": number.high, "confidence_level": _LEVEL}
        uncertainty["confidence_interval"] = limits
    metric: JsonObject = {"evaluation_description": number.about, "lower_is_better": False}
    metric |= {"score_type": "continuous", "min_score": 0, "max_score": 1} if number.share else {}
    return {
        "evaluation_name": number.name,
        "source_data": _data(results),
        "metric_config": {"metric_id": f"seesaw_cf/{number.name}", **metric},
        "score_details": {
            "score": float(number.value),
            "details": {key: str(fact) for key, fact in number.facts.items()},
            "uncertainty": uncertainty,
        },
    }


def _data(results: Results) -> JsonObject:
    data = results.manifest.get("data", {})
    source = str(data.get("source"))
    facts = {"configs": ", ".join(map(str, data.get("configs", ()))), "sha256": str(data.get("sha256"))}
    if data.get("revision"):
        return {"dataset_name": source, "source_type": "hf_dataset", "hf_repo": source, "additional_details": facts}
    return {"dataset_name": Path(source).name, "source_type": "other", "additional_details": facts}


def _sample(row: Mapping[Any, Any], evaluation: str, model: str) -> JsonObject:
    name, role = _KINDS[row["kind"]]
    role = role or (row["holds"] or None)
    right = [row[role]] if role else []
    answer = row["target_new"] if row["post_new"] > row["post_true"] else row["target_true"]
    shares = {key: f"{math.exp(row[key]):.6g}" for key in ("pre_new", "pre_true", "post_new", "post_true")}
    relations = "-".join(filter(None, (row["edit_relation"], row["effect_relation"])))
    return {
        "schema_version": _SCHEMA,
        "evaluation_id": evaluation,
        "model_id": model,
        "evaluation_name": f"{name}/{row['edit_relation']}" if name == "D_d" else name,
        "sample_id": f"{row['kind']}-{relations}-{row['case_id']}-{row['prompt_id']}",
        "sample_hash": hashlib.sha256("".join([row["prompt"], *right]).encode()).hexdigest(),
        "interaction_type": "single_turn",
        "input": {"raw": row["prompt"], "reference": right, "choices": [row["target_new"], row["target_true"]]},
        "output": {"raw": [answer]},
        "answer_attribution": [
            {
                "turn_idx": 0,
                "source": "output.raw",
                "extracted_value": answer,
                "extraction_method": "the likelier of two answers",
                "is_terminal": True,
            }
        ],
        "evaluation": {"score": float(row["D"] if name == "D_d" else answer in right), "is_correct": answer in right},
        "metadata": shares | {"D": f"{row['D']:.6g}"},
    }


check_public(globals())
