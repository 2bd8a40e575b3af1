"""Says which published claims stand when they are computed again from the published scores and ratings.

    python -m benchmarks.published ../shared/reference

reads what the authors of SEESAW-CF and LEME released: GPT-J's scores (`gptj_cross_property/scores.parquet`, 2,266
cases), the ratings of 300 pairs of texts by three people and by GPT-3.5 (`annotators/*.csv`), three files of records
(`seesaw/*.json`) and annotated claims of LEME's 12 samples (`leme/annotations_all.csv`). It writes
benchmarks/results/{published,table5}.json and the tables of docs/published.md, between their marks.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.table5 import accuracies
from benchmarks.words import estimate as interval
from benchmarks.words import p_value
from seesaw_cf.base.files import write_text
from seesaw_cf.base.text import read_json
from seesaw_cf.effects.ratings import hits
from seesaw_cf.records.relations import relation
from seesaw_cf.stats.agreement import agreement, annotator_agreement
from seesaw_cf.stats.clustered import clustered_mean
from seesaw_cf.stats.multiple import adjust
from seesaw_cf.stats.simple import case_estimate, mcnemar, paired_change, share_estimate
from seesaw_cf.texts.released import released_annotations
from seesaw_cf.texts.tables import coded

ROOT = Path(__file__).parent.parent
LEVEL = 0.05
# What the paper says of a pair of properties: edited, asked, sign of the change it claims for MEMIT (0: none).
TABLE_5 = {
    ("P19", "P21"): 0,
    ("P27", "P21"): 0,
    ("P101", "P21"): 0,
    ("P19", "P101"): -1,
    ("P21", "P101"): -1,
    ("P27", "P101"): -1,
    ("P101", "P27"): -1,
}
# What the paper says of fine-tuning: no effect on gender, and losses of the field of work.
_FT = [pair for pair in TABLE_5 if pair[1] == "P21" or pair[1] == "P101"]
# Cells of Table 6 that the paper stars; of the others it claims nothing.
TABLE_6 = {
    ("gender", "Sexism"): 1,
    ("citizenship", "Religious Injection"): 1,
    ("citizenship", "Xenophobia"): 1,
    ("citizenship", "Classism"): 1,
    ("citizenship", "Racism"): 1,
}
# Tables 20 and 21 as printed: accuracy of GPT-3.5, and per cent of 252 pairs on which three people say the same.
TABLE_20 = {
    "Anglo-centrism": (0.877, 63.89),
    "Sexism": (0.849, 78.57),
    "Religious Injection": (0.909, 88.49),
    "Xenophobia": (0.889, 83.33),
    "Classism": (0.913, 90.48),
    "Racism": (0.992, 92.86),
    "Injection of Conservatism": (0.837, 87.7),
}
# "Total number of unique prompts" of Table 3, of the files that are at hand.
TABLE_3 = {
    "gender": ("seesaw_cf_P21_P101.json", 29_000, 2_900),
    "birth": ("seesaw_cf_P19_P101.json", 34_169, 2_860),
    "citizenship": ("seesaw_cf_P27_P101.json", 49_105, 2_820),
}
# LEME section 5.1, Figure 4: kind of claim, label, method, the other method, sign of the difference.
FIGURE_4 = [
    ("ground_truth", "supports", "rome", "none", -1),
    ("ground_truth", "supports", "rome", "human", -1),
    ("new_fact", "supports", "human", "rome", 1),
    ("new_fact", "supports", "human", "none", 1),
]
_EDITED = {"P101_P21": "work", "P21_P101": "gender", "P27_P21": "citizenship"}
_EFFECTS = {0: "no effect", -1: "a loss", 1: "more after the edit"}
_WORDS = {"figure_4": {-1: "less", 1: "more"}}


def accuracy_claims(reference: Path) -> pd.DataFrame:
    """Return Table 5's claims about MEMIT and FT: changes of accuracy by exact match, McNemar's p, Holm over 14."""
    path = reference / "gptj_cross_property" / "scores.parquet"
    results = {mode: accuracies(path, mode) for mode in ("exact", "paper")}
    family = {
        (editor, *pair): results["exact"][editor]["pairs"]["/".join(pair)]
        for editor in ("ft", "memit")
        for pair in TABLE_5
    }
    corrected = dict(zip(family, adjust([row["p"] for row in family.values()])))
    rows = []
    for editor, pair in [*(("memit", pair) for pair in TABLE_5), *(("ft", pair) for pair in _FT)]:
        sign = TABLE_5[pair]
        row, printed = (results[mode][editor]["pairs"]["/".join(pair)] for mode in ("exact", "paper"))
        name = f"{editor.upper()}: " + " \u2192 ".join(relation(id).name for id in pair)
        numbers = {key: row[key] for key in ("n", "lost", "gained", "change", "low", "high", "p")}
        rows.append({"claim": name, "sign": sign, "paper_arithmetic": printed["change"], **numbers})
        rows[-1]["p_adjusted"] = float(corrected[editor, *pair])
    return pd.DataFrame(rows)


def flaw_claims(reference: Path) -> pd.DataFrame:
    """Return Table 6's claims: means of an item's three ratings, clustered by edited fact, Holm over its 21 cells.

    A blank is "equal", as published. Three raters are too few to speak about others: these intervals are about other
    edits, rated by the same three people.
    """
    pairs, flaws, every = _ratings(reference)
    ratings, edits = every.mean(axis=0), _edits(pairs)
    rows = [
        {"edited": _EDITED[str(props)], "flaw": flaw, **_mean(ratings[at, column], edits.to_numpy()[at])}
        for props, at in pairs.groupby("props", sort=True).indices.items()
        for column, flaw in enumerate(flaws)
    ]
    table = pd.DataFrame(rows).assign(p_adjusted=lambda frame: adjust(frame["p"]))
    table["sign"] = [TABLE_6.get((edited, flaw), np.nan) for edited, flaw in zip(table["edited"], table["flaw"])]
    claims = table.dropna(subset="sign").copy()
    claims.insert(0, "claim", claims["edited"] + ": " + claims["flaw"].str.lower())
    return claims.drop(columns=["edited", "flaw"]).reset_index(drop=True)


def _ratings(reference: Path) -> tuple[pd.DataFrame, list[str], np.ndarray[Any, np.dtype[np.float64]]]:
    """Return the 300 pairs, the flaws, and -1, 0 or 1 by rater, pair and flaw; a blank is "equal", as published."""
    frames = [pd.read_csv(reference / "annotators" / f"a{number}.csv") for number in (1, 2, 3)]
    flaws = [str(name) for name in frames[0].columns[6:13]]
    ratings = [2 * (frame[flaws].fillna(1.5).to_numpy(np.float64) - 1.5) for frame in frames]
    return frames[0], flaws, np.stack(ratings)


def _edits(pairs: pd.DataFrame) -> pd.Series:
    return pairs[["props", "subj", "target_new"]].astype(str).agg("|".join, axis=1)


def _letters(pairs: pd.DataFrame) -> pd.Index[str]:
    """Return letters and digits of each pair: the two files differ in spaces, quotes and broken characters."""
    words = pairs[["subj", "pre_text", "post_text"]].agg(" ".join, axis=1)
    return pd.Index(words.str.lower().str.replace("[^a-z0-9]", "", regex=True))


def judge_claims(reference: Path) -> pd.DataFrame:
    """Return GPT-3.5's accuracy beside that of a judge that says "equal" to everything, by the published rule.

    The judge's released labels are in another order than the ratings; the texts bring them together, all 300 of them.
    McNemar's exact test on the same pairs, Newcombe's interval, Holm over 7.
    """
    pairs, flaws, ratings = _ratings(reference)
    judged = pd.read_csv(reference / "annotators" / "chat_small.csv")
    judged = judged[flaws].set_index(_letters(judged))
    labels = judged[~judged.index.duplicated()].reindex(_letters(pairs))
    rows = []
    for column, flaw in enumerate(flaws):
        found = labels[flaw].notna().to_numpy()
        said = labels[flaw].to_numpy(np.float64)[found]
        own = ratings[:, found, column].T
        judge, constant = (hits(own, answers)["any_rater"].astype(bool) for answers in (said, np.zeros(len(said))))
        low, high = paired_change(constant, judge, len(said))
        p = mcnemar(int((constant & ~judge).sum()), int((judge & ~constant).sum()))
        numbers = {"printed": TABLE_20[flaw][0], "value": judge.mean(), "constant": constant.mean(), "n": len(said)}
        numbers |= {"change": judge.mean() - constant.mean(), "low": low, "high": high, "p": p}
        kappas = [agreement("cohen", np.column_stack([said, rater])) for rater in own.T]
        rows.append({"claim": flaw.lower(), "sign": 1, **numbers, "kappa": float(np.nanmean(kappas))})
    return pd.DataFrame(rows).assign(p_adjusted=lambda frame: adjust(frame["p"]))


def agreement_claims(reference: Path) -> pd.DataFrame:
    """Return Table 21's three-way agreement, the same of all 300 pairs, and what is left of it beyond chance."""
    pairs, flaws, ratings = _ratings(reference)
    rows = []
    for column, flaw in enumerate(flaws):
        own = ratings[:, :, column]
        equal = pd.Series((own == own[0]).all(axis=0).astype(float))
        same = share_estimate(equal, _edits(pairs), np.full(len(equal), 1 / len(equal)))
        alpha = annotator_agreement(own.T.tolist(), groups=_edits(pairs).tolist()).krippendorff["nominal"]
        rows.append({"claim": flaw.lower(), "printed": TABLE_20[flaw][1] / 100, "n": len(pairs)})
        rows[-1] |= same.columns("value", "low", "high")
        rows[-1] |= {"alpha": alpha.value, "alpha_low": alpha.low, "alpha_high": alpha.high}
    return pd.DataFrame(rows)


