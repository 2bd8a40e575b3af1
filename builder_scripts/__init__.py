"""Builds SEESAW-CF and Coupled Entity configs: facts from Wikidata (`source`), cases (`make`), files (`dataset`)."""
