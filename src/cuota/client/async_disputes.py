"""The asyncio client's calls about disputes. `sync_disputes.py` has the same calls for other programs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from typing import TypeVar

from cuota.client import dispute_calls
from cuota.client.base import PAGE
from cuota.client.calls import Call
from cuota.client.dispute_calls import EvidenceFiles
from cuota.client.disputed import Dispute

T = TypeVar("T")


class AsyncDisputeMethods(ABC):
    """The calls of `AsyncClient` about disputes."""

    @abstractmethod
    async def _do(self, call: Call[T]) -> T: ...

    async def disputes(
        self, *, status: str | None = None, order_id: str | None = None, page_size: int = PAGE
    ) -> AsyncIterator[Dispute]:
        """Iterate over your disputes, newest first. `status` is one status, or several separated by commas."""
        cursor = None
        while True:
            page = await self._do(dispute_calls.disputes(status, order_id, cursor, page_size))
            for dispute in page.disputes:
                yield dispute
            cursor = page.cursor
            if cursor is None:
                return

    async def dispute(self, dispute_id: str) -> Dispute:
        """Return a dispute with all its statements and files."""
        return await self._do(dispute_calls.dispute(dispute_id))

    async def accept_dispute(self, dispute_id: str) -> Dispute:
        """Accept a dispute: the customer gets the money back. This is final; a repeated call changes nothing."""
        return await self._do(dispute_calls.accept_dispute(dispute_id))

    async def submit_evidence(
        self,
        dispute_id: str,
        text: str = "",
        files: EvidenceFiles = (),
        *,
        idempotency_key: str | None = None,
    ) -> Dispute:
        """Send evidence: a text, files, or both. Each file is its name and its bytes."""
        return await self._do(dispute_calls.submit_evidence(dispute_id, text, files, idempotency_key))

    async def appeal(
        self,
        dispute_id: str,
        text: str = "",
        files: EvidenceFiles = (),
        *,
        idempotency_key: str | None = None,
    ) -> Dispute:
        """Appeal a decision for the customer, once, with a text, files, or both."""
        return await self._do(dispute_calls.appeal(dispute_id, text, files, idempotency_key))
