"""Self-contained pages of HTML: one stylesheet, one script, templates with autoescape."""
