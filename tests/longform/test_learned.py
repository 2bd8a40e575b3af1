"""Instruments learn from people's tables, and what they learned from is never evaluated with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.base.tables import write_table
from seesaw_cf.cli import main
from seesaw_cf.effects.survey_items import ITEMS, Shown
from seesaw_cf.errors import RecordError
from seesaw_cf.generation.types import Ask, Completion, Sampling
from seesaw_cf.texts.annotate.annotate import annotate
from seesaw_cf.texts.annotate.by_name import load_annotator
from seesaw_cf.texts.annotate.learned import LEFT_OUT, digest, learned_of, remember, write_learned
from seesaw_cf.texts.rate.from_people import annotation_data, answered_questions, rating_data
from seesaw_cf.texts.rate.judge import LLMJudge
from seesaw_cf.texts.rate.survey import survey, survey_samples
from seesaw_cf.texts.tables import ANNOTATIONS, RATINGS
from seesaw_cf.texts.train.ratings import passages_of, rater_texts
from seesaw_cf.texts.write.claims import ClaimPair

from .coupled import passages, record
from .test_report_people import labels, ratings, rows_of
from .training_models import save_tiny_encoder

TEXT = st.text(st.characters(codec="utf-8"), min_size=1).filter(lambda text: "Related passage" not in text)


class Four:
    """A judge that always says 4."""

    name = "four"

    def generate(self, asks: Sequence[Ask], sampling: Sampling) -> list[Completion]:
        return [Completion("Rating: 4") for _ in asks]


def texts(cases: int) -> pa.Table:
    """Passages of their own for each case."""
    return pa.concat_tables([passages([record(n)], f"Main text {n}.", f"Related text {n}.") for n in range(cases)])


@given(TEXT, TEXT)
def test_passages_are_found_again_in_what_an_encoder_reads(main: str, related: str) -> None:
    shown = Shown(main=main, related=related)
    for item in ITEMS:
        wanted = [text for name, text in (("main", main), ("related", related)) if name in item.fields]
        assert passages_of(rater_texts(item.name, shown)) == wanted
    assert digest(f" {main}\n") == digest(main)


def test_people_become_examples_and_their_texts_are_left_out_and_counted() -> None:
    written, records = texts(6), [record(n) for n in range(6)]
    said = rows_of(RATINGS, ratings({"R1": [7, 6, 5, 4], "R2": [7, 6, 4.5, None]}))
    pool = answered_questions(written, said, records)
    assert [one.rating for one in pool] == [7, 6, 5, 4, 7, 6], "whole ratings only"
    judge = LLMJudge(Four(), 2, tuple(pool))
    # The judge's own rule asks for another edit, too: here every record is about one.
    samples = [replace(one, subject=str(one.case_id)) for one in survey_samples(written, records)]
    table, _ = survey(samples, judge, ("fluency",))
    assert table.column("status").to_pylist() == [LEFT_OUT] * 4 + ["ok"] * 2
    assert table.column("rating").to_pylist() == [None] * 4 + [4.0] * 2
    assert learned_of(LLMJudge(Four(), 0, tuple(pool))) == frozenset(), "no examples, nothing learned"


def test_ratings_of_people_train_raters() -> None:
    written, records = texts(4), [record(n) for n in range(4)]
    found = rating_data(written, rows_of(RATINGS, ratings({"R1": [7, 6, 5, 4], "R2": [1, 2, 3, 4]})), records)
    assert list(found.targets) == [7, 6, 5, 4, 1, 2, 3, 4]
    groups = list(found.groups)
    assert groups[:4] == groups[4:], "two raters of one text are one group"
    assert len(set(groups)) == 4
    with pytest.raises(RecordError, match=r"ratings: none of 1 is about one of 8 passages\. Give the run"):
        rating_data(
            written, rows_of(RATINGS, [{"case_id": 9, "item": "fluency", "rater": "A", "rating": 3.0}]), records
        )


def test_labels_of_people_train_annotators() -> None:
    said = labels({"R1": "snc", "R2": "s-c"})
    said[0]["evidence"] = ["Main text 0."]
    found = annotation_data(texts(3), rows_of(ANNOTATIONS, said))
    assert list(found.targets) == [0, 0, 1, 2, 0, 2]
    assert tuple(found.parts) == ("paragraph", "sentence", "paragraph", "paragraph", "paragraph", "paragraph")
    assert list(found.groups) == [0, 0, 1, 2, 0, 2]


@pytest.mark.slow
def test_the_command_trains_on_a_folder_and_refuses_to_label_those_texts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, folder, out = tmp_path / "run", tmp_path / "people", tmp_path / "instrument"
    write_table(run / "passages.parquet", texts(6))
    write_table(folder / "annotations.parquet", rows_of(ANNOTATIONS, labels({"R1": "sncsnc"})))
    words = ["leme", "train-annotator", "--data", str(folder), "--out", str(out), "--folds", "0", "--epochs", "1"]
    words += ["--encoder", str(save_tiny_encoder(tmp_path / "encoder"))]
    assert main(words) == 1
    assert "a folder of people's answers has no texts. Name their run with --run RUN" in capsys.readouterr().err
    assert main([*words, "--run", str(run)]) == 0
    annotator = load_annotator(out)
    pairs = [ClaimPair(text, "Ann sang", case_id=1) for text in ("Main  text 2.", "She sang in Rome.")]
    table = annotate(pairs, annotator)
    assert table.column("status").to_pylist() == [LEFT_OUT, "ok"]
    assert table.column("label").to_pylist()[0] is None


def test_what_was_learned_is_kept_beside_the_instrument(tmp_path: Path) -> None:
    class Thing:
        pass

    thing = Thing()
    remember(thing, tmp_path)
    assert learned_of(thing) == frozenset()
    write_learned(tmp_path, ["A text.", "a  TEXT.", " "])
    remember(thing, tmp_path)
    assert learned_of(thing) == {digest("A text.")}
