"""How long stopping may take, in seconds. The parent process gives its worker processes more time than they usually need."""

from __future__ import annotations

import asyncio

# A worker that is stopping still accepts new connections for this long, and closes each one after its response.
TAKE_SECONDS = 1.0
# The event loop closes its listening sockets within this time.
CLOSE_SECONDS = 0.1
# After that, connections that are already open may still send a request for this long.
LINGER_SECONDS = 1.0
# A request that is in progress may take this long.
SLOWEST_SECONDS = 6
# The longest wait after that until the last calls are written to the request log.
LOG_SECONDS = 3.0
# Background jobs, which were told to stop at the beginning, may then take this long. After that they are cancelled, and get the
# same time again to end.
JOBS_SECONDS = 1.0
# After this, the parent kills the worker processes that still run. That is safe, like any other kill.
STOP_SECONDS = 9.5
assert TAKE_SECONDS + CLOSE_SECONDS + LINGER_SECONDS + SLOWEST_SECONDS < STOP_SECONDS
assert TAKE_SECONDS + CLOSE_SECONDS + LINGER_SECONDS + LOG_SECONDS + 2 * JOBS_SECONDS < STOP_SECONDS


async def end_soon(*tasks: asyncio.Task[object]) -> None:
    """Wait a moment for tasks that were told to stop, then cancel those that still run. Their errors were logged when they happened."""
    _, running = await asyncio.wait(tasks, timeout=JOBS_SECONDS)
    for task in running:
        task.cancel()
    if running:
        await asyncio.wait(running, timeout=JOBS_SECONDS)
