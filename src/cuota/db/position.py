"""The position at which a page of a long list begins.

Offsets would shift when rows are added, so a page begins after a row.
"""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

# The time and the id of the last row of the previous page.
Position = tuple[datetime, UUID]
# After every row of a list. A list that begins with the newest row begins here.
BEHIND_ALL: Position = (datetime(2299, 12, 31, tzinfo=UTC), UUID(int=2**128 - 1))
