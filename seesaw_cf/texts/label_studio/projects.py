"""Tasks for Label Studio, and the tables of what raters answered: flaws, survey, claims and failure modes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from seesaw_cf.base import checks
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.seeds import seed_of
from seesaw_cf.base.text import read_json
from seesaw_cf.effects.leme_annotation import LABELS
from seesaw_cf.effects.survey_items import ITEMS, SCALE
from seesaw_cf.texts.flaws.people import ANSWERS, REFLECTED, ReflectedRow, read_item, reflected_row
from seesaw_cf.texts.flaws.rating_sheets import SheetOptions, sheet_items
from seesaw_cf.texts.label_studio import config
from seesaw_cf.texts.label_studio.results import Answered, read_results
from seesaw_cf.texts.rate.survey import SurveyQuestion, SurveySample
from seesaw_cf.texts.tables import ANNOTATIONS, FAILURES, RATINGS, SampleRow
from seesaw_cf.texts.wording import FAILURE_MODES
from seesaw_cf.texts.write.claims import ClaimPair
from seesaw_cf.texts.write.pairs import FlawAnswer, PassagePair, flaw_row, flaw_table, unblinded

_YES_NO = ("yes", "no", "unsure")
_CLAIM = ("passage", "claim_kind", "claim_id", "claim")


@dataclass(frozen=True)
class Project:
    """What is loaded into Label Studio, and what stays with you.

    Attributes:
        config: The labelling configuration, XML.
        items: Id -> `data`, the fields of its task, and `about`, what un-blinds it.
        kind: "flaws", "survey", "claims" or "failures".
        asked: Names of what was asked, for flaws.
    """

    kind: str
    config: str
    items: Mapping[str, Mapping[str, Any]]
    asked: tuple[str, ...] = ()

    def tasks(self) -> list[dict[str, object]]:
        """Tasks as Label Studio imports them."""
        return [{"data": {"item": id, **item["data"]}} for id, item in self.items.items()]

    def key(self) -> dict[str, object]:
        """Return what `tables_of` needs to read results; keep it from raters of flaws."""
        return {"kind": self.kind, "asked": list(self.asked), "items": self.items}


def flaw_project(
    pairs: Sequence[PassagePair], options: SheetOptions, edits: Mapping[tuple[str, int], str] | None = None
) -> Project:
    """Blind pairs of texts, in random order, some twice; see `export_sheet` for the arguments.

    Raises:
        RecordError: See `sheet_items`; or a pair without its edit in `edits`.
        UnknownNameError: Unknown flaw.
    """
    flaws = options.wording.chosen(options.flaws or options.wording.flaws)
    items = {}
    for sheet_item in sheet_items(pairs, options):
        pair, (first, second) = sheet_item.pair, sheet_item.pair.shown(sheet_item.first)
        data = {"subject": pair.entity, "text_A": first, "text_B": second}
        if edits is not None:
            if (pair.editor, pair.case_id) not in edits:
                raise RecordError(
                    f"{pair.editor} case {pair.case_id}: no such edit. Give the edits.parquet of the run."
                )
            data["edit"] = edits[pair.editor, pair.case_id]
        items[sheet_item.item] = {"data": data, "about": asdict(sheet_item)}
    questions = tuple(flaw.name for flaw in flaws) + (("edit_reflected",) if edits is not None else ())
    return Project("flaws", config.flaw_config(flaws, edits is not None), items, questions)


def survey_project(samples: Sequence[SurveySample], seed: int = 0) -> Project:
    """LEME's nine statements about samples; those without both passages are left out."""
    return _of_samples("survey", config.survey_config(), samples, seed)


def failure_project(samples: Sequence[SurveySample], seed: int = 0) -> Project:
    """LEME's failure modes in samples after an edit."""
    return _of_samples(
        "failures", config.failure_config(), [sample for sample in samples if sample.phase == "post"], seed
    )


def _of_samples(kind: str, xml: str, samples: Sequence[SurveySample], seed: int) -> Project:
    items = {}
    for text_sample in (sample for sample in samples if not sample.missing):
        statements = {name: getattr(text_sample, name) for name in ("new_fact", "subject", "related_entity")}
        facts = {
            f"old_facts_{side}": "\n".join(text_sample.old_facts.get(side, ())) or "-"
            for side in ("subject", "related")
        }
        place = {name: getattr(text_sample, name) for name in SampleRow.__annotations__}
        questions = [item.name for item in ITEMS if not SurveyQuestion(item, text_sample).skip_reason]
        id = f"i{seed_of(seed, kind, *place.values()):012x}"
        items[id] = {"data": statements | facts | dict(text_sample.passages), "about": place | {"asked": questions}}
    return Project(kind, xml, dict(sorted(items.items())))


def claim_project(pairs: Sequence[ClaimPair], seed: int = 0) -> Project:
    """Return a passage and a claim each; pairs that cannot be annotated are left out."""
    items = {}
    for claim in (pair for pair in pairs if pair.status == "ok"):
        place = {name: getattr(claim, name) for name in (*SampleRow.__annotations__, *_CLAIM)}
        id = f"i{seed_of(seed, 'claims', *place.values()):012x}"
        items[id] = {"data": {"passage": claim.premise, "claim": claim.claim}, "about": place}
    return Project("claims", config.claim_config(), dict(sorted(items.items())))


