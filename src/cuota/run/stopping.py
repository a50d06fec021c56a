"""How long stopping may take: the parent process gives its workers more time than they need."""

# A worker that stops still takes and answers new connections for this long, each closed after its answer ...
TAKE_SECONDS = 1.0
# ... and then for this long the connections that it has taken may still send their request.
LINGER_SECONDS = 1.0
# A request that is under way may take this long.
SLOWEST_SECONDS = 6
# After this the parent kills what is still there.
STOP_SECONDS = 9.5
assert TAKE_SECONDS + LINGER_SECONDS + SLOWEST_SECONDS < STOP_SECONDS
