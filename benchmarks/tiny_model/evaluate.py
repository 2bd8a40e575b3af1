"""Measures what the embedded model knows: does it rank the true attribute of a person over all other attributes?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from benchmarks.tiny_model.corpus import Person, Prompt, values
from seesaw_cf.base.types import Cloze, Estimate
from seesaw_cf.records.relations import RELATIONS
from seesaw_cf.scoring import TrieScorer
from seesaw_cf.scoring.encode import EncodedCloze, encode_many
from seesaw_cf.stats.simple import clustered_share

SPLITS = ("seen", "held_pair", "held_phrasing")
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Ranked:
    """The outcome of one prompt.

    Attributes:
        prompt: The question.
        logprob: log p(true attribute | prompt) in nats, summed over its tokens; the first value of several.
        right: No other attribute of the relation is at least as probable; the person's further values do not count.
    """

    prompt: Prompt
    logprob: float
    right: bool


@dataclass(frozen=True, slots=True)
class CardCell:
    """One cell of the card.

    Attributes:
        relation_id, split: Which prompts.
        right: Share of prompts answered right; the interval is clustered by fact, n = prompts, n_clusters = facts.
        probability: Mean p(true attribute).
    """

    relation_id: str
    split: str
    right: Estimate
    probability: float


def rank(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, people: Sequence[Person], prompts: Sequence[Prompt]
) -> list[Ranked]:
    """Rank the true attribute among all attributes that `people` have in its relation.

    Exact, yet far cheaper than scoring every attribute: an attribute is never more probable than its own first token,
    so only those with a first token that beats the whole true answer are scored in full.

    Args:
        model, tokenizer: As `HFScorer` takes them.
        people: They define the attributes of a relation.
        prompts: N prompts.

    Returns:
        N outcomes in the order asked.
    """
    attributes = {relation_id: values(people, relation_id) for relation_id in RELATIONS}
    first = {
        relation_id: np.array([item.ids[item.start] for item in _encoded(tokenizer, [Cloze("is", v) for v in labels])])
        for relation_id, labels in attributes.items()
    }  # the first target token does not depend on the context: words never merge across a space
    truths = [Cloze(p.text, p.person.facts[p.phrasing.relation_id][0]) for p in prompts]
    scorer = TrieScorer(model, tokenizer, strict=True)
    true = [score.logprob for score in scorer.score(truths)]
    rivals: list[tuple[int, Cloze]] = []
    for index, logprobs in _next_token(model, _encoded(tokenizer, truths)):
        relation_id = prompts[index].phrasing.relation_id
        own = prompts[index].person.facts[relation_id]
        likely = np.flatnonzero(logprobs[first[relation_id]] >= true[index])
        others = (attributes[relation_id][place] for place in likely)
        rivals += [(index, Cloze(prompts[index].text, value)) for value in others if value not in own]
    scores = scorer.score([cloze for _, cloze in rivals])
    wrong = {index for (index, _), score in zip(rivals, scores, strict=True) if score.logprob >= true[index]}
    return [Ranked(p, true[index], index not in wrong) for index, p in enumerate(prompts)]


def _encoded(tokenizer: PreTrainedTokenizerBase, clozes: Sequence[Cloze]) -> list[EncodedCloze]:
    items = {cloze: item for item, same in encode_many(tokenizer, clozes).asked.items() for cloze in same}
    return [items[cloze] for cloze in clozes]


def _next_token(model: PreTrainedModel, items: Sequence[EncodedCloze]) -> Iterator[tuple[int, Floats]]:
    """log p(next token | context) of every context, (vocabulary,) each, with the index of its item."""
    order = sorted(range(len(items)), key=lambda index: items[index].start)
    for start, same in groupby(order, key=lambda index: items[index].start):
        while rows := list(islice(same, 128)):
            ids = torch.tensor([items[row].ids[:start] for row in rows])
            with torch.inference_mode():
                logits = model(input_ids=ids, use_cache=False, logits_to_keep=1).logits[:, -1]
            yield from zip(rows, logits.double().log_softmax(-1).numpy(), strict=True)


def knowledge(ranked: Sequence[Ranked]) -> list[CardCell]:
    """Shares of right answers by relation and split, with 95 % intervals clustered by fact (person)."""
    cells = []
    for relation_id in RELATIONS:
        for split in SPLITS:
            rows = [r for r in ranked if r.prompt.phrasing.relation_id == relation_id and r.prompt.split == split]
            if rows:
                cells.append(_cell(relation_id, split, rows))
    return cells


def _cell(relation_id: str, split: str, rows: Sequence[Ranked]) -> CardCell:
    names, facts = np.unique([row.prompt.person.name for row in rows], return_inverse=True)
    right, n = np.array([row.right for row in rows], dtype=np.float64), len(rows)
    estimate = replace(clustered_share(right, np.full(n, 1 / n), facts), clusters={"fact": len(names)})
    return CardCell(relation_id, split, estimate, float(np.mean([math.exp(row.logprob) for row in rows])))


def perplexity(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]) -> tuple[float, int]:
    """exp of the mean negative log-probability per token over `texts`, BOS given, and the number of tokens."""
    total, count = 0.0, 0
    with torch.inference_mode():
        for text in texts:
            ids = torch.tensor([tokenizer(text)["input_ids"]])
            logprobs = model(input_ids=ids, use_cache=False).logits[0, :-1].double().log_softmax(-1)
            total -= float(logprobs.gather(1, ids[0, 1:, None]).sum())
            count += ids.shape[1] - 1
    return math.exp(total / count), count
