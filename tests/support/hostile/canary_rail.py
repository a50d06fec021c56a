"""A message rail for the service under test: its one-time code is worth looking for."""

from __future__ import annotations

from cuota.rails.message import SandboxMessageRail

CODE = "739146"


class CanaryMessageRail(SandboxMessageRail):
    """The sandbox's, with a code that no other text holds."""

    def new_code(self) -> str:
        return CODE
