"""Timed comparisons and reproduced tables; each writes JSON to benchmarks/results."""
