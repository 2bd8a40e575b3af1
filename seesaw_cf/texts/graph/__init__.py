"""Stereotype knowledge graphs: triples about identities, drawn from a model by prompting alone.

What the commands are asked stands here; nothing heavy is imported.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.fields import AtLeastZero, NameOrPath, OneOf, Positive, Seed, field_types
from seesaw_cf.base.system import lazy

if TYPE_CHECKING:
    from seesaw_cf.texts.graph.crawl import crawl_identities
    from seesaw_cf.texts.graph.identities import find
    from seesaw_cf.texts.graph.report import compare_graphs, run_graph
    from seesaw_cf.texts.graph.scores import score_crawl

__all__ = ["CompareJob", "GraphJob"]
__all__ += ["compare_graphs", "crawl_identities", "find", "run_graph", "score_crawl"]

_HOME = dict.fromkeys(("compare_graphs", "run_graph"), "seesaw_cf.texts.graph.report")
_HOME |= {"crawl_identities": "seesaw_cf.texts.graph.crawl", "find": "seesaw_cf.texts.graph.identities"}
__getattr__, __dir__ = lazy(__name__, _HOME | {"score_crawl": "seesaw_cf.texts.graph.scores"})
TopicMethod = Annotated[str, OneOf(("auto", "bertopic", "nmf"))]


@dataclass(frozen=True, slots=True)
class GraphJob:
    """What `seesaw-cf graph run` does; the fields are its options.

    Source: "I'm not racist but...", section 2 and 4, Appendix A.2 (temperature 0.8).
    Deviates: the paper states no number of triples; this default is ours.

    Attributes:
        model: 'seesaw-tiny', a Hub id, a folder, or a name at `base_url`.
        delta: Folder of a weight delta: crawl the edited model.
        identities: Classes, names, 'all', or NAME=CLASS.
        triples: Of each identity in each run.
        repeats: Of the crawl; five or more for honest intervals.
        seed: Of everything random.
        temperature: Of sampling.
        prefix: Prepended texts: both, start, expand or none.
        conversation: Ask as a conversation, for chat models.
        regard: Classifier of regard: Hub id, folder or 'none'.
        attack: 'detoxify', 'perspective', a classifier or 'none'.
        plain: The same crawl made with `prefix` none (figure 5).
        topics: Number of topics.
        topic_method: auto, bertopic or nmf.
        base_url: OpenAI-compatible server.
        key_env: Environment variable with its key.
        revision: Branch, tag or commit of a Hub model.
        dtype: Of weights and sums.
        device: auto, cpu or cuda:1.
        trust_remote_code: Run code from the model's repository.

    Raises:
        RecordError: A field is of another type or out of its range, or an edit is to be made on a server.
    """

    model: str
    _: KW_ONLY
    delta: Path | None = None
    identities: tuple[str, ...] = ("all",)
    triples: Positive = 100
    repeats: Positive = 1
    seed: Seed = 0
    temperature: AtLeastZero = 0.8
    prefix: Annotated[str, OneOf(("both", "start", "expand", "none"))] = "both"
    conversation: bool = False
    # Source: Sheng et al. (2019). Deviates: the paper used version2.1_3, which its authors give as files, not under a
    # Hub id; this is version 3 of the same classifier, the default of `evaluate`'s measurement "regard".
    regard: NameOrPath = "sasha/regardv3"
    attack: NameOrPath = "detoxify"
    plain: Path | None = None
    topics: Positive = 8
    topic_method: TopicMethod = "auto"
    base_url: str = ""
    key_env: str = "OPENAI_API_KEY"
    revision: str | None = None
    dtype: str = "float32"
    device: str = "auto"
    trust_remote_code: bool = False

    def __post_init__(self) -> None:
        field_types(self)
        if self.base_url and self.delta:
            raise RecordError("--delta edits a local model; with --base-url the server must serve the edited one.")


@dataclass(frozen=True, slots=True)
class CompareJob:
    """What `seesaw-cf graph compare` does; the fields are its options.

    Attributes:
        base: Crawl of the unedited model.
        edited: Crawl of the edited model, same settings.
        identity_control: Crawl after an edit to what the model knows.
        random_control: Crawl after a random change of that size.
        topics: Number of topics.
        topic_method: auto, bertopic or nmf.
        seed: Of topics and of the test of their mix.
    """

    base: Path
    edited: Path
    _: KW_ONLY
    identity_control: Path | None = None
    random_control: Path | None = None
    topics: Positive = 8
    topic_method: TopicMethod = "auto"
    seed: Seed = 0

    def __post_init__(self) -> None:
        field_types(self)
