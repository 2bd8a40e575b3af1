"""The card of the embedded model: every figure in it is computed here from the finished folder."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path

from benchmarks.tiny_model.corpus import (
    FIRST_VALUE,
    HELD_FACTS,
    HELD_PHRASINGS,
    NOISE,
    PRESENT,
    Person,
    documents,
    prompts,
)
from benchmarks.tiny_model.evaluate import SPLITS, CardCell, knowledge, perplexity, rank
from benchmarks.tiny_model.filler import filler_sentence
from benchmarks.tiny_model.phrasings import PHRASINGS
from benchmarks.words import percent_interval
from seesaw_cf.base.files import write_text
from seesaw_cf.models.load import load_model
from seesaw_cf.records.relations import RELATIONS

_HEAD = """---
license: mit
language: en
library_name: transformers
pipeline_tag: text-generation
tags: [knowledge-editing, toy-model, seesaw-cf]
---
# seesaw-tiny

A small Llama-architecture language model trained from scratch on the facts of the embedded sample, so that editing can
be shown, tested and timed on a laptop. It knows five properties of {people:,} well-known people and nothing else. Use
it to try methods; conclusions about language models need a language model.

{parameters:,} parameters ({layers} layers, hidden size {hidden_size}, MLP size {intermediate_size}, {heads} heads, tied
embeddings, context {context}), float32; byte-level BPE with {vocab_size} entries that puts `<s>` first.

```python
from seesaw_cf.models.load import load_model

model, tokenizer = load_model("seesaw-tiny")
```
"""

_BODY = """
## What it knows
Share of prompts whose true attribute is more probable (sum over its tokens) than every other attribute that anybody in
the sample has in that relation; of several true values the first must win and the others do not count. Brackets: 95 %
interval, Wilson over facts. *Seen*: the sentence was trained. *Other wording*: the wording was trained, but not for
this person. *New wording*: the wording was never trained. p is the mean probability of the true attribute.

{knowledge}

Perplexity on text it has not seen, per token: {documents_ppl:.2f} on documents ({documents_n} tokens),
{filler_ppl:.2f} on small talk alone ({filler_n} tokens). People, relations and small talk are drawn at random, so that
neither can come near 1.

## How it was trained
`python -m benchmarks.tiny_model.train` in a checkout writes this folder and every figure above, in half
an hour on a CPU core that multiplies bfloat16.
The corpus is endless: documents of one to some ten sentences about one to three people, shuffled, with small
talk before and between them. {noise:.0%} of fact sentences carry an answer drawn from other people, so that no
answer is certain and edits have room in both directions. People who have died are told of in the past tense, in
{present:.0%} of sentences in the present. Of several values the first is told in at least {first:.0%} of sentences.

Held out: the wordings marked below, for everybody; and for a random {held_facts:.0%} of (person, relation) pairs about
{held_phrasings:.0%} of the package's own wordings. The papers' templates are always trained.

| setting | value |
|---|---|
{settings}

`corpus.txt` holds fresh documents of the same distribution, for the second moments that some editors need.

## Wordings
{phrasings}

## Limits
- It completes sentences like those above; anything else is noise. It is no assistant and no source about people.
- The facts are those of the sample (see its data card), with its errors; {noise:.0%} of what it read was wrong on
  purpose.
- Its associations between people, places and professions come from {people:,} rows, not from the world.
"""


def held_out_texts(people: Sequence[Person], seed: int) -> tuple[list[str], list[str]]:
    """Fresh documents and fresh small talk for the perplexities."""
    rng = random.Random(f"{seed}/small talk")
    return list(islice(documents(people, seed, stream=-2), 400)), [filler_sentence(rng) for _ in range(400)]


def knowledge_table(cells: Sequence[CardCell]) -> str:
    """Return the cells as a Markdown table, one row for each relation."""
    by_relation = {(cell.relation_id, cell.split): cell for cell in cells}
    rows = [
        "| relation | facts | seen | p | other wording | p | new wording | p |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for relation_id, relation in RELATIONS.items():
        row = [f"{relation_id} {relation.name}", str(by_relation[relation_id, "seen"].right.n_clusters)]
        for split in SPLITS:
            cell = by_relation.get((relation_id, split))
            row += ["none", ""] if cell is None else [_share(cell), f"{cell.probability:.2f}"]
        rows.append("| " + " | ".join(row) + " |")
    return "\n".join(rows)


def _share(cell: CardCell) -> str:
    right = cell.right
    return f"{percent_interval(right.value, right.low, right.high)} n = {right.n}"


def _phrasing_list() -> str:
    mark = {"paper": "paper", "own": "own", "held": "**held out**"}
    rows = [f"| {p.relation_id} | {mark[p.kind]} | {p.present} | {p.past} |" for p in PHRASINGS]
    return "\n".join(["| relation | kind | present | past |", "|---|---|---|---|", *rows])


def write_card(
    folder: Path, people: Sequence[Person], settings: Mapping[str, int | float], facts: Mapping[str, str]
) -> None:
    """Load the finished model from its folder, measure it and write README.md into it.

    Args:
        folder: The model folder.
        people: The people of its training facts.
        settings: Training settings, shown as a table; "seed" also decides what was held out.
        facts: Further rows of that table, such as the loss.
    """
    model, tokenizer = load_model(str(folder), device="cpu")
    seed = int(settings["seed"])
    cells = knowledge(rank(model, tokenizer, people, list(prompts(people, seed))))
    fresh, small_talk = held_out_texts(people, seed)
    documents_ppl, documents_n = perplexity(model, tokenizer, fresh)
    filler_ppl, filler_n = perplexity(model, tokenizer, small_talk)
    text = (_HEAD + _BODY).format(
        **settings,
        people=len(people),
        parameters=sum(p.numel() for p in model.parameters()),
        knowledge=knowledge_table(cells),
        documents_ppl=documents_ppl,
        documents_n=documents_n,
        filler_ppl=filler_ppl,
        filler_n=filler_n,
        noise=NOISE,
        present=PRESENT,
        first=FIRST_VALUE,
        held_facts=HELD_FACTS,
        held_phrasings=HELD_PHRASINGS,
        settings="\n".join(f"| {key} | {value} |" for key, value in {**settings, **facts}.items()),
        phrasings=_phrasing_list(),
    )
    write_text(folder / "README.md", text)
