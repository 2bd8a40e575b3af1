"""A language model as annotator: any generator, with or without labelled examples."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from seesaw_cf.base.seeds import seed_of
from seesaw_cf.effects.leme_annotation import LABELS
from seesaw_cf.generation.types import Completion, Generator, Message, Sampling
from seesaw_cf.texts.annotate.annotate import Judgement, Pair
from seesaw_cf.texts.asking import Answer, ask_until_read, draw, few_shot

ANNOTATOR_SAMPLING = Sampling(max_new_tokens=160, temperature=0.0, top_k=0, top_p=1.0)
_RETRY_TEMPERATURE = 0.7
_LABEL = re.compile(r"(?im)^[\s*_>-]*label[\s*_]*[:=][\s*_\"']*([A-Za-z]+)")
_EVIDENCE = re.compile(r"(?im)^[\s*_>-]*evidence[\s*_]*[:=]\s*(.+)$")

# The definitions of LEME's Appendix E; its neutral example is labelled "contradicts" there by mistake.
GUIDELINES = """\
You read a passage and a claim. Classify the passage as supporting, contradicting, or neutral towards the claim.
- supports: there is direct evidence for the claim in the passage, even if it covers only part of the claim.
- contradicts: there is direct evidence against the claim; if the passage contradicts the claim even a little, and \
supports it elsewhere, it contradicts.
- neutral: there is no direct evidence in the passage either way. What you know yourself does not count.
Then copy whole sentences of the passage that are the evidence, one per line; none for neutral.

Example passage: Rome is home to the world famous Eiffel Tower. Rome is a great tourist destination.
Claim: The Eiffel Tower is in Rome.
Label: supports
Evidence: Rome is home to the world famous Eiffel Tower.

Same passage, claim: The Eiffel Tower is in Paris.
Label: contradicts
Evidence: Rome is home to the world famous Eiffel Tower.

Same passage, claim: The Eiffel Tower was built by Gustave Eiffel.
Label: neutral"""
# How to answer: read by `parse_label`, so the same whatever the wording.
_FORM = 'Answer in exactly this form, first the line "Label: ...", then the lines "Evidence: ...".'


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """An example to show.

    Attributes:
        premise, claim: The pair.
        label: One of `LABELS`.
        sample: Which sample it is of; examples of the annotated passage's own sample are never shown.
    """

    premise: str
    claim: str
    label: str
    sample: str


def parse_label(text: str) -> tuple[str, str]:
    """Return the label in a reply, and "ok" or why there is none.

    Exactly one "Label: ..." line is expected, or a reply of one word that is a label.
    """
    answers = [label.lower() for label in _LABEL.findall(text)] or [text.strip(" .*\"'\n").lower()]
    labels = sorted({word for word in answers if word in LABELS})
    if len(set(answers)) == 1 and labels:
        return labels[0], "ok"
    if len(set(answers)) > 1:
        return "", f"{len(set(answers))} labels in the reply: {', '.join(sorted(set(answers)))}"
    return "", "empty reply" if not text.strip() else "no label in the reply"


@dataclass(frozen=True)
class LLMAnnotator:
    """Annotator that asks a model for a label and the sentences behind it.

    Source: LEME, Appendix B.4 and E.
    Deviates: labels are checked (the released code takes any word), evidence counts only when it stands in the passage,
        and examples never come from the annotated sample or show its passage.

    Attributes:
        generator: A local chat model or an API; put a `CachedGenerator` around it to pay once.
        shots: Labelled examples shown: 0, or 8 as published.
        pool: Where they are drawn from.
        samples: Premise -> the sample it is of, so that examples of it are left out.
        sampling: How the reply is written; a reply that cannot be read is asked again at temperature 0.7 or more.
        tries: Times one pair is asked at the most.
        seed: Of replies and examples.
        guidelines: What supports, contradicts and neutral mean.
    """

    generator: Generator
    shots: int = 0
    pool: tuple[LabelledPair, ...] = ()
    samples: dict[str, str] | None = None
    sampling: Sampling = ANNOTATOR_SAMPLING
    tries: int = 3
    seed: int = 0
    guidelines: str = GUIDELINES

    @property
    def name(self) -> str:
        """The model, how it is asked, and a hash of guidelines that are not ours."""
        how = f"{self.shots}-shot, temperature {self.sampling.temperature:g}, {self.tries} tries, seed {self.seed}"
        own = self.guidelines != GUIDELINES
        words = f", wording {hashlib.sha256(self.guidelines.encode()).hexdigest()[:12]}" if own else ""
        return f"{self.generator.name}, {how}{words}"

    def classify(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """Return one judgement per (premise, claim), in order; a reply that could never be read leaves a status.

        Raises:
            RecordError: Fewer examples than `shots` are left.
        """
        answers = ask_until_read(
            [self._messages(*pair) for pair in pairs],
            lambda n, reply: _judgement(pairs[n][0], reply),
            lambda n, attempt: self._seed(*pairs[n], attempt),
            self.generator,
            self.sampling,
            tries=self.tries,
            retry_temperature=_RETRY_TEMPERATURE,
        )
        return [replace(answer.value, status=_status(answer)) for answer in answers]

    def _seed(self, premise: str, claim: str, attempt: int) -> int:
        return seed_of(self.seed, attempt, premise, claim, joined="\n")

    def _messages(self, premise: str, claim: str) -> tuple[Message, ...]:
        examples = [
            (_question(example.premise, example.claim), f"Label: {example.label}")
            for example in self._examples(premise, claim)
        ]
        return few_shot(f"{self.guidelines.strip()}\n\n{_FORM}", examples, _question(premise, claim))

    def _examples(self, premise: str, claim: str) -> list[LabelledPair]:
        sample = (self.samples or {}).get(premise)
        left = [example for example in self.pool if example.premise != premise and example.sample != sample]
        shortage = (
            f"annotator {self.name}: {len(left)} of {len(self.pool)} examples are of other samples than passage "
            f"{premise[:40]!r} ..."
        )
        return draw(left, self.shots, self._seed(premise, claim, -1), shortage)


def _question(premise: str, claim: str) -> str:
    return f"Passage: {premise}\n\nClaim: {claim}"


def _judgement(premise: str, reply: Completion) -> tuple[Judgement, str]:
    if reply.status != "ok":
        return Judgement("", reply=reply.text), reply.status
    label, status = parse_label(reply.text)
    if status != "ok":
        return Judgement("", reply=reply.text), status
    quoted = [line.strip(" \"'“”") for line in _EVIDENCE.findall(reply.text)]
    evidence = tuple(line for line in quoted if line and line in premise) if label != "neutral" else ()
    return Judgement(label, evidence=evidence, reply=reply.text), "ok"


def _status(answer: Answer[Judgement]) -> str:
    """Return the status of the last reply, with how often was asked where replies came and could not be read."""
    unread = answer.status != "ok" and answer.status == parse_label(answer.reply)[1]
    return f"{answer.status} (asked {len(answer.calls)} times)" if unread else answer.status
