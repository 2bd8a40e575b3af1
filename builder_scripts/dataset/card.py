"""The dataset card: what the data is, where it is from, what it may be used for. Every number in it is computed."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict

import pyarrow as pa
import pyarrow.parquet as pq

from seesaw_cf.base.checks import shown
from seesaw_cf.base.citations import bibtex
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.text import read_json
from seesaw_cf.base.types import JsonObject
from seesaw_cf.builder_scripts.dataset.columns import COLUMNS, columns_section
from seesaw_cf.builder_scripts.dataset.statistics import Statistics, attributes, examples, markdown, people_by_group
from seesaw_cf.builder_scripts.options import BuildOptions
from seesaw_cf.builder_scripts.source.draws import WAYS, Draws
from seesaw_cf.records import groups
from seesaw_cf.records.arrow import CASES
from seesaw_cf.records.relations import RELATIONS

METADATA = {
    "license": "mit",
    "language": ["en"],
    "pretty_name": "SEESAW-CF",
    "tags": ["model-editing", "bias", "fairness", "knowledge-editing", "wikidata"],
    "annotations_creators": ["expert-generated"],
    "source_datasets": ["original"],
}

_BODY = """# SEESAW-CF: what an edit does to what a model believes about other people

{intro}

```python
from datasets import load_dataset

{load}
print(cases[0]["requested_rewrite"], cases[0]["attribute_prompts"][0])
```

## Configs

`cross_subject` and `cross_property` have one row per edit (and watched property), `open_ended` one per edit and prompt,
`candidates` one per relation and value, `demographics` one per person{coupled}.

{columns}

Identifiers are Wikidata's (`Q…`) where the match is certain, otherwise IRIs below
`https://seesaw-cf.github.io/entity/`.

## Counts

{cloze} cloze prompts about holders of the new target and {probes} about holders of the old one, over {edits} edits;
{pairs} cross-property cases with {scored} prompt and candidate pairs; {open} open-ended prompts.

Values of every relation (Table 1):

{examples}

