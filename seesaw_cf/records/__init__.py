"""Data records: the released JSON files, CounterFact, zsRE and EasyEdit as `Case` objects, and cases as Parquet."""

from seesaw_cf.base.fields import check_exports
from seesaw_cf.records.arrow import CASES, cases_to_table, read_cases, table_to_cases
from seesaw_cf.records.card import write_card, write_config
from seesaw_cf.records.checks import flag_cases
from seesaw_cf.records.importing import import_files
from seesaw_cf.records.json_records import parse_record, write_json, write_record
from seesaw_cf.records.load import CASE_CONFIGS, load_cases

__all__ = [
    "CASES",
    "CASE_CONFIGS",
    "cases_to_table",
    "flag_cases",
    "import_files",
    "load_cases",
    "parse_record",
    "read_cases",
    "table_to_cases",
    "write_card",
    "write_config",
    "write_json",
    "write_record",
]

check_exports(globals())
