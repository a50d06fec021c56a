"""Read by a worker that `bench.together` starts: each ask goes down by itself, as if nothing were gathered.

The product has no such switch.
"""

import asyncio
from pathlib import Path
from typing import Any

if b"cuota.process" in Path("/proc/self/cmdline").read_bytes():
    from cuota.db.gathered import Gatherer

    def _ask(self: Gatherer, kind: Any, merchant_id: object, asked: Any) -> asyncio.Future[Any]:
        del merchant_id
        return asyncio.ensure_future(kind.one(self._alone, asked))

    Gatherer.ask = _ask  # type: ignore[method-assign, assignment]
