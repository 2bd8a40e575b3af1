"""People whom no released file names, for measuring editors and for choosing their settings."""
