"""Topics of statements about groups of people, and how far they are from those about the rest."""
