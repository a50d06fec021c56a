"""A checkout that a visitor walks through stands with the pages' tests."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "pages"))
