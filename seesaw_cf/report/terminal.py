"""The report as plain text for a terminal, as wide as the terminal is."""

from __future__ import annotations

from seesaw_cf.base.terminal import printable, wrap
from seesaw_cf.report.findings import RunFindings, find
from seesaw_cf.report.results import Results
from seesaw_cf.report.run_tables import run_tables

_DETAILS = ("Known before", "How sure", "Not known")  # lines of the findings that one screen leaves to report.md


def terminal_report(results: Results, note: str = "", full: bool = True, findings: RunFindings | None = None) -> str:
    """Return a run's tables, a note such as where files went, and the findings.

    Args:
        results: The numbers of a run.
        note: Stands before the findings.
        full: Every table and every line; else one screen: the note and the findings that say what happened.
        findings: What the numbers say; computed when None.
    """
    findings = findings or find(results)
    if not full:
        return "\n\n".join((note, findings.terminal(_DETAILS)))
    tables = [table.terminal() for table in run_tables(results)]
    return "\n\n".join(filter(None, [_head(results), *tables, note, findings.terminal()]))


def _head(results: Results) -> str:
    run = results.manifest
    model, data = run.get("model", {}), run.get("data", {})
    facts = (
        f"model {model.get('id')} ({model.get('dtype')}, weights {str(model.get('fingerprint', ''))[:12]}), "
        f"data {data.get('source')} {data.get('configs')}: {data.get('cases')} cases, "
        f"protocol {run.get('protocol')}, seed {run.get('seed')}"
    )
    return f"{printable(results.folder)}\n{wrap(printable(facts))}"
