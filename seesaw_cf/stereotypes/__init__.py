"""Stereotype knowledge graphs: triples about identities, drawn from a model by prompting alone."""
