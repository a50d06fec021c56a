"""One route: everything the server needs to know about it. The table of all routes is in `web/app.py`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum

from starlette.requests import Request
from starlette.responses import Response

from cuota.web.error_form import PROBLEM, ErrorForm

Endpoint = Callable[[Request], Awaitable[Response]]
# Admission counts requests without a known token under the name of their area, or under this one.
NOBODY = "nobody"


class Port(Enum):
    """Which port answers, where metrics have a port of their own (CUOTA_METRICS_LISTEN)."""

    PUBLIC = "public"
    METRICS = "metrics"
    BOTH = "both"


@dataclass(frozen=True, slots=True, eq=False)
class Area:
    """What the routes of one part of the service have in common."""

    errors: ErrorForm = PROBLEM
    # Admission counts a request without a known token for this party.
    party: str = NOBODY
    # Admission counts a request for the consumers of the merchant whose id is in the path, whatever token it shows.
    consumers: bool = False
    # Every route answers 401 without a merchant's access token.
    needs_token: bool = False
    # Every route is described in the OpenAPI document (`web/docs/openapi/`).
    documented: bool = False
    # Headers of every answer, refusals too.
    headers: tuple[tuple[bytes, bytes], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """One row of the table. `path` is also the route's name in metrics and logs."""

    methods: str
    path: str
    endpoint: Endpoint
    area: Area
    # The methods that create orders. In a crowd these are refused first.
    creates: tuple[str, ...] = ()
    # Answered however busy the service is: it costs no more than a refusal.
    always: bool = False
    # A health check: answered to any Host header, and while the sandbox is being copied.
    probe: bool = False
    port: Port = Port.PUBLIC
    # Admission counts the request for the client that its body names.
    by_client: bool = False
    # The handler itself refuses a request with two Authorization headers.
    judges_authorization: bool = False

    @property
    def is_known(self) -> bool:
        """Whether this is a row of the table, rather than the answer 404 or 405."""
        return bool(self.methods)