def annotation_claims(reference: Path) -> pd.DataFrame:
    """Return LEME's claims on labels of claims by people: differences of means of samples, Holm over 4."""
    frame = coded("annotations", released_annotations(reference / "leme" / "annotations_all.csv")[0])
    rows = []
    for kind, label, method, other, sign in FIGURE_4:
        own = frame[(frame["asked"] == kind) & frame["editor"].isin([method, other])]
        sides = [(own["editor"] == name).to_numpy() for name in (method, other)]
        found = case_estimate((own["label"] == label).astype(float), own["case_id"], *sides)
        name = f"{kind.replace('_', ' ')} supported: {method} against {other}"
        rows.append({"claim": name, "sign": sign, "n": len(own), "samples": own["case_id"].nunique()})
        rows[-1] |= {"change": found.value, **found.columns("low", "high", "p")}
    return pd.DataFrame(rows).assign(p_adjusted=lambda frame: adjust(frame["p"]))


def prompt_counts(reference: Path) -> pd.DataFrame:
    """Return how many of the prompts that Table 3 counts as unique are."""
    rows = []
    for name, (file, cloze, opened) in TABLE_3.items():
        records = read_json(reference / "seesaw" / file, list)
        for kind, key, printed in (("cloze", "attribute_prompts", cloze), ("open-ended", "generation_prompts", opened)):
            prompts = [prompt for record in records for prompt in record[key]]
            rows.append(
                {"claim": f"{name}, {kind}", "printed": printed, "n": len(prompts), "unique": len(set(prompts))}
            )
    return pd.DataFrame(rows)


