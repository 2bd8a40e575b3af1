"""Makes `evaluate.load("edit_bias")` work from any directory, offline, for all metrics."""

from __future__ import annotations

import hashlib
import os
from importlib import import_module
from pathlib import Path
from typing import Any

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.fields import checked
from seesaw_cf.base.files import write_text

_NAMES = (
    *("edit_bias", "cross_property_accuracy", "edit_success", "generation_quality", "open_ended_flaws"),
    *("annotator_agreement", "overall_regard", "topic_disparity", "leme_annotation", "leme_auto", "leme_survey"),
)
METRICS = {name: f"seesaw_cf.metrics.{name}.{name}:{name.title().replace('_', '')}" for name in _NAMES}
"""Metric -> "module:class"."""


def register() -> list[Path]:
    """Write a one-line stub per metric into the modules cache of `evaluate`.

    `evaluate.load(name)` looks for a local folder, then on the Hub, then in this cache; the stub only imports the
    class from the installed package, so it never goes stale. With `HF_EVALUATE_OFFLINE=1` the Hub is not asked at
    all. Safe to call again and from several processes at once.

    Returns:
        The files, one per metric.

    Raises:
        StorageError: The cache folder cannot be written; set HF_MODULES_CACHE or HF_HOME to one that can.
    """
    from evaluate.config import HF_MODULES_CACHE

    written = []
    for name, place in METRICS.items():
        module, _, kind = place.partition(":")
        stub = f"from {module} import {kind}  # noqa: F401\n"
        digest = hashlib.sha256(stub.encode()).hexdigest()
        folder = Path(HF_MODULES_CACHE) / "evaluate_modules" / "metrics" / f"evaluate-metric--{name}" / digest
        file = folder / f"{name}.py"
        if not file.exists():
            write_text(file, stub)
        os.utime(file)  # the newest copy wins
        written.append(file)
    return written


@checked
def load_metric(name: str) -> Any:
    """Return a metric as `evaluate.load` does, without the Hub and without `register`.

    Args:
        name: One of `METRICS`, such as "edit_bias".

    Raises:
        UnknownNameError: There is no such metric.
    """
    module, _, kind = METRICS[one_of("metric", name, METRICS)].partition(":")
    return getattr(import_module(module), kind)()
