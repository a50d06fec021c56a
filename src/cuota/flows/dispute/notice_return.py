"""A consumer reports returned goods: the next installment waits for the refund."""

from __future__ import annotations

from uuid import UUID

from cuota.core.dispute.notice_return import notice_return as decide_notice
from cuota.core.dispute.return_notice import ReturnNotice
from cuota.core.order.outcome import Outcome
from cuota.core.refusal import Code, FieldError, Refused
from cuota.flows.context import Context
from cuota.flows.dispute.read_dispute import OrderWithClaims, read_claims
from cuota.flows.settle import settle

MOST_CARRIER = 50
MOST_TRACKING = 60


async def notice_return(
    context: Context, merchant_id: UUID, order_id: UUID, carrier: str, tracking: str
) -> ReturnNotice:
    """Store a return notice, hold the next installment, and return the notice. Raises Refused."""
    carrier, tracking = carrier.strip(), tracking.strip()
    for name, value, most in (("carrier", carrier, MOST_CARRIER), ("tracking", tracking, MOST_TRACKING)):
        if not 1 <= len(value) <= most or not value.isprintable():
            message = f"Enter 1 to {most} printable characters."
            raise Refused(Code.VALIDATION_FAILED, message, errors=(FieldError(name, "invalid", message),))
    return_id = context.new_id()

    def decide(found: OrderWithClaims) -> Outcome | None:
        told = found.claims.returned
        if told is not None and (
            told.return_id == return_id or (told.carrier, told.tracking) == (carrier, tracking)
        ):
            # This is a second click on the same form, or our own earlier save whose result was lost.
            return None
        return decide_notice(
            found.order, found.plan, found.claims.zone, carrier, tracking, return_id, context.now(), context.new_id
        )  # fmt: skip

    done = await settle(context, merchant_id, order_id, decide, read_claims)
    returned = done.outcome.returned if done.outcome is not None else done.found.claims.returned
    assert returned is not None
    return returned