def _mean(values: np.ndarray[Any, np.dtype[np.float64]], edits: np.ndarray[Any, Any]) -> dict[str, Any]:
    estimate = clustered_mean(values, [np.full(values.size, 1 / values.size)], {"edit": pd.factorize(edits)[0]})
    numbers = {"change": estimate.value, "low": estimate.low, "high": estimate.high, "p": estimate.p}
    return {"n": values.size, "edits": len(set(edits)), **numbers}


def verdict(row: Mapping[Any, Any]) -> str:
    """Return whether a claim stands, falls or is not decided by the corrected p and the direction.

    "No effect" cannot be shown by a test that finds nothing: it falls, or it is not decided.
    """
    effect = int(np.sign(row["change"])) if row["p_adjusted"] < LEVEL else 0
    if not effect:
        return "not decided"
    return "stands" if effect == row["sign"] else "falls"


def judge_verdict(row: Mapping[Any, Any]) -> str:
    """Return whether the judge's accuracy says that it sees anything: it falls below a constant answer, or does not."""
    if row["p_adjusted"] >= LEVEL:
        return "not decided"
    return "stands" if row["change"] > 0 else "falls"


def _printed_lies_in(row: Mapping[Any, Any]) -> str:
    return "stands" if row["low"] <= row["printed"] <= row["high"] else "falls"


