"""What reports about texts say first: sentences and lines of numbers, each made of rows of the frame."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from seesaw_cf.base.terminal import cut, listed, quantity
from seesaw_cf.effects.instruments import flaw_title
from seesaw_cf.report.rows import rows_of
from seesaw_cf.report.screen import Screen, ScreenRow
from seesaw_cf.report.words import amount, and_list, capital, minus, percent, relation_name
from seesaw_cf.texts.report.collected import Collected
from seesaw_cf.texts.report.rows import BASELINE, HUMAN, surest

JUDGE_WORDS: Mapping[str, str] = {
    "agrees": "agrees with people beyond chance on {flaws}",
    "not_shown": "is not shown to agree with people beyond chance on {flaws}",
    "no_better_than_equal": "is right no more often than “equal” to everything would be on {flaws}",
    "sign_in_doubt": "agrees with people more often with its sign turned round on {flaws}",
    "not_compared": "could not be compared with people on {flaws}",
}
"""Verdict on a judge of a flaw -> what is said of it."""
_CLAIMS = {
    ("new_fact", "supports"): "say the new fact",
    ("ground_truth", "contradicts"): "contradict facts that no edit touches",
}
# Numbers of the first screen -> what tests them.
_TESTS = {"flaw_these_raters": "flaw_these_raters", "claims": "contradicted_more", "rating": "lower", "failure": ""}
_COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_ABOUT = {"subject": "the subject", "related": "a related entity"}
_LEVEL = 0.05
_MAX_LINES = 3  # of a property, and of failure modes
_MAX_NAME = 30  # letters of an editor's name in a table
_ANSWERS = {"flaws": "change", "ratings": "rating", "annotations": "label", "failures": "present"}


def run_screen(frame: pd.DataFrame, model: str, samples: int, quality: Sequence[str]) -> Screen:
    """Return what a run of long texts found.

    Args:
        frame: See `seesaw_cf.texts.report.leme.leme_frame`.
        model: Its name.
        samples: Texts per prompt.
        quality: How often its annotator is right.
    """
    texts, edits = frame[frame["what"] == "texts"], frame[frame["what"] == "edits"]
    written = int(texts.loc[texts["answer"] == "ok", "value"].sum())
    counts = [f"{int(own['value'].sum())} edits by {name}" for name, own in edits.groupby("editor", sort=False)]
    missing = {
        "texts are missing": int(texts["value"].sum()) - written,
        "texts are empty": _total(texts, "n_empty"),
        "texts end at the length limit": _total(texts, "n_cut"),
        "ratings could not be read": int(frame.loc[frame["what"] == "unrated", "value"].sum()),
        "edits failed": int(edits.loc[edits["answer"] != "ok", "value"].sum()),
    }
    asked = {"ratings": "rating" in set(frame["what"]), "claims": "claims" in set(frame["what"])}
    unknown = [words for name, words in (("ratings", "Nobody rated these texts."),
                                         ("claims", "No claims were annotated.")) if not asked[name]]  # fmt: skip
    if not written:
        finding = ["No text was written."]
    elif not any(asked.values()):
        finding = [f"{written:,} texts were written; what the edits did to them was not measured."]
    else:
        finding = text_findings(frame)
    about = f"{model}: {and_list(counts or ['no edit'])}; {quantity(written, 'text')} written, {samples} per prompt"
    return Screen(about, finding, _missing(missing), *_sections(frame), notes=[*unknown, *quality])


def people_screen(frame: pd.DataFrame, people: Collected, judges: Collection[str] = ()) -> Screen:
    """Return what people's answers say.

    Args:
        frame: See `seesaw_cf.texts.report.people.people_frame`.
        people: Their answers.
        judges: Which raters of flaws are models.
    """
    given = {kind: people.get(kind).to_pandas() for kind in _ANSWERS}
    given = {kind: own for kind, own in given.items() if len(own)}
    who = {
        kind: sorted(set(own["annotator" if kind == "annotations" else "rater"]) - set(judges))
        for kind, own in given.items()
    }
    missing = {
        f"of {len(own):,} {kind} are missing": int(own[_ANSWERS[kind]].isna().sum()) for kind, own in given.items()
    }
    cases = {(editor, case) for own in given.values() for editor, case in zip(own["editor"], own["case_id"])}
    editors = [name for name in dict.fromkeys(editor for editor, _ in cases) if name not in (BASELINE, HUMAN)]
    everybody = list(dict.fromkeys(name for names in who.values() for name in names))
    raters = [*everybody, *sorted(judges)]
    about = f"Texts after edits by {and_list(sorted(editors) or ['nobody'])}, rated by {listed(raters, 6) or 'nobody'}"
    finding = list(_flaw_findings(frame, who["flaws"], judges)) if "flaws" in given else []
    finding += text_findings(frame, these(who.get("ratings", []) or who.get("annotations", [])))
    finding += _judge_findings(frame)
    notes = [*_reflected(frame), *_alphas(frame), *_others(frame)]
    return Screen(about, finding or ["Nothing was rated."], _missing(missing), *_sections(frame), notes=notes)


def these(raters: Sequence[str]) -> str:
    """Return raters as the subject of a sentence: "these three raters"."""
    n = len(raters)
    return f"these {_COUNTS[n] if n < len(_COUNTS) else n} raters" if n != 1 else f"the rater {raters[0]}"


def _total(rows: pd.DataFrame, column: str) -> int:
    return int(rows[column].sum()) if column in rows else 0


def _missing(counts: Mapping[str, int]) -> str:
    parts = [f"{n:,} {words}" for words, n in counts.items() if n]
    return f"{'; '.join(parts)}." if parts else ""


# Sentences.


def text_findings(frame: pd.DataFrame, who: str = "") -> list[str]:
    """Return what claims and ratings say of the edits.

    Args:
        frame: Rows.
        who: Who rated, as the subject of a sentence; "" = a run's own raters.
    """
    drift, lower = surest(frame, "contradicted_more"), surest(frame, "lower")
    found = []
    if len(drift):
        changed = rows_of(drift[drift["p_adjusted"] < _LEVEL])
        for sign, word in ((1, "more"), (-1, "less")):
            rows = [row for row in changed if row["value"] * sign > 0]
            sizes = [
                f"by {amount(row, sign)} in texts about {_ABOUT.get(row['about'], row['about'])} ({_edits(row)})"
                for row in rows[:3]
            ]
            found += [f"Texts contradict facts that no edit touches {word} often: {and_list(sizes)}."] if rows else []
        if not changed and not any(map(math.isfinite, drift["low"])):
            found.append(
                f"Whether texts contradict facts that no edit touches more often is not known: {drift['note'].iloc[0]}."
            )
        elif not changed:
            found.append("No editor is shown to make texts contradict facts that no edit touches more often.")
    if len(lower):
        fallen = rows_of(lower[(lower["p_adjusted"] < _LEVEL) & (lower["value"] < 0)])
        sizes = [f"“{str(row['asked']).replace('_', ' ')}” by {_number(row, -1)} ({_edits(row)})" for row in fallen[:2]]
        sizes += [f"{len(fallen) - 2} more"] * (len(fallen) > 2)
        verb = f"{capital(who)} rate texts lower after edits" if who else "Ratings are lower after edits"
        none = f"No rating{f' by {who}' * bool(who)} is shown to be lower after edits."
        found.append(f"{verb}, from 1 to 7: {and_list(sizes)}." if fallen else none)
    return found


def _edits(row: Mapping[str, Any]) -> str:
    return ", ".join(str(row[name]) for name in ("editor", "dataset") if isinstance(row.get(name), str))


def _number(row: Mapping[str, Any], sign: int = 1, digits: int = 1) -> str:
    """Return a number and its interval in one format: "1.0 [0.4, 1.6]"."""
    numbers = [round(sign * float(row[name]), digits) + 0.0 for name in ("value", "low", "high")]
    value, low, high = (minus(f"{number:.{digits}f}") for number in (numbers[0], *sorted(numbers[1:])))
    return value if math.isnan(numbers[1]) else f"{value} [{low}, {high}]"


def _share(row: Mapping[str, Any], sign: int = 1) -> str:
    """Return a share with its interval: "51 % [44, 59]"."""
    number = _number({name: 100 * float(row[name]) for name in ("value", "low", "high")}, sign, 0)
    value, space, interval = number.partition(" ")
    return f"{value} %{space}{interval}"


def _flaw_findings(frame: pd.DataFrame, people: Sequence[str], judges: Collection[str]) -> Iterator[str]:
    """Yield what these raters found, the largest first: a mean is the share of pairs with more less that with less."""
    who = these(people or sorted(judges))
    means = frame[frame["what"] == "flaw_these_raters"]
    decided = means[means["p_adjusted"] < _LEVEL].assign(size=lambda own: -own["value"].abs())
    ordered = rows_of(decided.sort_values("size", kind="stable"))
    rest = ordered[1:]
    for row in ordered[:1]:
        sides = " and ".join(f"{percent(_side(frame, row, f'flaw_{side}'))} {side}" for side in ("more", "less"))
        yield f"{capital(who)} found {_more(row)} of pairs after {_edited(row)} ({sides})."
    if others := [f"{_more(row)} ({_edited(row)})" for row in rest[:2]]:
        more = f"; {quantity(len(rest) - 2, 'more difference')} in flaws.csv" * (len(rest) > 2)
        yield f"Also {and_list(others)}{more}."
    if decided.empty and means["value"].notna().any():
        yield f"No flaw is shown to be more or less often there after the edits, as {who} see it."


def _more(row: Mapping[str, Any]) -> str:
    sign = 1 if row["value"] > 0 else -1
    return f"{'more' if sign > 0 else 'less'} {flaw_title(row['asked']).lower()} in {_share(row, sign)}"


def _edited(row: Mapping[str, Any]) -> str:
    return f"edits of {relation_name(row['relation'])} by {row['editor']}"


def _side(frame: pd.DataFrame, row: Mapping[str, Any], what: str) -> float:
    key = ["editor", "relation", "asked"]
    return float(frame[frame["what"] == what].set_index(key).loc[tuple(row[name] for name in key), "value"])


def _judge_findings(frame: pd.DataFrame) -> Iterator[str]:
    for judge, own in frame[frame["what"] == "judge_kappa"].groupby("rater", sort=False):
        flaws = {
            verdict: [flaw_title(name).lower() for name in rows["asked"]] for verdict, rows in own.groupby("verdict")
        }
        clauses = [words.format(flaws=and_list(flaws[name])) for name, words in JUDGE_WORDS.items() if name in flaws]
        yield f"{judge} {'; '.join(clauses)}."
    for row in rows_of(frame[(frame["what"] == "first_text") & (frame["p"] < _LEVEL)]):
        yield f"{row['rater']} names the text shown first in {_share(row)} of unequal answers."


def _reflected(frame: pd.DataFrame) -> Iterator[str]:
    rows = [row for row in rows_of(frame[frame["what"] == "reflected"]) if row["n"]]
    shares = [f"{percent(row['value'])} of {row['n']} pairs ({row['rater']})" for row in rows]
    if shares:
        yield f"A text says what the edit says in {and_list(shares)}."


def _alphas(frame: pd.DataFrame) -> Iterator[str]:
    for about, own in frame[frame["what"] == "alpha"].dropna(subset="value").groupby("about", sort=False):
        whole = own[own["asked"] == "all"] if "all" in set(own["asked"]) else own
        words = [
            f"{_number(row, digits=2)}" + f" ({flaw_title(row['asked']).lower()})" * (row["asked"] != "all")
            for row in rows_of(whole)
        ]
        yield f"Agreement on {about} beyond chance (Krippendorff's alpha): {', '.join(words)}."


def _others(frame: pd.DataFrame) -> Iterator[str]:
    """Yield that numbers are about these raters, where there are too few to speak of raters like them."""
    notes = frame.loc[frame["what"].isin(["flaw", "rating_other_raters"]), "note"]
    if notes.str.startswith("too few raters").any():
        yield "Intervals are for these raters; to speak of others like them takes five."


# Lines of numbers: a column an editor.


def _sections(frame: pd.DataFrame) -> tuple[list[str], dict[str, list[ScreenRow]]]:
    """Return the heads of columns, and title -> lines; of flaws and failures those with the largest numbers."""
    rows = rows_of(frame[frame["what"].isin(_TESTS) & frame["value"].notna()])
    tests = {_key(row): row for row in rows_of(frame[frame["what"].isin(_TESTS.values())])}
    lines: dict[str, dict[str, dict[str, Mapping[str, Any]]]] = {}
    for row in rows:
        if place := _place(row):
            lines.setdefault(place[0], {}).setdefault(place[1], {})[row["editor"]] = row
    editors = sorted(dict.fromkeys(row["editor"] for row in rows), key=lambda name: (name != BASELINE, name == HUMAN))
    sections = {}
    for title, own in lines.items():
        few = next(iter(next(iter(own.values())).values()))["what"] in ("flaw_these_raters", "failure")
        names = sorted(own, key=lambda name: -max(abs(row["value"]) for row in own[name].values()))[:_MAX_LINES]
        shown = {name: cells for name, cells in own.items() if not few or name in names}
        sections[title] = [_line(name, cells, editors, tests) for name, cells in shown.items()]
    heads = ["before" if name == BASELINE else name if name == HUMAN else f"after {name}" for name in editors]
    return [cut(head, _MAX_NAME) for head in heads], sections


def _place(row: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return title and line of a number; None where it is not on the first screen."""
    who = ", ".join(str(row[name]) for name in ("rater", "dataset") if isinstance(row[name], str))
    if row["what"] == "flaw_these_raters":
        title = f"Edits of {relation_name(row['relation'])}: pairs with more of a flaw, less those with less"
        return title, flaw_title(row["asked"])
    if row["what"] == "claims":
        words = _CLAIMS.get((row["asked"], row["answer"]))
        return (f"Claims of texts, by {who}", f"{row['about']}: {words}") if words else None
    if row["what"] == "rating":
        return f"Ratings from 1 to 7, by {who}", str(row["asked"]).replace("_", " ")
    return "Texts in which people find a failure", str(row["asked"])


