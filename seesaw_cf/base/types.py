"""The core types: frozen records that every stage passes to the next.

JSON keeps CounterFact's field names (`seesaw_cf.records` reads and writes them), so that files released with the
papers load unchanged. Nothing here imports torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from seesaw_cf.base.checks import brief, instance, text
from seesaw_cf.base.errors import RecordError

TableRow = dict[str, object]
"""A row of a table: column -> value."""
JsonObject = dict[str, object]
"""An object of a JSON file: name -> plain value."""
_NAN = float("nan")
Phase = Literal["pre", "post"]
"""Before or after the edit."""
Kind = Literal[
    "efficacy", "paraphrase", "neighborhood", "portability", "cross_subject", "cross_property", "panel", "text"
]
"""What a prompt asks for: the edit itself, the edit in other words, an answer that must stay target_true, what follows
from the edit, other people, another property of the edit's subject; of a dose run also the fixed panel of people, and
fixed texts."""
Role = Literal["target_new", "target_true", "candidate"]
"""What an answer is to the edit."""
Holds = Literal["target_new", "target_true", ""]
"""Which target a prompt's person really has; "" when unknown or neither."""
FORMS = ("plain", "question", "prefill")
"""How a prompt is put to a model: as a text to continue; in its chat template as a question, or as a question with the
prompt as the begin of the answer."""
SCORERS = ("auto", "trie", "plain", "single")
"""What `seesaw_cf.scoring.make_scorer` takes."""
DTYPES = ("float32", "float64", "bfloat16", "float16")
"""What a model is loaded in."""


@dataclass(frozen=True, slots=True)
class Entity:
    """A thing with an identifier and a name; JSON `{"id", "str"}`.

    Attributes:
        id: A Wikidata QID such as "Q937", an IRI in the project's own namespace, or None when unknown.
        label: The name as it appears in text.
    """

    id: str | None
    label: str

    def __post_init__(self) -> None:
        """Refuse anything but text.

        Raises:
            RecordError: The id or label is of another type, or holds half a surrogate pair.
        """
        text("entity: label", self.label)
        if self.id is not None:
            text("entity: id", self.id)


@dataclass(frozen=True, slots=True)
class EditRequest:
    """One fact to change: `prompt.format(subject)` should continue with `target_new` instead of `target_true`.

    JSON `requested_rewrite`. Source: SEESAW-CF section 3, the edit (s, P, p_i, p_j) with p_i = target_true and
    p_j = target_new.

    Attributes:
        prompt: A template with exactly one "{}" for the subject, e.g. "{} is a citizen of".
        subject: The name that fills the template.
        relation_id: A Wikidata property such as "P27".
        target_new: The counterfactual object, without a leading space.
        target_true: The object the edit replaces, without a leading space.
    """

    prompt: str
    subject: str
    relation_id: str
    target_new: Entity
    target_true: Entity

    def __post_init__(self) -> None:
        """Refuse requests no editor could act on.

        Raises:
            RecordError: A field of another type, the prompt has not exactly one "{}", or the subject or the new
                target is empty.
        """
        for name in ("prompt", "subject", "relation_id"):
            text(f"edit request: {name}", getattr(self, name))
        for name in ("target_new", "target_true"):
            instance(f"edit request: {name}", getattr(self, name), Entity, 'an Entity such as Entity(None, "France")')
        if self.prompt.count("{}") != 1:
            raise RecordError(
                f"edit request for {self.subject!r}: prompt {self.prompt!r} has {self.prompt.count('{}')} '{{}}' "
                "placeholders, expected exactly one for the subject. Write e.g. '{} is a citizen of'."
            )
        for name, value in (("subject", self.subject), ("target_new", self.target_new.label)):
            if not value.strip():
                raise RecordError(
                    f"edit request {self.text!r} ({self.relation_id}): {name} is {value!r}, expected text. "
                    "Fill it in or drop the record."
                )

    @property
    def text(self) -> str:
        """The prompt with the subject filled in."""
        return self.prompt.replace("{}", self.subject)


