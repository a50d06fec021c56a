"""Stop signals at any moment of the coroutine that prepares the database of `cuota serve`."""

from __future__ import annotations

import subprocess
import sys

STRIKES = 400
PROGRAM = """
import asyncio, os, random, signal, sys, threading, time
from cuota.run.signals import StopSignal, handle_signals, run_until_signal

moments = random.Random(1)
stopped = 0

def strike(seconds):
    time.sleep(seconds)
    os.kill(os.getpid(), signal.SIGTERM)

def run():
    thread = threading.Thread(target=strike, args=[moments.uniform(0, 0.001)])
    thread.start()
    run_until_signal(lambda: asyncio.sleep(float(sys.argv[2])))
    thread.join()

handle_signals()
for _ in range(int(sys.argv[1])):
    try:
        run()
    except StopSignal:
        stopped += 1
print(stopped)
"""


def struck(seconds: float) -> tuple[str, str]:
    """Strike many runs of a coroutine that takes so long, and return standard output and standard error."""
    command = [sys.executable, "-W", "error", "-c", PROGRAM, str(STRIKES), str(seconds)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    return done.stdout, done.stderr


def test_a_signal_while_the_event_loop_is_made_or_runs_stops_it_once_and_prints_nothing() -> None:
    assert struck(60) == (f"{STRIKES}\n", "")


def test_a_signal_when_the_coroutine_returns_or_later_is_not_lost() -> None:
    assert struck(0) == (f"{STRIKES}\n", "")
