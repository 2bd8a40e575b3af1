"""From rows of cases to a data set folder: Parquet shards, card, statistics, upload."""
