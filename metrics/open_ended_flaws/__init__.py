"""Ratings of flaws in generated texts."""
