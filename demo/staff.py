"""Access to the back office. It needs a login, unless the shop listens on a loopback address."""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Awaitable, Callable
from functools import wraps
from ipaddress import ip_address

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from .web import shop_of

USER = "staff"
StaffPage = Callable[[Request], Awaitable[Response]]


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach the host."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def for_staff(show: StaffPage) -> StaffPage:
    """Make a page of the back office, which answers 401 without the login, if the shop has a staff password."""

    @wraps(show)
    async def run(request: Request) -> Response:
        password = shop_of(request).settings.staff_password
        if password is not None and not _is_right(request.headers.get("authorization", ""), password):
            raise HTTPException(
                401, headers={"WWW-Authenticate": 'Basic realm="back office", charset="UTF-8"'}
            )
        return await show(request)

    return run


def _is_right(header: str, password: str) -> bool:
    scheme, _, encoded = header.partition(" ")
    try:
        given = base64.b64decode(encoded.strip(), validate=True)
    except (ValueError, binascii.Error):
        return False
    return scheme.lower() == "basic" and hmac.compare_digest(given, f"{USER}:{password}".encode())
