"""Pages of HTML that need nothing beside them: one stylesheet, one script, templates with autoescape."""
