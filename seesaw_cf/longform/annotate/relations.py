"""How English words a property of Wikidata: its label with words of sentences about it, and peoples with countries.

Labels are Wikidata's. The words were written by hand, for whole families of properties (life, work, places, things),
not for one data set.
"""

from __future__ import annotations

import csv
from pathlib import Path


def _table(name: str) -> dict[str, str]:
    """First column -> second column of a file next to this one."""
    with Path(__file__).with_name(name).open(encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file)
    return dict(rows)


# Label of a property -> words of sentences that speak of it, beside those of the label itself.
LABELS_SAID = _table("relations.csv")

# People or tongue -> country, where the first five letters differ.
PEOPLES = _table("peoples.csv")
