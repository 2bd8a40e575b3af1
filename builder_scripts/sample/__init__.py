"""The embedded sample: its people and facts and how it is built."""
