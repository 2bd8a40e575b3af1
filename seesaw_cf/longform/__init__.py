"""Long form: what an edited model writes, and raters that are measured against people before they are believed."""
