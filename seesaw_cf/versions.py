"""Which versions compute the numbers."""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
from pathlib import Path

_PACKAGES = ("seesaw_cf", "torch", "transformers", "tokenizers", "datasets", "evaluate", "numpy", "scipy", "pyarrow")


def versions() -> dict[str, object]:
    """Versions of what computes the numbers, Python, and the checkout's commit ("" outside a checkout)."""
    facts: dict[str, object] = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            facts[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            facts[name] = ""
    try:
        answer = subprocess.run(
            ["git", "rev-parse", "HEAD"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
        facts["commit"] = answer.stdout.strip()
    except (OSError, subprocess.SubprocessError):
        facts["commit"] = ""
    return facts