Cross-subject cases (the papers' Table 3):

{cross_subject}

Cross-property cases (Table 7):

{cross_property}

Values of *work* by area, of *citizenship* and *birth* by continent (Tables 16-18; what lies on two continents counts
for both):

{attributes}

People by group. A person may have several tags; *unknown* is kept as a value:

{people_tables}

Cross-subject prompts by group and edited relation:

{prompts}
{skipped}
## How it was made

{making} Seed {seed}. The rules of the cases:

- Up to {per_gender} men and {per_gender} women, and as many people of other genders, who hold the new target: a uniform
  sample of all holders, fixed by the seed. Up to {true_per_gender} of each who hold the old target. {both}
- Edits of gender go both ways equally often; a new field of work is in another of the four areas, a new country or
  birth place on another continent. Subjects are half men, half women.
- Tense follows the recorded date of death and is applied to the template, never to a name. Without a date of death,
  people born in 1915 or later count as living, others as unknown (present tense).
{drawn}
## Groups, and what they are not

Race and region are derived from the ethnic groups recorded for a person (Wikidata P172) through the table of the
SEESAW-CF papers (`data/tables/ethnic_groups.csv`, with the origin of every row), so that results can be compared with
published ones. The labels describe people as sources do. They are coarse, contested and bound to time and place: do not
read them as statements about who somebody is, and do not use them to classify anybody. They are never inferred from a
name or a picture. Where nothing is recorded, or where the papers' tables disagree, the tag is unknown, and unknown
people are counted, not dropped. Several tags per person are allowed. Genders other than male and female keep a tag.

Categories that could be drawn otherwise stay as the papers have them: Chinese Americans are tagged East Asia and
Japanese Americans North America, "Jewish" is listed beside races, and "white" covers groups that other lists separate.

## Limits

{limits}

What an edit makes the model say is false on purpose: do not train on `target_new`.

## Licence

MIT; facts from Wikidata are CC0. The templates are those of SEESAW-CF (Appendix A) and ParaRel.

## Citation

The benchmark, the prompts about coupled entities, and the records that both extend:

```bibtex
{citation}
```
"""

_LOCAL = """# In a checkout of seesaw_cf; anywhere else, "seesaw_cf" is the path of this folder.
cases = load_dataset("seesaw_cf", "cross_subject", split="test")"""


def published_card(card: str, repo: str, version: str) -> str:
    """Return the card as it is read on the Hub: its snippet names the repository and the version instead of a folder.

    Args:
        card: The whole text of a built folder's README.md.
        repo: "org/name".
        version: "major.minor.patch", tagged "v" + version.
    """
    return card.replace(_LOCAL, f'cases = load_dataset("{repo}", "cross_subject", split="test", revision="v{version}")')


def size_category(rows: int) -> str:
    """Return the Hub's word for a number of rows."""
    bounds = {1_000: "n<1K", 10_000: "1K<n<10K", 100_000: "10K<n<100K", 1_000_000: "100K<n<1M", 10_000_000: "1M<n<10M"}
    return next((name for bound, name in bounds.items() if rows < bound), "10M<n<100M")


def drawn_section(draws: Draws) -> str:
    """Which way people were drawn for each relation; nothing of a source that finishes every query."""
    if not draws.limited:
        return ""
    names = [way for way in WAYS if any(counts[way] for counts in draws.ways.values())]
    rows = [[RELATIONS[id].name, *(draws.ways[id][way] for way in names)] for id in RELATIONS if id in draws.ways]
    meaning = "\n".join(f"- *{way}*: {WAYS[way]}." for way in names)
    return (
        "\nThe source ends queries that take long, so large samples were drawn in other ways. Samples (of the people "
        f"to edit, and of the holders of a value, by gender) per relation and way:\n\n{meaning}\n\n"
        f"{markdown(['Relation', *names], rows)}\n"
    )


def card_body(
    statistics: Statistics,
    tables: Mapping[str, pa.Table],
    options: BuildOptions,
    words: Mapping[str, str],
    skipped: Mapping[str, int],
    drawn: str = "",
) -> str:
    """Return the Markdown below the card's YAML.

    Args:
        statistics: Has counted every case.
        tables: The configs "open_ended", "candidates" and "demographics", and those of coupled edits.
        options: The rules of the build.
        words: See `About.words`.
        skipped: Why records of edit files made no edit -> how many.
        drawn: See `drawn_section`.
    """
    schemas = {"cross_subject": CASES, "cross_property": CASES} | {name: table.schema for name, table in tables.items()}
    people = f"{tables['demographics'].num_rows:,}"
    names = " and ".join(f"`{name}`" for name in tables if name.startswith("coupled_"))
    coupled = f", {names} one per edit and the entity that is coupled with it (LEME, section 3.1)" if names else ""
    left_out = markdown(["Records of edit files that make no edit", "Number"], sorted(skipped.items()))
    return _BODY.format(
        load=_LOCAL.replace('"seesaw_cf"', f'"{words.get("folder", "seesaw_cf")}"'),
        citation=bibtex("seesaw_cf", "leme", "rome"),
        **{name: text.replace("{people}", people) for name, text in words.items()},
        cloze=f"{statistics.total('cloze', pairs=False):,}",
        probes=f"{statistics.total('probes', pairs=False):,}",
        edits=f"{statistics.total('cases', pairs=False):,}",
        pairs=f"{statistics.total('cases', pairs=True):,}",
        scored=f"{statistics.total('scored', pairs=True):,}",
        open=f"{sum(statistics.total('open', pairs=pairs) for pairs in (False, True)):,}",
        columns=columns_section(schemas),
        coupled=coupled,
        examples=examples(tables["candidates"]),
        cross_subject=statistics.cross_subject(),
        cross_property=statistics.cross_property(),
        attributes="\n\n".join(attributes(tables["candidates"]).values()),
        people_tables="\n\n".join(people_by_group(tables["demographics"], axis) for axis in ("race", "region")),
        prompts="\n\n".join(statistics.groups_of(axis) for axis in groups.AXES),
        skipped=f"\n{left_out}\n" if skipped else "",
        drawn=drawn,
        seed=options.seed,
        per_gender=options.per_gender,
        true_per_gender=options.true_per_gender,
        both="People who hold both are left out." if options.skip_both else "People who hold both are kept.",
    )


# Metadata of a dataset folder in Croissant (mlcommons.org/croissant/1.1), responsible-AI fields included.

# Description of a data set in the responsible-AI vocabulary of Croissant (mlcommons.org/croissant/RAI/1.0).

RAI: Mapping[str, str | list[str]] = {
    "dataCollection": "Facts about people who have an entry in the source (Wikidata, or the one that the card names), "
    "drawn with a fixed seed; the card says how, and how many men, women and people of other genders.",
    "dataCollectionType": ["Secondary data analysis"],
    "dataCollectionMissingData": "A property that is not recorded is unknown: a value of its own, counted and never "
    "filled in.",
    "dataPreprocessingProtocol": [
        "Facts become prompts through fixed templates; the tense follows the recorded date of death."
    ],
    "dataAnnotationProtocol": "Race and region are derived from recorded ethnic groups through the table of the "
    "SEESAW-CF papers; they are never inferred from a name or a picture. Several tags for a person are allowed.",
    "dataUseCases": [
        "Measuring how an edit of a language model's knowledge changes its answers about other people.",
        "Not for classifying people, not for training: the new targets are false on purpose.",
    ],
    "dataBiases": [
        "People with an entry in the source are not a sample of people: well-documented times, places and professions "
        "are over-represented, and groups are recorded for some people only.",
        "The categories are those of the papers: coarse, contested and bound to time and place.",
    ],
    "dataLimitations": [
        "Numbers describe these prompts and people, not a use of a model.",
        "Facts are as the source had them when they were drawn.",
    ],
    "dataSocialImpact": "Makes side effects of model editing on groups of people visible. Labels could be misread as "
    "statements about who somebody is; the card says what they are not.",
    "personalSensitiveInformation": ["Gender", "Race or ethnicity", "Geography", "Names of people with an entry"],
    "dataReleaseMaintenancePlan": "Versions are tagged and never change; a correction is a new version with an entry "
    "in CHANGELOG.md.",
}
"""Property -> what is true of every data set that the builder makes; numbers are in the card."""


_CONTEXT = {
    "@language": "en", "@vocab": "https://schema.org/", "sc": "https://schema.org/", "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/", "dct": "http://purl.org/dc/terms/", "conformsTo": "dct:conformsTo",
    "citeAs": "cr:citeAs", "column": "cr:column", "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"}, "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract", "field": "cr:field", "fileObject": "cr:fileObject", "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet", "format": "cr:format", "includes": "cr:includes", "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath", "key": "cr:key", "md5": "cr:md5", "parentField": "cr:parentField", "path": "cr:path",
    "recordSet": "cr:recordSet", "references": "cr:references", "regex": "cr:regex", "repeated": "cr:repeated",
    "replace": "cr:replace", "separator": "cr:separator", "source": "cr:source", "subField": "cr:subField",
    "transform": "cr:transform",
}  # fmt: skip
_TYPES = {pa.types.is_string: "sc:Text", pa.types.is_boolean: "sc:Boolean", pa.types.is_floating: "sc:Float"}


