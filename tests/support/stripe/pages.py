"""The answers of the stand-in, and the server on loopback that sends them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

import uvicorn
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp

from support.stripe.faults import Replayed

Json = dict[str, Any]
_BANK = """<!doctype html><html lang="en"><head><title>Stand-in for the bank</title>
<meta name="viewport" content="width=device-width"></head><body><h1>Confirm the payment</h1>
<p>{amount} {currency}</p><form method="post"><button name="passed" value="yes">Complete authentication</button>
<button name="passed" value="no">Fail authentication</button></form></body></html>"""


def json_answer(status: int, said: Json) -> Response:
    """Return an answer of the API, which scripts of any page may read."""
    headers = {"Access-Control-Allow-Origin": "*", "Request-Id": "req_standin"}
    if isinstance(said, Replayed):
        headers["Idempotent-Replayed"] = "true"
    return JSONResponse(said, status, headers)


def script(text: str) -> Response:
    """Return the script of Stripe.js."""
    return Response(text, media_type="application/javascript")


def bank(intent: Json) -> Response:
    """Return the page on which a consumer confirms a payment."""
    amount = f"{intent['amount'] / 100:.2f}"
    return HTMLResponse(_BANK.format(amount=amount, currency=intent["currency"].upper()))


def gone() -> Response:
    """Return the page that says that the payment no longer waits for a confirmation."""
    return HTMLResponse("<!doctype html><title>Too late</title><p>This payment no longer waits.</p>", 410)


def go_back(url: str, intent: Json) -> Response:
    """Send the browser to the return address, with the parameters that Stripe adds."""
    status = "succeeded" if intent["status"] == "succeeded" else "failed"
    more = urlencode(
        {
            "payment_intent": intent["id"],
            "payment_intent_client_secret": intent["client_secret"],
            "redirect_status": status,
        }
    )
    return RedirectResponse(f"{url}{'&' if '?' in url else '?'}{more}", 303)


@asynccontextmanager
async def served(app: ASGIApp) -> AsyncIterator[str]:
    """Serve the application on a free port of loopback, and yield its address."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = uvicorn.Server(
        uvicorn.Config(
            app, lifespan="off", ws="none", log_config=None, log_level="critical", access_log=False,
            timeout_graceful_shutdown=3,
        )
    )  # fmt: skip
    task = asyncio.create_task(server._serve(sockets=[listening]))
    while not server.started:  # noqa: ASYNC110 - uvicorn says so by a flag only
        await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task
