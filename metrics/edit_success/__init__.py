"""Efficacy, generalisation and locality of edits, per protocol."""
