"""Training of raters and annotators, with held-out figures."""
