"""A study from the texts of a run: items sampled, dealt to raters, and written to one file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from secrets import token_hex
from types import MappingProxyType
from typing import Any

from seesaw_cf.base.checks import number, one_of, whole
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.tables import read_table
from seesaw_cf.base.text import read_text
from seesaw_cf.texts.flaws.protocols import PROTOCOLS
from seesaw_cf.texts.people.claims import CLAIM_TASK
from seesaw_cf.texts.people.design import RaterDesign, sampled, tasks
from seesaw_cf.texts.people.failures import FAILURE_TASK
from seesaw_cf.texts.people.flaws import FLAW_TASK
from seesaw_cf.texts.people.making import Kind, Made, Settings
from seesaw_cf.texts.people.store import create_study
from seesaw_cf.texts.people.study import About, Gold, RatingItem, RatingStudy
from seesaw_cf.texts.people.survey import SURVEY_TASK
from seesaw_cf.texts.people.writing import WRITING_TASK
from seesaw_cf.texts.runs import RunTexts

# The kinds of tasks.

KINDS: Mapping[str, Kind] = MappingProxyType(
    {"flaws": FLAW_TASK, "survey": SURVEY_TASK, "claims": CLAIM_TASK, "writing": WRITING_TASK, "failures": FAILURE_TASK}
)
"""Name -> what is asked, and the tables that it gives."""


PUBLISHED = {"P27": 91, "P21": 74, "P101": 87}
"""Pairs of each relation in SEESAW-CF's study with people: 252."""
CONSENT = """\
You are asked to judge texts that language models wrote. Some are false, and some are offensive: they may be sexist,
racist or hostile to a religion or to foreigners. Read no further if you do not want to see such texts.

Your answers are stored under a code, with the time at which they were given. No name, no address and nothing about
your device is stored. The answers may be published, for science.

You may take a break at any time; what you answered is kept. You may stop at any time and need not say why."""


@dataclass(frozen=True, slots=True)
class StudyPlan:
    """Questions, raters and design of a study.

    Attributes:
        kind: Name out of `KINDS`.
        design: How items are dealt.
        sample: Items in all, or of each relation; None = as published for the kind.
        settings: Of the kind.
        training: Begin with a training round.
        gold: Table of right answers (as `annotate export` writes it): its items qualify raters and are not sampled.
        qualify: Share of gold answers that must be right.
        breaks: A break is offered after this many items; 0 = never.
        consent: Text file shown first; None = `CONSENT`.
    """

    kind: str
    design: RaterDesign
    sample: int | dict[str, int] | None = None
    settings: Settings = field(default_factory=Settings)
    training: bool = True
    gold: Path | None = None
    qualify: float = 0.7
    breaks: int = 20
    consent: Path | None = None

    def __post_init__(self) -> None:
        one_of("kind of task", self.kind, KINDS)
        number("share of gold answers", self.qualify, 0, 1)
        whole("items before a break", self.breaks, 0)


@dataclass(frozen=True, slots=True)
class StudyFiles:
    """What a study became.

    Attributes:
        items: To be rated.
        of: In the run.
        tasks: Of all raters, training and hidden items included.
        groups: Relation -> items.
        left_out: Why -> texts without an item.
    """

    items: int
    of: int
    tasks: int
    groups: Mapping[str, int]
    left_out: Mapping[str, int]


def make_study(folder: Path, plan: StudyPlan, out: Path) -> StudyFiles:
    """Make a study and write its file.

    Args:
        folder: A run of `seesaw-cf leme run`; for flaws also a file that `read_pairs` reads.
        plan: What is asked.
        out: The file; it must not exist.

    Raises:
        RecordError: The run has no texts for this kind, or fewer than are wanted.
        StorageError: A file cannot be read, or `out` exists.
    """
    kind, run, seed = KINDS[plan.kind], RunTexts(folder), plan.design.seed
    material = kind.make(run, plan.settings)
    if not material.items:
        why = "; ".join(f"{count}: {reason}" for reason, count in material.left_out.items()) or "no such passages"
        raise RecordError(f"{folder}: no texts for {plan.kind} ({why}). Expected a run with {kind.about}.")
    gold, rest = _gold(kind, plan.gold, material.items)
    asked = sum(plan.sample.values()) if isinstance(plan.sample, dict) else plan.sample
    if asked == 0 and not gold:
        raise RecordError("sample: 0 items are wanted, expected at least one. Give a number, or leave --sample out.")
    chosen = sampled(rest, kind.sample or len(rest) if plan.sample is None else plan.sample, seed)
    shared = [item for item in material.shared if plan.training or item.about["role"] != "training"]
    design = replace(plan.design, orders=kind.orders and PROTOCOLS[plan.settings.protocol].blind)
    design = design if kind.repeats else replace(design, duplicates=0.0, attention=0)
    study = _study(plan, material, bool(gold), run)
    named = dict(zip(design.names, study.raters))
    dealt = [replace(task, rater=named[task.rater]) for task in tasks(chosen, [*shared, *gold], design)]
    create_study(out, study, [*chosen, *shared, *gold], dealt)
    groups = dict(sorted(Counter(item.group for item in chosen).items()))
    return StudyFiles(len(chosen), len(material.items), len(dealt), groups, material.left_out)


def _gold(kind: Kind, file: Path | None, items: Sequence[RatingItem]) -> tuple[list[RatingItem], list[RatingItem]]:
    """Return the items with known right answers, and the rest."""
    if file is None:
        return [], list(items)
    if kind.gold is None:
        raise RecordError(f"{file}: this kind of task has no right answers. Leave --gold out.")
    rows = read_table(file).to_pylist()
    names = sorted({str(row[name]) for row in rows for name in ("rater", "annotator") if name in row})
    if len(names) > 1:
        raise RecordError(
            f"{file}: answers by {len(names)} raters ({', '.join(names)}), expected one. "
            "Keep the rows of the one whose answers are right."
        )
    by_case: dict[int, list[dict[str, Any]]] = {}
    try:
        for row in rows:
            by_case.setdefault(row["case_id"], []).append(row)
        answers = {item.id: kind.gold(item, by_case.get(_case(item), ())) for item in items}
    except KeyError as error:
        raise RecordError(
            f"{file}: no column {error}. Expected a table of `annotate export` of the same kind."
        ) from error
    golds = [
        replace(item, gold=Gold(answers[item.id]), about={**item.about, "role": "gold"})
        for item in items
        if answers[item.id]
    ]
    if not golds:
        raise RecordError(f"{file}: its {len(rows)} rows are about no text of this run. Give answers about its texts.")
    return golds, [item for item in items if not answers[item.id]]


def _case(item: RatingItem) -> int:
    about: About = item.about.get("pair") or item.about["sample"]
    return int(about["case_id"])


def _study(plan: StudyPlan, material: Made, gold: bool, run: RunTexts) -> RatingStudy:
    facts = {
        "run": run.folder.name,
        "wording": plan.settings.wording.facts(),
        "blind_edit": plan.settings.blind_edit,
        "protocol": plan.settings.protocol,
        "design": asdict(plan.design),
        "sample": plan.sample,
    }
    id = token_hex(8)
    return RatingStudy(
        id=id,
        kind=plan.kind,
        raters=tuple(f"{name}-{id[:6]}" for name in plan.design.names),
        task=material.task,
        questions=material.questions,
        consent=read_text(plan.consent) if plan.consent else CONSENT,
        qualify=plan.qualify if gold else 0.0,
        breaks=plan.breaks,
        seed=plan.design.seed,
        facts=facts,
    )
