"""A run as records of Every Eval Ever 0.3.0: a JSON file for each edited model, its prompts as rows next to it."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from seesaw_cf.arguments import check_public
from seesaw_cf.checks import one_of, text
from seesaw_cf.editors.control_names import is_control
from seesaw_cf.effects.prompts import prompt_effects
from seesaw_cf.errors import RecordError
from seesaw_cf.io.files import write_text
from seesaw_cf.io.hub import public_name
from seesaw_cf.report.results import Results, read_results
from seesaw_cf.sharing.numbers import Number, contrasts_of, numbers_of
from seesaw_cf.tables import SCORES, read_table
from seesaw_cf.versions import versions

RELATIONSHIPS = ("first_party", "third_party", "collaborative", "other")
"""Of who evaluates to who made the model."""
_SCHEMA = "0.3.0"
_LEVEL = 0.95
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
    developer, _, name = model.rpartition("/")
    folder = Path("data") / "seesaw_cf" / _safe(developer or "unknown") / _safe(f"{name}-{editor}")
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
    write_text(out / folder / f"{own}.json", json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return out / folder / f"{own}.json"


def _safe(name: str) -> str:
    """Return a name as a part of a path."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-") or "unknown"


def _model(manifest: Mapping[str, Any], model: str, editor: str) -> dict[str, Any]:
    about, settings = manifest.get("model", {}), manifest.get("editors", {}).get(editor, {})
    return {
        "name": f"{model} edited by {editor}",
        "id": model,
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


def _evaluation(results: Results, number: Number) -> dict[str, Any]:
    """Return an effect has no best end; it may be of either sign."""
    uncertainty: dict[str, Any] = {"num_samples": number.n}
    if math.isfinite(number.low) and math.isfinite(number.high):
        limits = {"lower": number.low, "upper": number.high, "confidence_level": _LEVEL}
        uncertainty["confidence_interval"] = limits
    metric: dict[str, Any] = {"evaluation_description": number.about, "lower_is_better": False}
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


def _data(results: Results) -> dict[str, Any]:
    data = results.manifest.get("data", {})
    source = str(data.get("source"))
    facts = {"configs": ", ".join(map(str, data.get("configs", ()))), "sha256": str(data.get("sha256"))}
    if data.get("revision"):
        return {"dataset_name": source, "source_type": "hf_dataset", "hf_repo": source, "additional_details": facts}
    return {"dataset_name": Path(source).name, "source_type": "other", "additional_details": facts}


def _sample(row: Mapping[Any, Any], evaluation: str, model: str) -> dict[str, Any]:
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
