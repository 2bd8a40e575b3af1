"""From answers to the tables that judges write, and through them to the reports."""

from __future__ import annotations

import json
import shlex
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.base.tables import read_table
from seesaw_cf.cli import main, parser
from seesaw_cf.effects.survey_items import ITEMS
from seesaw_cf.errors import StorageError
from seesaw_cf.texts.flaws.people import REFLECTED, share_reflected
from seesaw_cf.texts.people.design import sampled
from seesaw_cf.texts.people.export import export_study
from seesaw_cf.texts.people.make import KINDS
from seesaw_cf.texts.people.progress import GoldJudgements
from seesaw_cf.texts.people.security import Place
from seesaw_cf.texts.people.serving import links
from seesaw_cf.texts.people.status import status_of
from seesaw_cf.texts.people.store import Entry, StudyStore
from seesaw_cf.texts.people.study import RatingItem
from seesaw_cf.texts.tables import ANNOTATIONS, FAILURES, FLAWS, PASSAGES, RATINGS
from seesaw_cf.texts.wording import FAILURE_MODES, FLAWS_BY_NAME
from seesaw_cf.texts.write.pairs import passage_pairs, sample_pairs

from ..conftest import ROOT
from ..longform.flaw_samples import pair
from .studies import R1, R2, answered, study, write_run


def exported(file: Path, out: Path, **more: Any) -> dict[str, list[dict[str, Any]]]:
    with StudyStore(file, readonly=True) as store:
        export_study(store, out, **more)
    return {table.stem: read_table(table).to_pylist() for table in out.glob("*.parquet")}


def test_flaws_are_unblinded_whatever_the_order(tmp_path: Path) -> None:
    found = exported(answered(study(tmp_path, "flaws", raters=3)), tmp_path / "out")
    assert read_table(tmp_path / "out" / "flaws.parquet").schema.names == FLAWS.names
    assert read_table(tmp_path / "out" / "flaws.reflected.parquet").schema.names == REFLECTED.names
    rows = found["flaws"]
    assert len(rows) == 3 * 4 * 7
    assert {row["change"] for row in rows} == {1}
    assert {row["first"] for row in rows} == {"pre", "post"}
    assert {row["status"] for row in rows} == {"ok"}
    pairs, _ = passage_pairs(read_table(tmp_path / "run" / "passages.parquet", PASSAGES))
    assert {(row["pair_id"], row["pre"], row["post"]) for row in rows} == {(p.pair_id, p.pre, p.post) for p in pairs}
    again = found["flaws.repeats"]
    assert len(again) == 3 * 7
    assert {row["change"] for row in again} == {1}
    first = {(row["rater"], row["pair_id"]): row["first"] for row in rows}
    assert all(row["first"] != first[row["rater"], row["pair_id"]] for row in again)
    assert share_reflected(read_table(tmp_path / "out" / "flaws.reflected.parquet"))["n"] == 12
    about = json.loads((tmp_path / "out" / "raters.json").read_text(encoding="utf-8"))
    one = about["raters"][0]
    assert [one["attention"][name] for name in ("value", "right", "n", "n_items")] == [1, 7, 7, 1]
    assert one["attention"]["low"] is None, "one item, whatever the number of flaws"
    assert one["attention"]["note"].startswith("too few items: 1, 5 needed")
    assert (one["gold"]["value"], one["gold"]["n_items"], one["gold"]["note"]) == (None, 0, "nothing was asked")
    assert one["seconds"] == 10.0


