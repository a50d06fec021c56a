"""`python -m cuota`, and the `cuota` command."""

from __future__ import annotations

import sys

from cuota.cli import main

if __name__ == "__main__":
    sys.exit(main())
