"""Cases from the embedded sample, a dataset folder, a record file or the Hub, by one name.

The sample is some 2,300 well-known people, at least sixty of each group of the papers. The package folder is a
`datasets` data folder: README.md describes the configs, `data/<config>/` holds them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from seesaw_cf.base.checks import check_path, one_of
from seesaw_cf.base.errors import RecordError, StorageError
from seesaw_cf.base.fields import checked
from seesaw_cf.base.types import Case
from seesaw_cf.records.arrow import read_cases, table_to_cases
from seesaw_cf.records.checks import check_unique
from seesaw_cf.records.coupled import KEYS as COUPLED_KEYS

if TYPE_CHECKING:
    from datasets import Dataset

SAMPLE = "sample"  # what stands for its folder in `--data`
# The configs of the sample whose rows are cases to run; the others are tables beside them.
CASE_CONFIGS = ("cross_subject", "cross_property", "coupled_counterfact", "coupled_zsre")


@checked
def path() -> Path:
    """Return the folder that `datasets.load_dataset(str(path()), config)` opens, in a checkout or installed."""
    return Path(__file__).parents[1]


@checked
def configs() -> tuple[str, ...]:
    """Return the configs of the sample, sorted: "candidates", "cross_property", "cross_subject", ..."""
    return tuple(sorted({file.parent.name for file in (path() / "data").glob("*/*.parquet")}))


@checked
def load(config: str = "cross_subject", split: str = "test", **options: object) -> Dataset:
    """Load one config with `datasets.load_dataset`, from any directory and without network.

    Args:
        config: One of `configs()`.
        split: The sample has only "test".
        **options: More arguments of `datasets.load_dataset`, such as `streaming=True` or `cache_dir`.

    Returns:
        The rows, with the features that README.md declares.

    Raises:
        UnknownNameError: The config does not exist.
        RecordError: The split, or the part of one, does not exist.
    """
    one_of("config", config, configs())
    from datasets import load_dataset

    try:
        return load_dataset(str(path()), config, split=split, **options)
    except ValueError as error:
        raise RecordError(f"split {split!r} of config {config!r} cannot be read: {error} Expected 'test'.") from error


def load_cases(source: str, config: str) -> list[Case]:
    """Read the cases of one config.

    Args:
        source: "sample", a folder that holds (itself, or in its folder `data`) CONFIG/*.parquet or CONFIG.parquet, a
            .json, .jsonl or .parquet file (`config` is then not needed), or a Hub id such as "org/seesaw_cf".
        config: Name of the config.

    Raises:
        UnknownNameError: The source has no such config; near names are suggested.
        RecordError: A record is malformed, or a folder has no config.
        StorageError: Nothing can be read there.
    """
    return load_revised_cases(source, config)[0]


def load_revised_cases(source: str, config: str) -> tuple[list[Case], str]:
    """Read cases as `load_cases` does, with the commit of the Hub's data set that was read; "" for what is local."""
    place = _place(source, config)
    return _from_hub(source, config) if place is None else (read_cases(place), "")


def check_configs(source: str, configs: Iterable[str]) -> None:
    """Check that the sample or a folder has these configs; nothing is read.

    Raises:
        UnknownNameError: One is missing; those that are there are named.
        RecordError: The folder has no config.
    """
    for config in configs:
        _place(source, config)


def usual_configs(source: str) -> tuple[str, ...]:
    """Return the configs that an audit asks where none is named: one of a file, which has no several."""
    return CASE_CONFIGS[: 1 if source != SAMPLE and check_path(source).is_file() else 2]


def _place(source: str, config: str) -> Path | None:
    """Return the file or folder of a config; None where the Hub has to be asked."""
    if source == SAMPLE:
        one_of("config", config, [name for name in CASE_CONFIGS if name in configs()])
        return path() / "data" / config
    local = check_path(source)
    if local.is_dir():
        return _config_place(local, config)
    return local if local.is_file() else None


def _config_place(folder: Path, config: str) -> Path:
    root = folder / "data" if (folder / "data").is_dir() else folder
    places = {file.stem: file for file in root.glob("*.parquet")}
    places |= {child.name: child for child in root.iterdir() if child.is_dir() and any(child.glob("*.parquet"))}
    if not places:
        raise RecordError(f"{root} holds no config, expected CONFIG.parquet or CONFIG/*.parquet. Name another folder.")
    return places[one_of(f"config of {folder}", config, places)]


def _from_hub(source: str, config: str) -> tuple[list[Case], str]:
    from datasets import concatenate_datasets, load_dataset_builder
    from datasets.exceptions import DatasetGenerationError, DatasetNotFoundError

    try:
        builder = load_dataset_builder(source, config)
        builder.download_and_prepare()
        table = concatenate_datasets(list(builder.as_dataset().values())).data.table
    except (DatasetNotFoundError, ConnectionError, FileNotFoundError) as error:
        raise StorageError(
            f"{source!r} is neither {SAMPLE!r}, a file or folder here, nor a data set the Hub answers for "
            f"({type(error).__name__}: {error}). Check the name, the network and your access."
        ) from error
    except DatasetGenerationError as error:
        raise RecordError(
            f"{source!r}: the files of config {config!r} are not one table ({type(error.__cause__).__name__}). Give "
            "every split the same columns and at least one row."
        ) from error
    except ValueError as error:
        raise RecordError(f"{source!r}: {error}") from error
    cases = check_unique(table_to_cases(table), Path(source))
    return cases, str(builder.hash or "")  # the hash of a data set without a script is its commit


# What records of EasyEdit, KnowEdit and zsRE ask besides the edit: its consequences, and what it must not touch.

# Names that the files give a prompt and its answer.
_PAIRS = (("prompt", "ground_truth"), ("New Question", "New Answer"))


def portability(case: Case) -> list[tuple[str, tuple[str, ...]]]:
    """Return prompts with answers that follow from the edit, each with every spelling of its answer.

    Source: EasyEdit's portability ("portability" of its files, of KnowEdit and of its zsRE: a reasoning hop, an alias
        of the subject, a reversed relation); LEME appendix H reports it.
    """
    return _prompts(case, "portability")


def locality(case: Case) -> list[tuple[str, tuple[str, ...]]]:
    """Return prompts of EasyEdit's records with answers that must stay, each with every spelling of its answer.

    zsRE's own locality prompt is one of `Case.neighborhood_prompts`, its answer `extra["loc_ans"]`.
    """
    return _prompts(case, "locality") if case.record_format == "easyedit" else []


def _prompts(case: Case, name: str) -> list[tuple[str, tuple[str, ...]]]:
    flat = _pair(case.extra.get(f"{name}_prompt"), case.extra.get(f"{name}_ground_truth"))
    return list(dict.fromkeys([*flat, *_pairs(case.extra.get(name))]))


def _pairs(value: object) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield every prompt with its answers, however deep: by kind, in lists, or alone."""
    if isinstance(value, list):
        for part in value:
            yield from _pairs(part)
    elif isinstance(value, Mapping):
        own = [_pair(value[prompt], value.get(answer)) for prompt, answer in _PAIRS if prompt in value]
        yield from (pair for pairs in own for pair in pairs)
        if not own:
            for part in value.values():
                yield from _pairs(part)


def _pair(prompt: object, answer: object) -> list[tuple[str, tuple[str, ...]]]:
    if isinstance(prompt, list) and isinstance(answer, list) and len(prompt) == len(answer):
        return [pair for both in zip(prompt, answer) for pair in _pair(*both)]
    spellings = tuple(dict.fromkeys(_spellings(answer)))
    return [(prompt, spellings)] if isinstance(prompt, str) and prompt.strip() and spellings else []


def _spellings(answer: object) -> Iterator[str]:
    """Yield the texts in an answer: one, or lists of those that count as right."""
    if isinstance(answer, list):
        for part in answer:
            yield from _spellings(part)
    elif isinstance(answer, str) and answer.strip():
        yield answer.strip()


def aliases_of(case: Case) -> dict[str, tuple[str, ...]]:
    """Return answers of a case with their spellings, the answer itself first, where its record has several.

    Of the true answer those of EasyEdit's `ground_truth` and of zsRE's `answers`, which count where they hold it; of
    any answer those of the record's `aliases`, answer -> its spellings.
    """
    true, own = case.request.target_true.label, case.extra.get("aliases")
    known = {str(name): list(_spellings(texts)) for name, texts in (own if isinstance(own, Mapping) else {}).items()}
    for key in ("ground_truth", "answers"):
        texts = list(_spellings(case.extra.get(key)))
        known[true] = [*known.get(true, ()), *(texts if true in texts else ())]
    return {name: tuple(dict.fromkeys((name, *texts))) for name, texts in known.items() if texts}


# Keys that records have beside those of their format and that something reads, or that only number or name a source.
_READ = {
    *("answers", "alt", "aliases", "pred", "cond", "loc_ans", "ground_truth", "rephrase_prompt", "kind", "pararel_idx"),
    *("subject_id", "template_id", "relation_id", "holders", "case_id", "attribute_prompts", *COUPLED_KEYS),
    *("generation_prompts", "paraphrase_prompts", "neighborhood_prompts", "attribute_aux_info", "attribute_aux_ent"),
}
_ASKED = {"portability": portability, "locality": locality}


def unread_keys(case: Case) -> list[str]:
    """Return the keys of a case's record that nothing reads: they are kept, and nothing of them is asked."""
    asked = [name for name, prompts in _ASKED.items() if prompts(case)]
    keys = [key for key in case.extra if key not in _READ and not _belongs(key, asked, case)]
    spellings = {key: set(_spellings(case.extra.get(key))) for key in ("ground_truth", "answers")}
    kinds = [(name, kind, part) for name in asked for kind, part in _kinds(case.extra.get(name))]
    keys += [f"{name}: {kind}" for name, kind, part in kinds if part and not list(_pairs(part))]
    return keys + [f"{key}: other spellings" for key, texts in spellings.items() if len(texts) > 1]


def _kinds(value: object) -> list[tuple[str, object]]:
    """Return the kinds of prompts under a key with what they hold; none where it is a prompt itself."""
    if not isinstance(value, Mapping) or any(prompt in value for prompt, _ in _PAIRS):
        return []
    return list(value.items())


def _belongs(key: str, asked: Sequence[str], case: Case) -> bool:
    """Return whether a key is read as a part of another: prompts that are asked, the edit's own object."""
    if key == "requested_rewrite":
        rest = case.extra[key]
        return isinstance(rest, Mapping) and set(rest) <= {"target_new", "target_true"}
    return any(key in (name, f"{name}_prompt", f"{name}_ground_truth") for name in asked)
