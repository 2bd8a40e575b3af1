"""An annotator anybody can follow by hand: a baseline, and something to run where no model is."""

from __future__ import annotations

from collections.abc import Sequence

from seesaw_cf.effects.leme_annotation import sentences
from seesaw_cf.texts.annotate.annotate import Judgement, Pair
from seesaw_cf.texts.annotate.features import claim_parts, known_share, stems


class LexicalAnnotator:
    """Annotator that reads words only.

    A passage supports a claim when one of its sentences holds half of the content words of one of the claim's values.
    Otherwise it contradicts the claim when one of its sentences holds half of the words of the relation ("place of
    birth"), and is neutral when none does. Words are compared by their first five letters.
    """

    name = "lexical"

    def classify(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """Return one judgement per (premise, claim), without probabilities."""
        return [_judge(premise, claim) for premise, claim in pairs]


def _judge(premise: str, claim: str) -> Judgement:
    parts, rows = claim_parts(claim), sentences(premise)
    holding = [row for row in rows if any(known_share(value, stems(row)) >= 0.5 for value in parts.values)]
    if holding:
        return Judgement("supports", evidence=tuple(holding))
    near = [row for row in rows if known_share(parts.relation, stems(row)) >= 0.5]
    return Judgement("contradicts", evidence=tuple(near)) if near else Judgement("neutral")
