"""A run: from edit requests and editors to the score table. Start at `job`, then `runner`."""
