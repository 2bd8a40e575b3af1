"""MEND: a network that turns the gradient of an edit into a low-rank delta, and its training."""
