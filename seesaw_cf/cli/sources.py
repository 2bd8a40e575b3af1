"""Sources of facts on the command line: what the words for one mean, and how it is asked."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from seesaw_cf.base.errors import StorageError
from seesaw_cf.base.files import cache_folder
from seesaw_cf.base.retrying import Bar, no_bars
from seesaw_cf.builder_scripts.sample.facts import curated, store
from seesaw_cf.builder_scripts.source.endpoint import WIKIDATA_ENDPOINT, EndpointSource, RequestPolicy
from seesaw_cf.builder_scripts.source.replies import CachedSource
from seesaw_cf.builder_scripts.source.sources import Source, StoreSource
from seesaw_cf.cli.paths import output_folder
from seesaw_cf.cli.types import seconds
from seesaw_cf.records.sample import SAMPLE

T = TypeVar("T")
KNOCK = 20.0  # seconds for a query that needs no search; an endpoint that does not answer it is silent


def source_options(parser: argparse.ArgumentParser) -> None:
    """Add how sources are asked, and where their replies are kept."""
    add = parser.add_argument
    add("--language", default="en", help="language of the names (default: en)")
    where = "where replies are kept (default: $SEESAW_CF_CACHE, else ~/.cache/seesaw_cf)"
    add("--cache", type=output_folder, metavar="DIR", help=where)
    add("--offline", action="store_true", help="use kept replies only, never ask")
    add("--contact", default="", help="mail address or web page for the User-Agent, as public endpoints ask")
    add("--timeout", type=seconds, default=70.0, metavar="S", help="seconds for one reply (default: 70)")


def endpoint_url(words: Sequence[str]) -> str:
    """Return the address of the endpoint that words name, "" when they name something else."""
    if len(words) != 1 or (words[0] != "wikidata" and "://" not in words[0]):
        return ""
    return WIKIDATA_ENDPOINT if words[0] == "wikidata" else words[0]


def source_of(
    words: Sequence[str], args: argparse.Namespace, option: str = "--source", silent_attempts: int = 3
) -> Source:
    """Return the source that words name, as `source_options` say; all but the sample with a cache in front.

    Args:
        words: "sample", "wikidata", an address, a store's folder, or RDF files.
        args: The parsed options.
        option: Where the words were given, for messages.
        silent_attempts: How often an endpoint is asked a query that it does not finish in time.

    Raises:
        SeesawError: The source does not exist, or a file of it cannot be read.
    """
    if list(words) == [SAMPLE]:
        return store(*curated())
    source: Source
    if url := endpoint_url(words):
        policy = RequestPolicy(
            contact=args.contact, timeout=args.timeout, silent_attempts=silent_attempts, knock=min(KNOCK, args.timeout)
        )
        source = EndpointSource(url, policy)
    elif len(words) == 1 and Path(words[0]).is_dir():
        source = StoreSource(store=words[0])
    elif missing := [word for word in words if not Path(word).is_file()]:
        raise StorageError(
            f"{option} {missing[0]!r}: no such file or folder, and not {SAMPLE!r}, 'wikidata' or a URL. "
            " Check the name."
        )
    else:
        source = StoreSource(words)
    return CachedSource(source, args.cache or cache_folder() / "replies", offline=args.offline)


def bar(steps: Sequence[T], label: str) -> Iterable[T]:
    """Wrap steps in a progress bar that shows the time left; a single step has none."""
    return Bar(steps, desc=label, disable=len(steps) < 2 or no_bars(), smoothing=0.1)
