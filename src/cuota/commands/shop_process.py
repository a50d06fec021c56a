"""The demo shop as a child of `cuota demo`: the shop itself knows nothing of it, and ends when its parent does."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
import time

CHECK_SECONDS = 0.5


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(CHECK_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    """`python -m cuota.commands.shop_process PARENT [what cuota_demo takes]`."""
    threading.Thread(target=_end_with, args=(int(sys.argv[1]),), daemon=True).start()
    sys.argv = ["cuota_demo", *sys.argv[2:]]
    # By name: the shop is no part of the package, and is asked for here only.
    sys.exit(importlib.import_module("cuota_demo.__main__").main())


if __name__ == "__main__":
    main()
