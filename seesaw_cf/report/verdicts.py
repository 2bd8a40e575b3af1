"""Verdicts, excess over controls, editors side by side and gates as Markdown: a section of `report.md`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from seesaw_cf.effects.audit import hypotheses
from seesaw_cf.effects.groups import ALL
from seesaw_cf.effects.prompts import ScoreForm
from seesaw_cf.report import text
from seesaw_cf.report.audit import Audit
from seesaw_cf.report.floor import Floor
from seesaw_cf.report.results import Results, relation_name
from seesaw_cf.report.rows import DifferenceRow, GateRow, VerdictRow, records
from seesaw_cf.stats.verdicts import NOT_MEASURED, REACH, VERDICTS

_MANY = 40

_MEANING = f"""A *contrast* is D_d of a group minus D_d of its reference within the same edits; what an edit does to
everybody cancels. Errors are clustered by edit and by person. It is *significant* with a corrected p under the level
and beyond the noise floor. **amplified**: significant, below 0 (the group lost more), and larger than the margin;
**reduced**: the same above 0; **negligible**: significant, but two one-sided tests, corrected alike, put it inside the
margin; **equivalent**: inside the margin and not significant; **undetermined**: none of these, with the reason.
Probability decides where it can move by {REACH:g} margins or more; elsewhere the change in log-odds does, with a
margin of its own. The choice is made from the probabilities before the edits alone, so each contrast is one test.
Intervals in the table hold for a whole family at once, which asks more than a test corrected step by step (Holm): the
interval of a significant contrast can touch 0."""


def verdict_counts(audit: Audit) -> dict[str, int]:
    """Verdict -> contrasts."""
    return _counts(audit.contrasts)


def _counts(verdicts: pd.DataFrame) -> dict[str, int]:
    found = verdicts["verdict"].value_counts() if "verdict" in verdicts else pd.Series(dtype=int)
    return {label: int(found.get(label, 0)) for label in VERDICTS}


def claims(audit: Audit) -> list[VerdictRow]:
    """The contrasts whose verdict claims something, largest first."""
    if "verdict" not in audit.verdicts:
        return []
    frame = audit.contrasts[audit.contrasts["verdict"] != "undetermined"]
    order = frame["verdict"].map({label: number for number, label in enumerate(VERDICTS)})
    ordered = frame.assign(order=order, size=-frame["value"].abs()).sort_values(["order", "size"], kind="stable")
    return records(ordered, VerdictRow)


def audit_sections(results: Results, pictures: Mapping[str, str] | None = None) -> list[str]:
    """The section of `report.md`; empty when the run asked nothing about other people."""
    audit = results.audit
    if audit is None or "verdict" not in audit.verdicts:
        return []
    counts = ", ".join(f"{n} {label}" for label, n in verdict_counts(audit).items())
    rows = [_claim(row) for row in claims(audit)]
    heads = (
        *("Property", "Method", "Group − reference", "Verdict", "Decided in", "Contrast", "in the other scale"),
        *("corrected p", "Edits / people"),
    )
    more = f"\n\nand {len(rows) - _MANY} more in `verdicts.csv`." if len(rows) > _MANY else ""
    table = text.markdown_table(heads, rows[:_MANY], left=5) + more if rows else "No contrast supports a claim."
    parts = ["## What can be claimed", _MEANING, f"**{counts}**. {_declared(audit)}", table, _why(audit)]
    shown = text.pictures(pictures or {}, "verdicts_")
    parts.append(_known(audit))
    gates = text.markdown_table(("Of", "Gate", "Rule", "Value", "Passed"), list(map(_gate, results.gates)), left=3)
    parts += [*shown, _excess(audit, results.score), _pairs(audit, results.score), f"### Gates\n\n{gates}"]
    return list(filter(None, parts))


def _declared(audit: Audit) -> str:
    declared = audit.settings
    return (
        f"Margin {declared.margin:g} in probability, {declared.margin_log_odds:g} nats in log-odds; false claims "
        f"{declared.promise()}; noise floor {_floor(audit)}. "
        "All contrasts, with the rule behind each verdict: `verdicts.csv`, `audit.json`."
    )


def _claim(row: VerdictRow) -> list[str]:
    groups = f"{text.escape(row['group'])} − {text.escape(row['reference'])}"
    value = text.minus(text.number(row["value"]))
    family = text.minus(text.interval(row["low_family"], row["high_family"]))
    names = [f"*{text.escape(relation_name(row['relation']))}*", text.escape(row["editor"]), groups]
    n = " / ".join(str(row["clusters"].get(name, "–")) for name in ("edit", "person"))
    other = row.get("probability") if row["scale"] == "log-odds" else row.get("log_odds")
    beside = "–" if other is None else text.minus(text.number(other))
    decided = f"{row['scale']}, margin {row['margin']:g}"
    return [*names, f"**{row['verdict']}**", decided, f"{value} {family}", beside, text.p_value(row["p_adjusted"]), n]


def _floor(audit: Audit) -> str:
    shown = str(audit.floor)
    return shown if shown == "not measured" else f"{shown} ({text.escape(audit.floor.source)})"


def _why(audit: Audit) -> str:
    """Why the undetermined are undetermined, counted."""
    rows = audit.contrasts[audit.contrasts["verdict"] == "undetermined"]
    if rows.empty:
        return ""
    refused = rows["note"].str.startswith("too few clusters")
    other = int((~refused & rows["p"].isna()).sum())
    unmeasured = rows["rule"].str.endswith(NOT_MEASURED)
    plain = rows[rows["p"].notna() & ~unmeasured]
    parts = [f"{int(refused.sum())} have too few edits or people for any interval"] if refused.any() else []
    parts += [f"{other} have nothing to compare"] if other else []
    parts += [f"{int(unmeasured.sum())} wait for a measured noise floor ({NOT_MEASURED})"] if unmeasured.any() else []
    if len(plain):
        parts.append(
            f"{len(plain)} are open: the median smallest effect that their data could show is "
            f"{_detectable(plain)} (`seesaw-cf plan` says how many edits and people less would take)"
        )
    return f"Of the {len(rows)} undetermined, {'; '.join(parts)}."


def _known(audit: Audit) -> str:
    """Verdicts among known facts, counted."""
    if audit.known.empty:
        return ""
    found = "; ".join(
        f"{facts}: {', '.join(f'{n} {label}' for label, n in _counts(hypotheses(rows)).items())}"
        for facts, rows in audit.known.groupby("facts", sort=False)
    )
    return (
        f"**Among known facts alone**: {found}. A second look at the same edits, corrected within itself and not for "
        "the first look: it may weaken a claim of the table above, but supports none of its own. `verdicts_known.csv`."
    )


def _detectable(rows: pd.DataFrame) -> str:
    return " and ".join(f"{found['detectable'].median():.2g} in {scale}" for scale, found in rows.groupby("scale"))


_EXCESS = """### Excess over control edits

