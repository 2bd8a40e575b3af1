"""What does not count is said before any share: items without a score, with an error, invalidated, in one log only."""

import json
import math
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from seesaw_cf.errors import SeesawError
from seesaw_cf.logs import CompareSettings, LogComparison, compare, read_log
from seesaw_cf.logs.sentences import level_text
from tests.logs.made import Made, items, write_log

QUICK = CompareSettings(permutations=199)
N = 30


def inspect(file: Path, samples: Sequence[Mapping[str, Any]], **head: Any) -> Path:
    """A log of inspect_ai with these samples; each has an id and a prompt."""
    rows = [{"id": at, "epoch": 1, "input": f"Question {at}?", **sample} for at, sample in enumerate(samples)]
    config = {"task": "quiz", "model": f"hf/{file.stem}", "config": head.pop("config", {})}
    file.write_text(json.dumps({"version": 2, "status": "success", "eval": config, "samples": rows, **head}))
    return file


def scored(value: object, **more: Any) -> dict[str, Any]:
    return {"scores": {"match": {"value": value, "answer": "x"}}, **more}


def table(file: Path, scores: Sequence[object], **columns: Sequence[object]) -> Path:
    names = [f"{at:03}" for at in range(len(scores))]
    pd.DataFrame({"item": names, "acc": scores, **columns}).to_csv(file, index=False)
    return file


def compared(folder: Path, base: Sequence[Any], changed: Sequence[Any], **settings: Any) -> LogComparison:
    """Compare two logs of inspect_ai."""
    logs = [inspect(folder / f"{name}.json", rows) for name, rows in (("base", base), ("changed", changed))]
    return compare(logs[0], logs[1], replace(QUICK, **settings))


def title(comparison: LogComparison) -> str:
    return f"{comparison.screen.missing} {comparison.screen.title}".strip()


def screen(comparison: LogComparison) -> str:
    return " ".join(comparison.terminal().split())


@pytest.mark.parametrize(
    "none", [scored(math.nan), {"scores": {}, "output": {"completion": "x"}}, scored("NaN"), scored(math.inf)]
)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("every", [3, 30])
def test_items_without_a_score_are_not_unchanged(none: Any, turned: bool, every: int, tmp_path: Path) -> None:
    whole, part = [scored("C")] * N, [scored("C") if at % every else none for at in range(N)]
    missing = N // every
    before, after = (missing, 0) if turned else (0, missing)
    comparison = compared(tmp_path, *((part, whole) if turned else (whole, part)))
    sentence = f"Of 30 items {N - missing} are scored in both logs: {before} before and {after} after have no score. "
    assert title(comparison).startswith(sentence + "No item that both logs score changed")


@pytest.mark.parametrize("word", ["NA", "", "None", "inf", "1e308", "null"])
def test_a_table_with_missing_numbers_says_so(word: str, tmp_path: Path) -> None:
    base = table(tmp_path / "a.csv", [1] * N)
    changed = table(tmp_path / "b.csv", [word if at < 5 else 1 for at in range(N)])
    assert title(compare(base, changed, QUICK)).startswith("Of 30 items 25 are scored in both logs: 0 before and 5")


def test_a_missing_score_of_lm_eval_is_counted(tmp_path: Path) -> None:
    base = write_log(tmp_path / "a", items(), Made(model="small"))
    changed = write_log(tmp_path / "b", items(), Made(model="other"))
    file = next(changed.rglob("samples_*"))
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for at, line in enumerate(lines[:7]):
        line.pop("acc") if at % 2 else line.update(acc=math.nan)
    file.write_text("\n".join(map(json.dumps, lines)) + "\n")
    assert title(compare(base, changed, QUICK)).startswith("Of 60 items 53 are scored in both logs: 0 before and 7")


@pytest.mark.parametrize("side", ["base", "changed"])
def test_invalidated_samples_do_not_count(side: str, tmp_path: Path) -> None:
    valid = [scored("C" if at % 4 else "I") for at in range(N)]
    marked = [scored("I", invalidation={"reason": "down"}) if at < 10 else row for at, row in enumerate(valid)]
    comparison = compared(tmp_path, *(marked if name == side else valid for name in ("base", "changed")))
    assert comparison.screen.missing == "Of 30 items 20 are scored in both logs: 10 are invalidated."
    assert comparison.screen.title.startswith("No item that both logs score changed")
    assert comparison.counts[["paired", "invalidated", "only_base"]].iloc[0].tolist() == [20, 10, 0]


def test_an_invalidated_log_that_names_no_sample_is_refused(tmp_path: Path) -> None:
    log = inspect(tmp_path / "base.json", [scored("C")] * N, invalidated=True)
    with pytest.raises(SeesawError, match=r"it was invalidated and names no sample.*--allow cut"):
        read_log(log)


