"""`seesaw-cf register`: lets `evaluate` find the metrics by their plain names, from any folder, offline."""

from __future__ import annotations

import argparse

from seesaw_cf.cli.output import say


def configure(parser: argparse.ArgumentParser) -> None:
    """Add nothing: `seesaw-cf register` itself has no options."""


def run(args: argparse.Namespace) -> None:
    """Register the metrics and say what can be loaded now."""
    from seesaw_cf.metrics.register import METRICS, register

    files = register()
    calls = ", ".join(f'evaluate.load("{name}")' for name in METRICS)
    say("\n".join(f"written: {file}" for file in files))
    say(f"{calls} now work from any folder. With HF_EVALUATE_OFFLINE=1 the Hub is not asked first.")
