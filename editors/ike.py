"""IKE: editing in the prompt. The delta is a text put before every prompt; no weight changes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from seesaw_cf.base.errors import EditError, StorageError, need
from seesaw_cf.base.fields import Count, Seed
from seesaw_cf.base.types import Case, EditRequest
from seesaw_cf.editors.locate.checks import check_requests, request_facts
from seesaw_cf.editors.locate.config import CheckedConfig
from seesaw_cf.models.editor import Model, Requests, Tokenizer
from seesaw_cf.models.weights import WeightDelta
from seesaw_cf.scoring.hf_scorer import context_length

Encoder = Callable[[Sequence[str]], NDArray[np.float64]]
"""N texts -> (N, size)."""

KINDS = ("copy", "update", "retain")
# LEME, appendix B.2, as printed; {edit} is the new fact, {prompt} what is to be written.
_SYSTEM = (
    "As an AI system, some of your factual knowledge is incorrect or outdated.\n"
    "we will provide edits that correct old outdated facts that are incorrect in your system.\n"
    "You will be given a prompt with an edit and a passage and asked to write a new passage taking the factual "
    "correction edit into account."
)
_USER = (
    "Given an edit write an updated passage to reflect this new knowledge. Include discussion on all the properties "
    "given as well as the edit.\nEdit: {edit}\nPrompt: {prompt}"
)


@dataclass(frozen=True, slots=True)
class Demonstration:
    """One worked example of an edit.

    Attributes:
        kind: "copy" (the fact itself), "update" (the fact asked otherwise), "retain" (something else, unchanged).
        fact: The fact that is edited in, prompt and new target.
        question: What is asked.
        answer: What must follow.
        subject: The person the fact is about; examples about the subject of a request are never shown.
    """

    kind: str
    fact: str
    question: str
    answer: str
    subject: str = ""

    @property
    def text(self) -> str:
        """The example as it stands in the prompt."""
        return f"New Fact: {self.fact}\nPrompt: {self.question} {self.answer}\n\n"


def demonstrations(cases: Iterable[Case]) -> tuple[Demonstration, ...]:
    """Return all demonstrations that cases can give: one copy each, one update and one retain where there are prompts.

    Args:
        cases: Cases that are not evaluated; paraphrase prompts give "update", neighbourhood prompts "retain".

    Returns:
        In the order copy, update, retain for each case.
    """
    examples = []
    for case in cases:
        request, new = case.request, case.request.target_new.label
        old = str(case.extra.get("loc_ans") or request.target_true.label)
        asked = [("copy", request.text, new)]
        asked += [("update", prompt, new) for prompt in case.paraphrase_prompts[:1]]
        asked += [("retain", prompt, old) for prompt in case.neighborhood_prompts[:1]]
        subject, fact = request.subject, _fact(request)
        examples += [Demonstration(kind, fact, question, answer, subject) for kind, question, answer in asked]
    return tuple(examples)


def _fact(request: EditRequest) -> str:
    return f"{request.text} {request.target_new.label.strip()}"


@dataclass(frozen=True, kw_only=True)
class IKEConfig(CheckedConfig):
    """Settings of in-context editing.

    Attributes:
        k: Demonstrations shown.
        order: "most_similar_first" as published in EasyEdit, or "most_similar_last", next to the question.
        style: "ike", or "leme": only "Q: {prompt}? A: {target}" and no demonstrations.
        encoder: Sentence encoder by Hub id or folder, e.g. "sentence-transformers/all-MiniLM-L6-v2"; None = by words.
        room: Tokens kept free for prompt and answer; demonstrations that then do not fit the model's context
            are left out, least similar first, and counted in the delta's meta.
        seed: Not used (nothing is random); here so that all configs have one.
        allow_identity: Accept target_new == target_true (the identity control).
    """

    k: Count = 16
    order: Literal["most_similar_first", "most_similar_last"] = "most_similar_first"
    style: Literal["ike", "leme"] = "ike"
    encoder: str | None = None
    room: Count = 64
    seed: Seed = 0
    allow_identity: bool = False


@dataclass(frozen=True)
class IKE:
    """In-context knowledge editing: k similar worked examples and the new fact go before the prompt.

    Source: Zheng et al. 2023, arXiv 2305.12740; defaults as in EasyEdit's models/ike. style="leme" is the variant of
    LEME (arXiv 2402.09394).

    Deviates: The k most similar demonstrations of any kind, as in EasyEdit; the paper balances their kinds. Examples
    about a request's own subject are never shown (the published split keeps them apart). Several requests at once,
    which the papers do not do, are retrieved for together and their facts all stated. Without demonstrations only the
    facts are stated (zero-shot).

    Attributes:
        config: The settings.
        corpus: Not used; accepted so that all editors are made alike.
        pool: Demonstrations to choose from; see `demonstrations`.
        encoder: Turns N texts into (N, size) vectors; overrides `config.encoder`.
    """

    config_class: ClassVar[type[IKEConfig]] = IKEConfig
    config: IKEConfig = field(default_factory=IKEConfig)
    corpus: Sequence[str] | None = field(default=None, repr=False)
    pool: tuple[Demonstration, ...] = ()
    encoder: Encoder | None = None
    _vectors: NDArray[np.float64] | None = field(default=None, repr=False, compare=False)

    def learn(self, cases: Iterable[Case]) -> Self:
        """Return this editor with the demonstrations that `cases` give; none of them should be evaluated."""
        return replace(self, pool=demonstrations(cases))

    def fit(self, model: Model, tokenizer: Tokenizer) -> Self:
        """Load the encoder, if there is one, and encode the pool, once.

        Raises:
            MissingExtraError: sentence-transformers is not installed.
            StorageError: The encoder cannot be loaded.
        """
        encoder = self.encoder or (sentence_encoder(self.config.encoder) if self.config.encoder else None)
        vectors = encoder([example.text for example in self.pool]) if encoder and self.pool else None
        return replace(self, encoder=encoder, _vectors=vectors)

    def edit(self, model: Model, tokenizer: Tokenizer, requests: Requests) -> WeightDelta:
        """Write the text that goes before every prompt.

        Args:
            model: Only its context length is read.
            tokenizer: Counts tokens.
            requests: Usually one; retrieval uses nothing but the requests.

        Returns:
            A delta without weight updates; its context ends where the prompt begins.

        Raises:
            EditError: No or contradictory requests, or facts too long for the model's context.
        """
        check_requests(requests, "ike", self.config.allow_identity)
        tail = "".join(f"New Fact: {_fact(request)}\n" for request in requests) + "Prompt: "
        if self.config.style == "leme":
            tail = "".join(f"Q: {request.text}? A: {request.target_new.label.strip()}\n" for request in requests)
        retrieved = [] if self.config.style == "leme" else self._retrieved(requests)
        fitting = self._fitting(model, tokenizer, retrieved, tail)
        counts = {kind: sum(example.kind == kind for example in fitting) for kind in KINDS}
        left_out = {"left_out_for_length": len(retrieved) - len(fitting), "pool": len(self.pool)}
        meta = {
            "editor": "ike",
            "config": asdict(self.config),
            "requests": [request_facts(request) for request in requests],
            "diagnostics": [{"demonstrations": counts, **left_out} for _ in requests],
        }
        ordered = fitting if self.config.order == "most_similar_first" else fitting[::-1]
        return WeightDelta({}, meta, "".join(example.text for example in ordered) + tail)

    def _retrieved(self, requests: Requests) -> list[Demonstration]:
        """Return the k examples, most similar first; equally similar ones in pool order."""
        subjects = {request.subject for request in requests}
        free = [number for number, example in enumerate(self.pool) if example.subject not in subjects]
        if not free or self.config.k == 0:
            return []
        if self.encoder is None and self.config.encoder is not None:
            raise EditError(f"ike: the encoder {self.config.encoder!r} is not loaded. Call fit first.")
        query = "".join(f"New Fact: {_fact(request)}\n" for request in requests)
        query += "".join(f"Prompt: {request.text}\n" for request in requests) + "\n"
        texts = [self.pool[number].text for number in free]
        encoder = self.encoder or tf_idf(texts)
        vectors = encoder(texts) if self._vectors is None else self._vectors[free]
        order = np.argsort(-similarity(encoder([query]), vectors)[0], kind="stable")
        return [self.pool[free[place]] for place in order[: self.config.k]]

    def _fitting(
        self, model: Model, tokenizer: Tokenizer, retrieved: list[Demonstration], tail: str
    ) -> list[Demonstration]:
        """Return as many of the most similar examples as the model's context holds with facts, prompt and answer."""
        limit = context_length(model)
        if limit is None:
            return retrieved
        free = limit - self.config.room - len(tokenizer(tail)["input_ids"])
        if free < 0:
            raise EditError(
                f"ike: the new fact(s) need {limit - self.config.room - free} tokens and {self.config.room} are kept "
                f"free for the prompt (room), the model's context holds {limit}. Edit fewer facts or lower room."
            )
        lengths = [len(tokenizer(example.text, add_special_tokens=False)["input_ids"]) + 1 for example in retrieved]
        return retrieved[: int((np.cumsum(lengths) <= free).sum())]


