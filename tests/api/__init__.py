"""One call from Python, editors of other packages, the contract of editors."""
