"""Files of bias benchmarks, as their authors and as data sets of the Hub hold them: rows with the authors' names."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import RecordError, StorageError
from seesaw_cf.base.hub import download
from seesaw_cf.base.text import read_json, read_text

BenchmarkRow = Mapping[str, Any]
"""One row: names of columns -> values, as the file has them."""


def find_files(place: str) -> list[Path]:
    """Return the files of a benchmark, sorted.

    Args:
        place: A file, a folder, or the id of a data set on the Hub, as "ORG/NAME" or "ORG/NAME@REVISION".

    Raises:
        StorageError: There is nothing.
    """
    folder = Path(place)
    if not folder.exists():
        if place.count("/") != 1:
            raise StorageError(f"{place}: no such file or folder, and no id on the Hub. Name the benchmark's files.")
        what = "no such file or folder, and the Hub gives no data set of that id"
        folder = download(place, what, "for the Hub check name, revision and network", repo_type="dataset")
    return [folder] if folder.is_file() else sorted(file for file in folder.rglob("*") if file.is_file())


def read_rows(file: Path, columns: Sequence[str]) -> Iterator[BenchmarkRow]:
    """Yield the rows of a file.

    Args:
        file: .csv, .tsv, .jsonl or .parquet.
        columns: That every row must have.

    Raises:
        StorageError: It cannot be read.
        RecordError: A column is missing.
    """
    for row in _READERS[file.suffix](file):
        if missing := [name for name in columns if name not in row]:
            raise RecordError(
                f"{file}: got the columns {shown(list(row), 200)}, expected also {', '.join(missing)}. Give the files "
                "of the benchmark's authors, or a data set of the Hub that has theirs."
            )
        yield row


def _from_parquet(file: Path) -> Iterable[BenchmarkRow]:
    import pyarrow.parquet as pq

    try:
        return list(pq.read_table(file).to_pylist())
    except (OSError, ValueError) as error:
        raise RecordError(f"{file}: not a Parquet file ({error}). Download it again.") from error


_READERS = {
    ".csv": lambda file: csv.DictReader(io.StringIO(read_text(file))),
    ".tsv": lambda file: csv.DictReader(io.StringIO(read_text(file)), delimiter="\t"),
    ".jsonl": lambda file: (json.loads(line) for line in read_text(file).splitlines() if line.strip()),
    ".parquet": _from_parquet,
}


# Words of answers for the letters by which the records name groups.
_LETTERS = {"man": "m", "boy": "m", "woman": "f", "girl": "f"}


def biased_answer(row: BenchmarkRow, unknown: int) -> int:
    """Return the biased answer of an item of BBQ where the authors' tables are not there, as on the Hub.

    It is the answer about a stereotyped group, and in a question that is not negative the other one. Of 160 items in
    six categories 156 are the authors' `target_loc`, and four open.

    Args:
        row: The item.
        unknown: Its answer "unknown".

    Returns:
        0, 1 or 2; -1 where it is open.
    """
    groups = [_words(group) for group in row["additional_metadata"]["stereotyped_groups"]]
    people = [at for at in range(3) if at != unknown]
    for texts in ((1,), (0, 1)):
        named = {at: _words(" ".join(row["answer_info"][f"ans{at}"][text] for text in texts)) for at in people}
        about = [at for at in people if any(group <= named[at] for group in groups)]
        if len(about) == 1:
            return about[0] if row["question_polarity"] == "neg" else sum(people) - about[0]
    return -1


def _words(text: str) -> set[str]:
    return {_LETTERS.get(word, word) for word in re.split(r"[\W_]+", text.lower()) if word}


# The order of the labels in McGill-NLP/stereoset (bf6e7ce50491784d094fb7afe60a70ecccb89035), which holds numbers.
_HUB_LABELS = ("anti-stereotype", "stereotype", "unrelated")


def stereoset_rows(file: Path) -> Iterator[tuple[str, BenchmarkRow, Mapping[str, str]]]:
    """Yield part, row, and its texts by label ("stereotype", "anti-stereotype", "unrelated").

    Args:
        file: The authors' JSON, or a Parquet file in the folder of its part.
    """
    columns = ("id", "target", "bias_type", "context", "sentences")
    if file.suffix == ".parquet":
        for row in read_rows(file, columns):
            cells = row["sentences"]
            pairs = zip(cells["gold_label"], cells["sentence"], strict=True)
            yield file.parent.name, row, {_HUB_LABELS[number]: text for number, text in pairs}
    elif '"data"' in read_text(file)[:200]:
        for part, rows in read_json(file)["data"].items():
            for row in rows:
                yield part, row, {sentence["gold_label"]: sentence["sentence"] for sentence in row["sentences"]}


def winobias_lines(file: Path) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield type, split, condition, number and sentence, both mentions of the sentence in square brackets.

    Args:
        file: The authors' `pro_stereotyped_type1.txt.dev`, or the Hub's `type1_pro/validation-00000-of-00001.parquet`
            (uclanlp/wino_bias, 3f31267586e4408e3b3f77ec22198fd24ea8dc1d).
    """
    name = f"{file.parent.name}/{file.name}" if file.suffix == ".parquet" else file.name
    kind = re.findall(r"type(\d)", name)[0]
    split = "test" if "test" in name else "dev"
    condition = "anti" if "anti" in name else "pro"
    for number, sentence in _marked_sentences(file):
        yield kind, split, condition, number, sentence


def _marked_sentences(file: Path) -> Iterator[tuple[str, str]]:
    if file.suffix != ".parquet":
        for line in filter(str.strip, read_text(file).splitlines()):
            number, _, sentence = line.strip().partition(" ")
            yield number, sentence
        return
    for place, row in enumerate(read_rows(file, ("tokens", "coreference_clusters")), start=1):
        words = list(row["tokens"])
        ends = iter(row["coreference_clusters"])
        for first, last in zip(map(int, ends), map(int, ends), strict=True):
            words[first] = f"[{words[first]}"
            words[last] = f"{words[last]}]"
        yield str(place), re.sub(r" (?=[.,;:!?'’]|n't\b)", "", " ".join(words))
