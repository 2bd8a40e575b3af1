"""`python -m seesaw_cf` is the command line."""

from __future__ import annotations

import sys

from seesaw_cf.cli import main

if __name__ == "__main__":
    sys.exit(main())
