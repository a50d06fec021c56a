"""A message rail for the service under test, with a one-time code that the test can search for."""

from __future__ import annotations

from cuota.rails.message import SandboxMessageRail

CODE = "739146"


class CanaryMessageRail(SandboxMessageRail):
    """The sandbox's rail, with a code that occurs in no other text."""

    def new_code(self) -> str:
        return CODE
