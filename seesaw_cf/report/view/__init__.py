"""A run in the browser: every prompt out of its Parquet files, on a small read-only server of this machine."""