def similarity(queries: NDArray[np.float64], vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return cosines of Q with N vectors, (Q, N); 0 where one is zero."""
    lengths = np.outer(np.linalg.norm(queries, axis=1), np.linalg.norm(vectors, axis=1))
    return queries @ vectors.T / np.where(lengths == 0, 1.0, lengths)


def tf_idf(texts: Sequence[str]) -> Encoder:
    """Return an encoder by lower-case words of `texts`; idf = ln((1 + N) / (1 + df)) + 1, other words are ignored."""
    frequency = Counter(word for text in texts for word in set(_words(text)))
    idf = {word: np.log((1 + len(texts)) / (1 + count)) + 1 for word, count in sorted(frequency.items())}

    def encode(parts: Sequence[str]) -> NDArray[np.float64]:
        bags = [Counter(_words(part)) for part in parts]
        return np.array([[bag[word] * weight for word, weight in idf.items()] for bag in bags])

    return encode


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def sentence_encoder(name_or_path: str) -> Encoder:
    """Load a sentence encoder: a Hub id such as "sentence-transformers/all-MiniLM-L6-v2", or a folder.

    Raises:
        MissingExtraError: sentence-transformers is not installed.
        StorageError: It cannot be loaded.
    """
    words = "Or leave it out for retrieval by words."
    with need("sentence-transformers", extra="longform", what_for="sentence embeddings", otherwise=words):
        from sentence_transformers import SentenceTransformer
    try:
        model: Any = SentenceTransformer(name_or_path, device="cpu")
    except (OSError, ValueError) as error:
        raise StorageError(f"sentence encoder {name_or_path!r} cannot be loaded ({error}). {words}") from error
    return lambda texts: np.asarray(model.encode(list(texts), show_progress_bar=False), dtype=np.float64)


def chat_messages(requests: Requests, prompt: str) -> list[dict[str, str]]:
    """Write messages that edit a chat model in context: LEME's "GPT-4 IKE" prompts, zero-shot.

    Args:
        requests: The facts to edit in.
        prompt: What is to be written or answered.

    Returns:
        Messages {"role", "content"} for any OpenAI-compatible endpoint or a tokenizer's chat template.

    Raises:
        EditError: No or contradictory requests.

    Source: LEME, arXiv 2402.09394, appendix B.2 (wording as printed).
    """
    check_requests(requests, "chat_messages", allow_identity=True)
    edit = " ".join(f"{_fact(request)}." for request in requests)
    return [
        {"role": "system", "content": _SYSTEM},
        {"role": "user", "content": _USER.format(edit=edit, prompt=prompt)},
    ]
