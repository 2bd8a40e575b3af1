"""Compares the curated people with sources that were not used to write them down.

`python -m benchmarks.sample_checks [--wordnet FILE] [--released FOLDER]` prints what agrees, and each
disagreement that `settled.tsv` does not settle. Sources: WordNet 3.0 (Debian `wordnet-base`: one line on each of
some 3,800 named people), the released SEESAW-CF files (names with a QID and one fact each, CC0), and the Wikidata
claims of the subjects that these files edit. A person is matched by the whole name, where a source has it only once.
"""

from __future__ import annotations

import argparse
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from seesaw_cf.base.errors import StorageError
from seesaw_cf.base.text import read_json
from seesaw_cf.builder_scripts.embedded import COLUMNS, FOLDER, curated, read_tsv
from seesaw_cf.records import groups

WORDNET = Path("/usr/share/wordnet/data.noun")
SETTLED = FOLDER / "settled.tsv"
GLOSSES, NAMES, CLAIMS = "WordNet 3.0", "names of the released SEESAW-CF files", "claims of the released subject files"

Row = Mapping[str, str]
_ONE = {property_id: column for column, (property_id, _) in COLUMNS.items()}
_PERSON = "18"  # lexicographer file of people
_YEARS = re.compile(r"\((?:(\d{3,4})-(\d{3,4})|born(?: in)? (\d{4}))\)$")
_BORN = re.compile(r"\bborn in ([A-Z]\w+(?: [A-Z]\w+)*)")
_PRONOUNS = {"male": re.compile(r"\b(?:he|his|him)\b"), "female": re.compile(r"\b(?:she|her|hers|actress|woman)\b")}


@dataclass(frozen=True, slots=True)
class Check:
    """One fact of the table beside what a source says of it.

    Attributes:
        name: Of the person.
        property_id: Which property.
        own: The cell of the table.
        source: Which source.
        stated: What the source says, in its words.
        agrees: Whether the cell holds that.
    """

    name: str
    property_id: str
    own: str
    source: str
    stated: str
    agrees: bool

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What a decision about a disagreement is filed under; it falls when the cell or the source changes."""
        return self.name, self.property_id, self.own, self.stated


def folded(name: str) -> str:
    """Return a name without accents and capitals."""
    return unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()


def read_glosses(path: Path = WORDNET) -> dict[str, str]:
    """Return folded name -> gloss of the people of WordNet; names of several people are left out.

    Args:
        path: `data.noun` of WordNet 3.0.

    Raises:
        StorageError: The file cannot be read.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error.strerror}). Install Debian's wordnet-base.") from error
    glosses: dict[str, set[str]] = defaultdict(set)
    for head, _, gloss in (line.partition(" | ") for line in lines if not line.startswith(" ")):
        cells = head.split()
        if cells[1] == _PERSON and "@i" in cells:
            for word in cells[4 : 4 + 2 * int(cells[3], 16) : 2]:
                glosses[folded(word.replace("_", " "))].add(gloss.strip())
    return {name: next(iter(texts)) for name, texts in glosses.items() if len(texts) == 1}


def _gloss_facts(gloss: str, row: Row, lands: Mapping[str, Sequence[str]], of: Row) -> Iterator[tuple[str, str, bool]]:
    """(property, stated, agrees) of each statement of a gloss about a cell that is not empty.

    Silence proves nothing, so an occupation is only ever confirmed.
    """
    if match := _YEARS.search(gloss):
        for column, year in (("birth_year", match[1] or match[3]), ("death_year", match[2])):
            if year and row[column]:
                yield COLUMNS[column][0], year, row[column] == year
    opening = " ".join(gloss.split("(")[0].split()[:8])
    words = [word for word in lands if re.search(rf"\b{word}\b", opening)]
    if words and row["citizenship"]:
        held = set(row["citizenship"].split("|"))
        yield "P27", words[0], any(held & set(lands[word]) for word in words)
    if (match := _BORN.search(gloss)) and row["birth_place"]:
        yield "P19", match[1], match[1] in f"{of[row['birth_place']]}|{row['birth_place']}"
    spoken = [gender for gender, pattern in _PRONOUNS.items() if pattern.search(gloss)]
    if len(spoken) == 1:
        yield "P21", spoken[0], row["gender"] == spoken[0]
    for occupation in filter(None, row["occupation"].split("|")):
        if re.search(rf"\b{occupation}\b", gloss):
            yield "P106", occupation, True
            return


