"""Verdicts, excess over controls and editors side by side as Markdown: a section of the report and the audit card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from seesaw_cf.effects.groups import ALL
from seesaw_cf.report import text
from seesaw_cf.report.audit import Audit
from seesaw_cf.report.results import Results, records, relation_name

__all__ = ["audit_card", "audit_sections", "claims", "verdict_counts"]

LABELS = ("amplified", "reduced", "equivalent", "undetermined")
_MANY = 40

VERDICTS = """A *contrast* is D_d of a group minus D_d of its reference within the same edits; what an edit does to
everybody cancels. Errors are clustered by edit and by person. **amplified**: below 0 with a corrected p under the level
and beyond the noise floor (the group lost more); **reduced**: the same above 0; **equivalent**: two one-sided tests put
it inside the margin that was stated beforehand, corrected alike; **undetermined**: neither, with the smallest effect
these data could have shown. Intervals in the table hold for a whole family at once."""


def verdict_counts(audit: Audit) -> dict[str, int]:
    """Verdict -> contrasts."""
    found = audit.verdicts["verdict"].value_counts() if "verdict" in audit.verdicts else pd.Series(dtype=int)
    return {label: int(found.get(label, 0)) for label in LABELS}


def claims(audit: Audit) -> list[dict[str, Any]]:
    """The contrasts whose verdict claims something, largest first."""
    if "verdict" not in audit.verdicts:
        return []
    frame = audit.verdicts[audit.verdicts["verdict"] != "undetermined"]
    order = frame["verdict"].map({label: number for number, label in enumerate(LABELS)})
    return records(frame.assign(order=order, size=-frame["value"].abs()).sort_values(["order", "size"], kind="stable"))


def audit_sections(results: Results, pictures: Mapping[str, str] | None = None) -> list[str]:
    """The section of `report.md`; empty when the run asked nothing about other people."""
    audit = results.audit
    if audit is None or "verdict" not in audit.verdicts:
        return []
    counts = ", ".join(f"{n} {label}" for label, n in verdict_counts(audit).items())
    rows = [_claim(row) for row in claims(audit)]
    heads = ("Property", "Method", "Group − reference", "Contrast", "corrected p", "Verdict", "Edits / people")
    more = f"\n\nand {len(rows) - _MANY} more in `verdicts.csv`." if len(rows) > _MANY else ""
    table = text.markdown_table(heads, rows[:_MANY], left=3) + more if rows else "No contrast supports a claim."
    parts = ["## What can be claimed", VERDICTS, f"**{counts}**. {_declared(audit)}", table, _why(audit)]
    shown = [
        f"![{text.escape(about)}]({name})" for name, about in (pictures or {}).items() if name.startswith("verdicts_")
    ]
    return [part for part in [*parts, *shown, _excess(audit), _pairs(audit)] if part]


def _declared(audit: Audit) -> str:
    declared = audit.settings
    floor, source = audit.noise_floor
    families = audit.verdicts["family"].nunique()
    return (
        f"Margin {declared.margin:g}, level {declared.alpha:g}, {declared.correction} over {families} declared families"
        f" ({' × '.join(declared.family) or 'the whole table'}), noise floor {floor:.2g} ({text.escape(source)}). "
        "All contrasts, with the rule behind each verdict: `verdicts.csv`, `audit.json`."
    )


def _claim(row: Mapping[str, Any]) -> list[str]:
    groups = f"{text.escape(row['group'])} − {text.escape(row['reference'])}"
    value = text.minus(text.number(row["value"]))
    family = text.minus(text.interval(row["low_family"], row["high_family"]))
    names = [f"*{text.escape(relation_name(row['relation']))}*", text.escape(row["editor"]), groups]
    n = " / ".join(str(row["clusters"].get(name, "–")) for name in ("edit", "person"))
    return [*names, f"{value} {family}", text.p_value(row["p_adjusted"]), row["verdict"], n]


def _why(audit: Audit) -> str:
    """Why the undetermined are undetermined, counted."""
    rows = audit.verdicts[audit.verdicts["verdict"] == "undetermined"]
    if rows.empty:
        return ""
    refused = rows["note"].str.startswith("too few clusters")
    other = int((~refused & rows["p"].isna()).sum())
    plain = rows[rows["p"].notna()]
    parts = [f"{int(refused.sum())} have too few edits or people for any interval"] if refused.any() else []
    parts += [f"{other} have nothing to compare"] if other else []
    if len(plain):
        parts.append(
            f"{len(plain)} are open: the median smallest effect that their data could show is "
            f"{plain['detectable'].median():.2g} (`seesaw-cf plan` says how many edits and people less would take)"
        )
    return f"Of the {len(rows)} undetermined, {'; '.join(parts)}."


def _excess(audit: Audit) -> str:
    if audit.excess.empty:
        return ""
    rows = [
        [
            f"*{text.escape(relation_name(row['relation']))}*",
            text.escape(row["editor"]),
            text.escape(row["control"]),
            *_estimate(row),
        ]
        for row in records(audit.excess[audit.excess["axis"] == ALL])
    ]
    about = """### Excess over control edits

