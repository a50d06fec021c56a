"""How `cuota serve` is told to stop: SIGTERM, Ctrl-C, or the end of its terminal (SIGHUP)."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Coroutine, Iterator
from types import FrameType
from typing import Any, TypeVar

STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
T = TypeVar("T")


class StopSignal(Exception):
    """SIGTERM, Ctrl-C, or the end of the terminal."""


def _on_signal(_number: int, _frame: FrameType | None) -> None:
    raise StopSignal


def stop_signals() -> list[signal.Signals]:
    """Return the signals that stop this process. After `nohup`, the end of the terminal does not stop it."""
    return [
        number
        for number in STOPS
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN
    ]


def handle_signals() -> None:
    """Raise StopSignal at each of these signals."""
    for number in stop_signals():
        signal.signal(number, _on_signal)


@contextlib.contextmanager
def signals_held() -> Iterator[None]:
    """Delay these signals until the end of the block. A process that the block starts delays them until it unblocks them itself."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


async def until_signal(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of the work. At one of these signals, cancel it and raise StopSignal.

    A signal handler must not raise an exception inside an event loop: the loop could lose the exception, or break.
    """
    loop, task, stopped = asyncio.get_running_loop(), asyncio.ensure_future(work), False
    numbers = stop_signals()

    def stop() -> None:
        nonlocal stopped
        stopped = True
        task.cancel()

    for number in numbers:
        loop.add_signal_handler(number, stop)
    try:
        return await task
    except (asyncio.CancelledError, Exception):
        if stopped:
            raise StopSignal from None
        raise
    finally:
        with signals_held():
            for number in numbers:
                loop.remove_signal_handler(number)
            handle_signals()
