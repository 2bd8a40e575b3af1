"""What reports about texts say first: sentences and lines of numbers, each made of rows of the frame."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from seesaw_cf.base.terminal import cut, interval, listed, quantity
from seesaw_cf.effects.instruments import flaw_title
from seesaw_cf.report.rows import rows_of
from seesaw_cf.report.screen import Screen, ScreenRow
from seesaw_cf.report.words import amount, and_list, capital, minus, percent, relation_name
from seesaw_cf.texts.report.collected import Answers
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
        "texts are missing": texts["value"].sum() - written,
        "texts are empty": texts["n_empty"].sum() if len(texts) else 0,
        "texts end at the length limit": texts["n_cut"].sum() if len(texts) else 0,
        "ratings could not be read": frame.loc[frame["what"] == "unrated", "value"].sum(),
        "edits failed": edits.loc[edits["answer"] != "ok", "value"].sum(),
    }
    words = {"rating": "Nobody rated these texts.", "claims": "No claims were annotated."}
    unknown = [sentence for what, sentence in words.items() if what not in set(frame["what"])]
    if not written:
        finding = ["No text was written."]
    elif len(unknown) == len(words):
        finding = [f"{written:,} texts were written; what the edits did to them was not measured."]
    else:
        finding = text_findings(frame)
    about = f"{model}: {and_list(counts or ['no edit'])}; {quantity(written, 'text')} written, {samples} per prompt"
    return Screen(about, finding, _missing(missing), *_sections(frame), notes=[*unknown, *quality])


def people_screen(frame: pd.DataFrame, people: Answers, judges: Collection[str] = ()) -> Screen:
    """Return what people's answers say.

    Args:
        frame: See `seesaw_cf.texts.report.people.people_frame`.
        people: Their answers.
        judges: Which raters of flaws are models.
    """
    answers = [
        own.assign(kind=kind, answer=own[_ANSWERS[kind]].astype(object), rater=own.get("rater", own.get("annotator")))
        for kind, own in people.items()
        if kind in _ANSWERS
    ]
    columns = ["kind", "answer", "rater", "editor"]
    given = pd.concat(answers)[columns] if answers else pd.DataFrame(columns=columns)
    missing = {
        f"of {len(own):,} {kind} are missing": own["answer"].isna().sum()
        for kind, own in given.groupby("kind", sort=False)
    }
    editors = sorted(set(given["editor"]) - {BASELINE, HUMAN}) or ["nobody"]
    raters = given[~given["rater"].isin(list(judges))].sort_values("rater").groupby("kind")["rater"].unique()
    everybody = [*dict.fromkeys(name for kind in _ANSWERS for name in raters.get(kind, ())), *sorted(judges)]
    about = f"Texts after edits by {and_list(editors)}, rated by {listed(everybody, 6) or 'nobody'}"
    finding = list(_flaw_findings(frame, these(raters.get("flaws", sorted(judges)))))
    finding += text_findings(frame, these(raters.get("ratings", raters.get("annotations", ()))))
    finding += _judge_findings(frame)
    return Screen(
        about, finding or ["Nothing was rated."], _missing(missing), *_sections(frame), notes=list(_notes(frame))
    )


def these(raters: Sequence[str]) -> str:
    """Return raters as the subject of a sentence: "these three raters"."""
    n = len(raters)
    return f"these {_COUNTS[n] if n < len(_COUNTS) else n} raters" if n != 1 else f"the rater {raters[0]}"


def _missing(counts: Mapping[str, float]) -> str:
    parts = [f"{n:,.0f} {words}" for words, n in counts.items() if n]
    return f"{'; '.join(parts)}." if parts else ""


# Sentences.


def text_findings(frame: pd.DataFrame, who: str = "") -> list[str]:
    """Return what claims and ratings say of the edits.

    Args:
        frame: Rows.
        who: Who rated, as the subject of a sentence; "" = a run's own raters.
    """
    drift, lower = surest(frame, "contradicted_more"), surest(frame, "lower")
    changed = rows_of(drift[drift["p_adjusted"] < _LEVEL])
    found = []
    for sign, word in ((1, "more"), (-1, "less")):
        sizes = [
            f"by {amount(row, sign)} in texts about {_ABOUT.get(row['about'], row['about'])} ({_edits(row)})"
            for row in changed
            if row["value"] * sign > 0
        ]
        if sizes:
            found.append(f"Texts contradict facts that no edit touches {word} often: {and_list(sizes[:3])}.")
    if len(drift) and not drift["low"].notna().any():
        why = drift["note"].iloc[0]
        found.append(f"Whether texts contradict facts that no edit touches more often is not known: {why}.")
    elif len(drift) and not changed:
        found.append("No editor is shown to make texts contradict facts that no edit touches more often.")
    fallen = rows_of(lower[(lower["p_adjusted"] < _LEVEL) & (lower["value"] < 0)])
    if fallen:
        sizes = [f"“{str(row['asked']).replace('_', ' ')}” by {_number(row, -1)} ({_edits(row)})" for row in fallen[:2]]
        sizes += [f"{len(fallen) - 2} more"] * (len(fallen) > 2)
        verb = f"{capital(who)} rate texts lower after edits" if who else "Ratings are lower after edits"
        found.append(f"{verb}, from 1 to 7: {and_list(sizes)}.")
    elif len(lower):
        found.append(f"No rating{f' by {who}' * bool(who)} is shown to be lower after edits.")
    return found


def _edits(row: Mapping[str, Any]) -> str:
    return ", ".join(str(row[name]) for name in ("editor", "dataset") if isinstance(row.get(name), str))


def _number(row: Mapping[str, Any], sign: int = 1, digits: int = 1, unit: str = "") -> str:
    """Return a number and its interval: "1.0 [0.4, 1.6]", or a share "51 % [44, 59]"."""
    factor = sign * 100 if unit else sign
    value, *ends = (round(factor * float(row[name]), digits) + 0.0 for name in ("value", "low", "high"))
    limits = interval(min(ends), max(ends), spec=f".{digits}f") if math.isfinite(ends[0]) else ""
    return minus(f"{value:.{digits}f}{unit} {limits}".strip())


def _share(row: Mapping[str, Any], sign: int = 1) -> str:
    return _number(row, sign, 0, " %")


def _flaw_findings(frame: pd.DataFrame, who: str) -> Iterator[str]:
    """Yield what these raters found, the largest first: a mean is the share of pairs with more less that with less."""
    means = frame[frame["what"] == "flaw_these_raters"]
    decided = means[means["p_adjusted"] < _LEVEL].sort_values("value", key=lambda own: -own.abs(), kind="stable")
    sizes = []
    for row in rows_of(decided):
        sign = 1 if row["value"] > 0 else -1
        flaw = f"{'more' if sign > 0 else 'less'} {flaw_title(row['asked']).lower()} in {_share(row, sign)}"
        sizes.append((flaw, f"edits of {relation_name(row['relation'])} by {row['editor']}"))
    for flaw, edits in sizes[:1]:
        key = ["editor", "relation", "asked"]
        at = frame[(frame[key] == decided.iloc[0][key]).all(axis=1)].set_index("what")["value"]
        sides = f"{percent(at['flaw_more'])} more and {percent(at['flaw_less'])} less"
        yield f"{capital(who)} found {flaw} of pairs after {edits} ({sides})."
    if others := [f"{flaw} ({edits})" for flaw, edits in sizes[1:3]]:
        more = f"; {quantity(len(sizes) - 3, 'more difference')} in flaws.csv" * (len(sizes) > 3)
        yield f"Also {and_list(others)}{more}."
    if not sizes and means["value"].notna().any():
        yield f"No flaw is shown to be more or less often there after the edits, as {who} see it."


def _judge_findings(frame: pd.DataFrame) -> Iterator[str]:
    for judge, own in frame[frame["what"] == "judge_kappa"].groupby("rater", sort=False):
        flaws = own["asked"].astype(str).map(flaw_title).str.lower().groupby(own["verdict"]).agg(list)
        clauses = [words.format(flaws=and_list(flaws[name])) for name, words in JUDGE_WORDS.items() if name in flaws]
        yield f"{judge} {'; '.join(clauses)}."
    for row in rows_of(frame[(frame["what"] == "first_text") & (frame["p"] < _LEVEL)]):
        yield f"{row['rater']} names the text shown first in {_share(row)} of unequal answers."


def _notes(frame: pd.DataFrame) -> Iterator[str]:
    """Yield where the edit is reflected, how far people agree, and that few raters speak for themselves only."""
    reflected = rows_of(frame[(frame["what"] == "reflected") & (frame["n"] > 0)])
    if shares := [f"{percent(row['value'])} of {row['n']} pairs ({row['rater']})" for row in reflected]:
        yield f"A text says what the edit says in {and_list(shares)}."
    for about, own in frame[frame["what"] == "alpha"].dropna(subset="value").groupby("about", sort=False):
        whole = own[own["asked"] == "all"] if "all" in set(own["asked"]) else own
        of = [f" ({flaw_title(name).lower()})" * (name != "all") for name in whole["asked"]]
        words = [_number(row, digits=2) + name for row, name in zip(rows_of(whole), of, strict=True)]
        yield f"Agreement on {about} beyond chance (Krippendorff's alpha): {', '.join(words)}."
    notes = frame.loc[frame["what"].isin(["flaw", "rating_other_raters"]), "note"]
    if notes.str.startswith("too few raters").any():
        yield "Intervals are for these raters; to speak of others like them takes five."


# Lines of numbers: a column an editor.


def _sections(frame: pd.DataFrame) -> tuple[list[str], dict[str, list[ScreenRow]]]:
    """Return the heads of columns, and title -> lines; of flaws and failures those with the largest numbers."""
    rows = [row for row in rows_of(frame[frame["what"].isin(_TESTS) & frame["value"].notna()]) if _place(row)[0]]
    tests = frame[frame["what"].isin(_TESTS.values()) & (frame["p_adjusted"] < _LEVEL)]
    decided = {_key(row, row["what"]): bool(row["value"] > 0) for row in rows_of(tests)}
    editors = sorted(dict.fromkeys(row["editor"] for row in rows), key=lambda name: (name != BASELINE, name == HUMAN))
    lines: dict[str, dict[str, dict[str, Mapping[str, Any]]]] = {}
    for row in rows:
        title, name = _place(row)
        lines.setdefault(title, {}).setdefault(name, {})[row["editor"]] = row
    sections = {}
    for title, own in lines.items():
        largest = sorted(own, key=lambda name: -max(abs(row["value"]) for row in own[name].values()))
        few = title.startswith(("Edits", "Texts"))
        names = [name for name in own if not few or name in largest[:_MAX_LINES]]
        sections[title] = [_line(name, own[name], editors, decided) for name in names]
    heads = ["before" if name == BASELINE else name if name == HUMAN else f"after {name}" for name in editors]
    return [cut(head, _MAX_NAME) for head in heads], sections


def _place(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return title and line of a number; the title is "" where it is not on the first screen."""
    who = ", ".join(str(row[name]) for name in ("rater", "dataset") if isinstance(row[name], str))
    if row["what"] == "flaw_these_raters":
        title = f"Edits of {relation_name(row['relation'])}: pairs with more of a flaw, less those with less"
        return title, flaw_title(row["asked"])
    if row["what"] == "claims":
        words = _CLAIMS.get((row["asked"], row["answer"]), "")
        return f"Claims of texts, by {who}" if words else "", f"{row['about']}: {words}"
    if row["what"] == "rating":
        return f"Ratings from 1 to 7, by {who}", str(row["asked"]).replace("_", " ")
    return "Texts in which people find a failure", str(row["asked"])


