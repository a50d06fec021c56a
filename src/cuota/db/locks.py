"""The numbers of PostgreSQL's advisory locks, in one place, so that no two are the same."""

from __future__ import annotations

# Only one process at a time migrates a database.
MIGRATE_LOCK = 0x43756F7461
# A worker holds this lock shared while its jobs run; the process that moves the sandbox's clock holds it exclusively.
JOBS_LOCK = 0x43756F74614A
# Only one process at a time moves the clock.
MOVER_LOCK = 0x43756F74614D
# A transaction that gives a merchant a name holds this lock, so that no two give the same name as name and as display name.
NAMES_LOCK = 0x43756F74614E
