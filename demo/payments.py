"""The whole integration with the payment provider: a token, an order, and what happens to it later.

Every call that changes something carries a key that the caller chose and wrote down first. So a call whose
answer was lost can be repeated with the same key, and is never done twice.
"""

from __future__ import annotations

import asyncio
import json
import time
from decimal import Decimal

import httpx

from .money import from_json, to_json
from .records import Created, JsonObject, Limits, Movement, Payment
from .settings import Settings

PAUSES = (0.2, 0.8)  # seconds before the second and the third try
TRY_AGAIN = {408, 409, 425, 429, 500, 502, 503, 504}
LIMITS_FOR = 3600  # seconds for which the limits are remembered
EARLY = 60  # seconds before its end at which a token is replaced


class PaymentError(Exception):
    """The provider refused, or could not be asked. Branch on `code`, never on the text."""

    def __init__(self, code: str, message: str, *, status: int = 0, answer: JsonObject | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.balances: JsonObject = (answer or {}).get("balances") or {}
        self.original: JsonObject = (answer or {}).get("original") or {}
        # With no answer, or one that says "later", the call may have been applied or not: keep its key.
        self.undecided = status in {0, *TRY_AGAIN} or status >= 500


class Payments:
    """The provider's API as the shop needs it. One object serves the whole process."""

    def __init__(self, settings: Settings, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._settings = settings
        self._http = httpx.AsyncClient(timeout=8, trust_env=False, transport=transport)
        self._token = ""
        self._token_until = 0.0
        self._token_lock = asyncio.Lock()
        self._limits: Limits | None = None
        self._limits_until = 0.0

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def limits(self) -> Limits:
        """Read between which amounts pay in four is offered; asked for once an hour."""
        if self._limits is None or time.monotonic() >= self._limits_until:
            answer = await self._call("GET", "/configuration")
            self._limits = Limits(from_json(answer["minimumAmount"]), from_json(answer["maximumAmount"]))
            self._limits_until = time.monotonic() + LIMITS_FOR
        return self._limits

    async def create_order(self, order: JsonObject, key: str) -> Created:
        """Create an order. The same key again answers the same order."""
        answer = await self._call("POST", "/order", body=order, headers={"Idempotency-Key": key})
        return Created(order_id=answer["orderId"], redirect_url=answer["redirectUrl"])

    async def read_order(self, order_id: str) -> Payment:
        """Read how an order stands. This, not the browser's return, says whether it is paid."""
        return Payment.read(await self._call("GET", f"/order/{order_id}"))

    async def capture(self, order_id: str, cents: int, reference: str) -> Movement:
        """Take money that the consumer's approval set aside, when goods are shipped."""
        return await self._move("capture", order_id, cents, reference)

    async def void(self, order_id: str, cents: int, reference: str) -> Movement:
        """Let go of money not yet captured, when goods will not be shipped."""
        return await self._move("void", order_id, cents, reference)

    async def refund(self, order_id: str, cents: int, reference: str) -> Movement:
        """Give back money that was captured."""
        return await self._move("refund", order_id, cents, reference)

    async def preview(self, kind: str, order_id: str, cents: int, reference: str) -> JsonObject:
        """Ask what a capture, void or refund would do. Nothing changes."""
        return await self._call(
            "POST", f"/order/{order_id}/{kind}?dryRun=true", body=_move_body(cents, reference)
        )

    async def _move(self, kind: str, order_id: str, cents: int, reference: str) -> Movement:
        try:
            answer = await self._call("POST", f"/order/{order_id}/{kind}", body=_move_body(cents, reference))
        except PaymentError as error:
            if error.code == "duplicate_reference" and error.original.get("sameRequest") is True:
                # Our own earlier call was applied and only its answer was lost: this is success.
                return Movement.read(kind, {**error.original, "merchantReference": reference})
            raise
        return Movement.read(kind, answer)

    async def _call(
        self, method: str, path: str, *, body: JsonObject | None = None, headers: dict[str, str] | None = None
    ) -> JsonObject:
        """Call with a token. One that was withdrawn before its time is replaced, once."""
        url = self._settings.api_url + path
        for last in (False, True):
            token = await self._access_token()
            sent = {"Accept": "application/json", "Authorization": f"Bearer {token}", **(headers or {})}
            response = await self._send(method, url, body, sent)
            if response.status_code != httpx.codes.UNAUTHORIZED or last:
                break
            if self._token == token:
                self._token_until = 0.0
        return _read(response)

    async def _access_token(self) -> str:
        async with self._token_lock:  # many requests at once fetch one token
            if time.monotonic() >= self._token_until:
                body = {
                    "client_id": self._settings.client_id,
                    "client_secret": self._settings.client_secret,
                    "audience": self._settings.audience,
                    "grant_type": "client_credentials",
                }
                answer = _read(await self._send("POST", f"{self._settings.auth_url}/oauth/token", body, {}))
                self._token = answer["access_token"]
                self._token_until = time.monotonic() + float(answer["expires_in"]) - EARLY
            return self._token

    async def _send(
        self, method: str, url: str, body: JsonObject | None, headers: dict[str, str]
    ) -> httpx.Response:
        """Send, and send the very same again where no answer came or the answer was "later"."""
        response = None
        for pause in (*PAUSES, None):
            try:
                response = await self._http.request(method, url, json=body, headers=headers)
            except httpx.RequestError:
                response = None
            if response is not None and response.status_code not in TRY_AGAIN:
                return response
            if pause is not None:
                await asyncio.sleep(pause)
        if response is None:
            raise PaymentError("unreachable", "The payment provider cannot be reached.")
        return response


def _move_body(cents: int, reference: str) -> JsonObject:
    return {"amount": to_json(cents), "merchantReference": reference}


def _read(response: httpx.Response) -> JsonObject:
    """Read an answer with its decimals exact; anything but success becomes PaymentError."""
    try:
        answer = json.loads(response.content, parse_float=Decimal)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):  # not the provider speaking, whatever the status says
        raise PaymentError("unreachable", "The payment provider cannot be reached.")
    if response.is_success:
        return answer
    code = answer.get("code") or answer.get("error") or f"http_{response.status_code}"
    text = answer.get("message") or answer.get("error_description") or "The payment provider refused."
    raise PaymentError(str(code), str(text), status=response.status_code, answer=answer)
