"""The numbers of PostgreSQL's advisory locks, in one place, so that no two are the same."""

from __future__ import annotations

# Of several processes that migrate one database, one does.
MIGRATE_LOCK = 0x43756F7461
# A worker shares this lock while its jobs run; the process that moves the sandbox's clock holds it alone.
JOBS_LOCK = 0x43756F74614A
# Of several processes that would move the clock, one does.
MOVER_LOCK = 0x43756F74614D
