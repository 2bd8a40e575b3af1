"""People as instruments: tasks for raters, their pages in the browser, what they answer, and the tables of it."""
