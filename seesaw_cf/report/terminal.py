"""The report as plain text for a terminal, as wide as the terminal is."""

from __future__ import annotations

from seesaw_cf.base.terminal import printable, wrap
from seesaw_cf.report.conclusion import conclusion_text
from seesaw_cf.report.results import Results
from seesaw_cf.report.run_tables import efficacy_table, run_tables

_DETAILS = ("Knew", "How sure")  # sentences of the conclusion that one screen leaves to report.md


def terminal_report(results: Results, note: str = "", full: bool = True) -> str:
    """Return a run's tables, a note such as where files went, and the conclusion.

    Args:
        results: The numbers of a run.
        note: Stands before the conclusion.
        full: Every table; else one screen: efficacy, note and the sentences of the conclusion that say what happened.
    """
    if not full:
        return "\n\n".join((efficacy_table(results, brief=True).terminal(), note, conclusion_text(results, _DETAILS)))
    tables = [table.terminal() for table in run_tables(results)]
    return "\n\n".join(filter(None, [_head(results), *tables, note, conclusion_text(results)]))


def _head(results: Results) -> str:
    run = results.manifest
    model, data = run.get("model", {}), run.get("data", {})
    facts = (
        f"model {model.get('id')} ({model.get('dtype')}, weights {str(model.get('fingerprint', ''))[:12]}), "
        f"data {data.get('source')} {data.get('configs')}: {data.get('cases')} cases, "
        f"protocol {run.get('protocol')}, seed {run.get('seed')}"
    )
    return f"{printable(results.folder)}\n{wrap(printable(facts))}"
