"""People's answers about long texts, alone or beside the run that the texts are from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.compute as pc

from seesaw_cf.effects.leme_auto import leme_auto
from seesaw_cf.errors import MissingExtraError, RunFolderError
from seesaw_cf.io.text import read_json
from seesaw_cf.longform.rate.survey import survey_samples
from seesaw_cf.longform.report.collected import Collected, collect
from seesaw_cf.longform.report.people_page import people_findings
from seesaw_cf.longform.report.people_survey import HEAD, PLACE, people_sections
from seesaw_cf.longform.report.sections import write_report
from seesaw_cf.longform.report.simple import passage_columns
from seesaw_cf.longform.write.passages import records_of_run
from seesaw_cf.report.table import Table, table_of
from seesaw_cf.stats.plain import plain

KINDS = ("ratings", "annotations", "failures")
_ABOUT = (
    "Spearman's rho of measures that need no model with people's mean rating of the statement that each should stand "
    "for, over texts; intervals resample whole edits."
)


def report_people(raters: Sequence[Path], out: Path, run: Path | None = None, **options: Any) -> Path:
    """Writes the tables of people's answers and `report.html`.

    Args:
        raters: Folders and Parquet files of people.
        out: Where the tables go.
        run: The run that the texts are from: its raters, annotators and simple metrics are put beside people.
        **options: See `people_sections`.

    Returns:
        The Markdown file.

    Raises:
        SeesawError: A table that cannot be used, or a run without records.
    """
    people = collect(raters, KINDS)
    judged = collect([run], ["passages"]) if run is not None else None
    if judged is not None and "passages" not in people.tables:
        people = replace(people, tables={**people.tables, "passages": judged.get("passages")})
    sections = people_sections(people, judged, **options)
    if run is not None and judged is not None and people.get("ratings").num_rows:
        sections += _measures(run, judged, people)
    facts = {"run": "" if run is None else run.name, **{name: str(value) for name, value in options.items()}}
    write_report(out, "people", HEAD, sections, people_findings(people, sections, facts))
    return out / "people.md"


def _measures(run: Path, judged: Collected, people: Collected) -> list[Table]:
    """Do simple metrics stand for what people say? LEME, appendix I."""
    passages = judged.get("passages")
    records = records_of_run(read_json(run / "manifest.json", error=RunFolderError), passages)
    coupled = [record for record in records if "subject_entity" in record]
    case_ids = {record["case_id"] for record in coupled}
    samples = survey_samples(passages.filter([case in case_ids for case in passages["case_id"].to_pylist()]), coupled)
    rated = people.get("ratings").filter(pc.is_valid(people.get("ratings")["rating"])).to_pandas()
    mean = rated.groupby([*PLACE, "item"])["rating"].mean().unstack("item")
    places = pd.MultiIndex.from_tuples([tuple(getattr(one, name) for name in PLACE) for one in samples], names=PLACE)
    beside = mean.reindex(places)
    ratings = {str(item): [None if pd.isna(x) else float(x) for x in beside[item]] for item in beside}
    try:
        measures = leme_auto([one.case_id for one in samples], passage_columns(samples), ratings=ratings)
    except MissingExtraError as error:
        return [table_of("measures", "Simple metrics against people", str(error), pd.DataFrame())]
    rows = [{"measure": name} | plain(one) for name, one in (measures.correlations or {}).items()]
    title = "Simple metrics against people (LEME Table 19, appendix I)"
    return [table_of("measures", title, _ABOUT, pd.DataFrame(rows), digits=3)]
