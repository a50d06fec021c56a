"""Checks whether an embedded PostgreSQL accepts connections, by the first messages of its protocol."""

import re
import socket

from cuota.db.embedded.folders import DATABASE, OWNER, PORT, ClusterFiles, EmbeddedFailed

_READY_FOR_QUERY = b"Z\0\0\0\5I"


def accepts(places: ClusterFiles) -> bool:
    """Return whether postgres accepts a connection to our database now. Raises EmbeddedFailed if it refuses our user."""
    if places.postmaster()[1] != "ready":
        return False  # an earlier connection would only fill postgres's log
    fields = f"\0\3\0\0user\0{OWNER}\0database\0{DATABASE}\0\0".encode()
    answer = b""
    try:
        with socket.socket(socket.AF_UNIX) as talk:
            talk.settimeout(5)
            talk.connect(str(places.socket / f".s.PGSQL.{PORT}"))
            talk.sendall((len(fields) + 4).to_bytes(4) + fields)
            while not answer.endswith(_READY_FOR_QUERY) and (more := talk.recv(4096)):
                answer += more
            if answer.endswith(_READY_FOR_QUERY):
                talk.sendall(b"X\0\0\0\4")
                return True
    except OSError:
        return False
    if b"\0C53300\0" in answer:  # too many clients: the server is running, but busy
        return True
    message = re.search(rb"\0M([^\0]*)", answer)
    if message and b"\0C57P" not in answer:  # 57P..: starting, stopping
        raise EmbeddedFailed(
            f"PostgreSQL refuses {OWNER}: {message[1].decode(errors='replace')}. See {places.log}."
        )
    return False
