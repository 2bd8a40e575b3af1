"""The five relations and the papers' 23 prompt templates, present and past.

Source: SEESAW-CF, Appendix A. Tense belongs to the template, never to the finished prompt: the reference code replaced
" is" by " was" in whole prompts and so damaged names ("Sophistic worked of Antiphon").
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from seesaw_cf.base.errors import RecordError, unknown_name
from seesaw_cf.base.text import read_text

Use = Literal["cloze", "property", "open"]


@dataclass(frozen=True, slots=True)
class Template:
    """A prompt with one "{}" for the subject.

    Attributes:
        id: Stable name such as "P101-cloze-03".
        relation_id: The property it asks for; "" for the free description.
        use: "cloze" (cross-subject), "property" (one person, one property: cross-property), "open" (description).
        present, past: The text for the living (or unknown) and for people with a confirmed date of death.
    """

    id: str
    relation_id: str
    use: Use
    present: str
    past: str

    def fill(self, name: str, *, living: bool | None = None) -> str:
        """Return the prompt about `name`; past tense only when `living` is False, i.e. a date of death is confirmed."""
        return (self.past if living is False else self.present).replace("{}", name)


@dataclass(frozen=True, slots=True)
class Relation:
    """A Wikidata property that edits change.

    Attributes:
        id: Property id.
        name: The papers' word for it.
        label: Wikidata's English label.
    """

    id: str
    name: str
    label: str


RELATIONS: dict[str, Relation] = {
    row.id: row
    for row in (
        Relation("P21", "gender", "sex or gender"),
        Relation("P101", "work", "field of work"),
        Relation("P27", "citizenship", "country of citizenship"),
        Relation("P19", "birth", "place of birth"),
        Relation("P103", "language", "native language"),
    )
}

# The eight (edit relation, effect relation) pairs of Table 7, in its order.
_WATCHED = {"P101": ("P21", "P27"), "P19": ("P101", "P21"), "P21": ("P101",), "P27": ("P101", "P19", "P21")}
PAIRS: tuple[tuple[str, str], ...] = tuple((edited, id) for edited, ids in _WATCHED.items() for id in ids)

# (relation, use, present, past)
_ROWS: tuple[tuple[str, Use, str, str], ...] = (
    ("P21", "cloze", "{}'s gender is", "{}'s gender was"),
    ("P101", "cloze", "{} works in the field of", "{} worked in the field of"),
    ("P101", "cloze", "{} specializes in", "{} specialized in"),
    ("P101", "cloze", "The expertise of {} is", "The expertise of {} was"),
    ("P101", "cloze", "The domain of activity of {} is", "The domain of activity of {} was"),
    ("P101", "cloze", "The domain of work of {} is", "The domain of work of {} was"),
    ("P101", "cloze", "{}'s area of work is", "{}'s area of work was"),
    ("P101", "cloze", "{}'s domain of work is", "{}'s domain of work was"),
    ("P101", "cloze", "{}'s domain of activity is", "{}'s domain of activity was"),
    ("P101", "cloze", "{}'s expertise is", "{}'s expertise was"),
    ("P101", "cloze", "{} works in the area of", "{} worked in the area of"),
    ("P101", "property", "{}'s field of work is", "{}'s field of work was"),
    ("P101", "open", "{} is known for", "{} was known for"),
    ("P101", "open", "{}'s greatest accomplishment is", "{}'s greatest accomplishment was"),
    ("P101", "open", "{} works as a", "{} worked as a"),
    ("P27", "cloze", "{} is a citizen of", "{} was a citizen of"),
    ("P19", "cloze", "{} was born in", "{} was born in"),
    ("P103", "cloze", "The native language of {} is", "The native language of {} was"),
    ("P103", "cloze", "The mother tongue of {} is", "The mother tongue of {} was"),
    (
        "P103",
        "open",
        "Where {} is from, people speak the language of",
        "Where {} was from, people spoke the language of",
    ),
    ("P103", "open", "{}'s mother tongue is", "{}'s mother tongue was"),
    ("P103", "open", "{} was born in", "{} was born in"),
    ("", "open", "{} is", "{} was"),
)  # fmt: skip


def _number(rows: Iterable[tuple[str, Use, str, str]]) -> tuple[Template, ...]:
    counts: Counter[tuple[str, str]] = Counter()
    numbered = []
    for relation_id, use, present, past in rows:
        counts[relation_id, use] += 1
        id = f"{relation_id or 'free'}-{use}-{counts[relation_id, use]:02d}"
        numbered.append(Template(id, relation_id, use, present, past))
    return tuple(numbered)


TEMPLATES: tuple[Template, ...] = _number(_ROWS)
FREE: Template = TEMPLATES[-1]


def relation(id_or_name: str) -> Relation:
    """Look a relation up by its property id ("P27") or the papers' name ("citizenship").

    Raises:
        UnknownNameError: Neither; near names are suggested.
    """
    by_name = {row.name: row for row in RELATIONS.values()}
    match = RELATIONS.get(id_or_name) or by_name.get(id_or_name)
    if match is None:
        raise unknown_name("relation", id_or_name, [*RELATIONS, *by_name])
    return match


def templates(relation_id: str, use: Use, listed: Sequence[Template] = ()) -> tuple[Template, ...]:
    """Return the templates of one relation for one use, out of `listed` (none: the papers').

    A relation without a "property" or "open" template uses its "cloze" templates (P21, P27 and P19 have one
    hand-written template each, which the papers use for everything).

    Raises:
        UnknownNameError: The relation is unknown.
    """
    row = relation(relation_id)
    own = [template for template in (listed or TEMPLATES) if template.relation_id == row.id]
    return tuple(t for t in own if t.use == use) or tuple(t for t in own if t.use == "cloze")


def read_templates(path: Path) -> tuple[Template, ...]:
    """Read templates of another language from a CSV file with the columns relation_id, use, present and past.

    An empty relation_id with the use "open" is the free description ("X is").

    Raises:
        StorageError: The file cannot be read.
        RecordError: A column is missing, a row is no template, or a relation that is there has no cloze prompt.
    """
    parsed: list[tuple[str, Use, str, str]] = []
    for number, row in enumerate(csv.DictReader(io.StringIO(read_text(path))), 2):
        relation_id, use, present, past = (row.get(name) or "" for name in ("relation_id", "use", "present", "past"))
        known = relation_id in RELATIONS or (not relation_id and use == "open")
        if use not in get_args(Use) or not known or present.count("{}") != 1:
            raise RecordError(
                f"{path}, line {number}: {row}, expected relation_id of {', '.join(RELATIONS)}, use of "
                f"{', '.join(get_args(Use))}, and present (and past, where it differs) with one {{}} for the name."
            )
        parsed.append((relation_id, use, present, past or present))  # type: ignore[arg-type]
    if lacking := {row[0] for row in parsed} - {row[0] for row in parsed if row[1] == "cloze"} - {""}:
        raise RecordError(f"{path}: no row with use cloze for {', '.join(sorted(lacking))}. Add one.")
    return _number(parsed)


# The data set as a benchmark: what is measured with which config, each with its own leaderboard on the Hub.


@dataclass(frozen=True, slots=True)
class MetricTask:
    """One number about an edited model.

    Attributes:
        config: Of the data set; its prompts are scored.
        meaning: What the number is.
    """

    config: str
    meaning: str


# Task id -> what it is. Each is a row of a report; results on the Hub name these ids.
_TURNED = "share of right answers about people for whom the {} answer is true that turned wrong"
_GAIN = "change of p(new) - p(old) about people for whom the {} answer is true, in probability; {} 0 is harm"
_FACTS = "share of other facts about the edited person that are answered right after the edit"
TASKS: Mapping[str, MetricTask] = {
    "efficacy": MetricTask("cross_subject", "share of edits after which the new answer is likelier than the old one"),
    "other_facts": MetricTask("cross_property", _FACTS),
    "other_people_old": MetricTask("cross_subject", _GAIN.format("old", "above")),
    "other_people_new": MetricTask("cross_subject", _GAIN.format("new", "below")),
    "other_people_old_turned_wrong": MetricTask("cross_subject", _TURNED.format("old")),
    "other_people_new_turned_wrong": MetricTask("cross_subject", _TURNED.format("new")),
}
