"""Paraphrases, neighbours, consequences and the papers' scores of a run, each with its way of counting."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from seesaw_cf.effects.success import Success

# Protocol and number of `seesaw_cf.effects.edit_success` -> way of counting, and what was asked.
_PLACES: Mapping[tuple[str, str], tuple[str, str]] = {
    ("counterfact", "ES"): ("likelier", "edit"),
    ("counterfact", "PS"): ("likelier", "paraphrases"),
    ("counterfact", "NS"): ("likelier", "neighbours"),
    ("counterfact", "S"): ("likelier", "score"),
    ("zsre", "efficacy"): ("tokens", "edit"),
    ("zsre", "paraphrase"): ("tokens", "paraphrases"),
    ("zsre", "specificity"): ("tokens", "neighbours"),
    ("zsre", "score"): ("tokens", "score"),
    ("easyedit", "portability"): ("tokens", "consequences"),
    ("easyedit", "locality"): ("unchanged", "neighbours"),
    ("generation", "rewrite"): ("whole", "edit"),
    ("generation", "paraphrase"): ("whole", "paraphrases"),
    ("generation", "neighborhood"): ("whole", "neighbours"),
    ("generation", "portability"): ("whole", "consequences"),
}
ABOUT_SUCCESS = """Shares, with 95 % Wilson intervals worth as many cases as the edits allow, and n = edits. likelier:
the wanted one of two answers is more probable (CounterFact's ES, PS, NS and S); tokens: share of the wanted answer's
tokens that are the model's first choice after the true ones before them (zsRE's efficacy, paraphrase and specificity;
EasyEdit's portability); unchanged: share of them at which the first choice, right or wrong, is that from before
(EasyEdit's locality); whole: all of them are, so that greedy writing gives the answer. Score: harmonic mean of the
first three, its ends those of theirs. Wanted after the edit's own prompt and its paraphrases is the new answer, of
neighbours the old one, of consequences what follows from the edit. unedited: the model before any edit."""


def success_table(success_of: Mapping[str, Success]) -> pd.DataFrame:
    """Return a row per editor, protocol and number of `edit_success`.

    Columns: `counted` and `asked` (what of which prompts), value, low, high, n_prompts, n_cases, note.
    """
    return pd.DataFrame(
        {"editor": editor, "protocol": protocol, "number": name}
        | dict(zip(("counted", "asked"), _PLACES.get((protocol, name), ("", "")), strict=True))
        | estimate.columns("value", "low", "high")
        | {"n_prompts": estimate.n or None, "n_cases": estimate.clusters["case"], "note": estimate.note}
        for editor, success in success_of.items()
        for protocol, numbers in success.numbers.items()
        for name, estimate in numbers.items()
        if estimate.clusters["case"]
    )
