"""Reads the card of a form: the token that the processor's fields gave to the browser."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from cuota.core.checkout.card import NO_NUMBER, BadCard, read_card
from cuota.flows.context import Context

LONGEST_TOKEN = 255


async def card_token(context: Context, form: Mapping[str, str], today: date) -> str:
    """Return the processor's token. Raises BadCard with the errors by field.

    With the simulated processor of the sandbox, the form itself may also have the card: a browser without script, a
    test and `cuota sandbox complete` send it so. With any other rail, such fields are not read.
    """
    token = form.get("card_token", "")
    if token:
        if len(token) > LONGEST_TOKEN or not token.isprintable():
            raise BadCard({"card_number": NO_NUMBER})
        return token
    simulated = context.rails.card.sandbox
    if simulated is None:
        raise BadCard({"card_number": NO_NUMBER})
    number, expiry, cvc = (form.get(f"card_{name}", "") for name in ("number", "expiry", "cvc"))
    return await simulated.tokenize(read_card(number, expiry, cvc, today))
