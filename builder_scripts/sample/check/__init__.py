"""Checks of the samples' people and of the balance of groups, for maintainers: no part of a wheel."""
