"""The texts about what just happened on a plan's page, and when each is true.

The address of the page names the text. A reload, the browser's Back button or a link opens the same address later. Then the page
shows the text only if it is still true.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from starlette.requests import Request

from cuota.core.installment import owed
from cuota.db.plan.accounts import PlanDetail
from cuota.flows.checkout.allow_card import OTHER_CARD
from cuota.flows.plan import manage_plan
from cuota.web.service import service_of

# The texts about what just happened, with their tones. The query parameter `said` selects one by its key.
TOLD = {
    "paid": ("Your payment went through. Thank you.", "done"),
    "busy": (manage_plan.BUSY, "calm"),
    "asked": (manage_plan.BUSY, "calm"),
    "not-owed": (manage_plan.NOT_OWED, "calm"),
    "paid-before": (manage_plan.PAID_BEFORE, "done"),
    "nothing-left": ("Nothing is left to pay here.", "calm"),
    "changed": (manage_plan.CHANGED, "error"),
    "declined": (manage_plan.DECLINED, "error"),
    "unsent": (
        "Your payment did not reach your bank; nothing was charged. Here is your plan as it is now.",
        "calm",
    ),
    "other-card": (OTHER_CARD, "error"),
    "paused": (manage_plan.PAUSED, "calm"),
    "partly": (manage_plan.PARTLY, "error"),
    "not-all": (manage_plan.NOT_ALL, "error"),
    "sent-back": ("Thank you. We told the shop that you sent it back.", "done"),
    "card": ("Your new card pays from now on.", "done"),
    "card-paid": ("Your new card pays from now on. The overdue amount is paid.", "done"),
    "card-busy": ("Your new card pays from now on. We are charging the overdue amount to it now.", "calm"),
    "card-declined": (
        "Your new card is saved, but its bank declined the overdue payment. Pay it later, or use another card.",
        "error",
    ),
}
_LATELY = timedelta(minutes=15)
# Texts that say that something is still to be paid.
_WHILE_OWED = frozenset({"declined", "partly", "not-all"})
_WHILE_CHARGING = frozenset({"busy", "asked"})
# Texts whose first part, that there is a new card, stays true.
_OF_NEW_CARD = frozenset({"card-busy", "card-declined"})


def paid_lately(detail: PlanDetail, now: datetime) -> bool:
    """Return whether a payment of the plan was made a few minutes ago."""
    return any(now - at < _LATELY for at in _paid_at(detail))


def told(request: Request, detail: PlanDetail) -> tuple[str | None, str]:
    """Return the text about what just happened, with its tone; None if the query selects none, or one that is not true."""
    said = request.query_params.get("said", "")
    if _is_true(said, detail, service_of(request).context.now()):
        return TOLD.get(said, (None, "error"))
    return TOLD["card"] if said in _OF_NEW_CARD else (None, "error")


def _is_true(said: str, detail: PlanDetail, now: datetime) -> bool:
    order, left = detail.shown.order, owed(detail.shown.plan)
    if said in {"paid", "card-paid"}:
        return paid_lately(detail, now)
    facts = {
        # A form may be sent again long after its payment was made.
        "paid-before": bool(_paid_at(detail)),
        "nothing-left": not left,
        "paused": order.paused_at is not None,
        "card-busy": order.charging is not None,
        "card-declined": any(item.failures for item in left),
        **dict.fromkeys(_WHILE_CHARGING, order.charging is not None),
        **dict.fromkeys(_WHILE_OWED, bool(left)),
    }
    return facts.get(said, True)


def why_nothing(detail: PlanDetail, numbers: list[int]) -> str:
    """Return the key of the text that says why none of these payments can be paid. `numbers` is empty for the overdue ones."""
    paid = {item.number for item in detail.shown.plan if item.paid and item.number > 1}
    if not owed(detail.shown.plan):
        return "nothing-left"
    return "paid-before" if numbers and paid >= set(numbers) else "not-owed"


def _paid_at(detail: PlanDetail) -> list[datetime]:
    """Return the times of the payments that were made after the checkout, which includes the first payment."""
    return [receipt.paid_at for receipt in detail.receipts if receipt.installment > 1]


def key_of(notice: str | None) -> str:
    """Return the key of a text in TOLD; "changed" for any other text."""
    return next((key for key, (text, _) in TOLD.items() if text == notice), "changed")