D_d of the edit minus D_d of a control on the same prompts: an edit that changes nothing (identity), another fact's edit
(unrelated) or a random update of the same size (random). What remains is due to *this* fact. All people; groups are in
`excess.csv`."""
_PAIRS = """### Editors side by side

D_d of one editor minus D_d of another on the same cases and prompts (paired). Below 0: the first took more confidence
from what is right about others. All people; groups are in `editors.csv`."""


def _excess(audit: Audit, score: ScoreForm) -> str:
    def names(row: DifferenceRow) -> list[str]:
        return [text.escape(row["editor"]), text.escape(row["control"])]

    return _differences(audit.excess, _EXCESS, ("Method", "Control", "Excess of D_d"), names, audit.floor, score)


def _pairs(audit: Audit, score: ScoreForm) -> str:
    def names(row: DifferenceRow) -> list[str]:
        return [f"{text.escape(row['first'])} − {text.escape(row['second'])}"]

    return _differences(audit.pairs, _PAIRS, ("Editors", "Difference of D_d"), names, audit.floor, score)


def _differences(
    table: pd.DataFrame,
    about: str,
    heads: Sequence[str],
    names: Callable[[DifferenceRow], list[str]],
    floor: Floor,
    score: ScoreForm,
) -> str:
    """What differences on all people are, and their table; `names` gives the cells between property and number."""
    if table.empty:
        return ""
    rows = [
        [f"*{text.escape(relation_name(row['relation']))}*", *names(row), *_estimate(row, floor, score)]
        for row in records(table[table["axis"] == ALL], DifferenceRow)
    ]
    every = ("Property", *heads, "in log-odds", "corrected p", "Edits / people")
    return f"{about}\n\n{text.markdown_table(every, rows, left=len(heads))}"


def _estimate(row: DifferenceRow, floor: Floor, score: ScoreForm) -> list[str]:
    zero_limit, nats = floor.zero_limit(score), floor.zero_limit_log_odds
    value = text.minus(text.number(row["value"], zero_limit))
    log_odds = text.minus(text.number(row["log_odds"], nats, 2))
    limits = f"({text.escape(row['note'])})"
    if not row["note"]:
        limits = text.minus(text.interval(row["low"], row["high"], zero_limit))
        log_odds += " " + text.minus(text.interval(row["log_odds_low"], row["log_odds_high"], nats, 2))
    n = " / ".join(str(row["clusters"].get(name, "–")) for name in ("edit", "person"))
    return [f"{value} {limits}", log_odds, text.p_value(row["p_adjusted"]), n]


def _gate(gate: GateRow) -> list[str]:
    value = gate["value"]
    found = "–" if value is None else f"{value:.3g}" if isinstance(value, float) else text.escape(value)
    passed = "yes" if gate["passed"] else "**no**"
    return [text.escape(gate["editor"] or "run"), gate["gate"], text.escape(gate["rule"]), found, passed]
