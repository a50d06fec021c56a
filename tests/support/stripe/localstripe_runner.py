"""Starts localstripe on loopback. Runs in localstripe's own environment: `python localstripe_runner.py PORT_FILE`.

As shipped, localstripe listens on every interface, and writes its whole store into one file in /tmp after each change.
"""

import socket
import sys
from pathlib import Path

from aiohttp import web
from localstripe import resources, server


def main() -> None:
    resources.Store.dump_to_disk = lambda _store: None
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    port_file = Path(sys.argv[1])
    written = port_file.with_suffix(".new")
    written.write_text(str(listening.getsockname()[1]))
    written.rename(port_file)
    web.run_app(server.app, sock=listening, access_log=None, print=None)


if __name__ == "__main__":
    main()
