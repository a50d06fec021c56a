"""Starts localstripe on loopback. Runs in localstripe's own environment: `python localstripe_runner.py PORT_FILE`.

Without this program, localstripe listens on every interface and writes its whole store into one file in /tmp after each
change. For each list, and each charge has several, it also reads its whole store.
"""

import socket
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from aiohttp import web
from localstripe import resources, server
from localstripe.errors import UserError

by_kind: dict[str, dict[str, object]] = defaultdict(dict)


class Store(dict[str, object]):
    """A store in memory only, with a part for each kind of object."""

    def __setitem__(self, key: str, thing: object) -> None:
        super().__setitem__(key, thing)
        by_kind[key.partition(":")[0]][key] = thing

    def __delitem__(self, key: str) -> None:
        super().__delitem__(key)
        del by_kind[key.partition(":")[0]][key]

    def clear(self) -> None:
        super().clear()
        by_kind.clear()

    def dump_to_disk(self) -> None:
        """Write nothing."""


def listed(
    cls: Any, /, url: str, limit: object = None, starting_after: object = None, **others: object
) -> Any:
    """Do what StripeObject._api_list_all does, but read only the objects of this kind."""
    if others:
        raise UserError(400, f"Unexpected {', '.join(others)}")
    found = resources.List(url, limit=limit, starting_after=starting_after)
    found._list = list(by_kind[cls.object].values())
    return found


def main() -> None:
    resources.store = server.store = Store()
    resources.StripeObject._api_list_all = classmethod(listed)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    port_file = Path(sys.argv[1])
    written = port_file.with_suffix(".new")
    written.write_text(str(listening.getsockname()[1]))
    written.rename(port_file)
    web.run_app(server.app, sock=listening, access_log=None, print=None)


if __name__ == "__main__":
    main()
