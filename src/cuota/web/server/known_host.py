"""Makes the sandbox refuse requests whose Host header is not a name of the sandbox.

The sandbox's pages need no login and show one-time codes. A hostile site can make its own host name resolve to 127.0.0.1
(DNS rebinding), so that its scripts can read the sandbox in the visitor's browser. The Host header of such a request
still contains the name of the hostile site.
"""

from __future__ import annotations

import re

from starlette.types import ASGIApp, Receive, Scope, Send

from cuota.core.refusal import Code, Refused
from cuota.web.server.edge import Edge
from cuota.web.server.head import Headers

_LOOPBACK = re.compile(r"127(?:\.[0-9]{1,3}){3}", re.ASCII)
UNKNOWN = Refused(
    Code.BAD_HEADER,
    "The sandbox does not accept the host name in the Host header. Use the address of CUOTA_PUBLIC_URL, or add the host "
    "name to CUOTA_HOSTS.",
)


class KnownHost:
    """Wraps the application, in the sandbox only. `edge` sends the refusals.

    `hosts` are host names in lower case and without ports; IPv6 addresses are in brackets.
    """

    def __init__(self, app: ASGIApp, edge: Edge, hosts: frozenset[str]) -> None:
        self._app = app
        self._edge = edge
        self._hosts = hosts
        # The last accepted Host header. Most requests have the same one as the request before.
        self._last: tuple[bytes, bytes] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        # A health check may use any address of the machine.
        if (
            scope["type"] == "http"
            and not self._is_known(scope["headers"])
            and scope["path"] not in self._edge.routes.probes
        ):
            await self._edge.refuse(scope, receive, send, UNKNOWN)
        else:
            await self._app(scope, receive, send)

    def refuse_at_once(self, method: bytes, url: bytes, headers: Headers, fields: Headers) -> bytes | None:
        """Return the edge's immediate refusal. A request for an unknown host is refused later, with its own reason."""
        if not self._edge.admission.crowded or not self._is_known(headers):
            return None
        return self._edge.refuse_at_once(method, url, headers, fields)

    def _is_known(self, headers: Headers) -> bool:
        if self._last in headers:
            return True
        hosts = [header for header in headers if header[0] == b"host"]
        # The edge itself refuses a request without a Host header, or with several.
        if len(hosts) != 1:
            return True
        host = _without_port(hosts[0][1].decode("latin-1"))
        known = host in self._hosts or _LOOPBACK.fullmatch(host) is not None
        if known:
            self._last = hosts[0]
        return known


def _without_port(host: str) -> str:
    name, colon, port = host.strip().rpartition(":")
    has_port = colon and (not port or (port.isascii() and port.isdigit()))
    return (name if has_port else host.strip()).lower().removesuffix(".")
