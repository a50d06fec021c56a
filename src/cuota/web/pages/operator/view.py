"""Builds the values that every page of the operator's dashboard needs."""

from __future__ import annotations

from starlette.requests import Request

from cuota.core.operator.role import OPERATOR_WORDS, OperatorAction, operator_may
from cuota.web.pages.checkout.session import csrf_of
from cuota.web.pages.desk import view as desk_view
from cuota.web.pages.desk.view import PASSKEYS_SAID, SANDBOX_SAID, by_passkey
from cuota.web.pages.operator.visit import PATH, PROVIDER, OperatorDesk
from cuota.web.pages.render import PageContext
from cuota.web.service import service_of

failed = desk_view.failed
_NAV = (
    ("Home", PATH, OperatorAction.READ_ORDERS),
    ("Orders", f"{PATH}/orders", OperatorAction.READ_ORDERS),
    ("Merchants", f"{PATH}/merchants", OperatorAction.READ_MERCHANTS),
    ("Consumers", f"{PATH}/consumers", OperatorAction.READ_CONSUMERS),
    ("Disputes", f"{PATH}/disputes", OperatorAction.READ_DISPUTES),
    ("Risk", f"{PATH}/risk", OperatorAction.READ_RISK),
    ("Payouts", f"{PATH}/payouts", OperatorAction.READ_MONEY),
    ("Books", f"{PATH}/books", OperatorAction.READ_MONEY),
    ("System", f"{PATH}/system", OperatorAction.READ_SYSTEM),
    ("Team", f"{PATH}/team", OperatorAction.READ_TEAM),
    ("Log", f"{PATH}/log", OperatorAction.READ_AUDIT),
)
_SANDBOX_NAV = ("Sandbox", f"{PATH}/sandbox", OperatorAction.USE_SANDBOX)
# The texts after an action. The query parameter `said` selects one by its key.
_SAID = {
    "invited": "The invitation is on its way by e-mail. The link in it works for seven days.",
    "role": "The role was changed. It applies from the next click on.",
    "removed": "The person was removed, and is signed out everywhere.",
    "factor": "The authenticator app and all passkeys were removed. At the next sign-in, the person sets up another app.",
    "provider": "The linked account was removed. The next sign-in at the provider links an account again, by its verified e-mail address.",
    "ended": "The session was ended.",
    **PASSKEYS_SAID,
    **SANDBOX_SAID,
    "changed": "The change is saved. It applies to orders from now on.",
    "terms": "The new version of the terms is saved. It begins in 30 seconds, and applies to captures after that.",
    "suspended": "The merchant is suspended. New orders are refused within 5 seconds.",
    "held": "The payouts of the merchant are held. A person must release each payout under Payouts.",
    "resumed": "The merchant takes orders again, within 5 seconds.",
    "released": "The payout is released, and is sent to the bank at once.",
    "given-back": "The amount is back in the merchant's balance. The next payout sends it to the account that is in force at that time.",
    "accepted": "The item is accepted.",
    "approved": "The item is accepted, and with it the merchant is approved.",
    "rejected": "The item is rejected. The merchant reads the reason.",
    "saved": "The change is saved. The item must be checked now.",
    "sent": "The documents were received.",
    "gone": "The entry is removed.",
    "cleared": "The possible match is cleared.",
    "confirmed": "The match is confirmed. The merchant cannot be approved.",
    "screened": "The names were screened.",
    "revoked": "The credentials are revoked. Their tokens stop working within 5 seconds.",
    "reinstated": "The merchant has new credentials.",
    "adjusted": "The correction is booked. It changes the next payout.",
    "decided": "The dispute is decided. The side that lost may appeal once.",
    "blocked": "The consumer is blocked. New orders are declined; the consumer can still pay open installments.",
    "unblocked": "The block has ended. New orders are decided as usual.",
    "plan-changed": "The plan is changed, and the consumer gets a message with the new plan.",
    "review-approved": "The order is approved. The consumer gets a message with a link, confirms once more, and pays.",
    "review-declined": "The order is declined. The consumer gets a message, and the letter with the reasons.",
    "erased": "The personal data is erased.",
    "verified": "The check is done.",
}


def common(
    request: Request, desk: OperatorDesk, title: str, *, here: str, lead: str | None = None
) -> PageContext:
    """Return the values that the frame of every page needs. `here` is the address of the page's entry in the menu."""
    person, settings = desk.visit.person, service_of(request).settings
    return {
        "page": {"title": title, "lead": lead},
        "sandbox": settings.sandbox,
        "form": {"action": PATH, "csrf": csrf_of(request, desk.visit.secret)},
        "root": PATH,
        "nav": [
            {"label": label, "address": address, "here": address == here}
            for label, address, action in (*_NAV, *([_SANDBOX_NAV] if settings.sandbox else []))
            if operator_may(person.role, action)
        ],
        "person": {"name": person.name, "email": person.email, "role": OPERATOR_WORDS[person.role][0]},
        "merchant_name": f"{settings.brand_name}, operator",
        "tabs": [],
        "sections": [],
        # The template reads this object when everything on the page has been read.
        "every": desk.every,
        "errors": {},
        "values": {},
        "notice": _SAID.get(request.query_params.get("said", "")),
        "notice_tone": "done",
        "asks_code": not desk.fresh,
        **by_passkey(PATH, available=desk.visit.session.has_passkey and not desk.fresh),
        "confirm_at": _confirm_at(request),
    }


def _confirm_at(request: Request) -> PageContext | None:
    """Return the address at which the provider may replace a fresh code, or None if the provider confirms no second factor."""
    rules = service_of(request).settings.provider_rules
    if rules is None or not rules.two_factors:
        return None
    return {"name": rules.name, "address": f"{PROVIDER}/confirm"}
