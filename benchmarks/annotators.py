"""Recipes for annotators against baselines, on samples they have not seen. Resumable: each recipe and fold is kept.

OMP_NUM_THREADS=1 python -m benchmarks.annotators DATA.csv [--recipe match ...] [--folds 4] [--nested]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from seesaw_cf.base.files import write_text
from seesaw_cf.base.retrying import Bar
from seesaw_cf.effects.leme_annotation import LABELS, sentences
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.texts.annotate.annotate import temper
from seesaw_cf.texts.annotate.embed import Embedder, TextVectors
from seesaw_cf.texts.annotate.features import claim_parts
from seesaw_cf.texts.annotate.match import Featurizer, MatchAnnotator
from seesaw_cf.texts.annotate.reports import Figures
from seesaw_cf.texts.train.annotations import AnnotationData, read_annotations
from seesaw_cf.texts.train.annotator import BASELINES, Fit, HeldOutAnswers, figures
from seesaw_cf.texts.train.encoder import PRESETS, fit_pair
from seesaw_cf.texts.train.match import WORD_TREES, fit_match, fit_words
from seesaw_cf.texts.train.scores import grouped_folds, share_of_rows

RESULTS = Path(__file__).parent / "results" / "annotators.json"
PARTS = Path(tempfile.gettempdir()) / "seesaw_annotators"  # of unfinished recipes


@dataclass
class Baseline:
    """A baseline as a fit."""

    of: Any
    train: AnnotationData
    temperature: float = 1.0

    def probabilities(self, pairs: Sequence[tuple[str, str]]) -> Floats:
        """Of the rows asked."""
        n = len(pairs)
        return np.asarray(self.of(self.train, AnnotationData(tuple(pairs), (0,) * n, ("",) * n, (0,) * n)))


class Templates(Embedder):
    """Claims put as sentences before they are embedded: "The place of birth of X is Y"."""

    claims: frozenset[str] = frozenset()

    def embed(self, texts: Sequence[str]) -> dict[str, TextVectors]:
        """As `Embedder.embed`."""
        said = {text: _sentence(text) if text in self.claims else text for text in texts}
        found = super().embed(list(said.values()))
        return {text: found[words] for text, words in said.items()}


def _sentence(claim: str) -> str:
    parts = claim_parts(claim)
    return f"The {parts.relation} of {parts.subject} is {', '.join(parts.values)}." if parts.relation else claim


@dataclass
class BySentence:
    """Sentences judged one by one, then joined: most supporting, least neutral, most contradicting."""

    inner: MatchAnnotator
    temperature: float = 1.0

    def probabilities(self, pairs: Sequence[tuple[str, str]]) -> Floats:
        """Of whole premises."""
        out = []
        for premise, claim in pairs:
            rows = self.inner.probabilities([(row, claim) for row in sentences(premise) or [premise]])
            one = np.array([rows[:, 0].max(), rows[:, 1].min(), rows[:, 2].max()])
            out.append(one / one.sum())
        return np.array(out)


def fits(data: AnnotationData, wanted: Sequence[str]) -> dict[str, Fit]:
    """Recipe -> how to fit it."""
    templates = Templates("minilm")
    templates.claims = frozenset(claim for _, claim in data.pairs)
    shared, worded = Featurizer(Embedder("minilm")), Featurizer(templates)
    own: dict[str, Any] = {name: lambda train, seed, f=f: Baseline(f, train) for name, f in BASELINES.items()}
    own |= {
        "words": fit_words,
        "words-plain": lambda train, seed: fit_match(train, Featurizer(), seed, WORD_TREES, None),
        "match": lambda train, seed: fit_match(train, shared, seed),
        "match-templates": lambda train, seed: fit_match(train, worded, seed),
        "match-by-sentence": lambda train, seed: BySentence(fit_match(train, shared, seed)),
    }
    cheap = replace(PRESETS["small"], epochs=3, frozen_layers=4, max_length=160, patience=1)
    own["pair"] = lambda train, seed: fit_pair(train, "minilm", cheap, seed)
    return {name: own[name] for name in wanted}


def fold_answers(data: AnnotationData, name: str, fit: Fit, fold: np.ndarray, one: int) -> tuple[Floats, float]:
    """Raw probabilities of one fold's rows and the temperature; from the disk when they are there."""
    file = PARTS / f"{name}-{one}.json"
    if not file.exists():
        train, test = data.split(fold == one)
        started, used = time.perf_counter(), time.process_time()
        trained = fit(train.without_texts_of(test), 0)
        raw = trained.probabilities(test.pairs)
        times = {"wall_s": time.perf_counter() - started, "cpu_s": time.process_time() - used}
        PARTS.mkdir(parents=True, exist_ok=True)
        kept = {"raw": np.round(raw, 6).tolist(), "temperature": trained.temperature, **times}
        write_text(file, json.dumps(kept) + "\n")
        sys.stderr.write(f"{name} fold {one}: {times}\n")
    found = json.loads(file.read_text(encoding="utf-8"))
    return np.array(found["raw"]), float(found["temperature"])