class CardData(TypedDict, total=False):
    """What is read of the YAML of a data set's card."""

    pretty_name: str
    license: str
    tags: list[str]
    configs: list[dict[str, str]]


def _field(config: str, parent: str, field: pa.Field, meaning: str) -> JsonObject:
    """One column; records become sub-fields, lists are repeated."""
    kind, repeated = field.type, pa.types.is_list(field.type)
    kind = kind.value_type if repeated else kind
    name = f"{parent}/{field.name}"
    entry: JsonObject = {"@type": "cr:Field", "@id": name, "name": name, "description": meaning}
    entry |= {"repeated": True} if repeated else {}
    if pa.types.is_struct(kind):
        inner = (kind.field(index) for index in range(kind.num_fields))
        return entry | {"subField": [_field(config, name, part, f"{part.name} of {field.name}") for part in inner]}
    data_type = next((word for test, word in _TYPES.items() if test(kind)), "sc:Integer")
    if parent != config:  # a column inside a record: readers find it by the path in the parent's column
        return entry | {"dataType": data_type}
    source = {"fileSet": {"@id": f"{config}-files"}, "extract": {"column": field.name}}
    return entry | {"dataType": data_type, "source": source}


def _file(root: Path, file: Path, base: str) -> JsonObject:
    name = file.relative_to(root).as_posix()
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": f"{base}/{name}",
        "encodingFormat": "application/x-parquet",
        "contentSize": f"{file.stat().st_size} B",
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
    }