def gloss_checks(people: Iterable[Row], entities: Iterable[Row], glosses: Mapping[str, str]) -> list[Check]:
    """Compare years, citizenship, birth place, gender and occupation with the glosses of WordNet."""
    lands = {row["word"]: row["countries"].split("|") for row in read_tsv(FOLDER / "demonyms.tsv")}
    of = {row["label"]: row["country"] for row in entities if row["kind"] == "city"}
    return [
        Check(row["name"], property_id, row[_ONE[property_id]], GLOSSES, stated, agrees)
        for row in people
        if (gloss := glosses.get(folded(row["name"])))
        for property_id, stated, agrees in _gloss_facts(gloss, row, lands, of)
    ]


def read_names(folder: Path) -> dict[str, tuple[str, set[tuple[str, str]]]]:
    """Return name -> QID and (property, value) of everybody asked about in the released cross-property files.

    Args:
        folder: Of the released files.

    Raises:
        StorageError: A file cannot be read.
        RecordError: A file is not JSON.
    """
    facts: dict[str, dict[str, set[tuple[str, str]]]] = defaultdict(lambda: defaultdict(set))
    for path in sorted(folder.glob("seesaw_cf_P*_P101.json")):
        for record in read_json(path, kind=list):
            edit = record["requested_rewrite"]
            for id, name in zip(record["attribute_aux_info"], record["attribute_aux_ent"], strict=True):
                facts[name][id].add((edit["relation_id"], edit["target_new"]["str"]))
    return {name: next(iter(ids.items())) for name, ids in facts.items() if len(ids) == 1}


def name_checks(people: Iterable[Row], names: Mapping[str, tuple[str, set[tuple[str, str]]]]) -> list[Check]:
    """Compare gender, birth place and citizenship with the facts of the released names."""
    return [
        Check(row["name"], property_id, own, NAMES, value, value in own.split("|"))
        for row in people
        if row["name"] in names
        for property_id, value in sorted(names[row["name"]][1])
        if (own := row[_ONE[property_id]])
    ]


# kind of value -> packaged table
TABLES = {
    "gender": "genders",
    "ethnic_group": "ethnic_groups",
    "field": "fields_of_work",
    "country": "countries",
    "city": "cities",
    "language": "languages",
}
_HUMAN = "Q5"


class Subject(TypedDict):
    """A person of the released files: property -> the values that Wikidata states."""

    name: str
    properties: Mapping[str, Sequence[object]]


def value_ids() -> dict[tuple[str, str], str]:
    """Return (kind, label) -> id of the packaged tables and curated occupations; the first where two share a label."""
    rows = [(kind, row["label"], row["id"]) for kind, name in TABLES.items() for row in groups.table(name).values()]
    curated_rows = read_tsv(FOLDER / "entities.tsv")
    rows += [("occupation", row["label"], row["iri"]) for row in curated_rows if row["kind"] == "occupation"]
    return {(kind, label): id for kind, label, id in reversed(rows) if label}


def read_subjects(folder: Path) -> dict[str, Subject]:
    """Return the humans of the released subject files: QID -> person, in the order of the QIDs' numbers.

    Raises:
        StorageError: The folder has no such file, or one cannot be read.
        RecordError: A file is not JSON.
    """
    files = sorted(folder.glob("*_subject_info.json"))
    if not files:
        raise StorageError(f"{folder}: no *_subject_info.json. Name the folder of the released SEESAW-CF files.")
    subjects: dict[str, Subject] = {id: subject for file in files for id, subject in read_json(file).items()}
    humans = [id for id, subject in subjects.items() if _HUMAN in subject["properties"].get("P31", ())]
    return {id: subjects[id] for id in sorted(humans, key=lambda id: int(id[1:]))}