def tables_of(results: Path, key: Path) -> dict[str, pa.Table]:
    """Return the tables of what raters answered, as judges write them.

    Args:
        results: JSON export of Label Studio.
        key: `key.json` that was written with the tasks.

    Returns:
        Name of a Parquet file -> its rows. What a rater left open has the status "not rated"; tasks that a rater
        did not see have no rows.

    Raises:
        StorageError: A file cannot be read.
        RecordError: Not these files, or not about the same texts; the message names the task.
    """
    record = read_json(key, dict)
    try:
        make = _TABLES[checks.one_of("kind of tasks", record["kind"], _TABLES)]
        items = {name: checks.instance("item", item, dict) for name, item in record["items"].items()}
        data = {name: item["data"] for name, item in items.items()}
        about = {name: item["about"] for name, item in items.items()}
        questions = tuple(record["asked"])
    except (LookupError, AttributeError, TypeError, RecordError) as error:
        raise RecordError(f"{key}: not the key of tasks ({error}). Give the key.json written with them.") from error
    return make(read_results(results, data), about, questions)


def _flaws(answers: Sequence[Answered], about: Mapping[str, Any], questions: Sequence[str]) -> dict[str, pa.Table]:
    rows: dict[int, list[Any]] = {1: [], 2: []}
    seen: dict[tuple[str, str], ReflectedRow] = {}
    # The first copy of a pair comes first: its answer about the edit is the one that is kept.
    for entry in sorted(answers, key=lambda entry: int(about[entry.item]["copy"])):
        item = read_item(about[entry.item])
        for flaw in (name for name in questions if name != "edit_reflected"):
            answer = ANSWERS.get(reply := entry.choice(flaw, ANSWERS))
            change = None if answer is None else unblinded(answer, item.first)
            flaw_answer = FlawAnswer(change, reply=reply, status="not rated" if answer is None else "ok")
            rows[item.copy].append(flaw_row(item.pair, flaw, entry.rater, item.first, flaw_answer))
        row = seen.setdefault((entry.rater, item.pair.pair_id), reflected_row(item.pair, entry.rater))
        row["reflected"] = row["reflected"] or entry.choice("edit_reflected", _YES_NO) or None
        row["comment"] = " | ".join(part for part in (row["comment"], entry.comment) if part)
    reflected = pa.Table.from_pylist(list(seen.values()), schema=REFLECTED)
    return {"flaws": flaw_table(rows[1]), "flaws.repeats": flaw_table(rows[2]), "flaws.reflected": reflected}


def _survey(answers: Sequence[Answered], about: Mapping[str, Any], _: Sequence[str]) -> dict[str, pa.Table]:
    degrees = {str(number): number for number in SCALE} | {words: number for number, words in SCALE.items()}

    def rows() -> Iterator[dict[str, object]]:
        for entry in answers:
            place = dict(about[entry.item])
            for item in place.pop("asked"):
                rating = degrees.get(reply := entry.choice(item, degrees))
                row = place | {"item": item, "rater": entry.rater, "rating": None if rating is None else float(rating)}
                status = "not rated" if rating is None else "ok"
                yield row | {"reply": reply, "status": status, "tries": 0, "prompt_tokens": None, "new_tokens": None}

    return {"ratings": pa.Table.from_pylist(list(rows()), schema=RATINGS)}


def _claims(answers: Sequence[Answered], about: Mapping[str, Any], _: Sequence[str]) -> dict[str, pa.Table]:
    def rows() -> Iterator[dict[str, object]]:
        for entry in answers:
            marked = {label for span in entry.spans for label in span.labels}
            label = entry.choice("label", LABELS) or (marked.pop() if len(marked) == 1 else "")
            if marked - {label}:
                raise RecordError(
                    f"{entry.where}: words are highlighted as {', '.join(sorted(marked))}, but the label is "
                    f"{label or 'missing'}. Expected one label, and highlights of the same."
                )
            row = about[entry.item] | {"annotator": entry.rater, "label": label or None}
            row |= dict.fromkeys(f"p_{name}" for name in LABELS) | {"reply": ""}
            yield row | {"evidence": [span.text for span in entry.spans], "status": "ok" if label else "not rated"}

    return {"annotations": pa.Table.from_pylist(list(rows()), schema=ANNOTATIONS)}


def _failures(answers: Sequence[Answered], about: Mapping[str, Any], _: Sequence[str]) -> dict[str, pa.Table]:
    def rows() -> Iterator[dict[str, object]]:
        for entry in answers:
            modes = entry.choices.get("modes")
            for name in modes or ():
                checks.one_of(f"failure mode in {entry.where}:", name, FAILURE_MODES)
            place = {name: about[entry.item][name] for name in SampleRow.__annotations__}
            for mode in FAILURE_MODES:
                present = None if modes is None else mode in modes
                row = place | {"mode": mode, "rater": entry.rater, "present": present, "comment": entry.comment}
                yield row | {"status": "not rated" if modes is None else "ok"}

    return {"failures": pa.Table.from_pylist(list(rows()), schema=FAILURES)}


_Tables = Callable[[Sequence[Answered], Mapping[str, Any], Sequence[str]], dict[str, pa.Table]]
_TABLES: dict[str, _Tables] = {"flaws": _flaws, "survey": _survey, "claims": _claims, "failures": _failures}
