"""Opens connections: to the host that accepts writes, if there are several, and with timeouts for hosts that hang."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import asyncpg

# The connection to a host that does not answer, even at the TCP level, is closed after this time. Nothing else ends a
# wait for a commit. Then the service reads again to find out the result of that commit.
SILENT_SECONDS = 10
_PROBES = 3
_WARNED = "01000"
_NOT_THIS_ONE = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.PostgresError,
)


class NodeLost(ConnectionError):
    """The session's node could not reach another node. The session is usable; the statement may be applied."""


# The array types of PostgreSQL that our statements use, by their fixed ids: name, id, id of the element's type. Without
# this list, the driver would query the catalog in every session, which takes seconds on a Citus cluster.
_ARRAYS = (
    ("bool", 1000, 16), ("bytea", 1001, 17), ("int2", 1005, 21), ("int4", 1007, 23), ("int8", 1016, 20), ("float4", 1021, 700),
    ("bpchar", 1014, 1042), ("json", 199, 114), ("uuid", 2951, 2950), ("date", 1182, 1082), ("timestamptz", 1185, 1184),
)  # fmt: skip


def _array_type(name: str, type_id: int, element: int) -> dict[str, object]:
    """Return the data about an array type that the driver would read from the catalog."""
    return {
        "oid": type_id, "ns": "pg_catalog", "name": f"_{name}", "kind": b"b", "basetype": None, "elemtype": element,
        "elemdelim": ",", "range_subtype": None, "attrtypoids": None, "attrnames": None, "elemtype_name": name,
    }  # fmt: skip


_ARRAY_TYPES = [_array_type(*each) for each in _ARRAYS]


class Honest(asyncpg.Connection):  # type: ignore[misc]  # the driver comes without types
    """Closes itself if the server sends a certain warning, because the result of the statement is then unknown.

    If the wait of a COMMIT for the standby is cancelled, the COMMIT succeeds with warning 01000 but is only on one disk.
    """

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._protocol.get_settings().register_data_types(_ARRAY_TYPES)

    def _process_log_message(self, fields: dict[str, str], last_query: str) -> None:
        if fields.get("C") == _WARNED:
            self.terminate()
        super()._process_log_message(fields, last_query)


def split_hosts(dsn: str) -> list[str]:
    """Return one address for each host in the DSN. If there are several, each requires a host that accepts writes."""
    parts = urlsplit(dsn)
    who, at, hosts = parts.netloc.rpartition("@")
    named = hosts.split(",")
    if len(named) == 1:
        return [dsn]
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    query.setdefault("target_session_attrs", "read-write")
    return [parts._replace(netloc=f"{who}{at}{host}", query=urlencode(query)).geturl() for host in named]


async def connect(dsn: str | None = None, **more: Any) -> asyncpg.Connection:
    """Connect like asyncpg.connect, but try all hosts at the same time, so that a dead host causes no delay."""
    places = split_hosts(dsn) if dsn else [dsn]
    if len(places) == 1:
        return _watched(await asyncpg.connect(dsn, **more))
    tries = [asyncio.ensure_future(asyncpg.connect(place, **more)) for place in places]
    first = None
    try:
        for each in asyncio.as_completed(tries):
            with contextlib.suppress(*_NOT_THIS_ONE):
                first = await each
                return _watched(first)
    finally:
        await _let_go(tries, first)
    raise _weightiest([problem for each in tries if (problem := each.exception())])


async def _let_go(
    tries: Sequence[asyncio.Future[asyncpg.Connection]], first: asyncpg.Connection | None
) -> None:
    """Cancel the remaining attempts, and close every session except the first."""
    for each in tries:
        each.cancel()
    for made in await asyncio.gather(*tries, return_exceptions=True):
        if made is not first and not isinstance(made, BaseException):
            made.terminate()


def _weightiest(problems: Sequence[BaseException]) -> BaseException:
    """Return the most useful error: an error about the user, password or database rather than a missing answer."""
    said = [problem for problem in problems if isinstance(problem, asyncpg.PostgresError)]
    told: Sequence[BaseException] = said or problems
    return told[0]


def _watched(connection: asyncpg.Connection) -> asyncpg.Connection:
    """Turn on TCP keepalive. Otherwise a session would wait a quarter of an hour for a vanished host."""
    line = connection._transport.get_extra_info("socket")  # noqa: SLF001 - the driver has no public access to its socket
    if line is None or line.family == socket.AF_UNIX:
        return connection
    line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    every = SILENT_SECONDS // (_PROBES + 1)
    for name, value in (
        ("TCP_KEEPIDLE", every),
        ("TCP_KEEPINTVL", every),
        ("TCP_KEEPCNT", _PROBES),
        ("TCP_USER_TIMEOUT", SILENT_SECONDS * 1000),
    ):
        if hasattr(socket, name):
            line.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return connection
