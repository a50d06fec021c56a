"""The texts of the checklist, for both dashboards."""

from __future__ import annotations

from cuota.core.onboarding.checklist import ITEM_WORDS, STATE_WORDS, ChecklistItem, ItemState
from cuota.web.pages.desk.view import when
from cuota.web.pages.render import PageContext


def item_row(each: ChecklistItem, address: str, *, names: bool) -> PageContext:
    """Return the values of one item. `names`: include who decided, which only the operator's people may read."""
    word, kind = STATE_WORDS[each.state]
    return {
        "label": ITEM_WORDS[each.item],
        "address": address,
        "state": {"word": word, "kind": kind},
        "more": each.missing or decided_words(each, names=names),
    }


def decided_words(each: ChecklistItem, *, names: bool) -> str:
    """Return when and why the item got its state, or the decision before the last change; empty if there was no decision."""
    decision = each.decision
    if decision is None:
        return ""
    by = f" by {decision.decider}" if names else ""
    # The reason of an acceptance is only in the operator's log.
    why = f": {decision.reason}" if names or not decision.accepted else ""
    decided = f"{when(decision.decided_at)}{by}"
    if each.state is not ItemState.TO_CHECK:
        return f"{decided}{why}"
    word = "accepted" if decision.accepted else "rejected"
    return f"changed since it was {word} on {decided}{why}"
