"""An invented world in Wikidata's shape, to build from without asking anybody; nobody in it exists.

Few values have very many holders, most have few. Four of five people are men. Some have no English name or one with a
disambiguator, some a second value or one that is known to exist only.
"""

import json
import random
from collections.abc import Iterator, Sequence

from seesaw_cf.builder_scripts.embedded import PROPERTIES
from seesaw_cf.builder_scripts.sparql import FEMALE, MALE
from seesaw_cf.records import groups
from seesaw_cf.types import Case

FIRST_ID = 900_000_000  # QIDs of invented people; Wikidata has not come near
_TABLES = {"P27": "countries", "P19": "cities", "P101": "fields_of_work", "P103": "languages", "P172": "ethnic_groups"}
# Property -> share of people who have it, share of these who have a second value.
_SHARES = {"P27": (0.9, 0.08), "P19": (0.7, 0.0), "P101": (0.35, 0.2), "P103": (0.35, 0.03), "P172": (0.15, 0.1)}


def invented_world(people: int, edits: Sequence[Case]) -> Iterator[str]:
    """Yield Turtle: names of all values, people, and for every subject of the edits a human who holds the old value."""
    rng = random.Random(0)
    tables = {
        id: {key: row for key, row in groups.table(name).items() if key[0] == "Q"} for id, name in _TABLES.items()
    }
    rows = [row for table in (*tables.values(), groups.table("genders"), PROPERTIES) for row in table.items()]
    names = {id: row["label"] for id, row in rows}
    requests = [case.request for case in edits]
    names |= {str(one.id): one.label for request in requests for one in (request.target_new, request.target_true)}
    yield from (_label(id, label) for id, label in names.items())
    countries = {row["label"]: id for id, row in tables["P27"].items()}
    for id, row in tables["P19"].items():
        if row["country"] in countries:
            yield f"wd:{id} wdt:P17 wd:{countries[row['country']]} .\n"
    values = {id: rng.sample(sorted(table), len(table)) for id, table in tables.items()}
    for number in range(people):
        yield from _person(f"Q{FIRST_ID + number}", number, values, rng)
    numbers: dict[str, str] = {}
    for request in requests:
        id = numbers.setdefault(request.subject, f"Q{FIRST_ID + people + len(numbers)}")
        yield f"wd:{id} wdt:P31 wd:Q5 ; wdt:P21 wd:{MALE} ; wdt:{request.relation_id} wd:{request.target_true.id} .\n"
        yield _label(id, request.subject)


def _label(id: str, text: str, tag: str = "en") -> str:
    return f"wd:{id} rdfs:label {json.dumps(text, ensure_ascii=False)}@{tag} .\n"


def _person(id: str, number: int, values: dict[str, list[str]], rng: random.Random) -> Iterator[str]:
    kind, name = rng.random(), f"Person {number:04}"
    if kind < 0.05:
        yield _label(id, name, "mul") if kind < 0.03 else _label(id, f"Имя {number}", "ru")
    else:
        yield _label(id, f"{name} (singer)" if kind < 0.055 else name)
    held = [f"wdt:P31 wd:Q5 ; wikibase:sitelinks {int(rng.paretovariate(1))}"]
    held += [f"wdt:P21 wd:{rng.choices((MALE, FEMALE, 'Q48270'), (78, 21, 1))[0]}"]
    for property_id, (share, second) in _SHARES.items():
        if rng.random() < share:
            count, own = 1 + (rng.random() < second), values[property_id]
            drawn = [own[int(len(own) * rng.random() ** 4)] for _ in range(count)]
            held += [f"wdt:{property_id} wd:{value}" for value in dict.fromkeys(drawn)]
        elif rng.random() < 0.01:
            held += [f"wdt:{property_id} _:u{number}"]
    born = rng.randint(1750, 2000)
    dates = [("P569", born, 0.85), ("P570", born + 60, 0.95 if born < 1915 else 0.3)]
    held += [
        f'wdt:{name} "{year}-01-01T00:00:00Z"^^xsd:dateTime' for name, year, share in dates if rng.random() < share
    ]
    yield f"wd:{id} {' ; '.join(held)} .\n"
