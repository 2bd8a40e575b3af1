"""Compare the numbers of two source trees, by meaning: the guard of a redesign.

    python -m benchmarks.same_numbers OLD_TREE NEW_TREE --work DIR

The same jobs run on both trees. Score tables, saved deltas and the output of every `evaluate` module must be equal to
the last bit; only reasons in words and new columns may differ. Every other number must still be there: each row of an
old CSV, Parquet or JSON file (its numbers to 12 digits, and its labels) is looked for among all rows of all new files
of the job, whatever they are called there. It prints the rows of each old file that are gone, and exits with 1 when
`RETIRED` does not name them.

Both trees ask the same questions: the records are those of the old tree, and the design is the published one where a
tree has designs.

A job that has finished is not run again, so an old tree's outputs serve for many comparisons.
"""

from __future__ import annotations

import argparse
import csv
import fnmatch
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
from safetensors.numpy import load_file

STUDY = """\
title: Four cells
models: {tiny: seesaw-tiny}
editors: {ft: {}, memit: {}}
controls: [random]
records:
  sample: {data: RECORDS, configs: [cross_subject, cross_property], limit: 20}
protocols: [single, batch]
seed: 0
threads: 1
margin: 0.02
"""
RATERS = """
from seesaw_cf.base.tables import read_table, write_table
from seesaw_cf.texts.tables import PASSAGES
from seesaw_cf.texts.write.pairs import FlawAnswer, flaw_row, flaw_table, passage_pairs
pairs, _ = passage_pairs(read_table("open/passages.parquet", PASSAGES))
flaws = ("sexism", "racism", "xenophobia", "religion", "classism", "anglo_centrism", "conservatism")
for number, rater in enumerate(["one", "two"]):
    answers = [
        flaw_row(pair, flaw, rater, "pre", FlawAnswer((3 * row + 5 * column + number * (row % 4 == 0)) % 3 - 1))
        for row, pair in enumerate(pairs)
        for column, flaw in enumerate(flaws)
    ]
    write_table(f"{rater}.parquet", flaw_table(answers))
"""
DELTAS = """
from pathlib import Path
from seesaw_cf.models import load_model
from seesaw_cf.sharing import load_delta, to_peft
model, tokenizer = load_model("seesaw-tiny", device="cpu")
folder = sorted(path.parent for path in Path("run/deltas/memit").rglob("*.safetensors"))[0]
Path("edited").symlink_to(folder.resolve())
random = sorted(path.parent for path in Path("run/deltas").glob("random*/*/*.safetensors"))[0]
Path("moved").symlink_to(random.resolve())
to_peft(load_delta(folder), model, "adapter")
"""
METRICS = """
import json
from pathlib import Path
import importlib
for name, inputs in json.load(open(Path("..") / ".." / "inputs.json")).items():
    module = importlib.import_module(f"seesaw_cf.metrics.{name}.{name}")
    metric = getattr(module, name.title().replace("_", ""))()
    try:
        values = metric.compute(**inputs)
    except TypeError:  # a metric without resampling takes no `draws`
        values = metric.compute(**{key: value for key, value in inputs.items() if key != "draws"})
    Path(f"{name}.metric.json").write_text(json.dumps(values, sort_keys=True, indent=1))
"""
INPUTS = """
import json
from tests.metrics import test_inputs as t
inputs = {name: columns | t.options_of(name) for name, columns in t.COLUMNS.items()}
json.dump(inputs, open("inputs.json", "w"))
"""

PROGRAMS = {"deltas": DELTAS, "metrics": METRICS, "raters": RATERS}
FILES = {"study.yaml": STUDY}

_EDITORS = "--editor ft --editor memit --control random --config cross_subject --config cross_property --limit 40"
_GRAPH = "graph run --model seesaw-tiny --identities 'gender identity' --triples 12 --runs 2 --acknowledge-content"
_COMPARE = "--topic-method nmf --json compared.json --out compared --acknowledge-content"
_DOSES = "--dose 1 --dose 4 --repeats 2 --people 2 --quiet"
_FLAWS = "--config open_ended --limit 6 --samples 2 --max-new-tokens 24 --annotator '' --quiet"
_SURVEY = "--limit 6 --max-new-tokens 32 --annotator lexical --quiet"

