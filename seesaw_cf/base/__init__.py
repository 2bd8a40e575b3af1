"""Files and the terminal: atomic writes, text and JSON with good errors, CSV sheets, table widths, Hub client."""
