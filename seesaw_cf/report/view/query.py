"""Turn an address into what a page shows, and back. Every view has one address; for a wrong one, suggest a near one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qsl, urlencode

from seesaw_cf.base.checks import one_of, shown
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.terminal import printable
from seesaw_cf.editors.control_names import CONTROLS
from seesaw_cf.effects.groups import UNKNOWN
from seesaw_cf.report.view.prompts import GROUPS, Prompts

PER_PAGE = 50
ALL_KINDS = "all"
_LONGEST = 200  # characters of a search
_LARGEST = 2**53
PAGES = ("/", "/case")
"""The whole run; one case, with its edit."""
FIRST_SORT = "harm"
WHO = "coalesce(nullif(person, ''), prompt)"
PERSON = ("editor", "kind", "edit_relation", "case_id", "who")
"""What names a person under an edit; `WHO` is the last of it."""
_FIRST = "cross_subject"  # the kind that a run is about, when it has it

# Column that rows can be sorted by -> its value; numbers by their size.
SORTED: Mapping[str, str] = {
    **{name: name for name in ("editor", "edit", "person", "prompt")},
    "relation": "edit_relation",
    "holds": "coalesce(holds, '')",
    **{f"{target}_{phase}": f"{phase}_{target}" for target in ("new", "true") for phase in ("pre", "post")},
    "harm": "harm",
    **{name: f"abs({name})" for name in ("odds_pre", "odds_post", "log_odds", *CONTROLS)},
    "status": "status",
}
# Parameter -> the condition it stands for.
_CONDITIONS = {
    "editor": "editor = $editor",
    "kind": "kind = $kind",
    "relation": "edit_relation = $relation",
    "holds": "coalesce(holds, '') = $holds",
    "case": "case_id = $case",
    "q": "contains(lower(concat_ws(' ', edit, prompt, person)), lower($q))",
}


@dataclass(frozen=True, slots=True)
class View:
    """What a page shows.

    Attributes:
        path: Out of `PAGES`.
        chosen: Parameter -> its value; what is left out is not filtered by, but controls are left out until one of
            them is chosen: the change after them stands in each row.
        sort: Column out of `SORTED`; large values first unless `up`.
        page: The first is 1.
    """

    path: str = "/"
    chosen: Mapping[str, str] = field(default_factory=dict)
    sort: str = FIRST_SORT
    up: bool = False
    page: int = 1

    @property
    def address(self) -> str:
        """Path and query; the same view has the same one."""
        more = {"sort": self.sort if self.sort != FIRST_SORT else "", "up": "1" if self.up else ""}
        more["page"] = str(self.page) if self.page > 1 else ""
        parameters = {name: value for name, value in {**self.chosen, **more}.items() if value}
        return self.path + (f"?{urlencode(parameters)}" if parameters else "")

    def sorted_by(self, name: str) -> View:
        """Return the same rows sorted by a column, or in reverse when they are sorted by it already."""
        return replace(self, sort=name, up=self.sort == name and not self.up, page=1)

    def at(self, page: int) -> View:
        """Return another page of the same rows."""
        return replace(self, page=page)

    def case(self, relation: str, case: int) -> View:
        """Return the view of a row's case."""
        return View("/case", {"relation": relation, "case": str(case)})

    def where(self) -> tuple[str, dict[str, str | int]]:
        """Return the SQL condition and its values."""
        parts = ["true"] if "editor" in self.chosen else ["NOT is_control"]
        values: dict[str, str | int] = {}
        for name, value in self.chosen.items():
            if name in GROUPS and value == UNKNOWN:
                parts.append(f"len({name}) = 0")
                continue
            if name == "kind" and value == ALL_KINDS:
                continue
            parts.append(f"list_contains({name}, ${name})" if name in GROUPS else _CONDITIONS[name])
            empty = name == "holds" and value == UNKNOWN
            values[name] = int(value) if name == "case" else "" if empty else value
        return " AND ".join(parts), values

    @property
    def by_person(self) -> bool:
        """Whether a row is a person under an edit, with all wordings of the question; else it is one prompt."""
        return self.sort == FIRST_SORT

    def rows(self, where: str) -> str:
        """Return the SQL query for the prompts of a page: rows without a value last, in a fixed order."""
        turn = f"LIMIT {PER_PAGE} OFFSET {(self.page - 1) * PER_PAGE}"
        way = "ASC" if self.up else "DESC"
        if self.by_person:
            return f"""
                WITH chosen AS (SELECT *, {WHO} AS who FROM prompts WHERE {where}),
                turn AS (SELECT {", ".join(PERSON)}, quantile_disc(harm, 0.5) AS middle FROM chosen GROUP BY ALL
                  ORDER BY middle {way} NULLS LAST, {", ".join(PERSON)} {turn})
                SELECT * FROM turn JOIN chosen USING ({", ".join(PERSON)})
                ORDER BY middle {way} NULLS LAST, {", ".join(PERSON)}, harm {way} NULLS LAST, prompt_id"""
        order = f"{SORTED[self.sort]} {way} NULLS LAST, editor, edit_relation, case_id, kind, prompt_id"
        return f"SELECT * FROM prompts WHERE {where} ORDER BY {order} {turn}"


def read_view(prompts: Prompts, path: str, query: str) -> View:
    """Return the view that an address names.

    Raises:
        UnknownNameError: A parameter or a value that this run does not have; near ones are suggested.
        RecordError: A value is given twice, is not a number or too long, or the case is missing.
    """
    pairs = [(name, value) for name, value in parse_qsl(query, max_num_fields=40) if value]
    parameters = dict(pairs)
    if len(parameters) != len(pairs):
        raise RecordError("the address gives a parameter twice. Give each once.")
    kinds = prompts.choices["kind"]
    lists = {**prompts.choices, "kind": (*kinds, ALL_KINDS), "holds": (*prompts.choices["holds"], UNKNOWN)}
    lists |= {"sort": tuple(SORTED), "up": ("1",)}
    free = {"q": _words, "case": _number, "page": _number}
    for name, value in parameters.items():
        one_of("parameter of the address", name, (*lists, *free))
        parameters[name] = _listed(name, value, lists[name]) if name in lists else free[name](name, value)
    if path == "/case" and (lacking := [name for name in ("relation", "case") if name not in parameters]):
        raise RecordError(f"the address of a case lacks {lacking[0]}=. Open the case from a row.")
    first = ALL_KINDS if path == "/case" or not kinds else _FIRST if _FIRST in kinds else kinds[0]
    names = ("editor", "relation", "holds", *GROUPS, "case", "q")
    chosen = {"kind": parameters.get("kind", first), **{name: parameters[name] for name in names if name in parameters}}
    return View(path, chosen, parameters.get("sort", FIRST_SORT), "up" in parameters, int(parameters.get("page", "1")))


def _listed(name: str, value: str, names: Sequence[str]) -> str:
    """Return a value out of a list; forms and links send what can be printed of it."""
    same = [own for own in names if value in (own, printable(own))]
    return same[0] if len(same) == 1 else one_of(f"{name} of this run", value, names)


def _words(name: str, text: str) -> str:
    if len(text) > _LONGEST:
        raise RecordError(f"{name} has {len(text):,} characters, expected at most {_LONGEST}.")
    return text


def _number(name: str, text: str) -> str:
    low = 1 if name == "page" else 0
    if not (text.isascii() and text.isdigit() and low <= int(text[:40]) <= _LARGEST):
        raise RecordError(f"{name} is {shown(text)}, expected a whole number of at least {low}.")
    return str(int(text))
