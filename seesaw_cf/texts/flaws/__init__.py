"""Flaws of open-ended descriptions: pairs for people and judges, ratings, validity."""
