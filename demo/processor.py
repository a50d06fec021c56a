"""The shop's card processor: it charges virtual cards as it would any other card, here on the sandbox's card network.

No card number stays: it goes from the shopper's page over this call to the processor, and is forgotten.
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
    """A card as the page was given it. It is printed nowhere."""

    number: str = field(repr=False)
    cvc: str = field(repr=False)
    month: str = field(repr=False)
    year: str = field(repr=False)

    @property
    def last_four(self) -> str:
        """What may be kept of the number."""
        return self.number[-4:]


@dataclass(frozen=True)
class ProcessorAuthorization:
    """The card's yes or no. `authorization_id` is there with a yes."""

    authorization_id: str | None
    reason: str


class Processor:
    """Charges cards. A call whose answer was lost is made again: its reference is applied once."""

    def __init__(self, settings: ShopSettings, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._merchant_id = settings.merchant_id
        self._http = httpx.AsyncClient(
            base_url=f"{settings.api_url}/sandbox/cards/", timeout=8, trust_env=False, transport=transport
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def authorize(self, card: EnteredCard, amount: int, reference: str) -> ProcessorAuthorization:
        """Ask for an amount. A card that says no is an answer."""
        asked = {
            "number": card.number,
            "cvc": card.cvc,
            "expirationMonth": card.month,
            "expirationYear": card.year,
            "amount": to_json(amount),
            "merchantId": self._merchant_id,
            "reference": reference,
        }
        said = await self._post("authorize", asked)
        approved = said.get("approved") is True
        return ProcessorAuthorization(
            str(said["authorizationId"]) if approved else None, str(said.get("reason") or "")
        )

    async def move(self, authorization_id: str, operation: ShopOperation) -> None:
        """Capture, void or refund on an authorization."""
        path = f"authorizations/{authorization_id}/{_CALLS[operation.kind]}"
        await self._post(path, {"amount": to_json(operation.amount), "reference": operation.reference})

    async def _post(self, path: str, body: dict[str, Any]) -> JsonObject:
        for pause in (*PAUSES, None):
            lost = "No answer came."
            try:
                answer = await self._http.post(path, json=body)
                said = json.loads(answer.content, parse_float=Decimal)
            except (httpx.HTTPError, ValueError):
                said = None
            else:
                lost = f"The processor answered HTTP {answer.status_code}."
                if (
                    isinstance(said, dict)
                    and answer.status_code < 500
                    and answer.status_code not in {409, 429}
                ):
                    if answer.is_success:
                        return said
                    raise PaymentError(RequestRefused(answer.status_code, said))
            if pause is not None:
                await asyncio.sleep(pause)
        raise PaymentError(Unavailable(lost, undecided=True))
