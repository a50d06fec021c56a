"""Builds the values that every page of the merchant's dashboard needs."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from starlette.requests import Request

from cuota.core import money
from cuota.core.dates import day, stamp
from cuota.core.desk.role import ROLE_WORDS, Action, may
from cuota.core.desk.sort import Sort
from cuota.core.merchant import Onboarding
from cuota.core.order.order import Order, PaymentState, Status
from cuota.web.pages.checkout.session import csrf_of
from cuota.web.pages.desk.visit import PATH, Desk
from cuota.web.pages.render import PageContext
from cuota.web.service import service_of

# The dashboard always uses this time zone. Cutoffs use it too, unless the merchant's terms name another.
ZONE = "America/New_York"
# The texts of both dashboards after a person has changed their own passkeys.
PASSKEYS_SAID = {
    "passkey-added": "The passkey is added. From now on, it signs you in.",
    "passkey-renamed": "The passkey has its new name.",
    "passkey-removed": "The passkey is removed, and signs nobody in any more. Remove it from your device, too.",
}
# What both dashboards say after a change of the sandbox.
SANDBOX_SAID = {
    "moved": "The clock was moved. Everything that was due in between has happened, each at its own time.",
    "forked": "The fork is saved. You can go back to this moment.",
    "rewound": "The sandbox is as it was when the fork was saved.",
    "forgotten": "The fork is deleted.",
}
_NAV = (
    ("Home", PATH, Action.READ_ORDERS),
    ("Orders", f"{PATH}/orders", Action.READ_ORDERS),
    ("Approvals", f"{PATH}/approvals", Action.READ_ORDERS),
    ("Payouts", f"{PATH}/payouts", Action.READ_PAYOUTS),
    ("Disputes", f"{PATH}/disputes", Action.READ_DISPUTES),
    ("Webhooks", f"{PATH}/webhooks", Action.READ_WEBHOOKS),
    ("Requests", f"{PATH}/requests", Action.READ_REQUESTS),
    ("Developers", f"{PATH}/developers", Action.READ_KEYS),
    ("Business", f"{PATH}/onboarding", Action.FILL_ONBOARDING),
    ("Settings", f"{PATH}/settings", Action.READ_SETTINGS),
    ("Team", f"{PATH}/team", Action.READ_TEAM),
    ("Audit log", f"{PATH}/audit", Action.READ_AUDIT),
)
_SANDBOX_NAV = ("Sandbox", f"{PATH}/sandbox", Action.USE_SANDBOX)
# The texts after an action. The query parameter `said` selects one by its key.
SAID = {
    "captured": "The capture is done. It appears in the settlement lines within a minute.",
    "voided": "The void is done. The consumer owes less by the voided amount.",
    "refunded": "The refund is done. Unpaid installments were reduced first; the rest goes back to the card.",
    "before": "Your first click already did this. Nothing was moved twice.",
    "invited": "The invitation is on its way by e-mail. The link in it works for seven days.",
    "again": "Another link is on its way by e-mail.",
    "too-many": "This person has five links of the last hour that still work. Try again later.",
    "role": "The role was changed. It applies from the next click on.",
    "removed": "The person was removed, and is signed out everywhere.",
    "factor": "The authenticator app and all passkeys were removed. At the next sign-in, the person sets up another app.",
    "ended": "The session was ended.",
    "accepted": "You accepted. The consumer gets the amount back; it has already left your payouts.",
    "evidence": "Your evidence was received. You can add more until the dispute is decided.",
    "appealed": "Your appeal was received. The decision about the appeal is final.",
    "asked": "Your request was received. The money moves when another person of your team approves it.",
    "rejected": "The request was rejected. Nothing was moved.",
    **PASSKEYS_SAID,
    "saved": "The change is saved. Your payment provider checks it.",
    "sent": "The documents were received. Your payment provider checks them.",
    "gone": "The entry is removed.",
    "keys": "The change is done. It takes effect within a few seconds.",
    **SANDBOX_SAID,
    "bank": "The bank account was changed. All owners get an e-mail about this now.",
    "bank-withdrawn": "The change was withdrawn. Payouts still go to the current account. All owners get an e-mail about this now.",
    "settings": "The change is saved. It takes effect within a few seconds.",
    "endpoint": "The endpoint was changed. Waiting deliveries use the new settings.",
    "endpoint-removed": "The endpoint was removed, and gets nothing more. Its past attempts stay readable.",
    "origin-added": "The origin was added. Its pages may open the checkout now.",
    "origin-removed": "The origin was removed. Its pages can no longer open the checkout.",
    "sent-again": "The event is on its way again. Reload this page in a moment to see the result.",
    "parked-again": "The parked events are on their way again. Reload this page in a moment to see the result.",
    "none-parked": "Nothing was sent: no event is parked.",
    "sent-nowhere": "Nothing was sent. The event is being sent at this moment, or none of its receivers exists any more.",
}


def common(request: Request, desk: Desk, title: str, *, here: str, lead: str | None = None) -> PageContext:
    """Return the values that the frame of every page needs. `here` is the address of the page's entry in the menu."""
    person = desk.visit.person
    said = SAID.get(request.query_params.get("said", ""))
    sandbox = service_of(request).settings.sandbox
    return {
        "page": {"title": title, "lead": lead},
        "sandbox": sandbox,
        "form": {"action": PATH, "csrf": csrf_of(request, desk.visit.secret)},
        "root": PATH,
        "nav": [
            {"label": label, "address": address, "here": address == here}
            for label, address, action in ((*_NAV, _SANDBOX_NAV) if sandbox else _NAV)
            if may(person.role, action)
        ],
        "person": {"name": person.name, "email": person.email, "role": ROLE_WORDS[person.role][0]},
        "merchant_name": desk.visit.session.merchant,
        "errors": {},
        "values": {},
        "notice": said,
        "notice_tone": "done",
        "standing": _standing(request, desk),
        **by_passkey(PATH, available=desk.visit.session.has_passkey and not desk.fresh),
    }


