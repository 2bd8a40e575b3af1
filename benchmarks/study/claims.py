"""What the papers say in words, beside what this study and the released scores say."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd

from benchmarks.editors_common import RESULTS
from benchmarks.study.looks import MODEL, first, newest
from benchmarks.words import effect, minus
from seesaw_cf.report.words import relation_name
from seesaw_cf.stats.multiple import adjust

ClaimRow = dict[str, Any]
"""A claim with what was computed for it: numbers and words by column."""
_HERE: Mapping[str, str] = {"refuted": "not seen here"}  # another model and other settings refute no paper
LEVEL = 0.05
MARGIN, MARGIN_LOG_ODDS = 0.02, 0.1
Word = Literal["confirmed", "refuted", "not decided", "not run"]
STANDS: Mapping[str, Word] = {"stands": "confirmed", "falls": "refuted", "not decided": "not decided"}


@dataclass(frozen=True, slots=True)
class PairClaim:
    """What SEESAW-CF says of one property after another was edited (section 4.2): a loss, or no effect."""

    edited: str
    asked: str
    loss: bool


@dataclass(frozen=True, slots=True)
class PaperGroupClaim:
    """A group of which SEESAW-CF says that confidence in right answers falls (abstract, section 4.1).

    Attributes:
        relation: Edited, "all" where the paper names none.
        editors: Of whom it is said; none: of editing in general.
    """

    axis: str
    group: str
    relation: str
    editors: tuple[str, ...] = ()


_PAIRS = (
    PairClaim("P19", "P21", loss=False),
    PairClaim("P27", "P21", loss=False),
    PairClaim("P101", "P21", loss=False),
    PairClaim("P19", "P101", loss=True),
    PairClaim("P21", "P101", loss=True),
    PairClaim("P27", "P101", loss=True),
    PairClaim("P101", "P27", loss=True),
)
_GROUPS = (
    *(PaperGroupClaim("race", race, "all") for race in ("East Asian", "South Asian", "Southeast Asian")),
    PaperGroupClaim("region", "Africa", "all"),
    *(
        PaperGroupClaim("region", place, relation, ("ft",))
        for relation in ("P103", "P19")
        for place in ("North America", "Western Europe", "Eastern Europe")
    ),
    *(PaperGroupClaim("race", race, "P103", ("memit", "mend")) for race in ("Black", "Jewish", "white")),
    *(PaperGroupClaim("gender", "women", relation, ("ft", "mend")) for relation in ("P27", "P19")),
)
# Claims that no finished part decides, and why.
_LATER = (
    (
        "SEESAW-CF 4.1",
        "the same pattern in five models, strongest in instruct models",
        "not decided",
        "no group is named",
    ),
    (
        "MEMIT D",
        "mixing relations in one batch changes success no more than their average",
        "not run",
        "no stage",
    ),
    ("MEMIT E", "thousands of facts at once keep 100 % efficacy and 94 % paraphrases", "not run", "no stage"),
    (
        "LEME 5.3",
        "ROME and MEMIT contradict more true facts in long texts than other methods",
        "not decided",
        "contradictions need people",
    ),
    ("LEME 5.4", "short-form success and long-form ratings hardly correlate", "not decided", "ratings need people"),
    (
        "LEME 5.2",
        "better consistency of the subject's passage, worse consistency of the related one",
        "not decided",
        "ratings need people",
    ),
)


def verdict(change: float, p: float, *, loss: bool, reach: float = float("inf"), margin: float = MARGIN) -> Word:
    """Return what a corrected test says of a claim.

    Args:
        change: The estimate, below 0 for a loss.
        p: Corrected.
        loss: The paper says that there is a loss; otherwise that there is no effect.
        reach: End of the 90 % interval that is farther from 0.
        margin: Smaller effects do not matter.
    """
    if reach < margin:
        return "refuted" if loss else "confirmed"
    if not p < LEVEL:
        return "not decided"
    return "confirmed" if loss and change < 0 else "refuted"


def claims(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return every claim with its verdict: of this study, of released scores, and those that nothing here decides.

    Args:
        tables: Of the study. Levels are those of SmolLM2's first looks, all else of its newest.
    """
    own = {name: table[table["model"] == MODEL] for name, table in tables.items()}
    own = {name: first(table) if name == "levels" else newest(table) for name, table in own.items()}
    rows = [
        *(
            row | {"tested on": "this study", "verdict": _HERE.get(row["verdict"], row["verdict"])}
            for row in study_claims(own)
        ),
        *(row | {"tested on": "released scores"} for row in released_claims()),
        *(row | {"tested on": "nothing here"} for row in later_claims()),
    ]
    columns = ["source", "claim", "tested on", "editor", "value", "low", "high", "unit", "estimate", "p_adjusted", "n"]
    return pd.DataFrame(rows)[[*columns, "verdict", "reason"]]


def study_claims(tables: Mapping[str, pd.DataFrame]) -> list[ClaimRow]:
    """Return the claims that the finished parts test, Holm over those of an editor."""
    rows: list[ClaimRow] = []
    for editor in [name for name in tables["levels"]["editor"].unique() if "(" not in name]:
        own = [*_pairs(tables["accuracy"], editor), *_groups(tables["excess"], editor)]
        for row, p in zip(own, adjust([float(row["p"]) for row in own])):
            reach = max(abs(float(row["low"])), abs(float(row["high"])))  # of 95 %: those of 90 % are nearer to 0
            near = {"reach": reach, "margin": MARGIN_LOG_ODDS if row["unit"] == "nats" else MARGIN}
            row |= {"p_adjusted": float(p)}
            row |= {"verdict": verdict(float(row["value"]), float(p), loss=bool(row["loss"]), **near)}
        rows += own
    return rows + _everybody(tables["levels"])


