"""Shares of claims that passages support or contradict."""
