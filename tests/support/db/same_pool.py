"""A pool that lends the sessions of another pool, for tests that watch or change what is sent."""

from __future__ import annotations

from cuota.db.pool import Pool


class SamePool(Pool):
    """The sessions of `pool`. After use, they return to `pool`, so closing `pool` does not wait for this pool to release them."""

    def __init__(self, pool: Pool, *, batches: bool = False) -> None:
        """With `batches`, lend the sessions for batches too."""
        shared = pool._shared if batches else None
        super().__init__(pool._pool, shared._pool if shared else None)
        self._kept = pool._kept
        if shared and self._shared:
            self._shared._kept = shared._kept