D_d of the edit minus D_d of a control on the same prompts: an edit that changes nothing (identity), another fact's edit
(unrelated) or a random update of the same size (random). What remains is due to *this* fact. All people; groups are in
`excess.csv`."""
    heads = ("Property", "Method", "Control", "Excess of D_d", "corrected p", "Edits / people")
    return f"{about}\n\n{text.markdown_table(heads, rows, left=3)}"


def _pairs(audit: Audit) -> str:
    if audit.pairs.empty:
        return ""
    rows = [
        [
            f"*{text.escape(relation_name(row['relation']))}*",
            f"{text.escape(row['first'])} − {text.escape(row['second'])}",
            *_estimate(row),
        ]
        for row in records(audit.pairs[audit.pairs["axis"] == ALL])
    ]
    about = """### Editors side by side

D_d of one editor minus D_d of another on the same cases and prompts (paired). Below 0: the first took more confidence
from what is right about others. All people; groups are in `editors.csv`."""
    heads = ("Property", "Editors", "Difference of D_d", "corrected p", "Edits / people")
    return f"{about}\n\n{text.markdown_table(heads, rows, left=2)}"


def _estimate(row: Mapping[str, Any]) -> list[str]:
    value = text.minus(text.number(row["value"]))
    limits = text.minus(text.interval(row["low"], row["high"])) if not row["note"] else f"({text.escape(row['note'])})"
    n = " / ".join(str(row["clusters"].get(name, "–")) for name in ("edit", "person"))
    return [f"{value} {limits}", text.p_value(row["p_adjusted"]), n]


def audit_card(results: Results, record: Mapping[str, Any]) -> str:
    """`audit.md`: one page that says what was estimated how, on how much, and which gates it passed."""
    made = results.manifest
    model, data = made.get("model", {}), made.get("data", {})
    counts = ", ".join(f"{n} {label}" for label, n in record["counts"].items()) or "none: no contrast between groups"
    declared = record["settings"]
    weights, cases = str(model.get("fingerprint", ""))[:12], str(data.get("sha256", ""))[:12]
    families = f"{len(record['families'])} families of {_sizes(record['families'])} tests, {declared['correction']}"
    facts: Sequence[tuple[str, Any]] = (
        ("Model", f"{model.get('id')} ({model.get('dtype')}, weights {weights})"),
        ("Data", f"{data.get('source')} {data.get('configs')}, {data.get('cases')} cases, {cases}"),
        ("Editors", ", ".join(results.editors)),
        ("Protocol", made.get("protocol")),
        ("Estimand", record["estimand"] or "none"),
        ("Score", results.score),
        ("Method", "; ".join(record["method"]) or "none"),
        ("Declared families", f"{', '.join(declared['family']) or 'one'}: {families}"),
        ("Level and margin", f"{declared['alpha']:g}; contrasts within ±{declared['margin']:g} do not matter"),
        ("Noise floor", f"{record['noise_floor']['value']:.3g} ({record['noise_floor']['source']})"),
        ("Seeds", ", ".join(f"{name} {value}" for name, value in record["seeds"].items())),
        ("Score rows", f"{results.n_rows:,}, of which {int(results.unscored['n_rows'].sum()):,} have no number"),
        ("Verdicts", counts),
    )
    table = text.markdown_table(("What", "Value"), [[name, text.escape(value)] for name, value in facts], left=2)
    rows = [
        [
            text.escape(gate["editor"] or "run"),
            gate["gate"],
            text.escape(gate["rule"]),
            _value(gate["value"]),
            _passed(gate),
        ]
        for gate in record["gates"]
    ]
    gates = text.markdown_table(("Of", "Gate", "Rule", "Found", "Passed"), rows, left=3)
    return f"# Audit card\n\n{table}\n\n## Gates\n\n{gates}\n\n" + "\n\n".join(audit_sections(results)) + "\n"


def _sizes(families: Mapping[str, int]) -> str:
    sizes = sorted(set(families.values()))
    return "0" if not sizes else str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"


def _value(value: Any) -> str:
    return "–" if value is None else f"{value:.3g}" if isinstance(value, float) else text.escape(value)


def _passed(gate: Mapping[str, Any]) -> str:
    return "yes" if gate["passed"] else "**no**"