def _key(row: Mapping[str, Any], test: str) -> tuple[str, ...]:
    """Return what a test is about; that of claims is about facts that no edit touches."""
    asked = "" if test == "contradicted_more" else str(row["asked"])
    return test, asked, *(str(row[name]) for name in ("editor", "relation", "about", "rater", "dataset"))


def _line(
    name: str, cells: Mapping[str, Mapping[str, Any]], editors: Sequence[str], decided: Mapping[tuple[str, ...], bool]
) -> ScreenRow:
    first = next(iter(cells.values()))
    what, test = first["what"], "" if first["asked"] == "new_fact" else _TESTS[first["what"]]
    found = {own: decided[key] for own, row in cells.items() if (key := _key(row, test)) in decided}
    more, badge = any(found.values()), ""
    if found:
        edited = [editor for editor in cells if editor not in (BASELINE, HUMAN)]
        badge = "MORE" if more else "LOWER" if what == "rating" else "less"
        badge += f" ({cut(', '.join(found), _MAX_NAME)})" * (len(found) < len(edited))
    numbers = [_cell(cells[editor]) if editor in cells else "" for editor in editors]
    severity = ("bad" if more != (what == "rating") else "good") if found else "open"
    return ScreenRow(name, numbers, badge, severity, f"{first['n']} answers about {first['n_edits']} edits")


def _cell(row: Mapping[str, Any]) -> str:
    if row["what"] == "flaw_these_raters":
        return _share(row)
    return f"{row['value']:.1f}" if row["what"] == "rating" else percent(row["value"])
