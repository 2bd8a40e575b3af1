"""Passages before and after an edit: prompts, claims, pairs, resumable writing."""