def random_split(data: AnnotationData, fits: Mapping[str, Fit]) -> tuple[dict[str, Figures], dict[str, float]]:
    """Return what the published split would have claimed: rows drawn at random, one passage and claim on both sides.

    Returns:
        Recipe or baseline -> `figures` of the test rows; and "sample", "premise" and "claim" -> the share of test rows
        with a group, premise or claim that is also in the training part.

    Source: LEME section 3.3 (80 and 20 %), with the seed of the released code.
    """
    rng = np.random.default_rng(42)
    test_rows = np.zeros(len(data.labels), dtype=bool)
    for label in range(len(LABELS)):  # stratified by class, as published
        own = np.flatnonzero(np.array(data.labels) == label)
        test_rows[rng.permutation(own)[: round(0.2 * len(own))]] = True
    train, test = data.split(test_rows)
    out = {name: figures(test, HeldOutAnswers(*[fit(train, test)] * 2)) for name, fit in BASELINES.items()}
    for name, fit in fits.items():
        trained = fit(train, 0)
        raw = trained.probabilities(test.pairs)
        out[name] = figures(test, HeldOutAnswers(raw, temper(raw, trained.temperature)))
    overlap = {"sample": float(np.isin(test.groups, train.groups).mean())}
    for place, name in enumerate(("premise", "claim")):
        training_texts, tested = ([pair[place] for pair in part.pairs] for part in (train, test))
        overlap[name] = float(np.isin(tested, training_texts).mean())
    return out, overlap


NESTED = ("lexical", "tfidf", "words", "words-plain")
RECALL = 0.5


def nested(data: AnnotationData) -> dict[str, Any]:
    """Return what choosing a recipe and a threshold is worth on samples that had no part in the choice.

    Each sample is left out once. On the others, inner folds choose the recipe with the best accuracy and the threshold
    of p(contradicts) that finds `RECALL` of the contradictions, each for passages and for sentences.

    Returns:
        "passage" and "sentence" -> `accuracy`, `majority` (shares with intervals over samples), `recall` and
        `precision` of contradictions at the threshold, and how often each recipe was chosen.
    """
    recipes = fits(data, NESTED)
    outer = np.array(grouped_folds(data.groups, len(set(data.groups))))
    units, labels, groups = np.array(data.units), np.array(data.labels), np.array(data.groups)
    right, usual, flagged = (np.zeros(len(labels), dtype=bool) for _ in range(3))
    chosen: dict[str, list[str]] = {unit: [] for unit in sorted(set(data.units))}
    for one in Bar(range(int(outer.max()) + 1), desc="samples left out", unit="sample"):
        train, test = data.split(outer == one)
        train = train.without_texts_of(test)
        inner = np.array(grouped_folds(train.groups, 4))
        answers = {name: _answers(train, fit, inner) for name, fit in recipes.items()}
        fitted = {name: fit(train, 0) for name, fit in recipes.items()}
        common = BASELINES["majority"](train, test).argmax(1)
        for unit, names in chosen.items():
            own, asked = np.array(train.units) == unit, np.flatnonzero((outer == one) & (units == unit))
            truth = np.array(train.labels)[own]
            names.append(max(answers, key=lambda name: float((answers[name][own].argmax(1) == truth).mean())))
            least = float(np.quantile(answers[names[-1]][own][truth == _CONTRADICTS, _CONTRADICTS], 1 - RECALL))
            best = fitted[names[-1]]
            rows = temper(best.probabilities([data.pairs[row] for row in asked]), best.temperature)
            right[asked] = rows.argmax(1) == labels[asked]
            flagged[asked] = rows[:, _CONTRADICTS] >= least
            usual[asked] = common[np.array(test.units) == unit] == labels[asked]
    result: dict[str, Any] = {}
    for unit, names in chosen.items():
        own, contradicts = units == unit, labels == _CONTRADICTS
        shares = {
            "accuracy": (right, own),
            "majority": (usual, own),
            "recall": (flagged, own & contradicts),
            "precision": (contradicts, own & flagged),
        }
        result[unit] = {
            name: share_of_rows(hits[rows], groups[rows]) | {"n": int(rows.sum())}
            for name, (hits, rows) in shares.items()
        } | {"chosen": dict(Counter(names))}
    return result


_CONTRADICTS = LABELS.index("contradicts")


def _answers(data: AnnotationData, fit: Fit, fold: np.ndarray) -> Floats:
    """Calibrated probabilities of rows, each by a fit on the other folds."""
    rows = np.zeros((len(fold), len(LABELS)))
    for one in range(int(fold.max()) + 1):
        train, test = data.split(fold == one)
        fitted = fit(train.without_texts_of(test), 0)
        rows[fold == one] = temper(fitted.probabilities(test.pairs), fitted.temperature)
    return rows


def main() -> None:
    """Runs what is missing and writes benchmarks/results/annotators.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--recipe", action="append")
    parser.add_argument("--folds", type=int, default=4)
    parser.add_argument("--nested", action="store_true", help="only what the choice of a recipe is worth, see `nested`")
    given = parser.parse_args()
    if given.nested:
        known = json.loads(RESULTS.read_text(encoding="utf-8"))
        known["nested"] = nested(read_annotations(given.data))
        write_text(RESULTS, json.dumps(known, indent=1) + "\n")
        return
    wanted = given.recipe or [
        "majority",
        "tfidf",
        "lexical",
        "words",
        "match",
        "match-templates",
        "match-by-sentence",
        "pair",
    ]
    data = read_annotations(given.data)
    recipes: dict[str, Any] = {}
    fold = np.array(grouped_folds(data.groups, given.folds))
    for name, fit in fits(data, wanted).items():
        raw, calibrated = np.zeros((len(fold), len(LABELS))), np.zeros((len(fold), len(LABELS)))
        for one in range(given.folds):
            raw[fold == one], temperature = fold_answers(data, name, fit, fold, one)
            calibrated[fold == one] = temper(raw[fold == one], temperature)
        recipes[name] = figures(data, HeldOutAnswers(raw, calibrated))
    facts: dict[str, Any] = {"folds": given.folds, "n": len(fold), "notes": data.notes}
    facts["n_groups"] = len(set(data.groups))
    if "match" in wanted:
        found, overlap = random_split(data, fits(data, ["match"]))
        facts["published_random_split"] = {**found, "overlap": overlap}
    known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {"recipes": {}}
    known |= facts | {"recipes": known["recipes"] | recipes}
    write_text(RESULTS, json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