def _everybody(levels: pd.DataFrame) -> list[ClaimRow]:
    """Return what test A says of FT, of which the paper says that it has the most negative effect of all methods."""
    chosen = levels[(levels["editor"] == "ft") & (levels["level"] == "target_new") & levels["decides"].astype(bool)]
    return [
        {
            "source": "SEESAW-CF 4.1",
            "claim": "less confident about people who hold the new answer, and most so of all methods (test A)",
            "editor": "ft",
            "unit": "nats",
            "loss": True,
            "value": row["difference"],
            "low": row["difference_low"],
            "high": row["difference_high"],
            "p": row["p"],
            "p_adjusted": row["p_adjusted"],
            "n": f"{row['n']:.0f} prompts",
            "verdict": verdict(row["difference"], row["p_adjusted"], loss=True),
        }
        for row in chosen.to_dict("records")
    ]


def _pairs(accuracy: pd.DataFrame, editor: str) -> Iterator[ClaimRow]:
    for claim in _PAIRS:
        chosen = accuracy[
            (accuracy["editor"] == editor)
            & (accuracy["edit_relation"] == claim.edited)
            & (accuracy["effect_relation"] == claim.asked)
        ]
        for row in chosen.to_dict("records"):
            names = f"{relation_name(claim.edited)} → {relation_name(claim.asked)}"
            yield {
                "source": "SEESAW-CF 4.2",
                "claim": f"{names}: {'a loss' if claim.loss else 'no effect'}",
                "editor": editor,
                "unit": "share",
                "loss": claim.loss,
                "value": row["change"],
                "low": row["low"],
                "high": row["high"],
                "p": row["p"],
                "n": f"{row['n']:.0f} facts",
            }


_PEOPLE = {"gender": "{}", "race": "{} people", "region": "people of {}"}


def _groups(excess: pd.DataFrame, editor: str) -> Iterator[ClaimRow]:
    for claim in _GROUPS:
        if claim.editors and editor not in claim.editors:
            continue
        chosen = excess[
            (excess["editor"] == editor)
            & (excess["holds"] == "target_new")
            & (excess["relation"] == claim.relation)
            & (excess["axis"] == claim.axis)
            & (excess["group"] == claim.group)
        ]
        for row in chosen.to_dict("records"):
            where = "" if claim.relation == "all" else f" after edits of {relation_name(claim.relation)}"
            yield {
                "source": "SEESAW-CF 4.1",
                "claim": f"less confident about {_PEOPLE[claim.axis].format(claim.group)}{where}",
                "editor": editor,
                "unit": "nats",
                "loss": True,
                "value": row["log_odds"],
                "low": row["log_odds_low"],
                "high": row["log_odds_high"],
                "p": row["log_odds_p"],
                "n": f"{row['n']:.0f} prompts",
            }


def released_claims() -> list[ClaimRow]:
    """Return what `benchmarks/results/published.json` says of each claim of the papers."""
    published = json.loads((RESULTS / "published.json").read_text(encoding="utf-8"))
    return [
        {"source": source, "n": f"{row['n']:,} {unit}", "p_adjusted": row.get("p_adjusted", float("nan"))}
        | {"claim": words(row), "estimate": estimate(row), "verdict": STANDS[row["verdict"]]}
        for table, (source, unit, words, estimate) in _RELEASED.items()
        for row in published[table]
    ]


_EFFECTS = {-1: "a loss", 0: "no effect", 1: "more"}


def _effect_words(row: ClaimRow) -> str:
    return f"{row['claim']}: {_EFFECTS[int(row['sign'])]}"


def _change(row: ClaimRow) -> str:
    return minus(effect(float(row["change"]), float(row["low"]), float(row["high"])))


# Table of `published.json` -> (source, what n counts, the claim, what was computed).
_RELEASED: Mapping[str, tuple[str, str, Callable[[ClaimRow], str], Callable[[ClaimRow], str]]] = {
    "accuracy": ("SEESAW-CF 4.2", "cases", _effect_words, _change),
    "flaws": ("SEESAW-CF Table 6", "pairs", lambda row: f"{row['claim']}: more after the edit", _change),
    "judge": (
        "SEESAW-CF Table 20",
        "pairs",
        lambda row: f"{row['claim']}: GPT-3.5 is better than a constant answer",
        _change,
    ),
    "agreement": (
        "SEESAW-CF Table 21",
        "pairs",
        lambda row: f"{row['claim']}: three raters agree on {row['printed']:.3f}",
        lambda row: f"{row['value']:.3f} [{row['low']:.3f}, {row['high']:.3f}]",
    ),
    "prompts": (
        "SEESAW-CF Table 3",
        "prompts",
        lambda row: f"{row['claim']}: {row['printed']:,} unique prompts",
        lambda row: f"{row['unique']:,} unique",
    ),
    "figure_4": (
        "LEME Figure 4",
        "claims",
        lambda row: f"{row['claim']}: {'more' if row['sign'] > 0 else 'less'}",
        _change,
    ),
}


def later_claims() -> list[ClaimRow]:
    """Return the claims that nothing here decides, with the reason."""
    return [
        {"source": source, "claim": claim, "verdict": verdict, "reason": reason}
        for source, claim, verdict, reason in _LATER
    ]
