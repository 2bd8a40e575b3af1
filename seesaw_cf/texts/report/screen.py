"""What reports about texts say first: sentences and lines of numbers, each made of rows of the frame."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

import pandas as pd

from seesaw_cf.base.terminal import cut, listed, quantity
from seesaw_cf.effects.instruments import flaw_title
from seesaw_cf.report.levels import BADGES, SEVERITY
from seesaw_cf.report.rows import Row, rows_of
from seesaw_cf.report.screen import Screen, ScreenRow
from seesaw_cf.report.words import amount, and_list, capital, percent, relation_name, with_interval
from seesaw_cf.stats.clustered import MIN_EFFECTIVE
from seesaw_cf.texts.report.people import Answers
from seesaw_cf.texts.tables import BASELINE, HUMAN, QUESTIONS

JUDGE_WORDS: Mapping[str, str] = {
    "agrees": "agrees with people beyond chance on {flaws}",
    "not_shown": "is not shown to agree with people beyond chance on {flaws}",
    "no_better_than_equal": "is right no more often than “equal” to everything would be on {flaws}",
    "sign_in_doubt": "agrees with people more often with its sign turned round on {flaws}",
    "not_compared": "could not be compared with people on {flaws}",
}
"""Verdict on a judge of a flaw -> what is said of it."""
_FACTS = "contradict facts that no edit touches"
_CLAIMS = {("new_fact", "supports"): "say the new fact", ("ground_truth", "contradicts"): _FACTS}
_COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_ABOUT = {"subject": "the subject", "related": "a related entity"}
_LEVEL = 0.05
_MAX_NAME = 30  # letters of an editor's name in a table


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
    counts = [f"{n:.0f} edits by {name}" for name, n in edits.groupby("editor", sort=False)["value"].sum().items()]
    missing = {
        "texts are missing": texts["value"].sum() - written,
        "texts are empty": texts["n_empty"].sum() if len(texts) else 0,
        "texts end at the length limit": texts["n_cut"].sum() if len(texts) else 0,
        "ratings could not be read": frame.loc[frame["what"] == "unrated", "value"].sum(),
        "edits failed": edits.loc[edits["answer"] != "ok", "value"].sum(),
    }
    words = {"rating": "Nobody rated these texts.", "claims": "No claims were annotated."}
    unknown = [sentence for what, sentence in words.items() if what not in set(frame["what"])]
    finding = text_findings(frame) or [f"{written:,} texts were written; what the edits did to them was not measured."]
    finding = finding if written else ["No text was written."]
    about = f"{model}: {and_list(counts or ['no edit'])}; {quantity(written, 'text')} written, {samples} per prompt"
    return Screen(about, finding, _missing(missing), *_sections(frame), notes=[*unknown, *quality])


def people_screen(frame: pd.DataFrame, people: Answers, judges: Collection[str] = ()) -> Screen:
    """Return what people's answers say.

    Args:
        frame: See `seesaw_cf.texts.report.people.people_frame`.
        people: Their answers.
        judges: Which raters of flaws are models.
    """
    given = {kind: people[kind] for kind in ("flaws", "ratings", "annotations", "failures") if kind in people}
    missing = {
        f"of {len(own):,} {kind} are missing": own[QUESTIONS[kind][0]].isna().sum() for kind, own in given.items()
    }
    raters = {kind: sorted(set(own[QUESTIONS[kind][-1]]) - set(judges)) for kind, own in given.items()}
    editors = sorted({name for own in given.values() for name in own["editor"]} - {BASELINE, HUMAN}) or ["nobody"]
    everybody = [*dict.fromkeys(name for own in raters.values() for name in own), *sorted(judges)]
    about = f"Texts after edits by {and_list(editors)}, rated by {listed(everybody, 6) or 'nobody'}"
    few = any(len(raters[kind]) < MIN_EFFECTIVE for kind in ("flaws", "ratings") if kind in raters)
    finding = list(_flaw_findings(frame, _these(raters.get("flaws") or sorted(judges))))
    finding += text_findings(frame, _these(raters.get("ratings", raters.get("annotations", ()))))
    finding = [*finding, *_judge_findings(frame)] or ["Nothing was rated."]
    return Screen(about, finding, _missing(missing), *_sections(frame), notes=list(_notes(frame, few)))


def _these(raters: Sequence[str]) -> str:
    """Return raters as the subject of a sentence: "these three raters"."""
    n = len(raters)
    return f"the rater {raters[0]}" if n == 1 else f"these {_COUNTS[n] if n < len(_COUNTS) else n} raters"


def _missing(counts: Mapping[str, float]) -> str:
    parts = [f"{n:,.0f} {words}" for words, n in counts.items() if n]
    return f"{'; '.join(parts)}." if parts else ""


# Sentences.


def text_findings(frame: pd.DataFrame, who: str = "") -> list[str]:
    """Return what claims and ratings say of the edits, what is shown before what is not.

    Args:
        frame: Rows.
        who: Who rated, as the subject of a sentence; "" = a run's own raters.
    """
    drift, lower = _surest(frame, "contradicted_more"), _surest(frame, "lower")
    shown, undecided = list[str](), list[str]()
    for word, sign in (("more", 1), ("less", -1)):
        rows = [row for row in drift if row["p_adjusted"] < _LEVEL and sign * row["value"] > 0][:3]
        places = [f"in texts about {_ABOUT.get(row['about'], row['about'])} ({_edits(row)})" for row in rows]
        sizes = [f"by {amount(row, sign)} {place}" for row, place in zip(rows, places)]
        shown += [f"Texts {_FACTS} {word} often: {and_list(sizes)}."] if sizes else []
    if drift and all(math.isnan(row["low"]) for row in drift):
        undecided.append(f"Whether texts {_FACTS} more often is not known: {drift[0]['note']}.")
    elif drift and not shown:
        most = max(drift, key=lambda row: float(row["value"]))
        seen = f": the most that was seen, {amount(most)} ({_edits(most)}), chance can do" * (most["value"] > 0)
        undecided.append(f"No editor is shown to make texts {_FACTS} more often{seen}.")
    fallen = [row for row in lower if row["p_adjusted"] < _LEVEL and row["value"] < 0]
    if fallen:
        names = [f"“{str(row['asked']).replace('_', ' ')}”" for row in fallen[:2]]
        items = [f"{name} by {with_interval(row, -1, 1)} ({_edits(row)})" for name, row in zip(names, fallen)]
        items += [f"{len(fallen) - 2} more"] * (len(fallen) > 2)
        verb = f"{capital(who)} rate texts lower after edits" if who else "Ratings are lower after edits"
        shown.append(f"{verb}, from 1 to 7: {and_list(items)}.")
    elif lower:
        undecided.append(f"No rating{f' by {who}' * bool(who)} is shown to be lower after edits.")
    return shown + undecided


def _surest(frame: pd.DataFrame, what: str) -> list[Row]:
    """Return tests of one kind, by the first rater by name, the smallest corrected p first."""
    rows = frame[frame["what"] == what]
    return rows_of(rows[rows["rater"] == rows["rater"].min()].sort_values("p_adjusted", kind="stable"))


def _edits(row: Row) -> str:
    return ", ".join(str(row[name]) for name in ("editor", "dataset") if isinstance(row.get(name), str))


def _share(row: Row, sign: int = 1) -> str:
    """Return a share with its interval: "51 % [44, 59]"."""
    return with_interval(row, 100 * sign, 0, " %")


def _flaw_findings(frame: pd.DataFrame, who: str) -> Iterator[str]:
    """Yield what these raters found, the largest first: a mean is the share of pairs with more less that with less."""
    means = frame[(frame["what"] == "flaw_these_raters") & frame["value"].notna()]
    decided = means[means["p_adjusted"] < _LEVEL].sort_values("value", key=lambda own: -own.abs(), kind="stable")
    found = []
    for row in rows_of(decided):
        word, sign = ("more", 1) if row["value"] > 0 else ("less", -1)
        edits = f"edits of {relation_name(row['relation'])} by {row['editor']}"
        found.append((f"{word} {flaw_title(row['asked']).lower()} in {_share(row, sign)}", edits))
    if found:
        sides = f"{percent(decided['more'].iloc[0])} more and {percent(decided['less'].iloc[0])} less"
        yield f"{capital(who)} found {found[0][0]} of pairs after {found[0][1]} ({sides})."
    elif len(means):
        yield f"No flaw is shown to be more or less often there after the edits, as {who} see it."
    if others := [f"{flaw} ({edits})" for flaw, edits in found[1:3]]:
        more = f"; {quantity(len(found) - 3, 'more difference')} in flaws.csv" * (len(found) > 3)
        yield f"Also {and_list(others)}{more}."


def _judge_findings(frame: pd.DataFrame) -> Iterator[str]:
    for judge, own in frame[frame["what"] == "judge_kappa"].groupby("rater", sort=False):
        flaws = own["asked"].astype(str).map(flaw_title).str.lower().groupby(own["verdict"]).agg(list)
        clauses = [words.format(flaws=and_list(flaws[name])) for name, words in JUDGE_WORDS.items() if name in flaws]
        yield f"{judge} {'; '.join(clauses)}."
    for row in rows_of(frame[(frame["what"] == "first_text") & (frame["p"] < _LEVEL)]):
        yield f"{row['rater']} names the text shown first in {_share(row)} of unequal answers."


def _notes(frame: pd.DataFrame, few: bool) -> Iterator[str]:
    """Yield where the edit is reflected, how far people agree, and that few raters speak for themselves only."""
    reflected = rows_of(frame[(frame["what"] == "reflected") & (frame["n"] > 0)])
    if shares := [f"{percent(row['value'])} of {row['n']} pairs ({row['rater']})" for row in reflected]:
        yield f"A text says what the edit says in {and_list(shares)}."
    for about, own in frame[frame["what"] == "alpha"].dropna(subset="value").groupby("about", sort=False):
        whole = rows_of(own[own["asked"] == "all"] if "all" in set(own["asked"]) else own)
        names = [f" ({flaw_title(row['asked']).lower()})" * (row["asked"] != "all") for row in whole]
        words = ", ".join(with_interval(row, 1, 2) + name for row, name in zip(whole, names))
        yield f"Agreement on {about} beyond chance (Krippendorff's alpha): {words}."
    if few:
        yield "Intervals are for these raters; to speak of others like them takes five."


# Lines of numbers: a column an editor.


def _sections(frame: pd.DataFrame) -> tuple[list[str], dict[str, list[ScreenRow]]]:
    """Return the heads of columns, and title -> lines, each with what is decided of it."""
    cells: dict[str, dict[str, dict[str, str]]] = {}
    tests: dict[tuple[str, str], list[tuple[Row, int]]] = {}
    for row in rows_of(frame.dropna(subset="value")):
        title, line, cell, sign = _place(row)
        if cell:
            cells.setdefault(title, {}).setdefault(line, {})[row["editor"]] = cell
        if sign:
            tests.setdefault((title, line), []).append((row, sign))
    names = dict.fromkeys(name for lines in cells.values() for own in lines.values() for name in own)
    editors = sorted(names, key=lambda name: (name != BASELINE, name == HUMAN))
    heads = ["before" if name == BASELINE else name if name == HUMAN else f"after {name}" for name in editors]
    return [cut(head, _MAX_NAME) for head in heads], {
        title: [
            ScreenRow(line, [own.get(name, "") for name in editors], *_decided(tests.get((title, line), ())))
            for line, own in lines.items()
        ]
        for title, lines in cells.items()
    }


def _decided(tests: Sequence[tuple[Row, int]]) -> tuple[str, str, str]:
    """Return badge, severity and detail of a line, from the tests of each editor against the texts before its edits."""
    verdicts = {
        row["editor"]: ("worse" if sign * row["value"] > 0 else "better")
        if row["p_adjusted"] < _LEVEL
        else ("too_few" if row["n_edits"] < MIN_EFFECTIVE else "undecided")
        for row, sign in tests
    }
    words, severity = badge(verdicts.values())
    some = [name for name, verdict in verdicts.items() if badge([verdict])[0] == words]
    named = f"{words}: {cut(and_list(some), _MAX_NAME)}" if len(some) < len(verdicts) else words
    sizes = [
        f"{row['editor']}: {f'more by {amount(row)}' if sign > 0 else f'lower by {with_interval(row, -1, 1)}'}"
        + f" ({row['note']})" * bool(row["note"])
        for row, sign in tests
    ]
    return named, severity, "; ".join(sizes)


def badge(verdicts: Collection[str]) -> tuple[str, str]:
    """Return the words of the most serious of verdicts, and how they look; "less harm" would need a control."""
    verdict = next((name for name in ("worse", "better", "undecided", "too_few") if name in verdicts), "")
    return "better" if verdict == "better" else BADGES.get(verdict, ""), SEVERITY.get(verdict, "open")


def _place(row: Row) -> tuple[str, str, str, int]:
    """Return title, line, cell ("" of a test alone) and, of a test, the sign of what is worse; 0 without one.

    What is not on the first screen, such as a flaw that is not decided, has neither cell nor test.
    """
    who = ", ".join(str(row[name]) for name in ("rater", "dataset") if isinstance(row[name], str))
    asked, words = str(row["asked"]), str(row["asked"]).replace("_", " ")
    if row["what"] == "flaw_these_raters" and row["p_adjusted"] < _LEVEL:
        title = f"Edits of {relation_name(row['relation'])}: pairs with more of a flaw, less those with less"
        return title, flaw_title(asked), _share(row), 1
    if row["what"] == "claims" and (asked, row["answer"]) in _CLAIMS:
        claim = _CLAIMS[asked, row["answer"]]
        return f"Claims of texts, by {who}", f"{row['about']}: {claim}", percent(row["value"]), 0
    if row["what"] == "contradicted_more":
        return f"Claims of texts, by {who}", f"{row['about']}: {_FACTS}", "", 1
    if row["what"] in ("rating", "lower"):
        cell = f"{row['value']:.1f}" if row["what"] == "rating" else ""
        return f"Ratings from 1 to 7, by {who}", words, cell, 0 if cell else -1
    return "Texts in which people find a failure", words, percent(row["value"]) * (row["what"] == "failure"), 0
