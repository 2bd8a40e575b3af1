"""People's answers as training data, from the tables that `people import` writes."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from seesaw_cf.base.errors import RecordError
from seesaw_cf.effects.leme_annotation import LABELS
from seesaw_cf.texts.rate.judge import Exemplar
from seesaw_cf.texts.rate.survey import SurveyQuestion, survey_samples
from seesaw_cf.texts.tables import AnnotationRow, PassageRow, RatingRow
from seesaw_cf.texts.train.ratings import ITEMS_BY_NAME, rater_texts
from seesaw_cf.texts.train.rows import TrainingRows, join_groups
from seesaw_cf.texts.write.passages import LongformRecord

_PLACE = ("editor", "case_id", "phase", "sample")


def answered_questions(
    passages: pa.Table, ratings: pa.Table, records: Sequence[LongformRecord], rater: str = ""
) -> list[Exemplar]:
    """Return questions of the survey with people's answers.

    Args:
        passages: `tables.PASSAGES`.
        ratings: `tables.RATINGS`; rows without a whole rating are left out.
        records: Rows of the `coupled_*` config that the passages are of.
        rater: Beginning of the names of those to learn from.
    """
    samples = {tuple(getattr(s, key) for key in _PLACE): s for s in survey_samples(passages, records)}
    rows: list[RatingRow] = ratings.to_pylist()
    exemplars = []
    for row in rows:
        sample = samples.get((row["editor"], row["case_id"], row["phase"], row["sample"]))
        rating = row["rating"]
        if sample is None or row["status"] != "ok" or rating is None or not row["rater"].startswith(rater):
            continue
        question = SurveyQuestion(ITEMS_BY_NAME[row["item"]], sample)
        if not question.skip_reason and float(rating).is_integer():
            exemplars.append(Exemplar(question, int(rating)))
    return exemplars


def rating_data(passages: pa.Table, ratings: pa.Table, records: Sequence[LongformRecord]) -> TrainingRows:
    """Return ratings of people, to train a rater on; see `answered_questions` for the arguments.

    Raises:
        RecordError: No rating is about a passage that is there.
    """
    exemplars = answered_questions(passages, ratings, records)
    if not exemplars:
        raise RecordError(
            f"ratings: none of {ratings.num_rows} is about one of {passages.num_rows} passages. Give the run whose "
            "texts people rated."
        )
    questions = [exemplar.question.shown for exemplar in exemplars]
    cases = [str(exemplar.question.sample.case_id) for exemplar in exemplars]
    return TrainingRows(
        tuple(rater_texts(exemplar.question.item.name, what) for exemplar, what in zip(exemplars, questions)),
        tuple(float(exemplar.rating) for exemplar in exemplars),
        tuple(exemplar.question.item.name for exemplar in exemplars),
        join_groups(cases, [what.main for what in questions], [what.related for what in questions]),
    )


def annotation_data(passages: pa.Table, annotations: pa.Table) -> TrainingRows:
    """Return labels of people to train on: a row for the passage, one for each sentence marked as evidence.

    Args:
        passages: `tables.PASSAGES`.
        annotations: `tables.ANNOTATIONS`; rows without a label are left out.

    Raises:
        RecordError: No label is about a passage that is there.
    """
    written: list[PassageRow] = passages.to_pylist()
    texts = {(*(row[key] for key in _PLACE), row["passage"]): row["text"] or "" for row in written}  # type: ignore[literal-required]
    labelled: list[AnnotationRow] = annotations.to_pylist()
    rows = []
    for row in labelled:
        text = texts.get((row["editor"], row["case_id"], row["phase"], row["sample"], row["passage"]), "")
        if text.strip() and row["label"] in LABELS:
            units = [(text, "paragraph"), *((part, "sentence") for part in row["evidence"] or () if part.strip())]
            rows += [
                ((part, row["claim"]), LABELS.index(row["label"]), unit, str(row["case_id"]), text)
                for part, unit in units
            ]
    if not rows:
        raise RecordError(
            f"annotations: none of {annotations.num_rows} labels one of {passages.num_rows} passages. Give the run "
            "whose texts people annotated."
        )
    pairs, labels, kinds, cases, whole = zip(*rows, strict=True)
    return TrainingRows(pairs, labels, kinds, join_groups(cases, whole), LABELS)