@pytest.mark.slow
def test_the_survey_the_claims_the_failures_and_the_writing(tmp_path: Path) -> None:
    files = {kind: answered(study(tmp_path, kind, f"{kind}.study")) for kind in KINDS if kind != "flaws"}
    found = {kind: exported(file, tmp_path / kind) for kind, file in files.items()}
    ratings = found["survey"]["ratings"]
    assert read_table(tmp_path / "survey" / "ratings.parquet").schema.equals(RATINGS)
    assert len(ratings) == 2 * 8 * 9
    assert {row["item"]: row["rating"] for row in ratings} == {one.name: 1.0 + n % 7 for n, one in enumerate(ITEMS)}
    claims = found["claims"]["annotations"]
    assert read_table(tmp_path / "claims" / "annotations.parquet").schema.equals(ANNOTATIONS)
    assert len(claims) == 2 * 16 * 4
    assert {row["label"] for row in claims} == {"contradicts"}
    assert {tuple(row["evidence"]) for row in claims if row["passage"] == "subject"} == {
        ("She was a physicist and a citizen of Poland.",)
    }
    assert {row["annotator"] for row in claims} == {R1, R2}
    failures = found["failures"]["failures"]
    assert read_table(tmp_path / "failures" / "failures.parquet").schema.equals(FAILURES)
    assert len(failures) == 2 * 4 * len(FAILURE_MODES)
    assert {row["mode"] for row in failures if row["present"]} == {"topic_drift"}
    assert {row["phase"] for row in failures} == {"post"}
    written = found["writing"]["passages"]
    assert read_table(tmp_path / "writing" / "passages.parquet").schema.equals(PASSAGES)
    assert Counter((row["editor"], row["phase"], row["status"]) for row in written) == {("human", "post", "ok"): 8}
    assert {(row["sample"], row["text"]) for row in written} == {(0, f"Text of {R1}."), (1, f"Text of {R2}.")}


