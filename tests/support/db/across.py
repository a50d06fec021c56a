"""The statements that go beyond one merchant's shard, each with its reason."""

from __future__ import annotations

# What goes over all shards, and why that is right. `reads` takes nothing but a plain read; `sweeps` deletes what
# nobody looks at any more; `sandbox` runs only with the sandbox's clock.
ACROSS = {
    "orders.MERCHANTS_DUE": "reads: who has something due; what is claimed then names the merchant",
    "charges._MERCHANTS_DUE": "reads: the same, for card refunds",
    "card_events._MERCHANTS_DUE": "reads: the same, for what card processors reported",
    "messages._MERCHANTS_DUE": "reads: the same, for messages",
    "virtual_cards._MERCHANTS_TOLD": "reads: the same, for cards whose limit fell",
    "virtual_cards._MERCHANTS_HIDDEN": "reads: the same, for cards that were shown long enough",
    "deliveries._LANES": "reads: the same, for receivers' queues; on a cluster, _MERCHANTS_PENDING is used instead",
    "deliveries._MERCHANTS_PENDING": "reads: the same, for merchants with pending deliveries",
    "claims._CLAIMERS": "reads: the same, for what workers have under way",
    "claims._OF_WORKER": "reads: the same, of one worker",
    "events._WAITING": "reads: the same, for what is to be published",
    "history._READ": "reads: a consumer's past at all merchants, once for each press of the button",
    "history._PAST": "reads: the same, of one consumer",
    "accounts._PLANS": "reads: a consumer's plans at all merchants, on the account page",
    "story._FIND": "reads: the operator's look for an order by the merchant's reference",
    "decisions._WHOSE": "reads: whose order this is, for the operator's commands that get only its id",
    "decisions._BY_ID": "reads: the operator's look at one decision by its own id",
    "charges._FAILED": "reads: the operator's list of money that cards refused",
    "recalculate._MERCHANTS": "reads: the operator's check finds every merchant; on a cluster, the next one is used instead",
    "recalculate._MERCHANTS_OF_SHARDS": "reads: the same; the reads that follow name each merchant",
    "history._FORGET": "sweeps: signals that no window reaches back to",
    "checkouts._FORGET": "sweeps: browsers of a month ago",
    "idempotency._FORGET": "sweeps: answers of yesterday",
    "erasure._ORDERS": "reads: the operator's look for one consumer's orders at all merchants",
    "erasure._MAILS": "reads: the same consumer's mail addresses",
    "erasure._OTHER_BROWSERS": "sweeps: the same consumer's browsers",
    "retention._MERCHANTS_WITH_ORDERS": "reads: whose orders may have reached their age",
    "retention._MERCHANTS_WITH_MESSAGES": "reads: whose messages have reached their age",
    "retention._MERCHANTS_WITH_ATTEMPTS": "reads: whose delivery attempts have reached their age",
    "retention._WITH_PLANS": "reads: which of the oldest consumers have a plan",
    "hanging_receivers._HANGING": "sandbox: which receivers of all merchants hang, at the start of an advance",
    "clock._NEXT": "sandbox: the earliest instant of all merchants",
    "clock._DUE": "sandbox: what is due of all merchants",
    "clock._PAID": "sandbox: what was done for all merchants' consumers",
}
