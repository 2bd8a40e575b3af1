"""What judges a sentence: regard and identity attack, by any text classifier, detoxify or a Perspective-style server.

A scorer is a biased opinion; `seesaw_cf.texts.graph.score` measures the bias at every use.
"""

from __future__ import annotations

import json
import math
import os
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypedDict, runtime_checkable

from seesaw_cf.base.checks import address
from seesaw_cf.base.errors import RecordError, ServiceError, UnknownNameError, need
from seesaw_cf.base.retrying import TryAgain, try_again

REGARD = ("positive", "negative", "neutral", "other")
# Source: Sheng et al. (2019). Deviates: the paper used version2.1_3, which its authors give as files, not under a Hub
# id; this is version 3 of the same classifier, the default of `evaluate`'s measurement "regard". A folder will do, too.
REGARD_MODEL = "sasha/regardv3"


@dataclass(frozen=True, slots=True)
class SentenceScore:
    """A scorer's answer on one sentence.

    Attributes:
        values: Label -> probability or score, 0 to 1; empty unless `status` is "ok".
        status: "ok", or why the score is missing.
    """

    values: Mapping[str, float] = field(default_factory=dict)
    status: str = "ok"


@runtime_checkable
class SentenceScorer(Protocol):
    """Scorer of sentences."""

    @property
    def name(self) -> str:
        """Name the scorer and its version."""

    def score(self, texts: Sequence[str]) -> list[SentenceScore]:
        """Return one judgement per sentence, in order."""


class _Label(TypedDict):
    """What a text-classification pipeline gives for one label."""

    label: str
    score: float


@dataclass(frozen=True)
class TextClassifier:
    """A text-classification model of transformers.

    Attributes:
        name: Model id or folder.
        pipeline: A transformers text-classification pipeline that gives all labels.
        labels: The model's label -> what it is called here; labels that are not in it are left out.
        batch: Sentences at once.
    """

    name: str
    pipeline: Any
    labels: Mapping[str, str]
    batch: int = 32

    def score(self, texts: Sequence[str]) -> list[SentenceScore]:
        """Return label -> probability for every sentence; one longer than the model's context has no score."""
        limit = self._limit()
        sizes = [len(ids) for ids in self.pipeline.tokenizer(list(texts))["input_ids"]] if texts else []
        fitting = [text for text, size in zip(texts, sizes, strict=True) if size <= limit]
        outputs = iter(self.pipeline(fitting, batch_size=self.batch, top_k=None) if fitting else [])
        too_long = SentenceScore(status=f"longer than the {limit} tokens that {self.name} reads")
        return [self._scored(next(outputs)) if size <= limit else too_long for size in sizes]

    def _limit(self) -> int:
        """Return the model's limit in tokens: the tokenizer's, or its positions less the two some models keep back."""
        limit = int(self.pipeline.tokenizer.model_max_length)
        positions = getattr(self.pipeline.model.config, "max_position_embeddings", None)
        return limit if limit < 10**6 or positions is None else int(positions) - 2

    def _scored(self, row: Sequence[_Label]) -> SentenceScore:
        values = {self.labels[r["label"]]: float(r["score"]) for r in row if r["label"] in self.labels}
        finite = all(map(math.isfinite, values.values()))
        return SentenceScore(values) if finite else SentenceScore(status="score is not finite")


def regard_scorer(model: str, labels: Mapping[str, str] | None = None, *, device: str = "cpu") -> TextClassifier | None:
    """Return a regard classifier by its name; None for "none"."""
    return None if model == "none" else regard_classifier(model, labels, device=device)


def attack_scorer(name: str, label: str = "identity_attack", *, device: str = "cpu") -> SentenceScorer | None:
    """Return a scorer of identity attack: "detoxify", "perspective", a classifier's name; None for "none".

    Raises:
        SeesawError: Its package or key is missing, or it cannot be loaded; nothing was asked of a model yet.
    """
    if name == "none":
        return None
    if name not in ("detoxify", "perspective"):
        return attack_classifier(name, label, device=device)
    scorer = Detoxifier() if name == "detoxify" else Perspective()
    scorer.check()
    return scorer


def regard_classifier(
    model: str = REGARD_MODEL, labels: Mapping[str, str] | None = None, *, device: str = "cpu"
) -> TextClassifier:
    """Return a regard classifier: positive, negative, neutral, other.

    Args:
        model: Hub id or folder.
        labels: The model's label -> one of `REGARD`, for models with other names such as "LABEL_0".
        device: A torch device.

    Raises:
        UnknownNameError: The model cannot be loaded.
        RecordError: The labels differ; "other" alone may be missing.
    """
    pipeline, own = _load(model, device)
    mapping = dict(labels) if labels else {label: label.casefold() for label in own if label.casefold() in REGARD}
    wrong = sorted({*mapping} - {*own}) + sorted({*mapping.values()} - {*REGARD})
    lacking = sorted({"positive", "negative", "neutral"} - {*mapping.values()})
    unmapped = sorted({*own} - {*mapping})
    if wrong or lacking or unmapped:
        raise RecordError(
            f"regard model {model!r} has the labels {own}, expected {list(REGARD)} (missing {lacking}, not understood "
            f"{[*wrong, *unmapped]}). Give the meaning of each, such as "
            "--regard-labels LABEL_0=negative,LABEL_1=neutral."
        )
    return TextClassifier(model, pipeline, mapping)


