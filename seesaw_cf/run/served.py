"""Models of a run that are on a server: found before a weight is loaded, measured before a question is asked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

import torch
from transformers import AutoTokenizer, PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RunFolderError, UnknownNameError, UnsupportedModelError
from seesaw_cf.base.types import Cloze, JsonObject
from seesaw_cf.generation.served import ServedNames, ServedScorer
from seesaw_cf.generation.server import SCHEMES, ServedPlace, served_place
from seesaw_cf.models.change import EditedModel
from seesaw_cf.models.hooks import silent_loaders
from seesaw_cf.run.jobs import Job
from seesaw_cf.scoring.noise import measure_noise

FORM = "served model"
_LEAST = 1e-4  # nats; what rounding alone may move between two starts of a server that shows no noise


class Measured(TypedDict):
    """What a run's manifest records of a server.

    Attributes:
        server: Its address.
        model: The model's name there.
        noise: See `seesaw_cf.scoring.noise.Noise.record`.
        answers: Log-probabilities (nats) of the same questions, which tell whether it is still the same model.
    """

    server: str
    model: str
    noise: JsonObject
    answers: list[float | None]


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model on a server.

    Attributes:
        source: As it was given.
        place: Where it is, with its name there.
    """

    source: str
    place: ServedPlace

    def scorer(self, tokenizer: PreTrainedTokenizerBase, job: Job) -> ServedScorer:
        """Return what asks it."""
        common = (self.place.base_url, self.place.model, job.key_env)
        return ServedScorer(*common, tokenizer=tokenizer, path=self.place.path, concurrency=job.concurrency)


def find_served(where: str, option: str, job: Job) -> ServedModel | None:
    """Ask a server for the name of its model; None for what is no address.

    Args:
        where: As it was given.
        option: That it was given with.
        job: Has the name of the key's variable.

    Raises:
        RecordError: A malformed address, or one that holds a secret.
        ServiceError: Nothing answers there.
        UnknownNameError: It has no such model, or several and none is named.
    """
    if not where.startswith(SCHEMES):
        return None
    place = served_place(where, option)
    if place.path != "/completions":  # SGLang's own way of asking names no model
        return ServedModel(where, replace(place, model=place.model or "model"))
    names = ServedNames(place.base_url, place.model or "model list", job.key_env).list()
    if place.model:
        one_of(f"model of {place}", place.model, names)
    elif len(names) != 1:
        raise UnknownNameError(
            f"{option}: {place} has {len(names)} models ({', '.join(names)}), expected the name of one. Write it "
            f"behind the address: {where}#{names[0] if names else 'NAME'}."
        )
    return ServedModel(where, replace(place, model=place.model or names[0]))


def measure(scorer: ServedScorer, clozes: Sequence[Cloze], seed: int, earlier: object) -> Measured:
    """Measure the noise floor of a server, or check that it is the one of an earlier call.

    Args:
        scorer: Asks it.
        clozes: The same questions in every call.
        seed: Draws halves of them.
        earlier: What the run's manifest has of it; None when the run begins.

    Raises:
        UnsupportedModelError: It gives no log-probabilities of prompts, or refuses every question.
        DeltaMismatchError: It cuts the questions into other tokens, or truncates them.
        RunFolderError: It answers otherwise than when the run began.
        ServiceError: It does not answer.
    """
    scores = replace(scorer, strict=True).score(clozes)
    answers = [score.logprob if score.status == "ok" else None for score in scores]
    if not any(answer is not None for answer in answers):
        raise UnsupportedModelError(
            f"{scorer.name}: none of {len(clozes)} questions has a score ({scores[0].status}). vLLM, SGLang and "
            "llama-cpp-python (started with logits_all) give log-probabilities of a prompt; or give the weights."
        )
    if isinstance(earlier, Mapping):
        return _checked(scorer, answers, Measured(**earlier))  # type: ignore[typeddict-item]
    noise = measure_noise(scorer, clozes, seed, quick=True).record()
    return {"server": scorer.name.partition(" at ")[2], "model": scorer.model, "noise": noise, "answers": answers}


