"""The page of `flaws validate`: a judge of flaws compared with people and with a constant answer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd
import pyarrow as pa

from seesaw_cf.base.terminal import quantity
from seesaw_cf.base.types import TableRow
from seesaw_cf.report import text
from seesaw_cf.report.forms import findings_report
from seesaw_cf.report.html.findings import Findings, FirstScreen, PageSection, Panels, TitleRules, title_by
from seesaw_cf.report.html.forest import Axis, ForestColumn, ForestRow, Mark, Panel
from seesaw_cf.report.table import Column, EstimateColumn, Table
from seesaw_cf.texts.flaws.validity import JudgeValidity, validate_judge
from seesaw_cf.texts.wording import flaw_title

_ANSWERS = {"-1": "more before", "0": "equal", "1": "more after"}
_AGREES = "agrees with people"
_ENDS = {"": "value", "_low": "low", "_high": "high"}
_share = partial(EstimateColumn, scale=100.0, unit="%", digits=1)
_FLAW = Column("flaw", lambda row: flaw_title(row["flaw"]), words=True)
_ACCURACY = (
    _FLAW,
    _share("right (median)", "judge_median"),
    _share("“equal” (median)", "constant_median"),
    _share("right (any person)", "judge_any_rater"),
    _share("“equal” (any person)", "constant_any_rater"),
    _share("sign turned round", "flipped"),
    EstimateColumn("kappa", digits=2),
    Column("pairs", "n"),
    Column("split", "n_split"),
)
_CONFUSION = (
    _FLAW,
    Column("people say", lambda row: _ANSWERS[row["people"]], words=True),
    *(Column(f"judge: {answer}", key) for key, answer in _ANSWERS.items()),
)
_METHOD = (
    "A judge and people are matched by pair of texts. Accuracy by the published rule: the judge says what any one of "
    "the people says; against the median: what the one in the middle says. Where an even number of people are split, "
    "nobody is, and the pair counts under the published rule alone. The constant answer is “equal” to everything. "
    "Cohen's kappa is agreement with people's median beyond chance; 95 % intervals, over pairs.",
)


def write_validity_report(folder: Path, table: pa.Table, judge: str) -> str:
    """Compare a judge with people and write the report.

    Args:
        folder: Where to.
        table: Rows of `seesaw_cf.texts.tables.FLAWS` of people and judge together.
        judge: Who is compared.

    Returns:
        Plain text for a terminal.

    Raises:
        UnknownNameError, RecordError: See `seesaw_cf.texts.flaws.validity.validate_judge`.
        StorageError: A file cannot be written.
    """
    by_flaw = validate_judge(table, judge)
    return findings_report(validity_findings(table, by_flaw, judge), record={"flaws": by_flaw}).write(folder)


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
    verdict_of = {flaw_title(flaw): validity["verdict"] for flaw, validity in by_flaw.items()}
    agrees = [title for title, verdict in verdict_of.items() if verdict.startswith(_AGREES)]
    others = [f"{title}: {verdict}" for title, verdict in verdict_of.items() if title not in agrees]
    low, high = int(rows["n"].min()), int(rows["n"].max())
    screen = FirstScreen(
        f"{frame['pair_id'].nunique()} pairs of texts, rated by {judge} and by "
        f"{quantity(len(people), 'person', 'people')} ({', '.join(people[:6])}{', …' if len(people) > 6 else ''})",
        title_by(VALIDITY_TITLE, JudgeSummary(judge, len(by_flaw), agrees, high)),
        {
            "Not shown": f"{'; '.join(others)}." if others else "",
            "How sure": f"{low if low == high else f'{low} to {high}'} pairs with an answer of both for each flaw"
            f"{_split(int(rows['n_split'].max()))}; 95 % intervals.",
        },
    )
    tables = verdicts, accuracy, confusion = _tables(rows, by_flaw)
    sections = [
        PageSection("agreement", "Agreement beyond chance", [_kappas(rows), accuracy]),
        PageSection(confusion.name, confusion.title, [confusion]),
    ]
    return Findings(screen, sections, _METHOD, tables=tables, first=[verdicts])


@dataclass(frozen=True, slots=True)
class JudgeSummary:
    """What a title is made of: the judge, flaws, those on which it agrees with people, and most pairs of one flaw."""

    judge: str
    n: int
    agrees: Sequence[str]
    pairs: int

    @property
    def named(self) -> str:
        """The flaws that it can be believed on."""
        return ", ".join(self.agrees)


VALIDITY_TITLE: Sequence[TitleRules[JudgeSummary]] = (
    (
        (lambda judge: not judge.pairs, "No pair was rated by both {0.judge} and people."),
        (
            lambda judge: not judge.agrees,
            "{0.judge} is not shown to agree with people beyond chance on any of {0.n} flaws.",
        ),
        (lambda judge: len(judge.agrees) == judge.n, "{0.judge} agrees with people beyond chance on all {0.n} flaws."),
        (lambda judge: True, "{0.judge} agrees with people beyond chance on some of {0.n} flaws: {0.named}."),
    ),
)


def _split(most: int) -> str:
    return f"; up to {most} more on which people are split evenly, which have no median" if most else ""


def _float(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _row(flaw: str, validity: JudgeValidity) -> TableRow:
    """Return a flaw in numbers; NaN where there is none."""
    rights = {
        f"{who}_{rule}": _float((validity["accuracy"].get(who) or {}).get(rule))
        for who in ("judge", "constant")
        for rule in ("any_rater", "median")
    }
    kappa = (validity["agreement"] or {}).get("cohen", {}).get("people/judge", {})
    return {
        "flaw": flaw,
        "n": validity["n"],
        "n_split": validity["n_split"],
        **rights,
        "flipped": _float(validity["flipped"]),
        **{f"kappa{end}": _float(kappa.get(name)) for end, name in _ENDS.items()},
        "verdict": validity["verdict"],
    }


def _kappas(rows: pd.DataFrame) -> Panels:
    axis = Axis(-1.0, 1.0)
    lines = []
    for row in rows.to_dict("records"):
        ends = row["kappa"], row["kappa_low"], row["kappa_high"]
        label = f"{flaw_title(row['flaw'])}: kappa {text.minus(text.estimate(*ends))}"
        mark = None if math.isnan(ends[0]) else Mark(axis.at(ends[0]), axis.span(*ends[1:]), 0, label)
        lines.append(ForestRow(flaw_title(row["flaw"]), f"{row['n']}", [mark]))
    about = "Cohen's kappa of the judge and people's median, 95 % intervals; 0: as by chance, 1: always the same"
    return Panels([Panel("Cohen's kappa", about, ("flaw", "pairs"), [ForestColumn("kappa", axis)], "−1 to 1", lines)])


def _tables(rows: pd.DataFrame, by_flaw: Mapping[str, JudgeValidity]) -> tuple[Table, Table, Table]:
    """Return verdicts, accuracy, and people's median against the judge."""
    rights = "Share of pairs in which the judge is right, and in which “equal” to everything would be"
    verdicts = [_FLAW, Column("verdict", words=True), Column("pairs", "n")]
    counts = [
        {"flaw": flaw, "people": people, **validity["confusion"][people]}
        for flaw, validity in by_flaw.items()
        for people in _ANSWERS
    ]
    return (
        Table("verdicts", "Verdicts", "What can be said of the judge", verdicts, rows[["flaw", "verdict", "n"]]),
        Table("validity", "Accuracy", rights, _ACCURACY, rows),
        Table("confusion", "Who said what", "Pairs by what people and judge say", _CONFUSION, pd.DataFrame(counts)),
    )
