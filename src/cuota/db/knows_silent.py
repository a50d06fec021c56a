"""What the pool must know about the nodes of a cluster."""

from __future__ import annotations

from typing import Protocol


class KnowsSilent(Protocol):
    """Knows whether a node of the cluster does not answer (db/cluster/guard.py)."""

    def knows_silent(self) -> bool:
        """Return whether a node is silent now."""
        ...

    def end(self) -> None:
        """Stop asking the nodes."""
        ...
