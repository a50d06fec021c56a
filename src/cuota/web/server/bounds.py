"""The limits of a connection: how much of a request the server reads, and how many requests may wait."""

from __future__ import annotations

from cuota.web.body import MOST_BYTES
from cuota.web.server.last_word import MOST_HEAD_BYTES

# The server reads at most this many bytes after the head, so that chunk extensions cannot be endless. A body in chunks
# of one byte needs six times its size.
MOST_MESSAGE_BYTES = 2 * 1024 * 1024
assert MOST_MESSAGE_BYTES >= 8 * MOST_BYTES, "the largest body must fit, in chunks of one byte too"
# How many requests may wait for the answer to an earlier one. After the last of these requests is answered, the server
# closes the connection.
MOST_PIPELINED = 8
# The parser gets at most this many bytes at a time, so no limit is exceeded by more than this.
PART_BYTES = 16 * 1024
assert PART_BYTES < MOST_HEAD_BYTES < MOST_MESSAGE_BYTES, "a part must not skip past a limit"
