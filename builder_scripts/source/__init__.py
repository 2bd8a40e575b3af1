"""From a SPARQL endpoint or a store to people and claims: queries, replies, provenance."""
