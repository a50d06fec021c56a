"""Installs failpoints and planted bugs. Every Python process imports this module if its PYTHONPATH has this folder.

The product contains none of this. STRIKE_FILE and BUG_FILE are not settings of the service: see `strike_points` and
`strike_bugs`.
"""

from __future__ import annotations

import os
import traceback
from pathlib import Path


def _arm() -> None:
    if os.environ.get("BUG_FILE"):
        import strike_bugs

        strike_bugs.plant()
    if os.environ.get("STRIKE_FILE"):
        import strike_points

        strike_points.arm()


_COMMAND = Path("/proc/self/cmdline").read_bytes()
if b"cuota.db.embedded.supervisor" in _COMMAND:
    # The supervisor's environment has PYTHONPATH but not BUG_FILE. The file is in the same folder as its data folder.
    os.environ["BUG_FILE"] = str(
        Path(os.fsdecode(_COMMAND.rstrip(b"\0").rpartition(b"\0")[2])).with_name("bug")
    )
    import strike_bugs

    strike_bugs.plant_in_supervisor()
if b"cuota.run.fork_server" in _COMMAND:
    try:
        _arm()
    except Exception:  # noqa: BLE001 - whatever it is
        # After an exception here, Python would continue without failpoints, and a test would pass without any fault.
        traceback.print_exc()
        os._exit(70)
