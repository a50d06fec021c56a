"""The messages that were sent to a consumer, with masked or unmasked texts, for a page."""

from __future__ import annotations

from collections.abc import Sequence

from cuota.core.operator.mask import masked_email, masked_name, masked_phone, without_token
from cuota.db.plan.messages import SentText
from cuota.flows.plan.read_messages import ConsumerMessage
from cuota.web.pages.desk.view import when
from cuota.web.pages.operator.visit import PATH
from cuota.web.pages.render import PageContext

_STATES = {"sent": ("Sent", "done"), "pending": ("On its way", "wait"), "failed": ("Failed", "bad")}


def shown_messages(found: Sequence[ConsumerMessage], *, revealed: bool) -> list[PageContext]:
    """Return the values for the template, in the order of the list."""
    return [_message(each, revealed=revealed) for each in found]


def _message(each: ConsumerMessage, *, revealed: bool) -> PageContext:
    word, mark = _STATES[each.state]
    return {
        "kind": each.kind.replace("_", " ").capitalize(),
        "at": when(each.settled_at or each.created_at),
        "state": {"word": word, "kind": mark},
        "reason": each.reason or "",
        "order": f"{PATH}/orders/{each.order_id}",
        **_text(each, revealed=revealed),
    }


def _text(each: ConsumerMessage, *, revealed: bool) -> PageContext:
    sent = each.text
    if sent is None:
        why = (
            "The text is not stored: it was erased, or sent before texts were stored."
            if each.state == "sent"
            else ""
        )
        return {"subject": "", "paragraphs": [why] if why else [], "to": "", "attached": False}
    text, to = without_token(sent.text), _recipients(sent, revealed=revealed)
    if sent.name and not revealed:
        text = text.replace(sent.name, masked_name(sent.name))
    return {"subject": sent.subject, "paragraphs": text.split("\n\n"), "to": to, "attached": sent.attached}


def _recipients(sent: SentText, *, revealed: bool) -> str:
    phone = sent.phone and (sent.phone if revealed else masked_phone(sent.phone))
    email = sent.email and (sent.email if revealed else masked_email(sent.email))
    return " and ".join(filter(None, (phone, email)))
