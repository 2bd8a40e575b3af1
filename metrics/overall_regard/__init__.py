"""Overall regard of groups of people in generated statements."""
