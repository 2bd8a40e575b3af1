"""Everything about a crawl that decides which triples it finds, apart from the model and the identities."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from seesaw_cf.arguments import check_public
from seesaw_cf.checks import field_types
from seesaw_cf.errors import RecordError
from seesaw_cf.generation.types import Sampling
from seesaw_cf.stereotypes.filters import REFUSALS
from seesaw_cf.stereotypes.templates import PREDICATES

SAMPLING = Sampling(max_new_tokens=24, temperature=0.8, top_k=0, top_p=1.0, stop=("\n",))


@dataclass(frozen=True, slots=True)
class CrawlSettings:
    """How a crawl asks, filters and stops.

    Source: "I'm not racist but...", section 2 and 4, Appendix A.2 (start predicates, temperature 0.8, resampling).
    Deviates: the paper states no number of triples, starts, examples or tries; these defaults are ours.

    Attributes:
        triples: Stop an identity when its graph has this many (in each run).
        runs: Independent repetitions, each with its own seeds: the unit of honest inference.
        seed: Of everything random.
        predicates: Start predicates.
        starts: Start completions per predicate.
        examples: In-context examples in a question.
        width: Steps asked together before their triples become examples; a constant of the crawl, not of the machine.
        choose_predicate: Share of questions in which the model chooses the predicate.
        prefix_start, prefix_expand: Use the prepended texts of Table 2 in templates, in questions.
        tries: Samples of one step before it is abandoned.
        budget: Most asks per identity and run; 0 = ten per triple.
        patience: Give an identity up after this many steps in a row without a triple.
        chat: Ask as a conversation (chat template or chat endpoint) instead of a text to continue.
        max_words: Longest predicate or object.
        repeats: Keep triples an identity already has, instead of sampling again.
        refusals: Regular expressions that mark refusals; see `seesaw_cf.stereotypes.filters`.
        sampling: How tokens are drawn.
    """

    triples: int = 100
    runs: int = 1
    seed: int = 0
    predicates: tuple[str, ...] = PREDICATES
    starts: int = 2
    examples: int = 3
    width: int = 8
    choose_predicate: float = 0.5
    prefix_start: bool = True
    prefix_expand: bool = True
    tries: int = 5
    budget: int = 0
    patience: int = 24
    chat: bool = False
    max_words: int = 20
    repeats: bool = False
    refusals: tuple[str, ...] = REFUSALS[""]
    sampling: Sampling = SAMPLING

    def __post_init__(self) -> None:
        """Refuse settings with which no crawl can work.

        Raises:
            RecordError: A field is of another type, a number is too small, or there is no start predicate.
        """
        field_types(self)
        for name in ("triples", "runs", "starts", "width", "tries", "patience", "max_words"):
            if getattr(self, name) < 1:
                raise RecordError(f"crawl settings: {name} is {getattr(self, name)}, expected at least 1.")
        if self.budget < 0 or self.examples < 1 or not 0 <= self.choose_predicate <= 1:
            raise RecordError(
                f"crawl settings: budget {self.budget}, examples {self.examples}, choose_predicate "
                f"{self.choose_predicate}; expected 0 or more, 1 or more, and a share from 0 to 1."
            )
        if not self.predicates or not all(map(str.strip, self.predicates)):
            raise RecordError(f"crawl settings: start predicates are {self.predicates}, expected at least one word.")

    @property
    def most_asks(self) -> int:
        """The budget of one identity in one run."""
        return self.budget or 10 * self.triples

    def record(self) -> dict[str, object]:
        """Plain values for a manifest."""
        return asdict(self)


check_public(globals())
