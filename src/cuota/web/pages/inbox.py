"""`/sandbox/inbox`: shows the messages that consumers would have received, newest first. It exists in the sandbox only."""

from __future__ import annotations

import re
from datetime import UTC
from urllib.parse import parse_qs, urlencode
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.consumer import is_us_number
from cuota.core.dates import moment
from cuota.core.refusal import Code, Refused
from cuota.flows.checkout.answer_text import answer_text
from cuota.flows.context import utc_now
from cuota.rails.inbox import KEPT, Received, look, recipient_of
from cuota.web.addresses import LONGEST, origin_of
from cuota.web.body import MOST_SMALL_BYTES, read_bytes
from cuota.web.pages.checkout.session import is_foreign, see_other
from cuota.web.pages.render import PageContext, page, problem
from cuota.web.service import service_of

PAGE = 50
PATH = "/sandbox/inbox"
_ADDRESS = re.compile(r"(https?://[A-Za-z0-9\-._~!$&'()*+,;=:@/?#%\[\]]+)")
_LAST_NUMBER = 2**63 - 1


async def inbox(request: Request) -> Response:
    """Show a page of 50 messages.

    `?to=` selects one phone number or e-mail address. `?before=` shows messages older than the message with that number.
    """
    service = service_of(request)
    if not service.settings.sandbox:
        raise Refused(Code.NOT_FOUND, "There is nothing at this path. The API is described at /docs.")
    # PostgreSQL cannot store or compare a NUL character.
    to = request.query_params.get("to", "").replace("\0", "").strip()[:LONGEST]
    before = _number(request.query_params.get("before", ""))
    found = await look(service.context.pool, to=to, before=before, limit=PAGE + 1)
    shown = found[:PAGE]
    own = origin_of(service.settings.public_url)
    lead = f"What consumers were sent, newest first. Nothing leaves the sandbox; the last {KEPT:,} are kept."
    if service.settings.message_rail != "sandbox":
        lead = "Messages are sent by the rail that CUOTA_MESSAGE_RAIL names, so none appear here."
    context: PageContext = {
        "page": {"title": "Inbox", "lead": lead, "step": None, "steps": 0},
        "sandbox": True,
        "path": PATH,
        "phone": recipient_of(to) if is_us_number(recipient_of(to)) else None,
        "to": to,
        "later": before is not None,
        "messages": [_message(each, own) for each in shown],
        "newest": _address(to, None),
        "older": _address(to, shown[-1].number) if len(found) > PAGE else None,
    }
    return page(request, "inbox.html", context)


async def answer(request: Request) -> Response:
    """Simulate that the owner of a phone number answers a text message: STOP, START or HELP."""
    service = service_of(request)
    if not service.settings.sandbox:
        raise Refused(Code.NOT_FOUND, "There is nothing at this path. The API is described at /docs.")
    if is_foreign(request):
        return problem(
            request, 403, "This form cannot be used", "It did not come from the inbox. Nothing was changed."
        )
    body = await read_bytes(request, MOST_SMALL_BYTES)
    try:
        fields = parse_qs(body.decode("ascii", "replace"), max_num_fields=10)
    except ValueError:
        fields = {}  # more fields than the inbox's own form has
    phone, text = (fields.get(name, [""])[-1].strip() for name in ("to", "text"))
    phone = recipient_of(phone)
    if not is_us_number(phone) or not text:
        return problem(
            request, 400, "Nothing was sent", "Choose a phone number, and write STOP, START or HELP."
        )
    await answer_text(service.context, str(uuid4()), phone, text[:LONGEST], utc_now())
    return see_other(_address(phone, None))


def _number(text: str) -> int | None:
    digits = text.isascii() and text.isdigit() and len(text) < 20
    return min(int(text), _LAST_NUMBER) if digits else None


def _address(to: str, before: int | None) -> str:
    parameters = {"to": to} if to else {}
    query = urlencode(parameters if before is None else {**parameters, "before": str(before)})
    return f"{PATH}?{query}" if query else PATH


def _message(received: Received, own: str) -> dict[str, object]:
    at = received.created_at
    return {
        "channel": "Text" if received.channel == "text" else "Mail",
        "recipient": shown_recipient(received.recipient),
        "only": _address(received.recipient, None),
        "iso": at.isoformat(timespec="seconds"),
        "at": moment(at.astimezone(UTC)),
        # A text message has no subject.
        "subject": received.subject if received.channel == "mail" else None,
        "parts": parts(received.text, own),
    }


def shown_recipient(recipient: str) -> str:
    """Format a phone number as `(212) 555-0187`; return an e-mail address unchanged."""
    if not is_us_number(recipient):
        return recipient
    return f"({recipient[:3]}) {recipient[3:6]}-{recipient[6:]}"


def parts(text: str, own: str) -> list[tuple[str, bool]]:
    """Split a text into pieces, each with a flag whether it is a link. Only addresses of this service (`own`) are links."""
    pieces: list[tuple[str, bool]] = []
    for piece in _ADDRESS.split(text):
        address = piece.rstrip(".,;:!?)'")
        if address == own or address.startswith((f"{own}/", f"{own}?", f"{own}#")):
            pieces += [(address, True), (piece[len(address) :], False)]
        else:
            pieces.append((piece, False))
    return [piece for piece in pieces if piece[0]]
