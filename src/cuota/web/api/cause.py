"""Finds out who makes a change through the API, for the merchant's audit log."""

from __future__ import annotations

from starlette.requests import Request

from cuota.flows.desk.record import Actor, Cause
from cuota.flows.merchant.authenticate import Caller
from cuota.web.server.client_address import seen_address


def cause_of(request: Request) -> Cause:
    """Return the credential of a request whose merchant is known (`merchant_of`), and the IP address."""
    caller: Caller = request.scope["caller"]
    return Cause(Actor(None, seen_address(request), caller.words))
