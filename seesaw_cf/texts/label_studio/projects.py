"""Tasks for Label Studio, and the tables of what raters answered: flaws, survey, claims and failure modes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from seesaw_cf.texts.flaws.people import ANSWERS, read_item
from seesaw_cf.texts.flaws.rating_sheets import SheetOptions, sheet_items
from seesaw_cf.texts.label_studio import config
from seesaw_cf.texts.label_studio.results import Answered, read_results
from seesaw_cf.texts.people.claims import CLAIM_TASK
from seesaw_cf.texts.people.failures import FAILURE_TASK
from seesaw_cf.texts.people.flaws import FLAW_TASK
from seesaw_cf.texts.people.making import Kind, RatedTask, sample_fields
from seesaw_cf.texts.people.study import Answer, ItemQuestion, RatingItem, RatingTask, Text
from seesaw_cf.texts.people.survey import SURVEY_TASK
from seesaw_cf.texts.rate.survey import SurveyQuestion, SurveySample
from seesaw_cf.texts.wording import FAILURE_MODES
from seesaw_cf.texts.write.claims import ClaimPair
from seesaw_cf.texts.write.pairs import PassagePair

_YES_NO = ("yes", "no", "unsure")


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
        place = sample_fields(text_sample)
        skipped = {item.name: why for item in ITEMS if (why := SurveyQuestion(item, text_sample).skip_reason)}
        id = f"i{seed_of(seed, kind, *place.values()):012x}"
        about = {"sample": place, "skipped": skipped}
        items[id] = {"data": statements | facts | dict(text_sample.passages), "about": about}
    return Project(kind, xml, dict(sorted(items.items())))


def claim_project(pairs: Sequence[ClaimPair], seed: int = 0) -> Project:
    """Return a passage and a claim each; pairs that cannot be annotated are left out."""
    items = {}
    for claim in (pair for pair in pairs if pair.status == "ok"):
        place, own = sample_fields(claim), {name: getattr(claim, name) for name in ("claim_kind", "claim_id", "claim")}
        id = f"i{seed_of(seed, 'claims', *place.values(), claim.passage, *own.values()):012x}"
        about = {"sample": place, "passage": claim.passage, "claims": {"c1": own}}
        items[id] = {"data": {"passage": claim.premise, "claim": claim.claim}, "about": about}
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
        kind, answer = _KINDS[checks.one_of("kind of tasks", record["kind"], _KINDS)]
        items = {name: checks.instance("item", item, dict) for name, item in record["items"].items()}
        data = {name: item["data"] for name, item in items.items()}
        about = {name: item["about"] for name, item in items.items()}
        questions = [ItemQuestion(name, "") for name in record["asked"]]
    except (LookupError, AttributeError, TypeError, RecordError) as error:
        raise RecordError(f"{key}: not the key of tasks ({error}). Give the key.json written with them.") from error
    rated = []
    for entry in read_results(results, data):
        own = about[entry.item]
        item = RatingItem(entry.item, "", (), (Text("", data[entry.item].get("passage", "")),), about=own)
        role = "repeat" if own.get("copy") == 2 else "item"
        task = RatingTask(entry.rater, 0, entry.item, role, own.get("first", ""))
        rated.append(RatedTask(item, task, answer(entry, own, questions)))
    return {name: table for name, table in kind.tables(rated, questions) if table.num_rows or "." not in name}


def _flaws(entry: Answered, about: Mapping[str, Any], questions: Sequence[ItemQuestion]) -> Answer:
    read_item(about)
    labels = {one.name: entry.choice(one.name, ANSWERS) for one in questions if one.name != "edit_reflected"}
    return labels | {"edit_reflected": entry.choice("edit_reflected", _YES_NO), "comment": entry.comment}


def _survey(entry: Answered, about: Mapping[str, Any], _: Sequence[ItemQuestion]) -> Answer:
    names = [item.name for item in ITEMS if item.name not in about["skipped"]]
    return {name: _DEGREES.get(entry.choice(name, _DEGREES), "") for name in names}


def _claims(entry: Answered, about: Mapping[str, Any], _: Sequence[ItemQuestion]) -> Answer:
    marked = {label for span in entry.spans for label in span.labels}
    label = entry.choice("label", LABELS) or (marked.pop() if len(marked) == 1 else "")
    if marked - {label}:
        raise RecordError(
            f"{entry.where}: words are highlighted as {', '.join(sorted(marked))}, but the label is "
            f"{label or 'missing'}. Expected one label, and highlights of the same."
        )
    return {
        name: {"choice": label, "sentences": [], "spans": [one.span for one in entry.spans]} for name in about["claims"]
    }


def _failures(entry: Answered, about: Mapping[str, Any], _: Sequence[ItemQuestion]) -> Answer:
    for name in entry.choices.get("modes", ()):
        checks.one_of(f"failure mode in {entry.where}:", name, FAILURE_MODES)
    return {"modes": entry.choices.get("modes"), "comment": entry.comment}


_DEGREES = {str(number): str(number) for number in SCALE} | {words: str(number) for number, words in SCALE.items()}
_Answer = Callable[[Answered, Mapping[str, Any], Sequence[ItemQuestion]], Answer]
_KINDS: dict[str, tuple[Kind, _Answer]] = {
    "flaws": (FLAW_TASK, _flaws),
    "survey": (SURVEY_TASK, _survey),
    "claims": (CLAIM_TASK, _claims),
    "failures": (FAILURE_TASK, _failures),
}