# Job -> its steps: commands of the package, "python NAME" of `PROGRAMS`, "write NAME" of `FILES`.
JOBS: dict[str, tuple[str, ...]] = {
    "run": (
        f"run --model seesaw-tiny {_EDITORS} --keep-deltas --out run --report report",
        "metrics run --json metrics.json",
        "metrics run --paper --score normalised --json paper.json",
        "plan --effect 0.02 --run run --axis gender --group women --json plan.json",
        "export run --organisation Same --when 1 --out exported",
        "python deltas",
        f"{_GRAPH} --out base",
        f"{_GRAPH} --delta edited --out graph",
        f"{_GRAPH} --delta moved --out control",
        f"graph compare base graph --random-control control {_COMPARE}",
    ),
    "study": ("write study.yaml", "study study.yaml --quiet"),
    "leme": (
        f"leme run --model seesaw-tiny --config coupled_counterfact --config open_ended {_SURVEY} --out long",
        f"leme run --model seesaw-tiny --editor ft {_FLAWS} --out open",
        "python raters",
        "flaws report one.parquet two.parquet --judge two --out people",
    ),
    "dose": (
        f"dose --model seesaw-tiny --editor ft {_DOSES} --out dose",
        f"dose --model seesaw-tiny --editor ft --pair P27,P101 {_DOSES} --out pair",
    ),
    "metrics": ("python metrics",),
}
# Commands whose prompts about other people are chosen by a design, in trees that have designs.
_CHOOSE = ("run", "dose")
# Old rows that may be gone: patterns of JOB/PATH and of one label of the row ("" = any row), and why.
RETIRED: tuple[tuple[str, str, str], ...] = (
    ("*/manifest.json", "", "times, versions and paths of the run itself"),
    ("*/shards/*", "", "parts of the score table, compared whole"),
    ("run/plan.json", "", "it speaks about the run's own contrasts"),
    ("run/exported/*", "", "records carry identifiers made anew"),
    ("*/report/report.json", "", "its tables are CSV files, which are compared"),
    ("*/report/audit.json", "", "its tables are CSV files, which are compared"),
    ("leme/*/report.json", "", "its tables are CSV files, which are compared"),
    ("leme/people/people.json", "", "its tables are CSV files, which are compared"),
    ("*/accuracy*.csv", "random(*", "numbers of a control are means of its seeds"),
    ("*/efficacy.csv", "random(*", "numbers of a control are means of its seeds"),
    ("*/success.csv", "random(*", "numbers of a control are means of its seeds"),
    ("*/tables.csv", "random(*", "numbers of a control are means of its seeds"),
    ("run/metrics.json", "random(*", "numbers of a control are means of its seeds"),
    ("run/paper.json", "random(*", "numbers of a control are means of its seeds"),
    ("*/verdicts.csv", "no edit was scored on both groups", "a group with nobody outside it says so"),
    *(("leme/long/*", f"{name} (baseline)", "no rater is without a model") for name in ("lexical", "minilm")),
    ("leme/people/judges_beyond_chance.csv", "two", "intervals of agreement hold with rare labels"),
    ("leme/long/tables/survey*.csv", "", "intervals of mean ratings end at 1 and 7, as those of the metric do"),
)
# Name in labels of the old tree -> name in those of the new one.
RENAMED: dict[str, str] = {
    f"{protocol}, {editor}": f"{protocol}/{editor}" for protocol in ("single", "batch") for editor in ("ft", "memit")
}
_SCORES = ("*/scores.parquet", "*/passages.parquet", "*.metric.json", "*.safetensors")
# Reasons of missing intervals are sentences, which may change; whether there is one may not.
_NOTE = re.compile(rb'"note": "[^"]+"')
# A cell that shows a number, perhaps after the mark that keeps a spreadsheet from reading it as a formula.
_SHOWN_NUMBER = re.compile(r"'?[-+]?\d|'?-$")
_TIMES = re.compile(r"seconds|time|date|version|commit|hash|sha|path|bytes|uuid|cpu|memory", re.I)


@dataclass(frozen=True, slots=True)
class Row:
    """One row of an output: its numbers to 12 digits, its words."""

    file: str
    numbers: Counter[str]
    labels: frozenset[str]


