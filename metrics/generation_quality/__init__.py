"""Quality of generated texts."""
