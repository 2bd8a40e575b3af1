"""Data records: the released JSON files, CounterFact and zsRE as `Case` objects, and cases as Parquet."""

from seesaw_cf.records.parquet import CASES, cases_to_table, table_to_cases

__all__ = ["CASES", "cases_to_table", "table_to_cases"]
