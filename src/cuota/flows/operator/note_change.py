"""The entry in the operator's log about a change of a plan: its payments before and after."""

from __future__ import annotations

from cuota.core.plan.change_words import effect_rows
from cuota.flows.operator.log_action import OperatorNote
from cuota.flows.plan.change_plan import PlanPreview


def note_of_change(shown: PlanPreview, reason: str) -> OperatorNote:
    """Return the entry for a change that the person has seen."""
    order = shown.found.order
    rows = effect_rows(shown.found.before.plan, shown.new.plan, order.currency)
    before = {label: now for label, now, _ in rows}
    after = {"kind": shown.new.kind.value, **{label: then for label, _, then in rows}}
    return OperatorNote("plan.change", f"Order {order.order_id}", reason, order.order_id, before, after)