def test_an_error_beside_a_score_is_left_out_or_wrong(tmp_path: Path) -> None:
    rows = [scored("C", error={"message": "timeout"}) if at < 6 else scored("C") for at in range(N)]
    said = title(compared(tmp_path, [scored("C")] * N, rows))
    assert "0 before and 6 after ended with an error. No item that both logs score changed" in said
    said = title(compared(tmp_path, [scored("C")] * N, rows, errors="wrong"))
    assert "In quiz match fell from 100.0 % to 80.0 %" in said


def test_an_item_without_a_score_is_wrong_in_its_own_metrics_only(tmp_path: Path) -> None:
    def folder(name: str, missing: int) -> Path:
        (tmp_path / name).mkdir()
        for task, metric in (("a", "acc"), ("b", "exact_match")):
            asked = [{"doc_id": at, "arguments": [[f"{task}{at}"]], "filtered_resps": [""]} for at in range(N)]
            scores = [{"metrics": [metric], metric: math.nan if at < missing else 1.0} for at in range(N)]
            lines = [json.dumps(item | score) + "\n" for item, score in zip(asked, scores, strict=True)]
            (tmp_path / name / f"samples_{task}.jsonl").write_text("".join(lines))
        return tmp_path / name

    wrong = compare(folder("base", 0), folder("changed", 6), replace(QUICK, errors="wrong"))
    sentence = "Of 60 items 60 are scored in both logs: 0 before and 12 after have no score and count as wrong. "
    assert title(wrong).startswith(sentence)
    scores = wrong.frame[wrong.frame["family"] == "scores"]
    assert scores[["relation", "asked"]].to_numpy().tolist() == [["a", "acc"], ["b", "exact_match"]]
    assert scores["after"].tolist() == pytest.approx([0.8, 0.8])


def test_a_task_with_items_that_lost_their_score_is_not_unchanged(tmp_path: Path) -> None:
    frame = compared(tmp_path, [scored("C")] * N, [scored("C")] * (N - 10) + [scored(None)] * 10).frame
    assert frame["verdict"].tolist() == ["too_few"]


SPELLINGS = [("yes", "no"), ("Yes", "NO"), (" true", "False"), ("C", "I"), (1, 0), ("1.0", "0"), (True, False)]


@pytest.mark.parametrize(("right", "wrong"), SPELLINGS)
def test_words_are_scores_as_inspect_counts_them(right: object, wrong: object, tmp_path: Path) -> None:
    base = [scored(right if at % 5 else wrong) for at in range(N)]
    assert "In quiz match fell from 80.0 % to 0.0 %" in title(compared(tmp_path, base, [scored(wrong)] * N))


@pytest.mark.parametrize("value", ["refused", [1, 0, 0.5], {"part": "refused"}, {"part": [1]}])
def test_a_score_that_is_no_number_is_refused_or_named(value: object, tmp_path: Path) -> None:
    name = "match/part" if isinstance(value, dict) else "match"
    log = inspect(tmp_path / "base.json", [scored(value)] * N)
    with pytest.raises(SeesawError, match=f"{name}.*(refused|1)"):
        compare(log, log, QUICK)
    both = [{"scores": {"other": {"value": "C"}, **scored(value)["scores"]}}] * N
    beside = inspect(tmp_path / "beside.json", both)
    assert f"{name} of quiz is no number of an item" in screen(compare(beside, beside, QUICK))
    some = inspect(
        tmp_path / "some.json", [*[scored(value)] * 2, *[scored({"part": 1} if "/" in name else 1)] * (N - 2)]
    )
    assert f"{name} of quiz is no number of some items" in screen(compare(some, some, QUICK))


