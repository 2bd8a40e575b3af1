"""The words of an instrument come from a file, are checked, and leave their hash in what they give."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from seesaw_cf.base.tables import read_table, write_table
from seesaw_cf.cli import main
from seesaw_cf.effects.survey_items import ITEMS
from seesaw_cf.errors import SeesawError
from seesaw_cf.generation.types import Ask, Completion, Sampling
from seesaw_cf.texts.annotate.llm import GUIDELINES, LLMAnnotator
from seesaw_cf.texts.flaws.judge import JudgeOptions, judge_pairs
from seesaw_cf.texts.rate.judge import LLMJudge, instructions
from seesaw_cf.texts.wording import OURS, read_wording

from .flaw_samples import pair, passages

YAML = """\
source: The paper
task: "Say which one."
judge: "{entity} {title} {definition} [{one}] [{two}] Which?"
survey: "Rate it."
guidelines: "Label it."
flaws:
  sexism: {title: Sexist, people: [p1, p2], model: [m1]}
"""


class Echo:
    """A judge that says "equal" and keeps what it was asked."""

    name = "echo"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def generate(self, asks: Sequence[Ask], sampling: Sampling) -> list[Completion]:
        self.asked += [str(ask.prompt) for ask in asks]
        return [Completion("Answer: equal", "stop") for _ in asks]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "words.yaml").write_text(YAML, encoding="utf-8")
    return tmp_path / "words.yaml"


def test_parts_are_replaced_and_the_rest_stays(file: Path) -> None:
    found = read_wording(file)
    assert found.facts() == {
        "source": "The paper",
        "sha256": hashlib.sha256(YAML.encode()).hexdigest(),
        "replaced": [
            *("task", "judge", "survey", "guidelines"),
            *("flaws.sexism.title", "flaws.sexism.people", "flaws.sexism.model"),
        ],
    }
    assert found.chosen(["racism"]) == OURS.chosen(["racism"])
    assert read_wording(None) is OURS
    assert OURS.facts() == {"source": "seesaw_cf", "sha256": "", "replaced": []}


def test_a_judge_of_flaws_is_asked_in_these_words(file: Path) -> None:
    echo = Echo()
    judge_pairs([pair(1, "x", "y")], echo, JudgeOptions(flaws=["sexism"], wording=read_wording(file), seed=1))
    assert len(echo.asked) == 1
    assert echo.asked[0].startswith("Ada Oak Sexist - m1 [")
    assert "Which?\nReply with two lines and nothing else:\nQuote: " in echo.asked[0]
    assert echo.asked[0].endswith("Answer: A, B or equal")


def test_judges_and_annotators_of_leme_are_named_after_their_words(file: Path) -> None:
    words = read_wording(file)
    judge, annotator = LLMJudge(Echo(), intro=words.survey), LLMAnnotator(Echo(), guidelines=words.guidelines)
    assert instructions(ITEMS[0], words.survey).startswith("Rate it.\n\nYou rate one criterion:")
    assert judge.name.endswith(f", wording {hashlib.sha256(words.survey.encode()).hexdigest()[:12]}")
    assert annotator.name.endswith(f", wording {hashlib.sha256(words.guidelines.encode()).hexdigest()[:12]}")
    assert "wording" not in LLMJudge(Echo()).name + LLMAnnotator(Echo(), guidelines=GUIDELINES).name
    annotator.classify([("x", "y")])


def test_people_are_told_in_these_words(file: Path, tmp_path: Path) -> None:
    texts = (("none", "pre", "Ada Oak is a judge."), ("memit", "post", "Ada Oak is a nun."))
    write_table(tmp_path / "p.parquet", passages(*({"editor": e, "phase": p, "text": t} for e, p, t in texts)))
    out = tmp_path / "out"
    words = ["people", "export", "flaws", str(tmp_path / "p.parquet"), "--out", str(out)]
    assert main([*words, "--wording", str(file)]) == 0
    guide = (out / "instructions.txt").read_text(encoding="utf-8")
    assert guide.startswith("Say which one.\n\nWrite into the columns")
    assert "Column sexism: Sexist\n- p1\n- p2\n  A  more in text A\n" in guide
    assert json.loads((out / "key.json").read_text(encoding="utf-8"))["wording"] == read_wording(file).facts()
    assert main(words) == 1, "another key and other instructions lie there"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("tasks: x", r"unknown part of .*: 'tasks'\. Did you mean 'task'"),
        ("task: 3", "task is 3, expected text"),
        ("task: ' '", "task is ' ', expected text"),
        ("{}", "no wording in it"),
        ("- x", r"is \['x'\], expected an object with source, task"),
        ("a: [", "not YAML"),
        ("judge: '{entity} {one}'", r'judge has places \["entity", "one"\], expected each of \{entity\}, \{title\}'),
        ("judge: '{'", "judge: .*Write {{ and }}"),
        ("flaws: {sexsm: {title: x}}", r"unknown part of .*flaws: 'sexsm'\. Did you mean 'sexism'"),
        ("flaws: {sexism: {people: x}}", r"flaws\.sexism\.people is 'x', expected a list"),
        ("flaws: {sexism: {people: [3]}}", r"flaws\.sexism\.people\[0\] is 3, expected text"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "w.yaml").write_text(content, encoding="utf-8")
    with pytest.raises(SeesawError, match=message):
        read_wording(tmp_path / "w.yaml")


HEAD = "props,target_true,target_new,subj,pre_text,post_text,Anglo-centrism,Sexism,Religious Injection,Xenophobia,"
HEAD += "Classism,Racism,Injection of Conservatism,Edit reflected?\n"


def released(folder: Path, *labels: str) -> str:
    rows = [f"P21_P101,a,b,Ada,x{n},y,{label},,,,,,,{n % 2}\n" for n, label in enumerate(labels)]
    (folder / "a.csv").write_text(HEAD + "".join(rows), encoding="utf-8")
    return str(folder / "a.csv")


@pytest.mark.parametrize(
    ("labels", "more", "expected"),
    [
        (("1", "1.5", "2"), [], [-1, 0, 1]),
        (("-1", "0", "1"), [], [-1, 0, 1]),
        (("1", "1", ""), ["--coding", "signed"], [1, 1, 0]),
        (("1", "1", ""), ["--coding", "halves", "--blank", "missing"], [-1, -1, None]),
    ],
)
def test_released_files_are_read_in_both_codings(
    tmp_path: Path,
    labels: tuple[str, ...],
    more: list[str],
    expected: list[int | None],
) -> None:
    words = ["flaws", "import", released(tmp_path, *labels), "--rater", "A1"]
    assert main([*words, "--out", str(tmp_path / "a.parquet"), *more]) == 0
    rows = read_table(tmp_path / "a.parquet").to_pylist()
    assert [row["change"] for row in rows if row["flaw"] == "anglo_centrism"] == expected
    assert read_table(tmp_path / "a.reflected.parquet").column("reflected").to_pylist() == ["no", "yes", "no"]


@pytest.mark.parametrize(
    ("labels", "more", "message"),
    [
        (("1", "1"), [], "every label is 1"),
        (("-1", "1.5"), [], "labels of two codings"),
        (("1", "2"), ["--coding", "signed"], "row 3 has '2' for 'Anglo-centrism', expected -1, 0, 1 or nothing"),
        (("1", "2"), ["--out", "SHEET"], "is read by the same command"),
    ],
)
def test_released_files_that_cannot_be_read(
    tmp_path: Path, labels: tuple[str, ...], more: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = released(tmp_path, *labels)
    before = Path(file).read_bytes()
    words = ["flaws", "import", file, "--rater", "A1", "--out", str(tmp_path / "a.parquet")]
    assert main([*words, *(file if word == "SHEET" else word for word in more)]) == 1
    assert message in " ".join(capsys.readouterr().err.split())
    assert Path(file).read_bytes() == before
