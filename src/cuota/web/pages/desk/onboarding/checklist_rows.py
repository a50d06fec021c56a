"""The checklist in words, for both dashboards."""

from __future__ import annotations

from cuota.core.onboarding.checklist import ITEM_WORDS, STATE_WORDS, ChecklistItem, ItemState
from cuota.web.pages.desk.view import when
from cuota.web.pages.render import PageContext


def item_row(each: ChecklistItem, address: str, *, names: bool) -> PageContext:
    """Return the values of one item. `names`: say who decided, which only the operator's people read."""
    word, kind = STATE_WORDS[each.state]
    return {
        "label": ITEM_WORDS[each.item],
        "address": address,
        "state": {"word": word, "kind": kind},
        "more": each.missing or decided_words(each, names=names),
    }


def decided_words(each: ChecklistItem, *, names: bool) -> str:
    """Say when and why the item is in its state, or what was decided before the last change; empty if nothing was decided."""
    decision = each.decision
    if decision is None:
        return ""
    by = f" by {decision.decider}" if names else ""
    # The reason of an acceptance is for the operator's log.
    why = f": {decision.reason}" if names or not decision.accepted else ""
    decided = f"{when(decision.decided_at)}{by}"
    if each.state is not ItemState.TO_CHECK:
        return f"{decided}{why}"
    word = "accepted" if decision.accepted else "rejected"
    return f"changed since it was {word} on {decided}{why}"
