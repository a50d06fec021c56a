"""The job that publishes events and sends webhooks."""

from __future__ import annotations

from collections.abc import Callable

from cuota.db.apart import apart
from cuota.db.workers import Worker
from cuota.flows.context import Context
from cuota.flows.webhook.deliver_webhooks import Courier, publish_events
from cuota.flows.webhook.free_claims import Heir
from cuota.flows.webhook.pace_webhooks import Pace
from cuota.rails.http import LONGEST_SECONDS, GuardedClient

FINISH_SECONDS = 3.0
REST_SECONDS = 25.0
assert REST_SECONDS > LONGEST_SECONDS


class Webhooks:
    """One courier with one connection pool in each process.

    `published` is the number of events that the last run published. If `sends` is False, a run only publishes.
    """

    def __init__(
        self,
        context: Context,
        worker: Worker | None = None,
        freed: Callable[[], None] = lambda: None,
        pace: Pace | None = None,
    ) -> None:
        self._client = GuardedClient(loopback=context.settings.loopback_webhooks)
        self._courier = Courier(context, self._client, worker, freed, pace)
        self._heir = Heir(worker, self._courier.under_way)
        self.published = 0
        self.sends = True

    async def run(self, context: Context) -> int:
        """Publish events, then start to send due deliveries. Return the number of both."""
        self.published = 0
        # Retries do not depend on new events.
        with apart("publishing"):
            self.published = await publish_events(context)
        return self.published + (await self._courier.send_due() if self.sends else 0)

    async def free_claims(self, context: Context) -> int:
        """Release claims that no process is working on. Return how many there were."""
        return await self._heir.free_claims(context)

    @property
    def under_way(self) -> int:
        """Return how many webhooks wait for an answer."""
        return len(self._courier.under_way())

    async def rest(self) -> None:
        """Wait until no delivery is in progress and all answers are recorded."""
        await self._courier.finish(REST_SECONDS)

    async def close(self) -> None:
        """Let the deliveries in progress finish, then close the connections."""
        await self._courier.finish(FINISH_SECONDS)
        await self._client.close()