def claim_checks(people: Iterable[Row], folder: Path) -> list[Check]:
    """Compare every cell with the complete claims of the released subjects, as far as the tables name the values.

    Raises:
        SeesawError: A file cannot be read.
    """
    labels = {(kind, id): label for (kind, label), id in value_ids().items()}
    subjects = {subject["name"]: subject["properties"] for subject in read_subjects(folder).values()}
    checks = []
    for row in people:
        for column, (property_id, kind) in COLUMNS.items() if row["name"] in subjects else ():
            texts = list(map(str, subjects[row["name"]].get(property_id, ())))
            stated = (
                [labels[kind, text] for text in texts if (kind, text) in labels] if kind else [t[1:5] for t in texts]
            )
            if stated and row[column]:
                agrees = not set(stated).isdisjoint(row[column].split("|"))
                checks.append(Check(row["name"], property_id, row[column], CLAIMS, "|".join(stated), agrees))
    return checks


def confirmed_ids(checks: Iterable[Check], names: Mapping[str, tuple[str, object]], folder: Path) -> dict[str, str]:
    """Return name -> QID where a released file gives it and a fact that tells people apart agrees.

    Args:
        checks: With the released names and claims.
        names: Of `read_names`.
        folder: Of the released files.
    """
    telling = {"P19", "P27", "P569"}
    agreeing = {(check.source, check.name) for check in checks if check.agrees and check.property_id in telling}
    ids = {
        subject["name"]: id for id, subject in read_subjects(folder).items() if (CLAIMS, subject["name"]) in agreeing
    }
    return {**{name: id for name, (id, _) in names.items() if (NAMES, name) in agreeing}, **ids}


def counted(checks: Iterable[Check]) -> dict[tuple[str, str], Counter[bool]]:
    """Return (source, property) -> how many facts agree (True) and disagree (False)."""
    counts: dict[tuple[str, str], Counter[bool]] = defaultdict(Counter)
    for check in checks:
        counts[check.source, check.property_id][check.agrees] += 1
    return dict(sorted(counts.items()))


def unsettled(checks: Iterable[Check], settled: Iterable[Row]) -> list[Check]:
    """Return the disagreements about which nothing was decided."""
    known = {(row["name"], row["property"], row["own"], row["stated"]) for row in settled}
    return [check for check in checks if not check.agrees and check.key not in known]


def all_checks(people: Sequence[Row], entities: Sequence[Row], wordnet: Path, released: Path) -> list[Check]:
    """Compare with all three sources.

    Raises:
        SeesawError: A source cannot be read.
    """
    return [
        *gloss_checks(people, entities, read_glosses(wordnet)),
        *name_checks(people, read_names(released)),
        *claim_checks(people, released),
    ]


def main() -> None:
    """Print the counts, and the disagreements that are not settled."""
    parser = argparse.ArgumentParser(description="compare the curated people with other sources")
    parser.add_argument("--wordnet", type=Path, default=WORDNET, help="data.noun of WordNet (default: %(default)s)")
    parser.add_argument("--released", type=Path, required=True, help="folder of the released SEESAW-CF files")
    arguments = parser.parse_args()
    people, entities, _ = curated()
    checks = all_checks(people, entities, arguments.wordnet, arguments.released)
    for (source, property_id), count in counted(checks).items():
        print(f"{source}, {property_id}: {count[True]} agree, {count[False]} do not")
    for check in unsettled(checks, read_tsv(SETTLED)):
        print(f"not settled: {check.name}, {check.property_id}: {check.own!r} here, {check.source} {check.stated!r}")


if __name__ == "__main__":
    main()
