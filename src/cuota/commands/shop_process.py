"""Runs the demo shop as a child process of `cuota demo`, and ends the shop when that parent process ends.

The shop itself contains no code for this, because it uses only Cuota's public API.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
import time

from cuota.run.signals import STOPS, ignore_terminal

CHECK_SECONDS = 0.5


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(CHECK_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    """Run `python -m cuota.commands.shop_process PARENT_PID [options of cuota_demo]`."""
    ignore_terminal()
    # `cuota demo` blocked these signals until here.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
    threading.Thread(target=_end_with, args=(int(sys.argv[1]),), daemon=True).start()
    sys.argv = ["cuota_demo", *sys.argv[2:]]
    # Imported by name, because the shop is not part of this package and only this command needs it.
    sys.exit(importlib.import_module("cuota_demo.__main__").main())


if __name__ == "__main__":
    main()