@dataclass(frozen=True, slots=True)
class AttributePrompt:
    """One cloze prompt about one person, with what is known of that person.

    Replaces the three parallel lists `attribute_prompts`, `attribute_aux_info` (ids) and `attribute_aux_ent` (labels)
    of the released files.

    Attributes:
        text: The prompt, without the answer and without a trailing space that is not in the source.
        subject: The person the prompt is about; id None in files that do not name people.
        template_id: Which template made it, e.g. "P101-03"; "" when unknown.
        holds: Which target the person really has: "target_new" (cross-subject prompts of the papers),
            "target_true" (people who hold p_i), or "" when unknown or neither.
        gender, race, region: Group tags, several allowed, empty = unknown.
        living: False with a confirmed date of death, True when known to live, None when unknown.
        sitelinks: Number of Wikipedia editions about the person (a rarity covariate), None when unknown.
        flags: Damage seen in this row, e.g. "qid_name", "disambiguator"; see `seesaw_cf.records.checks`.
    """

    text: str
    subject: Entity
    template_id: str = ""
    holds: str = ""
    gender: tuple[str, ...] = ()
    race: tuple[str, ...] = ()
    region: tuple[str, ...] = ()
    living: bool | None = None
    sitelinks: int | None = None
    flags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a text or subject of another type.

        Raises:
            RecordError: See above.
        """
        text("attribute prompt: text", self.text)
        instance("attribute prompt: subject", self.subject, Entity, 'an Entity such as Entity(None, "Ada")')


@dataclass(frozen=True, slots=True, repr=False)
class Case:
    """One edit and everything that is asked before and after it.

    Attributes:
        case_id: Number of the case, unique in its file.
        request: The edit.
        effect_relation_id: The property to watch (P2 of a cross-property case); None = the edited one.
        attribute_prompts: Cross-subject prompts about other people.
        effect_prompts: Cross-property prompts about the edit's own subject, such as "X's gender is"; each is scored
            against every one of `candidates`.
        candidates: Answers for `effect_prompts`; empty when the case has none.
        gold: The candidates that are true for the subject before the edit (several allowed).
        generation_prompts: Prompts for open-ended descriptions.
        paraphrase_prompts: Paraphrases of the edit (CounterFact, zsRE rephrase).
        neighborhood_prompts: Prompts that must keep the answer target_true (CounterFact) or `extra["loc_ans"]` (zsRE).
        record_format: "seesaw", "eff", "counterfact", "zsre" or "easyedit": which JSON keys it is written back with.
        extra: Fields of the source record that have no place above, kept for an exact round trip (JSON values).
        flags: Damage that concerns the whole case.
    """

    case_id: int
    request: EditRequest
    effect_relation_id: str | None = None
    attribute_prompts: tuple[AttributePrompt, ...] = ()
    effect_prompts: tuple[AttributePrompt, ...] = ()
    candidates: tuple[str, ...] = ()
    gold: tuple[str, ...] = ()
    generation_prompts: tuple[str, ...] = ()
    paraphrase_prompts: tuple[str, ...] = ()
    neighborhood_prompts: tuple[str, ...] = ()
    record_format: str = "seesaw"
    extra: dict[str, Any] = field(default_factory=dict)
    flags: tuple[str, ...] = ()

    __repr__ = brief


class Cloze(NamedTuple):
    """A context and the answer to score by its log-probability.

    The text scored is `context + " " + target`, or `context + target` when the target brings its own white space or
    the context ends with it. Neither may be empty. In a chat form, one of `FORMS`, the context is put into the model's
    chat template, see `seesaw_cf.scoring.chat`.
    """

    context: str
    target: str
    form: str = "plain"


class ClozeScore(NamedTuple):
    """How likely a model finds a target after a context.

    Attributes:
        logprob: log p(target | context) in nats, summed over target tokens in float64; NaN unless `status` is "ok".
        n_tokens: Number of target tokens.
        greedy: Every target token is the model's most likely next token.
        status: "ok", or the reason why the pair could not be scored.
        n_greedy: How many target tokens are the model's most likely next token, after the true ones before them; None
            when the scorer does not say.
        first: Ids of the model's most likely next tokens, one for each target token; None when the scorer does not say.
    """

    logprob: float
    n_tokens: int
    greedy: bool
    status: str = "ok"
    n_greedy: int | None = None
    first: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """A reported number with its uncertainty and its counts.

    Attributes:
        value: The estimate.
        low, high: Ends of the interval (95 %); NaN when it cannot be estimated.
        stderr: Standard error; NaN when it cannot be estimated.
        p: Two-sided p-value for "value is 0"; NaN when not tested.
        df: Degrees of freedom of the t distribution behind interval and p; NaN without one.
        skew: Skewness of the estimate that interval and p allow for; 0 for none.
        n: Number of observations.
        clusters: Number of independent clusters per dimension, such as {"edit": 286, "person": 512}.
        effective: How many equal clusters would tell as much about the error, per dimension.
        note: Reason for a missing interval; "" when there is one.
    """

    value: float
    low: float = _NAN
    high: float = _NAN
    stderr: float = _NAN
    p: float = _NAN
    df: float = _NAN
    skew: float = 0.0
    n: int = 0
    clusters: Mapping[str, int] = field(default_factory=dict)
    effective: Mapping[str, float] = field(default_factory=dict)
    note: str = ""

    @property
    def n_clusters(self) -> int:
        """Clusters of the dimension that has fewest; the observations where none depends on another."""
        return min(self.clusters.values(), default=self.n)

    def columns(self, *names: str, prefix: str = "") -> TableRow:
        """Return some of the fields by name, as columns of a table."""
        return {f"{prefix}{name}": getattr(self, name) for name in names}

    def limits(self, name: str) -> dict[str, float]:
        """Return the estimate as `name`, with `name`_low and `name`_high."""
        text("limits: name", name)
        return {name: self.value, f"{name}_low": self.low, f"{name}_high": self.high}