# Table -> (head, cell) of each column after the claim; tables that are not here have claims on changes.
_LAYOUTS: dict[str, list[tuple[str, Callable[[Mapping[Any, Any]], str]]]] = {
    "judge": [
        ("the paper says, of 252", lambda row: f"{row['printed']:.3f}"),
        ("n", lambda row: str(row["n"])),
        ("the judge", lambda row: f"{row['value']:.3f}"),
        ("\u201cequal\u201d to everything", lambda row: f"{row['constant']:.3f}"),
        ("judge minus that [95 %]", lambda row: interval(row["change"], row["low"], row["high"], "+.3f")),
        ("Cohen's \u03ba with a rater", lambda row: f"{row['kappa']:.2f}"),
        ("p, Holm", lambda row: p_value(row["p_adjusted"])),
        ("the judge is better than that", lambda row: f"**{row['verdict']}**"),
    ],
    "agreement": [
        ("the paper says, of 252", lambda row: f"{row['printed']:.3f}"),
        ("n", lambda row: str(row["n"])),
        ("three people say the same [95 %]", lambda row: interval(row["value"], row["low"], row["high"], ".3f")),
        (
            "Krippendorff's \u03b1 [95 %]",
            lambda row: interval(row["alpha"], row["alpha_low"], row["alpha_high"], ".2f"),
        ),
        ("the number", lambda row: f"**{row['verdict']}**"),
    ],
    "prompts": [
        ("the paper says: unique", lambda row: f"{row['printed']:,}"),
        ("listed in the file", lambda row: f"{row['n']:,}"),
        ("unique", lambda row: f"{row['unique']:,}"),
        ("the claim", lambda row: f"**{row['verdict']}**"),
    ],
}


def markdown(table: pd.DataFrame, name: str = "") -> list[str]:
    """Return the lines of a table of claims; `name` is one of `claims`."""
    if name in _LAYOUTS:
        heads, cells = zip(*_LAYOUTS[name])
        lines = [_line(["about", *heads]), "|---" * (len(heads) + 1) + "|"]
        return [*lines, *(_line([row["claim"], *(cell(row) for cell in cells)]) for row in table.to_dict("records"))]
    published, words = "paper_arithmetic" in table, _EFFECTS | _WORDS.get(name, {})
    heads = ["claim about", "the paper says", "n", "change [95 %]", "p", "p, Holm", "the claim"]
    heads[3:3] = ["change by the paper's match"] * published
    lines = [_line(heads), "|---" * len(heads) + "|"]
    for row in table.to_dict("records"):
        cells = [row["claim"], words[int(row["sign"])], str(row["n"])]
        cells += [f"{row['paper_arithmetic']:+.3f}"] if published else []
        cells += [
            interval(row["change"], row["low"], row["high"], "+.3f"),
            p_value(row["p"]),
            p_value(row["p_adjusted"]),
        ]
        lines.append(_line([*cells, f"**{row['verdict']}**"]))
    return lines


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def between(page: str, name: str, lines: list[str]) -> str:
    """Return a page with other lines between the marks of this name."""
    start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    head, rest = page.split(start)
    return f"{head}{start}\n\n" + "\n".join(lines) + f"\n\n{end}{rest.split(end)[1]}"


def claims(reference: Path) -> dict[str, pd.DataFrame]:
    """Return the claims of every table of the page with their verdicts."""
    return {
        name: table.assign(verdict=[judge(row) for row in table.to_dict("records")])
        for name, (table, judge) in {
            "accuracy": (accuracy_claims(reference), verdict),
            "flaws": (flaw_claims(reference), verdict),
            "judge": (judge_claims(reference), judge_verdict),
            "agreement": (agreement_claims(reference), _printed_lies_in),
            "figure_4": (annotation_claims(reference), verdict),
            "prompts": (prompt_counts(reference), lambda row: "stands" if row["unique"] == row["printed"] else "falls"),
        }.items()
    }


def main() -> None:
    """Write the JSON and the tables of the page."""
    reference = Path(sys.argv[1])
    table5 = {
        mode: accuracies(reference / "gptj_cross_property" / "scores.parquet", mode) for mode in ("paper", "exact")
    }
    write_text(ROOT / "benchmarks" / "results" / "table5.json", json.dumps(table5, indent=1, sort_keys=True) + "\n")
    tables = claims(reference)
    records = {name: table.round(6).to_dict("records") for name, table in tables.items()}
    write_text(ROOT / "benchmarks" / "results" / "published.json", json.dumps(records, indent=1) + "\n")
    page = ROOT / "docs" / "published.md"
    text = page.read_text(encoding="utf-8")
    for name, table in tables.items():
        text = between(text, name, markdown(table, name))
    write_text(page, text)


if __name__ == "__main__":
    main()