def attack_classifier(model: str, label: str = "identity_attack", *, device: str = "cpu") -> TextClassifier:
    """Return a classifier; one of its labels is taken for identity attack.

    Raises:
        UnknownNameError: The model cannot be loaded.
        RecordError: It has no such label.
    """
    pipeline, own = _load(model, device)
    if label not in own:
        raise RecordError(
            f"attack model {model!r} has the labels {own}, expected {label!r} among them. Name the one that means "
            "attack with --attack-label."
        )
    return TextClassifier(f"{model} [{label}]", pipeline, {label: "attack"})


def _load(model: str, device: str) -> tuple[object, list[str]]:
    from transformers import pipeline

    try:
        classifier = pipeline("text-classification", model=model, device=device)
    except (OSError, ValueError, KeyError) as error:
        why = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise UnknownNameError(
            f"text classifier {model!r} could not be loaded ({type(error).__name__}: {why}). Expected a folder or a "
            "Hub id of a text-classification model; offline, download it first with `hf download`."
        ) from error
    return classifier, [str(label) for label in (classifier.model.config.id2label or {}).values()]


@dataclass(frozen=True)
class Detoxifier:
    """Identity attack by the package `detoxify` (extra `toxicity`).

    Attributes:
        model: The loaded `detoxify.Detoxify`; "unbiased" is loaded on first use when None.
        name: Package and variant.
    """

    model: Any = None
    name: str = "detoxify unbiased"

    def score(self, texts: Sequence[str]) -> list[SentenceScore]:
        """Return the attack score of every sentence.

        Raises:
            MissingExtraError: detoxify is not installed.
            RecordError: The variant has no score for identity attack.
        """
        model = self.model or self._loaded
        outputs = model.predict(list(texts)) if texts else {}
        column = next((name for name in ("identity_attack", "identity_hate") if name in outputs), None)
        if texts and column is None:
            raise RecordError(f"{self.name} gives {sorted(outputs)}, expected identity_attack or identity_hate.")
        return [SentenceScore({"attack": float(value)}) for value in (outputs[column] if column else ())]

    def check(self) -> None:
        """Load the model before anything is asked.

        Raises:
            MissingExtraError: detoxify is not installed.
        """
        _ = self.model or self._loaded

    @cached_property
    def _loaded(self) -> Any:
        with need(
            "detoxify",
            extra="toxicity",
            what_for="identity attack by detoxify",
            otherwise="Or give --attack perspective or a text-classification model.",
        ):
            from detoxify import Detoxify
        return Detoxify("unbiased")


# Identity attack by a server that speaks the protocol of Jigsaw's Perspective API.

URL = "https://commentanalyzer.googleapis.com/v1alpha1/comments:analyze"
_AGAIN = (408, 429, 500, 502, 503, 504)


@dataclass(frozen=True)
class Perspective:
    """Scorer that asks for IDENTITY_ATTACK, one sentence a request.

    Attributes:
        url: The server.
        key_env: Environment variable with the key; "" = the server needs none.
        tries: Requests per sentence at most.
        wait: Seconds before the second try, doubled for each further one.
    """

    url: str = URL
    key_env: str = "PERSPECTIVE_API_KEY"
    tries: int = 5
    wait: float = 1.0

    @property
    def name(self) -> str:
        """The server and the attribute."""
        return f"IDENTITY_ATTACK of {self.url}"

    def check(self) -> None:
        """Ask for the key before anything is sent.

        Raises:
            ServiceError: There is none.
        """
        self._key()

    def score(self, texts: Sequence[str]) -> list[SentenceScore]:
        """Return the attack score of every sentence; a sentence without one has a status.

        Raises:
            ServiceError: No key, or the server refuses it.
        """
        headers = {"Content-Type": "application/json", **self._key()}
        return [self._one(text, headers) for text in texts]

    def _key(self) -> dict[str, str]:
        address("the server of --attack-url", self.url, URL)
        if not self.key_env:
            return {}
        key = os.environ.get(self.key_env, "").strip()
        if not key:
            raise ServiceError(f"{self.url}: the environment variable {self.key_env} is not set. Put the key into it.")
        return {"X-Goog-Api-Key": key}

    def _one(self, text: str, headers: dict[str, str]) -> SentenceScore:
        request = {
            "comment": {"text": text},
            "languages": ["en"],
            "requestedAttributes": {"IDENTITY_ATTACK": {}},
            "doNotStore": True,
        }
        body = json.dumps(request).encode()
        try:
            return try_again(lambda: self._once(body, headers), self.tries, lambda tried: self.wait * 2.0**tried)
        except TryAgain as again:
            return SentenceScore(status=f"no score after {self.tries} tries: {again.reason}")

    def _once(self, body: bytes, headers: dict[str, str]) -> SentenceScore:
        try:
            with urllib.request.urlopen(urllib.request.Request(self.url, body, headers), timeout=30.0) as answer:
                return _read(answer.read())
        except urllib.error.HTTPError as error:
            error.close()
            if error.code in (401, 403, 404):
                raise ServiceError(
                    f"{self.url}: the server refuses (status {error.code}). Check the address and the key in "
                    f"{self.key_env or 'key_env'}."
                ) from None
            if error.code not in _AGAIN:
                return SentenceScore(status=f"refused by the server: {error.code}")
            raise TryAgain(f"status {error.code}") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise TryAgain(type(error).__name__) from None


def _read(body: bytes) -> SentenceScore:
    value = float(json.loads(body)["attributeScores"]["IDENTITY_ATTACK"]["summaryScore"]["value"])
    outside = SentenceScore(status=f"score {value} is outside 0..1")
    return SentenceScore({"attack": value}) if 0 <= value <= 1 else outside
