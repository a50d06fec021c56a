"""`python -m cuota_demo --port 8001`: serve the shop. Its settings are SHOP_* in the environment."""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import sys
from dataclasses import replace
from types import FrameType

import uvicorn

from .app import make_app
from .settings import SettingsError, ShopSettings
from .staff import is_loopback


class Server(uvicorn.Server):
    """A server that stops once. A second Ctrl-C changes nothing, because stopping takes at most five seconds anyway."""

    def handle_signals(self) -> None:
        """Begin to stop at SIGTERM and Ctrl-C. These handlers stay: uvicorn removes its own while the event loop still ends."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.handle_exit)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop. uvicorn's own handler would raise the signal again after the last response."""
        del sig, frame
        self.should_exit = True


def main() -> int:
    """Serve the shop until SIGTERM or Ctrl-C. Running requests may finish. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="cuota_demo", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default %(default)s)")
    parser.add_argument("--port", type=int, default=8001, help="port to listen on (default %(default)s)")
    arguments = parser.parse_args()
    try:
        settings = ShopSettings.from_environment(os.environ)
    except SettingsError as error:
        print(f"cuota_demo: {error}", file=sys.stderr)
        return 2
    if settings.staff_password is None and not is_loopback(arguments.host):
        settings = replace(settings, staff_password=secrets.token_urlsafe(12))
        print(
            f"cuota_demo: the back office at {settings.public_url}/orders asks for a login: staff, {settings.staff_password}"
        )
    server = Server(
        uvicorn.Config(
            make_app(settings),
            host=arguments.host,
            port=arguments.port,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=5,
        )
    )
    server.handle_signals()
    server.run()
    return 0 if server.started else 1


if __name__ == "__main__":
    sys.exit(main())
