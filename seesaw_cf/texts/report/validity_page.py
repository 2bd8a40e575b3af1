"""Judges of flaws compared with people and a constant answer: the page of `flaws validate`, and tables of a report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from seesaw_cf.effects.flaws import middle_rating
from seesaw_cf.report import text
from seesaw_cf.report.html.findings import Findings, Folded, PageSection, Panels, Part
from seesaw_cf.report.html.forest import Axis, ForestColumn, ForestRow, Mark, Panel
from seesaw_cf.report.html.render import PageTable, TableRow
from seesaw_cf.report.table import Table, table_of
from seesaw_cf.stats.case_means import row_share
from seesaw_cf.texts.flaws.validity import JudgeValidity, validate_judge
from seesaw_cf.texts.wording import FLAWS_BY_NAME

_ANSWERS = {"-1": "more before", "0": "equal", "1": "more after"}
_AGREES = "agrees with people"
_METHOD = (
    "A judge and people are matched by pair of texts. Accuracy by the published rule: the judge says what any one of "
    "the people says; against the median: what the one in the middle says. Where an even number of people are split, "
    "nobody is, and the pair counts under the published rule alone. The constant answer is “equal” to everything. "
    "Cohen's kappa is agreement with people's median beyond chance; 95 % intervals, bootstrap over pairs.",
)


def validity_findings(table: pa.Table, by_flaw: Mapping[str, JudgeValidity], judge: str) -> Findings:
    """Return what the page shows.

    Args:
        table: Rows of `seesaw_cf.texts.tables.FLAWS` that were compared.
        by_flaw: The result of `seesaw_cf.texts.flaws.validity.validate_judge` on them.
        judge: Who was compared.
    """
    frame = table.to_pandas()
    people = sorted(set(frame["rater"]) - {judge})
    rows = pd.DataFrame([_row(flaw, validity) for flaw, validity in by_flaw.items()])
    agrees = [_title(flaw) for flaw, validity in by_flaw.items() if validity["verdict"].startswith(_AGREES)]
    others = [
        f"{_title(flaw)}: {validity['verdict']}" for flaw, validity in by_flaw.items() if _title(flaw) not in agrees
    ]
    low, high = min(validity["n"] for validity in by_flaw.values()), max(validity["n"] for validity in by_flaw.values())
    sentences = (
        f"{frame['pair_id'].nunique()} pairs of texts, rated by {judge} and by {len(people)} "
        f"{'person' if len(people) == 1 else 'people'} ({', '.join(people[:6])}{', …' if len(people) > 6 else ''}).",
        "Whether the edits took is not asked here: this is about the judge.",
        f"{judge} is shown to agree with people beyond chance on {len(agrees)} of {len(by_flaw)} flaws"
        f"{': ' + ', '.join(agrees) if agrees else ''}.",
        f"{'; '.join(others) or 'Nothing'}.",
        f"{low if low == high else f'{low} to {high}'} pairs with an answer of both for each flaw"
        f"{_split(by_flaw)}; 95 % intervals.",
    )
    sections = [PageSection("agreement", "Agreement beyond chance", _parts(by_flaw)), _confusions(by_flaw)]
    return Findings(f"Is {judge} to be believed?", sentences, sections, _METHOD, "", (), {"validity": rows})


def _split(by_flaw: Mapping[str, JudgeValidity]) -> str:
    most = max(validity["n_split"] for validity in by_flaw.values())
    return f"; up to {most} more on which people are split evenly, which have no median" if most else ""


def _title(flaw: str) -> str:
    return FLAWS_BY_NAME[flaw].title if flaw in FLAWS_BY_NAME else flaw


def _kappa(validity: JudgeValidity) -> tuple[float, float, float]:
    kappa = (validity["agreement"] or {}).get("cohen", {}).get("people/judge", {})
    value, low, high = (kappa.get(name) for name in ("value", "low", "high"))
    return _float(value), _float(low), _float(high)


def _float(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _row(flaw: str, validity: JudgeValidity) -> dict[str, Any]:
    """A flaw in numbers; NaN where there is none."""
    rights = {
        f"{who}_{rule}": _float((validity["accuracy"].get(who) or {}).get(rule))
        for who in ("judge", "constant")
        for rule in ("any_rater", "median")
    }
    kappa = dict(zip(("kappa", "kappa_low", "kappa_high"), _kappa(validity), strict=True))
    return {
        "flaw": flaw,
        "n": validity["n"],
        "n_split": validity["n_split"],
        **rights,
        "flipped": _float(validity["flipped"]),
        **kappa,
        "verdict": validity["verdict"],
    }


def _parts(by_flaw: Mapping[str, JudgeValidity]) -> list[Part]:
    axis = Axis(-1.0, 1.0)
    lines, rows = [], []
    for flaw, validity in by_flaw.items():
        row = _row(flaw, validity)
        value, low, high = _kappa(validity)
        kappa, mark = "–", None
        if not math.isnan(value):
            kappa = text.minus(text.estimate(value, low, high))
            mark = Mark(axis.at(value), axis.span(low, high), 0, f"{_title(flaw)}: kappa {kappa}")
        lines.append(ForestRow(_title(flaw), f"{validity['n']}", [mark]))
        rights = [_percent(row[f"{who}_{rule}"]) for rule in ("median", "any_rater") for who in ("judge", "constant")]
        rows.append(
            TableRow(
                (_title(flaw), *rights, _percent(row["flipped"]), kappa, f"{validity['n']}", f"{validity['n_split']}")
            )
        )
    about = "Cohen's kappa of the judge and people's median, 95 % intervals; 0: as by chance, 1: always the same"
    panel = Panel("Cohen's kappa", about, ("flaw", "pairs"), [ForestColumn("kappa", axis)], "−1 to 1", lines)
    heads = ("flaw", "right (median)", "“equal” (median)", "right (any person)", "“equal” (any person)")
    about_rights = "Share of pairs in which the judge is right, and in which “equal” to everything would be"
    table = PageTable(
        "validity", "Accuracy", about_rights, (*heads, "sign turned round", "kappa", "pairs", "split"), 1, rows
    )
    verdicts = [TableRow((_title(flaw), validity["verdict"], f"{validity['n']}")) for flaw, validity in by_flaw.items()]
    words = ("verdicts", "Verdicts", "What can be said of the judge", ("flaw", "verdict", "pairs"))
    first = PageTable(*words, 2, verdicts)
    return [first, Panels([panel]), table]


def _percent(value: float) -> str:
    return "–" if math.isnan(value) else text.percent(value)


def _confusions(by_flaw: Mapping[str, JudgeValidity]) -> PageSection:
    """People's median against the judge, a table for each flaw."""
    heads = ("people say", *(f"judge: {answer}" for answer in _ANSWERS.values()))
    tables = []
    for flaw, validity in by_flaw.items():
        counts = {key: [str(validity["confusion"][key][other]) for other in _ANSWERS] for key in _ANSWERS}
        rows = [TableRow((answer, *counts[key])) for key, answer in _ANSWERS.items()]
        about = f"{_title(flaw)}: pairs by what people and judge say"
        tables.append(PageTable(f"confusion-{flaw}", _title(flaw), about, heads, 1, rows))
    return PageSection("confusion", "Who said what", [Folded(table.title, [table]) for table in tables])


