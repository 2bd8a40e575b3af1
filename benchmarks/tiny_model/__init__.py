"""How the embedded model `seesaw-tiny` is made, for maintainers: no part of a wheel."""
