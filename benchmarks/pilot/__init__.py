"""The pilot of the study: seven editors on a real model, and what repeats it."""