def _key(row: Mapping[str, Any], what: str = "") -> tuple[str, ...]:
    """Return what a test is about."""
    what = what or row["what"]
    asked = "" if what == "contradicted_more" else row["asked"]
    return what, asked, *(str(row[name]) for name in ("editor", "relation", "about", "rater", "dataset"))


def _line(
    name: str,
    cells: Mapping[str, Mapping[str, Any]],
    editors: Sequence[str],
    tests: Mapping[tuple[str, ...], Mapping[str, Any]],
) -> ScreenRow:
    first = next(iter(cells.values()))
    what, decided = first["what"], {}
    for editor, row in cells.items():
        test = tests.get(_key(row, _TESTS[what])) if (what, first["asked"]) != ("claims", "new_fact") else None
        if test is not None and test["p_adjusted"] < _LEVEL:
            decided[editor] = test["value"] > 0
    badge, worse = "", any(decided.values()) != (what == "rating")
    if decided:
        edited = [editor for editor in cells if editor not in (BASELINE, HUMAN)]
        badge = "MORE" if any(decided.values()) else "LOWER" if worse else "less"
        badge += f" ({cut(', '.join(decided), _MAX_NAME)})" * (len(decided) < len(edited))
    numbers = [_cell(cells[editor]) if editor in cells else "" for editor in editors]
    detail = f"{first['n']} answers about {first['n_edits']} edits"
    return ScreenRow(name, numbers, badge, ("bad" if worse else "good") if badge else "open", detail)


def _cell(row: Mapping[str, Any]) -> str:
    if row["what"] == "flaw_these_raters":
        return _share(row)
    return f"{row['value']:.1f}" if row["what"] == "rating" else percent(row["value"])
