"""Simple measures of passages."""
