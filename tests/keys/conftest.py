"""What the tests of secrets share: a receiver of webhooks on loopback stands with the API's tests."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path += [str(Path(__file__).parents[1] / name) for name in ("api", "db", "pages")]
