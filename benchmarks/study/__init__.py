"""A study of seven editors on a real model, and what repeats it."""
