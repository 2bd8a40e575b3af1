"""Inference for effects of edits: intervals, tests and verdicts that respect how the data are clustered."""