def perplexity(folder: Path, factor: float, others: Mapping[str, Sequence[object]] | None = None) -> Path:
    """Documents of different lengths as lm_eval logs them; `others`: further metrics."""
    folder.mkdir()
    draw, lines = np.random.default_rng(0), []
    for at in range(20):
        words, nats = 10 + at, float(draw.uniform(20, 60))
        sums = {"word_perplexity": [-factor * nats, words], "bits_per_byte": [-factor * nats, 5 * words]}
        own = {name: values[at] for name, values in (others or {}).items()}
        line = {
            "doc_id": at,
            "doc": {"page": at},
            "target": f"t{at}",
            "arguments": {"a": {"b": f"t{at}"}},
            "filter": "none",
        }
        lines.append({**line, "filtered_resps": [str(-factor * nats)], **sums, **own, "metrics": [*sums, *own]})
    (folder / "samples_text.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return folder


def test_a_perplexity_is_tested_in_nats_a_word(tmp_path: Path) -> None:
    logs = perplexity(tmp_path / "a", 1.0), perplexity(tmp_path / "b", 1.1)
    comparison = compare(logs[0], logs[1], QUICK)
    nats = np.random.default_rng(0).uniform(20, 60, 20)
    words = np.arange(10, 30)
    row = comparison.frame.query("asked == 'word_perplexity'").iloc[0]
    change = 0.1 * nats.sum() / words.sum()
    assert row["value"] == pytest.approx(change)
    residual = 0.1 * nats - change * words
    assert row["stderr"] == pytest.approx(math.sqrt((residual**2).sum()) / words.sum(), rel=0.1)
    levels = [math.exp(factor * nats.sum() / words.sum()) for factor in (1.0, 1.1)]
    assert f"In text word_perplexity rose from {levels[0]:.4g} to {levels[1]:.4g}" in title(comparison)
    bits = [factor * nats.sum() / (5 * words.sum()) / math.log(2) for factor in (1.0, 1.1)]
    row = comparison.frame.query("asked == 'bits_per_byte'").iloc[0]
    assert [level_text(dict(row), when) for when in ("before", "after")] == [f"{value:.4g}" for value in bits]


def test_a_document_of_another_length_is_not_compared(tmp_path: Path) -> None:
    logs = perplexity(tmp_path / "a", 1.0), perplexity(tmp_path / "b", 1.1)
    file = logs[1] / "samples_text.jsonl"
    first, *rest = file.read_text().splitlines()
    line = json.loads(first)
    line["word_perplexity"] = [-1000.0, line["word_perplexity"][1] + 1]
    file.write_text("\n".join([json.dumps(line), *rest]))
    row = compare(logs[0], logs[1], QUICK).frame.query("asked == 'word_perplexity'").iloc[0]
    nats, words = np.random.default_rng(0).uniform(20, 60, 20)[1:], np.arange(11, 30)
    assert (row["n"], row["value"]) == (19, pytest.approx(0.1 * nats.sum() / words.sum()))


def test_metrics_of_a_whole_task_are_named(tmp_path: Path) -> None:
    wholes: dict[str, list[object]] = {"mcc": [[1, 0]] * 20, "bleu": [["a", "b"]] * 20}
    logs = [perplexity(tmp_path / name, 1.0, wholes) for name in ("a", "b")]
    comparison = compare(logs[0], logs[1], QUICK)
    assert "Nothing changed" not in title(comparison)
    for name in wholes:
        assert f"{name} of text is no number of an item" in screen(comparison)
    line = {"doc_id": 0, "filtered_resps": [""], "metrics": ["mcc"], "mcc": [1, 0]}
    (tmp_path / "samples_alone.jsonl").write_text(json.dumps(line))
    with pytest.raises(SeesawError, match=r"no item has a score .* mcc of alone is no number of an item"):
        compare(tmp_path / "samples_alone.jsonl", tmp_path / "samples_alone.jsonl", QUICK)


@pytest.mark.parametrize("head", ["item;acc", "item\tacc", "item,acc"])
def test_a_decimal_comma_is_read(head: str, tmp_path: Path) -> None:
    mark = head[4]
    for name, values in (("a", ["0,5", "1", "0,25"]), ("b", ["0,5", "", "0,75"]), ("c", ["1,250", "2,500", "3"])):
        cells = [f'{at}{mark}"{value}"' for at, value in enumerate(values)]
        (tmp_path / f"{name}.csv").write_text("\n".join([head, *cells]) + "\n")
    assert read_log(tmp_path / "a.csv").items["metric:acc"].tolist() == [0.5, 1.0, 0.25]
    assert read_log(tmp_path / "b.csv").items["metric:acc"].notna().tolist() == [True, False, True]
    with pytest.raises(SeesawError, match="no column of numbers is a metric"):
        read_log(tmp_path / "c.csv")  # thousands, or three digits behind the comma


def test_words_of_a_table_are_words(tmp_path: Path) -> None:
    groups = ["NA" if at % 2 else "DE" for at in range(80)]
    right = [int(at % 10 > 0) for at in range(80)]
    wrong = [0 if group == "NA" and at % 8 < 6 else own for at, (group, own) in enumerate(zip(groups, right))]
    logs = [table(tmp_path / f"{name}.csv", own, country=groups) for name, own in (("a", right), ("b", wrong))]
    comparison = compare(logs[0], logs[1], replace(QUICK, groups=("country",)))
    assert "country NA lost more acc than DE" in title(comparison)
    for name in ("c", "d"):
        (tmp_path / f"{name}.csv").write_text("﻿item;acc;more\nNA;1;001\nnull;1;002\n001;0;003\n1;1;004\n")
    log = read_log(tmp_path / "c.csv")
    assert log.items["item"].tolist() == ["NA", "null", "001", "1"]
    assert log.names("metric") == ("acc",)


def test_a_group_that_no_item_has_is_refused_and_known_ones_stay(tmp_path: Path) -> None:
    base, changed = (table(tmp_path / f"{name}.csv", [1, 0] * 15, gender=["a", "b"] * 15, kind=["x", "x", "y"] * 10)
                     for name in "ab")  # fmt: skip
    with pytest.raises(SeesawError, match=r"no item of a has the group field 'gendr'; fields are .*gender.*kind"):
        compare(base, changed, replace(QUICK, groups=("gendr",)))
    assert set(compare(base, changed, replace(QUICK, groups=("kind",))).frame["axis"]) == {"all", "gender", "kind"}


def test_repeated_ids_are_paired_by_content_or_refused(tmp_path: Path) -> None:
    twice = [f"i{at % 15}" for at in range(N)]
    prompts = [f"Question {at}?" for at in range(N)]
    scores = [at % 2 for at in range(N)]
    for name in ("a", "b"):
        rows = pd.DataFrame({"item": twice, "prompt": prompts, "acc": scores})
        rows.to_csv(tmp_path / f"{name}.csv", index=False)
        rows.drop(columns="prompt").to_csv(tmp_path / f"bare_{name}.csv", index=False)
    pairs = compare(tmp_path / "a.csv", tmp_path / "b.csv", QUICK)
    assert pairs.counts[["paired", "repeated"]].iloc[0].tolist() == [30, 0]
    with pytest.raises(SeesawError, match="has several scores and no prompt that tells them apart"):
        compare(tmp_path / "bare_a.csv", tmp_path / "bare_b.csv", QUICK)


@pytest.mark.parametrize("form", ["lists", "array", "json", "no metrics", "old name"])
def test_older_logs_of_lm_eval_are_read(form: str, tmp_path: Path) -> None:
    for name, change in (("small", 0.0), ("tuned", -2.0)):
        folder = write_log(tmp_path / name, items(shift=change), Made(model=name))
        file = next(folder.rglob("samples_*"))
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        for line in lines if form != "json" else []:
            line["arguments"] = [list(request.values()) for request in line["arguments"].values()]
            if form in ("no metrics", "old name"):
                line.pop("metrics")
        text = json.dumps(lines, indent=1) if form == "array" else "\n".join(map(json.dumps, lines)) + "\n"
        old = {"json": file.with_suffix(".json").name, "old name": f"pretrained__org__{name}-1.5b_quiz.jsonl"}
        file.unlink()
        file.with_name(old.get(form, file.name)).write_text(text)
    now = [write_log(tmp_path / "now" / name, items(shift=by), Made(model=name)) for name, by in (("a", 0), ("b", -2))]
    found, expected = compare(tmp_path / "small", tmp_path / "tuned", QUICK), compare(now[0], now[1], QUICK)
    columns = ["relation", "asked", "n", "before", "after", "value"]
    pd.testing.assert_frame_equal(found.frame[columns], expected.frame[columns])


def test_what_a_log_does_with_epochs_and_older_runs_is_on_the_screen(tmp_path: Path) -> None:
    logs = [inspect(tmp_path / f"{n}.json", [scored("C")] * N, config={"epochs_reducer": ["max"]}) for n in "ab"]
    assert "quiz was reduced by max over its epochs; here epochs are averaged" in screen(
        compare(logs[0], logs[1], QUICK)
    )
    folder = write_log(tmp_path / "log", items(), Made())
    file = next(folder.rglob("samples_*"))
    newer = file.with_name(file.name.replace("2026-11-24", "2026-11-25"))
    newer.write_text("\n".join(file.read_text().splitlines()[:5]) + "\n")
    said = screen(compare(folder, folder, QUICK))
    assert "the newest counts, not samples_quiz_2026-11-24T13-08-14.300821.jsonl" in said


@pytest.mark.slow
def test_a_large_member_of_a_log_is_refused_before_it_is_read(tmp_path: Path) -> None:
    file = tmp_path / "log.eval"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", '{"version": 2, "status": "success", "eval": {"task": "t"}}')
        with archive.open("samples/1_epoch_1.json", "w", force_zip64=True) as member:
            for _ in range(300):
                member.write(b" " * 2**20)
    with pytest.raises(SeesawError, match="314,572,800 bytes, expected at most 268,435,456"):
        read_log(file)
