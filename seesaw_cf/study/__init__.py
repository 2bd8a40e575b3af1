"""Studies of several models and editors: declared in a file, planned, run cell by cell, reported as one."""
