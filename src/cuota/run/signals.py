"""How `cuota serve` is told to stop: SIGTERM, Ctrl-C, or the end of its terminal (SIGHUP)."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
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


def ignore_terminal() -> None:
    """Ignore Ctrl-C in a terminal, and its end, which reach the whole process group. The parent process decides, and sends SIGTERM."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


@contextlib.contextmanager
def signals_held() -> Iterator[None]:
    """Delay these signals until the end of the block. A process that the block starts delays them until it unblocks them itself."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def run_until_signal(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine in a new event loop, and return its result. At one of these signals, cancel it and raise StopSignal.

    A signal handler must not raise an exception inside an event loop, nor while the loop is made or closed: the loop could lose the
    exception, or break.
    """
    stopped, cancel = False, _nothing

    def stop(_number: int, _frame: FrameType | None) -> None:
        nonlocal stopped
        stopped = True
        cancel()

    async def cancelable() -> T:
        nonlocal cancel
        loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work())
        cancel = partial(loop.call_soon_threadsafe, task.cancel)
        if stopped:
            task.cancel()
        try:
            return await task
        finally:
            cancel = _nothing

    try:
        for number in stop_signals():
            signal.signal(number, stop)
        return asyncio.run(cancelable())
    finally:
        handle_signals()
        if stopped:
            raise StopSignal from None


def _nothing() -> object:
    return None
