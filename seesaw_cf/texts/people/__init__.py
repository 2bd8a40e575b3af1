"""People as raters: tasks for Label Studio or a spreadsheet, and their answers as the tables that judges write."""