# Judges of flaws beside people who rated the same pairs.

_ABOUT = (
    "Share of all pairs where the answer is that of at least one person (`any`, the published rule) or of people's "
    '`median`. "equal" is a judge that always answers so: no better than it is no evidence of skill. Pairs on which an '
    "even number of people are split have no median; they count under `any` alone."
)


def judge_sections(table: pa.Table, judges: Sequence[str], draws: int = 1000) -> list[Table]:
    """Table 20, and what it hides: each judge next to one that answers "equal" to everything.

    Args:
        table: Rows of `FLAWS` of people and judges.
        judges: Which raters are judges.
        draws: Bootstrap samples behind the intervals of kappa.
    """
    frame = table.to_pandas()
    people = [name for name in dict.fromkeys(frame["rater"]) if name not in judges]
    if not judges or not people:
        return []
    accuracy = [row for name in judges for row in _accuracy(frame, people, name)]
    beyond = []
    for name in judges:
        own = table.filter(pc.is_in(table["rater"], pa.array([name, *people])))
        for flaw, validity in validate_judge(own, name, draws=draws).items():
            kappa = validity["agreement"]["cohen"]["people/judge"] if validity["agreement"] else {}
            numbers = {"kappa": kappa.get("value"), "low": kappa.get("low"), "high": kappa.get("high")}
            more = {"n_split": validity["n_split"], "flipped": validity["flipped"], "verdict": validity["verdict"]}
            beyond.append({"judge": name, "flaw": flaw, "n": validity["n"]} | numbers | more)
    sign = (
        "Cohen's kappa with people's median; `flipped`: the share that agrees when the judge's sign is turned round; "
        "`n_split`: pairs left out since people are split evenly."
    )
    return [
        table_of("judges", "Judges against people (SEESAW-CF Table 20)", _ABOUT, pd.DataFrame(accuracy), "flaw", 3),
        table_of("judges_beyond_chance", "Judges beyond chance", sign, pd.DataFrame(beyond), digits=3),
    ]


def _accuracy(frame: pd.DataFrame, people: Sequence[str], judge: str) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for flaw, part in frame.groupby("flaw", sort=True, observed=True):
        wide = part.pivot(index="pair_id", columns="rater", values="change")
        raters = [name for name in people if name in wide]
        common = wide[wide[raters].notna().any(axis=1) & wide[judge].notna()] if judge in wide else wide[:0]
        if common.empty:
            continue
        cases = part.groupby("pair_id")["case_id"].first().loc[common.index].reset_index(drop=True)
        answers = common[raters].to_numpy(float)
        middle = middle_rating(answers)
        clear = ~np.isnan(middle)
        for name, answer in ((judge, common[judge].to_numpy(float)), ("equal", np.zeros(len(common)))):
            hits = {
                "any": pd.Series((answers == answer[:, None]).any(axis=1)),
                "median": pd.Series(middle == answer)[clear],
            }
            for rule, hit in hits.items():
                about = {"judge": judge, "answer": name, "rule": rule, "flaw": flaw}
                rows.append({**about, **row_share(hit, cases[hit.index])})
    return rows