@pytest.mark.slow
def test_the_report_of_a_run_reads_what_people_gave(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    for kind in ("survey", "claims"):
        exported(answered(study(tmp_path, kind, f"{kind}.study")), tmp_path / kind)
    shutil.copy(tmp_path / "survey" / "ratings.parquet", run)
    shutil.copy(tmp_path / "claims" / "annotations.parquet", run)
    assert main(["leme", "report", str(run), "--out", str(tmp_path / "tables")]) == 0
    assert R1 in (tmp_path / "tables" / "tables" / "survey.csv").read_text(encoding="utf-8")


def test_an_item_without_an_answer_is_a_row_without_a_rating(tmp_path: Path) -> None:
    file = answered(study(tmp_path, "flaws", training=False), R1, most=2)
    found = exported(file, tmp_path / "out")
    counts = Counter((row["status"], row["change"]) for row in found["flaws"])
    assert counts["not rated", None] > 0
    assert {row["rater"] for row in found["flaws"]} == {R1}, "who did not begin has no rows"
    about = json.loads((tmp_path / "out" / "raters.json").read_text(encoding="utf-8"))
    assert about["left_out"] == {R2: "did not begin"}


def test_shares_are_means_over_items_with_intervals_over_items(tmp_path: Path) -> None:
    judgements = GoldJudgements(((True,) * 9, (False,) * 9) * 3)
    with StudyStore(study(tmp_path, "flaws")) as store:
        found = replace(status_of(store)[0], repeats=judgements).row()["repeats"]
    assert (found["value"], found["n"], found["n_items"], found["right"]) == (0.5, 54, 6, 27)
    assert found["high"] - found["low"] > 0.8, "six items, not 54 judgements"


def test_inattentive_raters_are_left_out_and_named(tmp_path: Path) -> None:
    file = answered(study(tmp_path, "flaws", training=False))
    with StudyStore(file) as store:
        (task,) = [task for task in store.tasks[R2] if task.role == "attention"]
        wrong = dict.fromkeys(FLAWS_BY_NAME, "equal")
        store.add(Entry(R2, "answer", task.position, wrong, "g"))
        assert [(one.now.attention.right, one.now.attention.asked) for one in status_of(store)] == [(7, 7), (0, 7)]
    exported(file, tmp_path / "out", attention=0.5)
    about = json.loads((tmp_path / "out" / "raters.json").read_text(encoding="utf-8"))
    assert about["left_out"] == {R2: "attention: 0 of 7 right, below 0.5"}
    with pytest.raises(StorageError, match="exists with other content"):
        exported(file, tmp_path / "out")
    exported(file, tmp_path / "out", overwrite=True)


def test_the_command_says_what_it_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, tasks = write_run(tmp_path / "run"), str(tmp_path / "t.study")
    words = ["annotate", "make", "flaws", str(run), "--out", tasks, "--sample", "P21=1", "--sample", "P27=2"]
    assert main(words) == 0
    assert "3 of 4 items (P21 1, P27 2), each to 3 of 3 raters" in capsys.readouterr().out
    assert main(words) == 1
    assert "it exists and holds no numbers of `seesaw-cf annotate make`" in capsys.readouterr().err
    with StudyStore(Path(tasks), readonly=True) as store:
        *first, last = store.study.raters
    answered(Path(tasks), *first)
    assert main(["annotate", "status", tasks, "--json", str(tmp_path / "s.json")]) == 0
    said = capsys.readouterr().out
    assert "items have an answer" in said
    assert main(["annotate", "links", tasks, "--port", "9000"]) == 0
    said = capsys.readouterr().out
    assert said.count("http://127.0.0.1:9000/enter/") == 3
    assert main(["annotate", "export", tasks, "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert f"left out: {last}: did not begin" in said
    assert last.startswith("R3-")
    assert "flaws.parquet (42 rows)" in said
    assert main(["annotate", "merge", tasks, "--out", str(tmp_path / "copy.study")]) == 0
    for sample in ("x", "P21", "3=", "P21=x"):
        assert main([*words[:4], "--out", str(tmp_path / "x"), "--sample", sample, "--sample", "P27=1"]) == 1
        assert "expected a number, 'published', or RELATION=NUMBER" in capsys.readouterr().err
    assert main([*words[:4], "--out", str(tmp_path / "x"), "--sample", "0"]) == 1
    assert "0 items are wanted, expected at least one" in capsys.readouterr().err
    assert main([*words[:4], "--out", str(tmp_path / "x"), "--sample", "published"]) == 1
    assert "91 items of 'P27' are wanted, there are 2" in capsys.readouterr().err
    assert main(["annotate", "serve", tasks, "--host", "0.0.0.0"]) == 1
    assert "Give the address that raters use with --url" in capsys.readouterr().err
    for address in ("study.example.org", "http://[", "ftp://study.example.org", "https://study.example.org:x"):
        assert main(["annotate", "serve", tasks, "--url", address]) == 1
        assert "expected one such as https://study.example.org" in capsys.readouterr().err


@given(st.integers(1, 12), st.integers(0, 9))
def test_people_and_judges_draw_the_same_pairs(number: int, seed: int) -> None:
    pairs = [pair(place, relation=f"P{place % 3}") for place in range(10)]
    items = [RatingItem(one.pair_id, one.relation, (), ()) for one in pairs]
    drawn = {one.pair_id for one in sample_pairs(pairs, number, seed)}
    assert {item.id for item in sampled(items, number, seed)} == drawn


def test_serving_tells_no_links_when_it_shall_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = study(tmp_path, "flaws")

    def told(file: Path, place: Place, tell: Callable[[dict[str, str]], None], **_: object) -> None:
        with StudyStore(file, readonly=True) as store:
            tell(links(store, place))

    monkeypatch.setattr("seesaw_cf.texts.people.serving.serve", told)
    assert main(["annotate", "serve", str(file), "--no-links"]) == 0
    said = capsys.readouterr().out
    assert "Serving http://127.0.0.1:8000;" in said
    assert "/enter/" not in said
    assert "/status/" not in said


def test_the_image_starts_a_command_that_there_is() -> None:
    """The image itself is not built here."""
    text = (ROOT / "Dockerfile.annotate").read_text(encoding="utf-8")
    shell, flag, line = json.loads(text.split("CMD ")[1])
    assert (shell, flag) == ("sh", "-c")
    words = shlex.split(line.replace("${URL:-https://$SPACE_HOST}", "https://org-name.hf.space"))
    assert words[:2] == ["exec", "seesaw-cf"]
    args = parser("annotate").parse_args(words[2:])
    assert not args.tell_links, "logs of a container are read by others"
    place = Place(args.host, args.port, args.url)
    assert "org-name.hf.space" in place.hosts
    assert place.base == "https://org-name.hf.space"
    assert "0.0.0.0:7860" not in place.hosts