def run_job(name: str, tree: Path, folder: Path, records: Path) -> None:
    """Run a job's steps in `folder` with the package of `tree` on `records`; a finished job is left as it is.

    Raises:
        SystemExit: A step failed; its output is in `folder/log.txt`.
    """
    if (folder / ".finished").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    variables = os.environ | {"PYTHONPATH": str(tree), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    variables["SEESAW_CF_CACHE"] = str(folder.parent / ".cache")
    for step in JOBS[name]:
        first, *words = shlex.split(step)
        if first == "write":
            text = FILES[words[0]].replace("RECORDS", str(records))
            (folder / words[0]).write_text(text + ("design: paper\n" if _has_designs(tree) else ""))
            continue
        if first in _CHOOSE:
            words += ["--data", str(records), *(["--design", "paper"] if _has_designs(tree) else [])]
        program = ["-c", PROGRAMS[words[0]]] if first == "python" else ["-m", "seesaw_cf", first, *words]
        with (folder / "log.txt").open("a") as log:
            status = subprocess.run([sys.executable, *program], cwd=folder, env=variables, stdout=log, stderr=log)
        if status.returncode:
            raise SystemExit(f"{name}: {step} failed; read {folder / 'log.txt'}.")
    (folder / ".finished").touch()


def _has_designs(tree: Path) -> bool:
    return (tree / "seesaw_cf" / "run" / "design.py").exists()


def digest(path: Path, columns: Sequence[str] = ()) -> str:
    """Return a SHA-256 of what a score table, a delta or an output of a metric holds.

    Args:
        path: The file.
        columns: Of a table, those that count; all when there are none.
    """
    if path.suffix == ".safetensors":
        tensors = load_file(path)
        content = b"".join(name.encode() + tensors[name].tobytes() for name in sorted(tensors))
    elif path.suffix == ".parquet":
        table = pq.read_table(path).to_pandas()
        content = table.reindex(columns=columns or columns_of(path)).to_csv(index=False).encode()
    else:
        content = _NOTE.sub(rb'"note": "*"', path.read_bytes())
    return hashlib.sha256(content).hexdigest()


def columns_of(path: Path) -> list[str]:
    """Return the columns of a table that are no times; none of another file."""
    if path.suffix != ".parquet":
        return []
    return sorted(name for name in pq.read_schema(path).names if not _TIMES.search(name))


def rows_of(folder: Path) -> Iterator[Row]:
    """Yield the rows of every CSV, Parquet and JSON file below `folder`."""
    readers = {".csv": _csv_rows, ".parquet": _parquet_rows, ".json": _json_rows}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.suffix in readers and path.is_file() and not any(fnmatch.fnmatch(f"/{name}", p) for p in _SCORES):
            for record in readers[path.suffix](path):
                numbers, labels = _parts(record)
                if numbers:
                    yield Row(name, numbers, labels)


def _csv_rows(path: Path) -> Iterable[dict[str, Any]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _parquet_rows(path: Path) -> Iterable[dict[str, Any]]:
    table: list[dict[Any, Any]] = pd.read_parquet(path).to_dict("records")
    return table


def _json_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield one record for each object: its own numbers and words, and the keys that lead to it."""
    stack: list[tuple[tuple[str, ...], Any]] = [((), json.loads(path.read_text(encoding="utf-8")))]
    while stack:
        place, value = stack.pop()
        if isinstance(value, list):
            stack += [(place, item) for item in value if isinstance(item, dict | list)]
            continue
        yield {key: item for key, item in value.items() if not isinstance(item, dict)} | {"place": list(place)}
        stack += [((*place, key), item) for key, item in value.items() if isinstance(item, dict | list)]


def _parts(record: dict[str, Any]) -> tuple[Counter[str], frozenset[str]]:
    numbers: Counter[str] = Counter()
    labels: set[str] = set()
    for key, value in record.items():
        if key is None or _TIMES.search(key):
            continue
        for item in value if isinstance(value, list | tuple) else [value]:
            try:
                number = float(item)
            except (TypeError, ValueError):
                labels |= {str(item)} if isinstance(item, str) and item and not _SHOWN_NUMBER.match(item) else set()
            else:
                if number == number and str(item) not in ("True", "False"):
                    numbers[f"{number:.12g}"] += 1
    return numbers, frozenset(labels)


def _now(label: str) -> str:
    """Return what a label of the old tree, of one or more names, is in the new one."""
    for old, new in RENAMED.items():
        label = label.replace(old, new)
    return label


def missing(old: Iterable[Row], new: Iterable[Row]) -> tuple[Counter[str], list[Row]]:
    """Return rows per old file, and the old rows of which no new row has all numbers (and, among those, all labels)."""
    everything = list(new)
    equal = {(frozenset(row.numbers.items()), row.labels) for row in everything}
    counts, changed = Counter[str](), list[Row]()
    for row in old:
        counts[row.file] += 1
        if (frozenset(row.numbers.items()), row.labels) not in equal:
            changed.append(row)
    places: dict[str, set[int]] = {number: set() for row in changed for number in row.numbers}
    for index, row in enumerate(everything):
        for number in places.keys() & row.numbers.keys():
            places[number].add(index)

    def there(row: Row) -> bool:
        labels = {_now(label) for label in row.labels if len(label) < 40}
        candidates = set.intersection(*sorted((places[number] for number in row.numbers), key=len))
        return any(row.numbers <= everything[i].numbers and labels <= everything[i].labels for i in candidates)

    return counts, [row for row in changed if not there(row)]


def compare(job: str, old: Path, new: Path) -> int:
    """Print what is gone or different in a job's outputs; return the number of faults."""
    faults, exact = 0, 0
    for path in sorted(old.rglob("*")):
        name = path.relative_to(old).as_posix()
        if not path.is_file() or not any(fnmatch.fnmatch(f"/{name}", pattern) for pattern in _SCORES):
            continue
        if "/shards/" in name or "/cache/" in name:
            continue
        other, exact = new / name, exact + 1
        columns = columns_of(path)
        if not other.exists() or digest(path) != digest(other, columns):
            faults += 1
            print(f"{job}/{name}: {'differs' if other.exists() else 'gone'}")
        elif more := set(columns_of(other)) - set(columns):
            print(f"{job}/{name}: {', '.join(sorted(more))} are new columns")
    counts, gone = missing(rows_of(old), rows_of(new))
    by_file: dict[str, list[Row]] = defaultdict(list)
    for row in gone:
        by_file[row.file].append(row)
    for file, count in sorted(counts.items()):
        reasons = Counter(_reason(f"{job}/{file}", row) for row in by_file[file])
        faults += reasons[""]
        for reason, rows in reasons.items():
            print(f"{job}/{file}: {rows} of {count} rows gone{f' ({reason})' if reason else ''}")
        for row in [row for row in by_file[file] if not _reason(f"{job}/{file}", row)][:2]:
            print(f"    {sorted(row.labels)[:8]} {sorted(row.numbers.elements())[:10]}")
    print(f"{job}: {sum(counts.values()):,} rows of {len(counts)} files and {exact} whole files compared")
    return faults


def _reason(file: str, row: Row) -> str:
    """Return why a row may be gone; "" where nothing says so."""
    for files, label, reason in RETIRED:
        if fnmatch.fnmatch(file, files) and (not label or any(fnmatch.fnmatch(name, label) for name in row.labels)):
            return reason
    return ""


def main() -> None:
    """Run the jobs on both trees and compare them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, help="tree of the last commit before the redesign")
    parser.add_argument("new", type=Path, help="tree with the redesign")
    parser.add_argument("--work", type=Path, required=True, help="folder for the outputs of both")
    parser.add_argument("--job", action="append", choices=sorted(JOBS), help="only this job; repeatable")
    args = parser.parse_args()
    work: Path = args.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    old, new = args.old.resolve(), args.new.resolve()
    if not (work / "inputs.json").exists():
        subprocess.run([sys.executable, "-c", INPUTS], cwd=work, env=os.environ | {"PYTHONPATH": str(old)}, check=True)
    faults = 0
    for job in args.job or JOBS:
        for name, tree in (("old", old), ("new", new)):
            run_job(job, tree, work / name / job, old / "seesaw_cf")
        faults += compare(job, work / "old" / job, work / "new" / job)
    print(f"{faults} faults")
    raise SystemExit(faults > 0)


if __name__ == "__main__":
    main()
