"""Raters of the LEME survey: a language model as judge, trained raters, baselines."""
