"""Ratings of long-form texts by editing method."""
