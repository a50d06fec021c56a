"""How long stopping may take, in seconds. The parent process gives its worker processes more time than they need."""

# A worker that is stopping still accepts new connections for this long, and closes each one after its response.
TAKE_SECONDS = 1.0
# The event loop closes its listening sockets within this time.
CLOSE_SECONDS = 0.1
# After that, connections that are already open may still send a request for this long.
LINGER_SECONDS = 1.0
# A request that is in progress may take this long.
SLOWEST_SECONDS = 6
# After this, the parent kills the worker processes that still run.
STOP_SECONDS = 9.5
assert TAKE_SECONDS + CLOSE_SECONDS + LINGER_SECONDS + SLOWEST_SECONDS < STOP_SECONDS
