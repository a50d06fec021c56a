"""The position at which a page of a long list begins.

Offsets would shift when rows are added, so a page begins after a row.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

# The time and the id of the last row of the previous page.
Position = tuple[datetime, UUID]
