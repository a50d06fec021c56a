"""Publishing events and sending webhooks."""

from __future__ import annotations

from cuota.flows.context import Context
from cuota.flows.deliver_webhooks import Courier, publish_events
from cuota.rails.http import GuardedClient

FINISH_SECONDS = 3.0


class Webhooks:
    """One courier a process, with one pool of connections."""

    def __init__(self, context: Context) -> None:
        self._client = GuardedClient(loopback=context.settings.sandbox)
        self._courier = Courier(context, self._client)

    async def run(self, context: Context) -> int:
        """Publish, then start sending what is due; answers how much there was."""
        return await publish_events(context) + await self._courier.send_due()

    async def close(self) -> None:
        """Let what is under way end, then close the connections."""
        await self._courier.finish(FINISH_SECONDS)
        await self._client.close()