def _checked(scorer: ServedScorer, answers: Sequence[float | None], earlier: Measured) -> Measured:
    pairs = zip(answers, earlier["answers"], strict=True)
    moved = max((abs(a - b) for a, b in pairs if a is not None and b is not None), default=0.0)
    floor = noise_floor(earlier)
    if moved > 2 * floor + _LEAST:
        raise RunFolderError(
            f"{scorer.name}: its answers moved by up to {moved:.2g} nats since this run began, its noise is "
            f"{floor:.2g}. Another model is served there, or in another way. Start the same one again, or choose a new "
            "--out."
        )
    return earlier


def noise_floor(measured: Measured) -> float:
    """Return the largest move of a log-probability when only the way of asking changed, in nats."""
    largest = measured["noise"].get("max")
    return float(largest) if isinstance(largest, int | float) else 0.0


def digest_of(measured: Measured) -> str:
    """Return what names a served model: a SHA-256 (hex) of where it is and what it answers."""
    parts = [measured["server"], measured["model"], measured["answers"]]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def served_facts(model: ServedModel, measured: Measured, alike: bool, has_null: bool) -> EditedModel:
    """Return what a manifest records of a changed model on a server.

    Args:
        model: The changed model.
        measured: See `measure`.
        alike: The base is served, too.
        has_null: It is compared with a null, or is one.
    """
    n, floor = measured["noise"]["n"], noise_floor(measured)
    notes = [
        f"it is asked as {measured['model']} at {measured['server']}. Asked again, in another order and one at a time, "
        f"it moves log-probabilities by up to {floor:.2g} nats ({n} questions): smaller changes are not claimed"
    ]
    none = (
        "its weights are not here, so no null can be drawn and it has no control. Serve a change that should do "
        "nothing, such as the same training on shuffled targets or the base rounded alike, and name it with --null"
    )
    notes += [] if has_null else [none]
    other = (
        "the base is asked here, so that other kernels or another dtype of the server count as change. Serve the base "
        "in the same way (--model http://...) to take them out"
    )
    notes += [] if alike else [other]
    return {"source": model.source, "form": FORM, "moved": [], "notes": notes, "null": "", "server": measured}


# The base of a run on a server: what a run asks of a model, without weights.


class ServedConfig(PretrainedConfig):
    """Configuration of `NoWeights`: what tells one served model from another."""

    model_type = "served"


class NoWeights(PreTrainedModel):
    """Stands for a model on a server where a run holds its base: no weights to hash, edit or restore."""

    config_class = ServedConfig

    @property
    def device(self) -> torch.device:
        """Where tensors would be."""
        return torch.device("cpu")


def stand_in(measured: Measured) -> NoWeights:
    """Return what stands for a served base; its configuration names the server and a hash of its answers."""
    facts = {"server": measured["server"], "served": measured["model"], "answers": digest_of(measured)}
    config = ServedConfig.from_dict(facts)
    config._name_or_path = f"{measured['model']} at {measured['server']}"
    return NoWeights(config)


@dataclass(frozen=True, slots=True)
class ServedBase:
    """A base on a server, ready to be asked.

    Attributes:
        model: Stands for it.
        tokenizer, scorer: Its own.
        measured: See `measure`.
    """

    model: NoWeights
    tokenizer: PreTrainedTokenizerBase
    scorer: ServedScorer
    measured: Measured

    @property
    def scoring(self) -> JsonObject:
        """Return what a manifest records of the scorer."""
        return {"scorer": "ServedScorer", "path": self.scorer.path, "device": "server"}


def ask_base(model: ServedModel, job: Job, clozes: Sequence[Cloze], earlier: object) -> ServedBase:
    """Load the tokenizer of a served base and measure its server; see `measure`."""
    tokenizer = served_tokenizer(model, job.tokenizer)
    scorer = model.scorer(tokenizer, job)
    measured = measure(scorer, clozes, job.seed, earlier)
    return ServedBase(stand_in(measured), tokenizer, scorer, measured)


def served_tokenizer(model: ServedModel, named: str) -> PreTrainedTokenizerBase:
    """Load the tokenizer of a served base.

    Args:
        model: The base.
        named: A folder or Hub id; "" = the model's name on the server.

    Raises:
        UnknownNameError: There is none.
    """
    source = named or model.place.model
    try:
        with silent_loaders(bars=False):
            tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(source)
    except Exception as error:  # a malformed id, no network, damaged files
        raise UnknownNameError(
            f"--model {model.source}: no tokenizer at {source!r} ({type(error).__name__}). Name its folder or Hub id "
            "with --tokenizer."
        ) from error
    return tokenizer
