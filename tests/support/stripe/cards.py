"""The test cards of Stripe (docs.stripe.com/testing) that the stand-in supports."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TestCard:
    """How a test card behaves. If the card is declined, `code` and `decline_code` are the codes of its decline.

    `attaches`: the card can be attached to a customer. `confirms`: payments need the consumer's confirmation, always or
      only until one was confirmed.
    """

    __test__ = False

    code: str | None = None
    decline_code: str | None = None
    attaches: bool = True
    confirms: str = "never"


_PAYS = TestCard()
_CARDS = {
    "4000000000000002": TestCard("card_declined", "generic_decline", attaches=False),
    "4000000000009995": TestCard("card_declined", "insufficient_funds", attaches=False),
    "4000000000009987": TestCard("card_declined", "lost_card", attaches=False),
    "4000000000009979": TestCard("card_declined", "stolen_card", attaches=False),
    "4000000000000069": TestCard("expired_card", None, attaches=False),
    "4000000000000127": TestCard("incorrect_cvc", None, attaches=False),
    "4000000000000119": TestCard("processing_error", None, attaches=False),
    "4000000000000341": TestCard("card_declined", "generic_decline"),
    "4000002500003155": TestCard(confirms="once"),
    "4000002760003184": TestCard(confirms="always"),
    "4000008260003178": TestCard("card_declined", "insufficient_funds", confirms="always"),
}


def test_card(number: str) -> TestCard:
    """Return how a card number behaves. An unlisted number pays."""
    return _CARDS.get(number, _PAYS)


test_card.__test__ = False  # type: ignore[attr-defined]


def error(card: TestCard) -> dict[str, str]:
    """Return Stripe's error for a declined card."""
    found = {"type": "card_error", "code": card.code or "card_declined", "message": "Your card was declined."}
    return found | ({"decline_code": card.decline_code} if card.decline_code else {})


AUTHENTICATION_REQUIRED = {
    "type": "card_error",
    "code": "authentication_required",
    "decline_code": "authentication_required",
    "message": "Your card was declined. This transaction requires authentication.",
}
AUTHENTICATION_FAILED = {
    "type": "invalid_request_error",
    "code": "payment_intent_authentication_failure",
    "message": "The provided PaymentMethod has failed authentication.",
}
