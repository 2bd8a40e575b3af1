"""Groups, answers and their provenance for records that come without: from a source of facts to tagged records."""
