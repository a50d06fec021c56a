"""The cookie that identifies a returning browser after a checkout.

The cookie holds a token. The token belongs to a consumer and is valid at every merchant.
"""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.responses import Response

from cuota.flows.checkout.limit_texts import Browser
from cuota.flows.checkout.remember_browser import REMEMBERED_FOR
from cuota.web.pages.checkout.session import keep_secret, kept_secret
from cuota.web.server.client_address import client_address

_COOKIE = "remembered"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_SECONDS = int(REMEMBERED_FOR.total_seconds())


def token_of(request: Request) -> str | None:
    """Return the token in this browser's cookie; None if there is none, or if its form is invalid."""
    token = kept_secret(request, _COOKIE)
    return token if token and _TOKEN.fullmatch(token) else None


def keep_token(request: Request, response: Response, token: str) -> None:
    """Set the cookie with this token."""
    keep_secret(request, response, _COOKIE, token, _SECONDS)


def drop_token(request: Request, response: Response) -> None:
    """Delete the cookie."""
    keep_secret(request, response, _COOKIE, "", 0)


def browser_of(request: Request) -> Browser:
    """Return the address and the token of the browser that requests a one-time code, for rate limits."""
    return Browser(client_address(request), token_of(request))