def _standing(request: Request, desk: Desk) -> PageContext | None:
    """Return the warning while the merchant cannot make new orders or is not paid, with a link to the page that helps."""
    session, sandbox = desk.visit.session, service_of(request).settings.sandbox
    if session.suspended:
        text = "Your payment provider has suspended new orders. Captures, voids and refunds still work."
        return {"text": text, "address": ""}
    if session.onboarding is not Onboarding.OPEN:
        return None
    refused = "payouts are held" if sandbox else "real orders are refused and payouts are held"
    address = f"{PATH}/onboarding" if desk.may(Action.FILL_ONBOARDING) else ""
    return {"text": f"Your account is not approved yet. Until then, {refused}.", "address": address}


def by_passkey(root: str, *, available: bool) -> PageContext:
    """Return the values of a page on which a passkey may replace a fresh code."""
    return {
        "passkey": f"{root}/step-up" if available else "",
        "passkey_script": available,
        # The address of a provider that may replace the code; the operator's pages set this value.
        "confirm_at": None,
    }


def failed(shown: PageContext, errors: dict[str, str], values: dict[str, str]) -> PageContext:
    """Return a page's values with the errors of its form. The error with an empty name becomes the page's notice."""
    before = shown.get("values")
    return {
        **shown,
        "errors": {name: text for name, text in errors.items() if name},
        "notice": errors.get(""),
        "notice_tone": "error",
        "values": {**(before if isinstance(before, dict) else {}), **values},
    }


def shown(order: Order, cents: int) -> str:
    """Format an amount in the order's currency."""
    return money.shown(cents, order.currency)


def sort_options(words: dict[Sort, str]) -> list[PageContext]:
    """Return the options for the order of a list. The first option is the default."""
    return [{"value": each.value, "label": label} for each, label in words.items()]


def when(at: datetime) -> str:
    """Format a time for a list: `Nov 23, 2026, 3:05 PM`."""
    return stamp(at.astimezone(ZoneInfo(ZONE)))


def day_of(at: datetime) -> str:
    """Format the calendar day of a time."""
    return day(at.astimezone(ZoneInfo(ZONE)).date(), year=True)


_PAYMENT_WORDS = {
    PaymentState.AUTHORIZED: ("To capture", "wait"),
    PaymentState.PARTIALLY_CAPTURED: ("Partly captured", "wait"),
    PaymentState.CAPTURED: ("Captured", "done"),
    PaymentState.VOIDED: ("Voided", "off"),
    PaymentState.EXPIRED: ("Expired", "off"),
}
_STATUS_WORDS = {
    Status.CREATED: ("In checkout", "wait"),
    Status.DECLINED: ("Declined", "off"),
    Status.ABANDONED: ("Abandoned", "off"),
}


def state_of(order: Order) -> PageContext:
    """Return the state of an order: a word, and its kind (`done`, `wait`, `off` or `bad`), which selects the mark beside it."""
    if order.open_disputes:
        word, kind = "Disputed", "bad"
    elif order.refunded and order.refunded >= order.captured:
        word, kind = "Refunded", "off"
    elif order.refunded:
        word, kind = "Partly refunded", "done"
    elif order.review_by is not None:
        word, kind = "Under review", "wait"
    elif order.status in _STATUS_WORDS:
        word, kind = _STATUS_WORDS[order.status]
    else:
        word, kind = _PAYMENT_WORDS.get(order.payment_state, (order.payment_state.value.title(), "wait"))
    return {"word": word, "kind": kind}