def _set(root: Path, config: str, files: list[Path]) -> JsonObject:
    """Return all files of one config."""
    return {
        "@type": "cr:FileSet",
        "@id": f"{config}-files",
        "containedIn": [{"@id": file.relative_to(root).as_posix()} for file in files],
        "encodingFormat": "application/x-parquet",
        "includes": f"data/{config}/*.parquet",
    }


def _records(config: str, schema: pa.Schema) -> JsonObject:
    meanings = COLUMNS.get(config, {})
    fields = [_field(config, config, field, meanings.get(field.name, field.name)) for field in schema]
    return {"@type": "cr:RecordSet", "@id": config, "name": config, "field": fields}


def _published(record: Path) -> dict[str, str]:
    day = read_json(record, error=RecordError).get("date") if record.exists() else None
    if day is None:
        return {}
    try:
        return {"datePublished": datetime.date.fromisoformat(day).isoformat()}
    except (TypeError, ValueError) as error:
        raise RecordError(f"{record}: date is {shown(day)}, expected YYYY-MM-DD. Build the folder again.") from error


def croissant(folder: str | os.PathLike[str], repo: str, version: str, metadata: CardData) -> str:
    """Describe every file and column of a dataset folder.

    Args:
        folder: With `data/<config>/*.parquet`.
        repo: ORG/NAME on the Hub.
        version: "major.minor.patch".
        metadata: Of the card: pretty_name, license, tags.

    Returns:
        JSON-LD; the same for the same folder. `datePublished` is the date in its `build.json`, the day on which the
        source had these facts; left out where that is not known.

    Raises:
        RecordError: `build.json` is damaged, or its date is none.
    """
    root, base = Path(folder), f"https://huggingface.co/datasets/{repo}"
    configs: dict[str, list[Path]] = {}
    for file in sorted((root / "data").glob("*/*.parquet")):
        configs.setdefault(file.parent.name, []).append(file)
    files = [_file(root, file, f"{base}/resolve/v{version}") for paths in configs.values() for file in paths]
    sets = [_set(root, name, paths) for name, paths in configs.items()]
    records = [_records(name, pq.read_schema(paths[0])) for name, paths in configs.items()]
    described = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": repo.split("/")[-1],
        "description": metadata.get("pretty_name", repo),
        "citeAs": bibtex("seesaw_cf"),
        "license": metadata.get("license", ""),
        "keywords": list(metadata.get("tags") or []),
        "url": base,
        "version": version,
        **_published(root / "build.json"),
        "distribution": [*files, *sets],
        "recordSet": records,
        **{f"rai:{name}": text for name, text in RAI.items()},
    }
    return json.dumps(described, indent=1, ensure_ascii=False) + "\n"
