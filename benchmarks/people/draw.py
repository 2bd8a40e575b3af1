"""Draw people whom no released file and no person of the small sample names: some to measure on, others to tune on.

    python -m benchmarks.people.draw --shared FOLDER [--shared FOLDER]

Writes `measured.json` and `tuning.json` here, an edit of one relation for each person and no person in both. The
relations take turns, so that the first edits of a file are as balanced as all. Both are committed: `sample`, from
which they are drawn, may change.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from seesaw_cf.records.json_records import write_json
from seesaw_cf.records.load import load_cases
from seesaw_cf.records.relations import RELATIONS
from seesaw_cf.types import Case

HERE = Path(__file__).parent
FILES = ("measured", "tuning")
NEIGHBOURS = 5


def draw(text: str, edits: int, seed: int = 0) -> dict[str, list[Case]]:
    """Return the cases of each file, `edits` of different people, none of whom is named in `text`."""
    used = {
        case.request.subject for config in ("cross_subject", "cross_property") for case in load_cases("sample", config)
    }
    cases = load_cases("sample", "cross_subject")
    order = [cases[i] for i in np.random.default_rng(seed).permutation(len(cases))]
    drawn: dict[str, list[Case]] = {name: [] for name in FILES}
    for turn in range(edits * len(FILES)):
        relation = tuple(RELATIONS)[turn // len(FILES) % len(RELATIONS)]
        case = next(
            c
            for c in order
            if c.request.relation_id == relation and c.request.subject not in used and c.request.subject not in text
        )
        used.add(case.request.subject)
        drawn[FILES[turn % len(FILES)]].append(case)
    return {name: [_short(case, number) for number, case in enumerate(chosen)] for name, chosen in drawn.items()}


def _short(case: Case, number: int) -> Case:
    """The edit with its paraphrases and neighbours, without its other questions."""
    neighbours = case.neighborhood_prompts[:NEIGHBOURS]
    return Case(
        number,
        request=case.request,
        paraphrase_prompts=case.paraphrase_prompts,
        neighborhood_prompts=neighbours,
        record_format="counterfact",
    )


def main() -> None:
    """Write both files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, action="append", required=True, help="folder of files that name people")
    parser.add_argument("--edits", type=int, default=40, help="of each file")
    given = parser.parse_args()
    files = sorted(file for folder in given.shared for file in folder.rglob("*") if file.suffix in (".json", ".csv"))
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    text += text.encode().decode("unicode_escape", "ignore")
    for name, cases in draw(text, given.edits).items():
        write_json(HERE / f"{name}.json", cases)
        print(name, len(cases), "edits,", sum(len(case.neighborhood_prompts) for case in cases), "neighbours")


if __name__ == "__main__":
    main()
