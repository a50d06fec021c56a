"""The shop's card processor, which charges virtual cards like any other card. Here it uses the sandbox's card network.

The shop stores no card number: it receives the number from the shopper's page and sends it to the processor.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import httpx

from cuota.client import RequestRefused, Unavailable

from .money import to_json
from .payments import PAUSES, PaymentError
from .records import JsonObject
from .settings import ShopSettings
from .store import ShopOperation

_CALLS = {"capture": "capture", "void": "reverse", "refund": "refund"}


@dataclass(frozen=True)
class EnteredCard:
    """The card that the page received. It is never printed or logged."""

    number: str = field(repr=False)
    cvc: str = field(repr=False)
    month: str = field(repr=False)
    year: str = field(repr=False)

    @property
    def last_four(self) -> str:
        """The last four digits, the only part of the number that may be stored."""
        return self.number[-4:]


@dataclass(frozen=True)
class ProcessorAuthorization:
    """The answer to an authorization. If the card was declined, `authorization_id` is None and `reason` has the reason."""

    authorization_id: str | None
    reason: str


class Processor:
    """Charges cards. It retries a call whose answer was lost. A retry is safe, because a reference is applied only once."""

    def __init__(self, settings: ShopSettings, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._merchant_id = settings.merchant_id
        self._http = httpx.AsyncClient(
            base_url=f"{settings.api_url}/sandbox/cards/", timeout=8, trust_env=False, transport=transport
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def authorize(self, card: EnteredCard, amount: int, reference: str) -> ProcessorAuthorization:
        """Authorize an amount in cents. A declined card is a normal result. Raises PaymentError if there is no answer."""
        body = {
            "number": card.number,
            "cvc": card.cvc,
            "expirationMonth": card.month,
            "expirationYear": card.year,
            "amount": to_json(amount),
            "merchantId": self._merchant_id,
            "reference": reference,
        }
        answer = await self._post("authorize", body)
        approved = answer.get("approved") is True
        return ProcessorAuthorization(
            str(answer["authorizationId"]) if approved else None, str(answer.get("reason") or "")
        )

    async def move(self, authorization_id: str, operation: ShopOperation) -> None:
        """Capture, reverse or refund part of an authorization. Raises PaymentError."""
        path = f"authorizations/{authorization_id}/{_CALLS[operation.kind]}"
        await self._post(path, {"amount": to_json(operation.amount), "reference": operation.reference})

    async def _post(self, path: str, body: dict[str, Any]) -> JsonObject:
        for pause in (*PAUSES, None):
            failure = "No answer arrived."
            try:
                answer = await self._http.post(path, json=body)
                content = json.loads(answer.content, parse_float=Decimal)
            except (httpx.HTTPError, ValueError):
                content = None
            else:
                failure = f"The processor answered HTTP {answer.status_code}."
                if (
                    isinstance(content, dict)
                    and answer.status_code < 500
                    and answer.status_code not in {409, 429}
                ):
                    if answer.is_success:
                        return content
                    raise PaymentError(RequestRefused(answer.status_code, content))
            if pause is not None:
                await asyncio.sleep(pause)
        raise PaymentError(Unavailable(failure, undecided=True))
