"""Receivers that timed out recently: the last attempt of a pending delivery got no answer in time."""

from __future__ import annotations

from cuota.core.webhook.delivery import TIMED_OUT
from cuota.db.session import Session
from cuota.db.webhook.lanes import Lane

_HANGING = """
SELECT DISTINCT d.merchant_id, d.receiver, d.host FROM deliveries d CROSS JOIN LATERAL (
    SELECT a.error FROM delivery_attempts a WHERE a.merchant_id = d.merchant_id AND a.order_id = d.order_id
        AND a.sequence = d.sequence AND a.receiver = d.receiver ORDER BY a.number DESC LIMIT 1
) last
WHERE d.state = 'pending' AND d.failed > 0 AND last.error = $1
"""


async def hanging(session: Session) -> list[Lane]:
    """Return the receivers that timed out recently.

    This reads every pending delivery, so it is only for the start of an advance, not for each request.
    """
    return [Lane(*row) for row in await session.fetch(_HANGING, TIMED_OUT)]
