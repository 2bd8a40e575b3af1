"""The embedded sample: its people and facts, how it is built, and the checks of its people."""
