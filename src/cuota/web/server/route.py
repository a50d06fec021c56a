"""Defines what a route is: one row with everything the server needs to know. `web/app.py` has the table of all routes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum

from starlette.requests import Request
from starlette.responses import Response

from cuota.web.error_form import PROBLEM, ErrorForm

# The parameters in the path of a request, by name.
PathParams = dict[str, str]
Handler = Callable[[Request], Awaitable[Response]]
# The party of requests without a token whose area names no other party.
NOBODY = "nobody"
# The group of paths that do not exist.
OTHER = "Unknown paths"
# The group of the health checks, which come every few seconds whether or not anybody uses the service.
HEALTH = "Health checks and metrics"


class Port(Enum):
    """The port that serves a route, if metrics have a separate port (CUOTA_METRICS_LISTEN)."""

    PUBLIC = "public"
    METRICS = "metrics"
    BOTH = "both"


@dataclass(frozen=True, slots=True, eq=False)
class Area:
    """The properties that all routes of one part of the service share.

    `group` is the name under which the operator's dashboard shows the part's rates and latencies.
    """

    errors: ErrorForm = PROBLEM
    # Admission counts a request without a token for this party.
    party: str = NOBODY
    group: str = OTHER
    # Admission counts a request for the consumers of the merchant whose id is in the path, and ignores any token.
    consumers: bool = False
    # Every route answers 401 without a merchant's access token.
    needs_token: bool = False
    # Every route is described in the OpenAPI document (`web/docs/openapi/`).
    documented: bool = False
    # Headers of every answer, including refusals.
    headers: tuple[tuple[bytes, bytes], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """One row of the table. `path` is also the route's name in metrics and logs."""

    methods: str
    path: str
    endpoint: Handler
    area: Area
    # The methods that create orders. Under load these are refused first.
    creates: tuple[str, ...] = ()
    # Admission always admits the request. Set this only for answers that cost no more than a refusal, or that limit
    # their own cost.
    always: bool = False
    # A health check. The sandbox answers it for any Host header, and also while its database is being copied.
    probe: bool = False
    port: Port = Port.PUBLIC
    # Admission counts the request for the OAuth client that its header or body names.
    by_client: bool = False
    # The handler itself refuses a request with several Authorization headers.
    judges_authorization: bool = False

    @property
    def is_known(self) -> bool:
        """Return whether this is a row of the table, and not a route that only answers 404 or 405."""
        return bool(self.methods)
