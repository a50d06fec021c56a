"""What a movement of money will change, for the page of the movement and of its approval."""

from __future__ import annotations

from cuota.flows.order.move_money import Preview
from cuota.web.pages.desk.order_view import PAYMENT_WORDS
from cuota.web.pages.desk.view import shown
from cuota.web.pages.render import PageContext


def preview_values(seen: Preview) -> PageContext:
    """Return the order and the plan before and after."""
    before, after = seen.before, seen.after
    rows = [
        ("Captured", before.captured, after.captured), ("Voided", before.voided, after.voided),
        ("Refunded", before.refunded, after.refunded), ("Can be captured", before.capturable, after.capturable),
        ("Can be refunded", before.refundable, after.refundable),
    ]  # fmt: skip
    plan = {each.number: each for each in seen.plan_before}
    return {
        "rows": [(label, shown(before, old), shown(before, new)) for label, old, new in rows if old != new],
        "plan": [
            (
                each.number,
                PAYMENT_WORDS[each.state][0],
                shown(before, plan[each.number].total),
                shown(before, each.total),
            )
            for each in sorted(seen.plan_after, key=lambda item: item.number)
        ],
        "to_card": shown(before, seen.to_card) if seen.to_card else None,
    }
