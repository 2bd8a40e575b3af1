"""Tables and pictures of the LEME study."""
