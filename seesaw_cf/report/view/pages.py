"""The pages: prompts of a run as a table, an edit with all its prompts, and why an address has no page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

import pandas as pd

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.terminal import printable
from seesaw_cf.editors.control_names import CONTROLS, first_seed
from seesaw_cf.effects.groups import AXES, UNKNOWN, tags_of
from seesaw_cf.report import text
from seesaw_cf.report.example import chance
from seesaw_cf.report.html.look import ListColumn
from seesaw_cf.report.html.render import SERVED, render
from seesaw_cf.report.page_cases import COLUMNS, control_column
from seesaw_cf.report.provenance import model_name, records_name
from seesaw_cf.report.results import relation_name
from seesaw_cf.report.table import Column, Row, Table, word_column
from seesaw_cf.report.view.prompts import EDITED, GROUPS, Prompts
from seesaw_cf.report.view.query import ALL_KINDS, FIRST_SORT, PER_PAGE, PERSON, SORTED, WHO, View, read_view

KINDS: Mapping[str, str] = {
    "cross_subject": "other people",
    "efficacy": "the edit itself",
    "paraphrase": "the edit in other words",
    "neighborhood": "neighbours, whose answer must stay",
    "portability": "what follows from the edit",
    ALL_KINDS: "all",
}
_HEADS: Mapping[str, ListColumn] = {
    "person": COLUMNS["person"],
    "answer": ListColumn("answer before → after", "the likelier of the two answers, with its probability", True),
    "outcome": ListColumn("outcome", "what became of the right answer (of the edit: of what it is to write)", True),
    "harm": ListColumn("harm", "what the right answer lost against the wrong one, nats; below 0 it gained"),
    "wordings": ListColumn("wordings", "how many prompts ask about the person, and the range of their harm", True),
    **{name: COLUMNS[name] for name in ("prompt", "edit", "holds", "groups", "editor", "relation")},
    "edited": ListColumn("edited person", "the edited person's recorded groups", True),
    "log_odds": ListColumn("change", COLUMNS["log_odds"].about),
    **{kind: control_column(kind) for kind in CONTROLS},
    "odds_pre": ListColumn("log-odds before", "log p(new) - log p(true) before the edit, nats"),
    "odds_post": ListColumn("after", "log p(new) - log p(true) after the edit, nats"),
    **{name: COLUMNS[name] for name in ("new_pre", "new_post", "true_pre", "true_post")},
    "status": ListColumn("status", "ok, or the first of the four answers without a number, and why", True),
}
_SHARES = tuple(name for name in COLUMNS if name.endswith(("_pre", "_post")))
_LABELS = {"editor": "editor", "kind": "prompts about", "relation": "edited property", "holds": "people hold the"}
_LABELS |= {name: f"edited person's {axis}" for name, axis in zip(EDITED, AXES, strict=True)}


_TAGGED: Mapping[str, Sequence[str]] = {"groups": AXES, "edited": EDITED}
_EVERY = {"editor": "all but controls", "kind": ""}


def view_page(prompts: Prompts, path: str, query: str) -> str:
    """Return the page of an address.

    Args:
        prompts: The run.
        path: Out of `seesaw_cf.report.view.query.PAGES`.
        query: What follows the question mark.

    Returns:
        HTML without script; the same run and address give the same bytes.

    Raises:
        UnknownNameError, RecordError: See `read_view`; or the page or case does not exist.
    """
    view = read_view(prompts, path, query)
    where, values = view.where()
    [size] = prompts.rows(f"SELECT {_SIZE} FROM prompts WHERE {where}", values)
    n_rows = size["groups"] if view.by_person else size["n"]
    pages = max(1, math.ceil(n_rows / PER_PAGE))
    tables = _case(prompts, view) if path == "/case" else []
    if view.page > pages:
        raise RecordError(f"page {view.page} is not there: these prompts have {pages}. Give a smaller number.")
    rows = prompts.rows(view.rows(where), values)
    rows = _by_person(rows) if view.by_person else rows
    names = _columns(prompts, view, bool(size["lacking"]))
    model = model_name(prompts.manifest)
    values_of_page = {
        "title": f"{tables[0].title} in {model}" if tables else f"Prompts of the edits to {model}",
        "about": _about(prompts),
        "path": path,
        "lists": _lists(prompts, view),
        "kept": [(name, value) for name, value in _hidden_fields(view).items() if value],
        "q": view.chosen.get("q", ""),
        "found": _count_line(size, view),
        "tables": tables,
        "heads": [_head(name, view) for name in names],
        "rows": [[_cell(name, row, view) for name in names] for row in rows],
        "pages": _pages(view, pages),
        "page": f"{view.page} of {pages}",
        "address": view.address,
        "home": path != "/" or bool(query),
    }
    return render("view.html", values_of_page, SERVED)


_PERSON = "coalesce(nullif(subject_id, ''), subject)"
_SIZE = (
    f"count(*) AS n, count(DISTINCT nullif({_PERSON}, '')) AS people, "
    f"count(DISTINCT ({', '.join(PERSON[:-1])}, {WHO})) AS groups, "
    "count(DISTINCT (edit_relation, case_id)) AS cases, count(*) FILTER (status <> 'ok') AS lacking"
)


def refusal(heading: str, message: str) -> str:
    """Return a page that explains why the one asked for is missing."""
    return render("view_refusal.html", {"title": heading, "message": message}, SERVED)


def _about(prompts: Prompts) -> str:
    means = ". Numbers after a control that draws are means of log-probabilities over its seeds" * _has_seeds(prompts)
    return f"{prompts.total:,} prompts of {prompts.folder.name}, records of {records_name(prompts.manifest)}{means}"


def _has_seeds(prompts: Prompts) -> bool:
    return any(first_seed(name) != name for name in prompts.manifest.get("editors", {}))


def _columns(prompts: Prompts, view: View, lacking: bool) -> list[str]:
    """Return the columns that can differ from row to row."""
    same = {"edit", "edited", "relation"} if view.path == "/case" else set[str]()
    same |= set() if any(len(prompts.choices[name]) > 1 for name in EDITED) else {"edited"}
    same |= set(CONTROLS) - set(prompts.controls)
    same |= set() if lacking else {"status"}
    same |= set() if view.by_person else {"wordings"}
    return [name for name in _HEADS if name not in same]


@dataclass(frozen=True, slots=True)
class ChoiceList:
    """A list of a form: (value, as shown, whether it is chosen) of each option."""

    name: str
    label: str
    any: str
    options: Sequence[tuple[str, str, bool]]


def _lists(prompts: Prompts, view: View) -> list[ChoiceList]:
    """Return the lists that a reader chooses from."""
    words: dict[str, Mapping[str, str]] = {
        "kind": KINDS,
        "relation": {name: relation_name(name) for name in prompts.choices["relation"]},
        "holds": {**text.HOLDS, UNKNOWN: text.HOLDS[""]},
    }
    more = {"kind": (ALL_KINDS,), "holds": (UNKNOWN,)}
    fixed = {"relation", *EDITED} if view.path == "/case" else set[str]()
    fixed |= {name for name in EDITED if len(prompts.choices[name]) == 1}  # nothing is recorded
    lists = []
    for name in ("editor", "kind", "relation", "holds", *GROUPS):
        if name in fixed:
            continue
        values = (*prompts.choices[name], *more.get(name, ()))
        labels = words.get(name, {})
        options = [(printable(value), labels.get(value, value), view.chosen.get(name) == value) for value in values]
        every = _EVERY.get(name, "any")
        lists.append(ChoiceList(name, _LABELS.get(name, name), every, options))
    return lists


def _hidden_fields(view: View) -> dict[str, str]:
    """Return what a form carries on that is not chosen in it."""
    names = ("relation", "case") if view.path == "/case" else ("case",)
    own = {name: view.chosen.get(name, "") for name in names}
    return own | {"sort": view.sort if view.sort != FIRST_SORT else "", "up": "1" if view.up else ""}


def _count_line(size: Mapping[str, int], view: View) -> str:
    if not size["n"]:
        return "No prompts"
    n = size["groups"] if view.by_person else size["n"]
    first, last = (view.page - 1) * PER_PAGE + 1, min(n, view.page * PER_PAGE)
    lacking = f", {size['lacking']:,} without a number" if size["lacking"] else ""
    counts = f"(cases: {size['cases']:,}, people: {size['people']:,})"
    of = f"{n:,} rows, each a person under an edit: {size['n']:,}" if view.by_person else f"{n:,}"
    return f"{first:,} to {last:,} of {of} prompts{lacking} {counts}"


def _by_person(rows: Sequence[Row]) -> list[Row]:
    """Return the middle wording of each person under an edit, with all of them."""
    people: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        people.setdefault(tuple(row[name] for name in PERSON), []).append(row)
    return [
        {**next((row for row in own if row["harm"] == row["middle"]), own[0]), "wordings": own}
        for own in people.values()
    ]


@dataclass(frozen=True, slots=True)
class ColumnHead:
    """A heading of a table: what it is, whether its column holds text, how rows are sorted, and what sorts them."""

    said: str
    about: str
    text: bool
    way: str
    link: str


def _head(name: str, view: View) -> ColumnHead:
    column = _HEADS[name]
    way = ("ascending" if view.up else "descending") if view.sort == name else "none"
    link = view.sorted_by(name).address if name in SORTED else ""
    return ColumnHead(column.head, column.about, column.text, way, link)


def _cell(name: str, row: Row, view: View) -> tuple[str, bool, str, Sequence[str]]:
    """Return text, whether it is a number, its link, and the lines that a reader can unfold."""
    if name in _SHARES:
        target, phase = name.split("_")
        return _number(_exp(row[f"{phase}_{target}"])), True, "", ()
    if name == "wordings":
        more = [f"{item['prompt']}: {_answer(item) or item['status']} ({_number(item['harm'])})" for item in row[name]]
        return _range(row[name]), False, "", more if len(more) > 1 else ()
    if not _HEADS[name].text:
        return _number(row[name]), True, "", ()
    if name == "edit":
        link = "" if view.path == "/case" else view.case(row["edit_relation"], row["case_id"]).address
        return row["edit"] or f"case {row['case_id']}", False, link, ()
    return _cell_text(name, row), False, "", ()


def _range(wordings: Sequence[Row]) -> str:
    """Return how many there are, and the least and the largest harm."""
    harm = [row["harm"] for row in wordings if row["harm"] is not None and math.isfinite(row["harm"])]
    ends = f": {_number(min(harm))} to {_number(max(harm))}" if len(harm) > 1 else ""
    return f"{len(wordings)}{ends}"


def _cell_text(name: str, row: Row) -> str:
    """Return a cell of words."""
    if name == "relation":
        return relation_name(row["edit_relation"])
    if name in _WORDS:
        return _WORDS[name](row)
    if name in _TAGGED:
        return _tags(row, _TAGGED[name])
    if name == "holds":
        return text.HOLDS.get(row["holds"] or "", row["holds"])
    return str(row[name] or "")


def _answer(row: Row) -> str:
    """Return the likelier of the two answers before and after: "Saint Petersburg 97 % → Shanghai 87 %"."""
    if row["status"] != "ok":
        return ""
    first = {phase: max(("new", "true"), key=lambda side: row[f"{phase}_{side}"]) for phase in ("pre", "post")}
    words = [f"{row[f'target_{side}']} {chance(math.exp(row[f'{phase}_{side}']))}" for phase, side in first.items()]
    return " → ".join(words)


def _outcome(row: Row) -> str:
    """Return what became of the right answer."""
    harm = row["harm"]
    if harm is None or not math.isfinite(harm):
        return ""
    sign = -1 if harm == row["log_odds"] else 1
    right = sign * row["odds_pre"] > 0, sign * row["odds_post"] > 0
    return _OUTCOMES.get(right) or ("worse" if harm > 0 else "better" if harm < 0 else "as before")


_OUTCOMES = {(True, False): "turned wrong", (False, True): "turned right"}
_WORDS = {"answer": _answer, "outcome": _outcome}


def _tags(row: Row, columns: Sequence[str]) -> str:
    return ", ".join(tag for name in columns for tag in tags_of(row[name])) or UNKNOWN


def _exp(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else math.exp(value)


def _number(value: float | None) -> str:
    """Return a number with three digits, or two where it is below 0.001 in size and not 0; a dash without one."""
    if value is None or not math.isfinite(value):
        return "\u2013"
    return text.minus(f"{value:#.3g}" if abs(value) >= 0.001 or value == 0 else f"{value:.1e}")


def _pages(view: View, pages: int) -> list[tuple[str, str]]:
    """Return where a reader can turn to: label and address."""
    turns = {"first": 1, "previous": view.page - 1, "next": view.page + 1, "last": pages}
    return [(label, view.at(page).address) for label, page in turns.items() if 1 <= page <= pages and page != view.page]


class CaseKey(TypedDict):
    """A case of a run."""

    relation: str
    case: int


def _case(prompts: Prompts, view: View) -> list[Table]:
    """Return the tables of a case: its edit under every editor, and the answers that were compared."""
    key: CaseKey = {"relation": view.chosen["relation"], "case": int(view.chosen["case"])}
    edits = prompts.rows("SELECT * FROM edits WHERE relation_id = $relation AND case_id = $case", key)
    if not edits:
        raise RecordError(f"this run has no case {key['case']} of {key['relation']}. Open a case from a row.")
    first = edits[0]
    title = f"{first['subject']}: {first['target_true']} \u2192 {first['target_new']}"
    about = (
        f"Case {key['case']}, {relation_name(key['relation'])}: the edited fact itself; the norm is of the change. "
        f"Recorded groups of the edited person: {_edited(prompts, key)}"
        + ". Of a control with several seeds this is the edit of its first seed"
        * _has_seeds(prompts)
    )
    columns = (
        *(word_column(name) for name in ("editor", "status")),
        Column("rank of the true answer before", _rank),
        *(_share("p(new) before", "new_pre"), _share("after", "new_post")),
        *(_share("p(true) before", "true_pre"), _share("after", "true_post")),
        Column("norm", lambda row: _number(row["delta_norm"])),
    )
    return [Table("edit", title, about, columns, pd.DataFrame(edits)), *_answers(prompts, key)]


def _rank(row: Row) -> str:
    return "\u2013" if pd.isna(row["true_rank"]) else f"{row['true_rank']:.0f} of {row['n_candidates']:.0f}"


def _share(head: str, name: str) -> Column:
    return Column(head, lambda row: _number(_exp(row[name])))


def _edited(prompts: Prompts, key: CaseKey) -> str:
    sql = f"SELECT {', '.join(EDITED)} FROM prompts WHERE edit_relation = $relation AND case_id = $case LIMIT 1"
    return next((_tags(row, EDITED) for row in prompts.rows(sql, key)), UNKNOWN)


def _answers(prompts: Prompts, key: CaseKey) -> list[Table]:
    sql = (
        "SELECT * FROM candidates WHERE edit_relation = $relation AND case_id = $case "
        "ORDER BY editor, effect_relation, prompt_id, post DESC NULLS LAST, target"
    )
    columns = (
        word_column("editor"),
        word_column("asked", lambda row: relation_name(row["effect_relation"] or "")),
        word_column("answer", "target"),
        word_column("before the edit", lambda row: "right" if row["gold"] else ""),
        *(_share("p before", "pre"), _share("after", "post")),
    )
    about = "Another property of the edited person: the answers that were compared, the likeliest after the edit first"
    rows = prompts.rows(sql, key)
    return [Table("answers", "Answers that were compared", about, columns, pd.DataFrame(rows))] if rows else []
