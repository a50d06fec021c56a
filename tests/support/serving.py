"""Starts `cuota serve` as an operator does."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from support.commands import Cuota

ORDER: dict[str, Any] = {
    "amount": "100.00",
    "merchantReference": "A-1",
    "merchant": {
        "redirectConfirmUrl": "http://127.0.0.1:9/yes",
        "redirectCancelUrl": "http://127.0.0.1:9/no",
    },
}


@contextmanager
def serving(
    cuota: Cuota, *more: str, **settings: str
) -> Iterator[tuple[dict[str, Any], subprocess.Popen[str]]]:
    """Run `cuota serve` on a free port.

    Yield its line of JSON and the process. At the end, SIGTERM must end it with exit code 0.
    """
    command = [sys.executable, "-m", "cuota", "serve", "--port", "0", *more]
    process = subprocess.Popen(
        command,
        env=cuota.environment(**settings),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout
    try:
        yield json.loads(process.stdout.readline()), process
    finally:
        process.send_signal(signal.SIGTERM)
        rest = process.stdout.read()
        assert process.wait(60) == 0
        process.stdout.close()
    assert rest == "", "the ready line is the only one"
