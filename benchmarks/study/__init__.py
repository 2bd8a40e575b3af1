"""The declared study of who is affected by knowledge edits, and what repeats it."""
