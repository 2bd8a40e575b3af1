"""Verdicts of a run: counts, claims, and the sentences about them."""

from __future__ import annotations

import pandas as pd

from seesaw_cf.effects.audit import hypotheses
from seesaw_cf.report.audit import AuditTables
from seesaw_cf.report.results import Results
from seesaw_cf.report.rows import of_controls
from seesaw_cf.stats.verdicts import NOT_MEASURED, OPEN, VERDICTS


def open_counts(verdicts: pd.DataFrame) -> str:
    """Return how many contrasts have no claim, such as "3 undetermined, 4 not testable of 9 contrasts"."""
    verdicts = hypotheses(verdicts)
    counts = verdict_counts(verdicts)
    parts = ", ".join(f"{counts[label]} {label}" for label in OPEN)
    return f"{parts} of {len(verdicts)} contrasts" if any(counts[label] for label in OPEN) else ""


def without_controls(verdicts: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the contrasts of edits, and those of controls."""
    control = of_controls(verdicts)
    return verdicts[~control], verdicts[control]


def verdict_counts(verdicts: pd.DataFrame) -> dict[str, int]:
    """Return verdict -> contrasts."""
    counts = verdicts["verdict"].value_counts() if "verdict" in verdicts else pd.Series(dtype=int)
    return {label: int(counts.get(label, 0)) for label in VERDICTS}


def ordered_claims(audit: AuditTables) -> pd.DataFrame:
    """Return the contrasts with a verdict that claims something, largest first."""
    if "verdict" not in audit.verdicts:
        return audit.verdicts.iloc[:0]
    frame = audit.contrasts[~audit.contrasts["verdict"].isin(OPEN)]
    order = frame["verdict"].map(VERDICTS.index)
    ordered = frame.assign(order=order, size=-frame["value"].abs()).sort_values(["order", "size"], kind="stable")
    return ordered.drop(columns=["order", "size"])


def about_verdicts(results: Results) -> tuple[str, ...]:
    """Return the counts, what was declared, and why the remaining contrasts have no claim."""
    audit = results.audit
    if audit is None or "verdict" not in audit.verdicts:
        return ()
    counts = verdict_counts(audit.contrasts)
    claimed = sum(n for label, n in counts.items() if label not in OPEN)
    controls = len(without_controls(audit.contrasts)[1])
    among = f" of {len(audit.contrasts)} contrasts, {controls} of them after control edits" if controls else ""
    settings = audit.settings
    source = f" ({audit.floor.source})" if str(audit.floor) != "not measured" else ""
    declared = (
        f"Margin {settings.margin:g} in probability, {settings.margin_log_odds:g} nats in log-odds; false claims "
        f"{settings.promise()}; noise floor {audit.floor}{source}."
    )
    totals = ", ".join(f"{n} {label}" for label, n in counts.items())
    nothing = "" if claimed else "No contrast supports a claim."
    return tuple(filter(None, (f"{totals}{among}. {declared}", _why(audit), nothing)))


def _why(audit: AuditTables) -> str:
    """Return why contrasts have no claim, with counts; "" when all have one."""
    rows = audit.contrasts[audit.contrasts["verdict"].isin(OPEN)]
    if rows.empty:
        return ""
    testable = rows["verdict"] != "not testable"
    refused = ~testable & rows["note"].str.startswith("too few ")
    other = int((~refused & ~testable).sum())
    unmeasured = testable & rows["rule"].str.endswith(NOT_MEASURED)
    plain = rows[testable & ~unmeasured]
    parts = [f"{int(refused.sum())} with too few edits or people for any interval"] if refused.any() else []
    parts += [f"{other} with nothing to compare"] if other else []
    parts += [f"{int(unmeasured.sum())} without a measured noise floor ({NOT_MEASURED})"] if unmeasured.any() else []
    if len(plain):
        sizes = plain.groupby("scale")["detectable"].median()
        detectable = " and ".join(f"{size:.2g} in {scale}" for scale, size in sizes.items())
        parts.append(
            f"{len(plain)} open: the median smallest effect that their data could show is "
            f"{detectable} (seesaw-cf plan says how many edits and people less would take)"
        )
    return f"Without a claim: {len(rows)}, of these {'; '.join(parts)}."


def second_look(audit: AuditTables) -> str:
    """Return the verdicts among known facts, counted, and what they cannot do."""
    counts = "; ".join(
        f"{facts}: {', '.join(f'{n} {label}' for label, n in verdict_counts(hypotheses(rows)).items())}"
        for facts, rows in audit.known.groupby("facts", sort=False)
    )
    return (
        f"{counts}. A second look at the same edits, corrected within itself and not for the first look: it may weaken "
        "a claim of the table above, but supports none of its own."
    )
