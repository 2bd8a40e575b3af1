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
from seesaw_cf.texts.report.people import Answers
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
_COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_ABOUT = {"subject": "the subject", "related": "a related entity"}
_LEVEL = 0.05
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
    given = {kind: people[kind] for kind in _ANSWERS if kind in people}
    missing = {f"of {len(own):,} {kind} are missing": own[_ANSWERS[kind]].isna().sum() for kind, own in given.items()}
    names = {kind: own["annotator" if kind == "annotations" else "rater"] for kind, own in given.items()}
    raters = {kind: sorted(set(own) - set(judges)) for kind, own in names.items()}
    editors = sorted({name for own in given.values() for name in own["editor"]} - {BASELINE, HUMAN}) or ["nobody"]
    everybody = [*dict.fromkeys(name for own in raters.values() for name in own), *sorted(judges)]
    about = f"Texts after edits by {and_list(editors)}, rated by {listed(everybody, 6) or 'nobody'}"
    finding = list(_flaw_findings(frame, these(raters.get("flaws") or sorted(judges))))
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
    found, facts = [], "contradict facts that no edit touches"
    sizes: dict[str, list[str]] = {}
    for row in rows_of(drift[drift["p_adjusted"] < _LEVEL]):
        sign = 1 if row["value"] > 0 else -1
        words = f"by {amount(row, sign)} in texts about {_ABOUT.get(row['about'], row['about'])} ({_edits(row)})"
        sizes.setdefault("more" if sign > 0 else "less", []).append(words)
    found += [f"Texts {facts} {word} often: {and_list(own[:3])}." for word, own in sizes.items()]
    if len(drift) and drift["low"].isna().all():
        found.append(f"Whether texts {facts} more often is not known: {drift['note'].iloc[0]}.")
    elif len(drift) and not sizes:
        found.append(f"No editor is shown to make texts {facts} more often.")
    fallen = rows_of(lower[(lower["p_adjusted"] < _LEVEL) & (lower["value"] < 0)])
    if fallen:
        items = [f"“{str(row['asked']).replace('_', ' ')}” by {_number(row, -1)} ({_edits(row)})" for row in fallen[:2]]
        items += [f"{len(fallen) - 2} more"] * (len(fallen) > 2)
        verb = f"{capital(who)} rate texts lower after edits" if who else "Ratings are lower after edits"
        found.append(f"{verb}, from 1 to 7: {and_list(items)}.")
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
    """Return the heads of columns, and title -> lines; of flaws those that the edits are shown to change."""
    shown = frame[frame["value"].notna() & ((frame["what"] != "flaw_these_raters") | (frame["p_adjusted"] < _LEVEL))]
    placed = [(place, row) for row in rows_of(shown) if (place := _place(row))]
    names = dict.fromkeys(row["editor"] for _, row in placed)
    editors = sorted(names, key=lambda name: (name != BASELINE, name == HUMAN))
    lines: dict[tuple[str, str], dict[str, str]] = {}
    for place, row in placed:
        value = f"{row['value']:.1f}" if row["what"] == "rating" else percent(row["value"])
        lines.setdefault(place, {})[row["editor"]] = _share(row) if row["what"] == "flaw_these_raters" else value
    sections: dict[str, list[ScreenRow]] = {}
    for (title, name), cells in lines.items():
        sections.setdefault(title, []).append(ScreenRow(name, [cells.get(editor, "") for editor in editors]))
    heads = ["before" if name == BASELINE else name if name == HUMAN else f"after {name}" for name in editors]
    return [cut(head, _MAX_NAME) for head in heads], sections


def _place(row: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return title and line of a number; None where it is not on the first screen."""
    who = ", ".join(str(row[name]) for name in ("rater", "dataset") if isinstance(row[name], str))
    asked = str(row["asked"])
    claim = _CLAIMS.get((asked, row["answer"]))
    return {
        "flaw_these_raters": (
            f"Edits of {relation_name(row['relation'])}: pairs with more of a flaw, less those with less",
            flaw_title(asked),
        ),
        "claims": (f"Claims of texts, by {who}", f"{row['about']}: {claim}") if claim else None,
        "rating": (f"Ratings from 1 to 7, by {who}", asked.replace("_", " ")),
        "failure": ("Texts in which people find a failure", asked),
    }.get(row["what"])
