"""Kills and pauses processes by a schedule. The same seed gives the same schedule."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from support.faults.served import children
from support.faults.struck import StruckService

# How often each fault occurs, relative to the others.
TARGETS = {
    "kill worker": 5,
    "kill postmaster": 2,
    "kill backend": 2,
    "end backend": 4,
    "kill everything of postgres": 1,
    "kill service": 1,
    "stop worker": 4,
    "stop postmaster": 2,
    "stop backend": 3,
}
SHORTEST_STOP, LONGEST_STOP = 0.1, 10.0
MEAN_PAUSE = 2.5


@dataclass(frozen=True)
class Blow:
    """One fault, this many seconds after the previous one. A pause takes `seconds`."""

    pause: float
    name: str
    seconds: float


def schedule(seed: int, seconds: float) -> list[Blow]:
    """Make the faults for this many seconds. Pauses take 0.1 to 10 seconds, and are short more often than long."""
    chance, spent = Random(f"{seed} blows"), 0.0
    blows: list[Blow] = []
    while True:
        name = chance.choices(list(TARGETS), list(TARGETS.values()))[0]
        pause = 0.5 + chance.expovariate(1 / MEAN_PAUSE)
        stop = SHORTEST_STOP * (LONGEST_STOP / SHORTEST_STOP) ** chance.random()
        blow = Blow(pause, name, stop if name.startswith("stop") else 0.0)
        spent += blow.pause + blow.seconds
        if spent > seconds:
            return blows
        blows.append(blow)


def strike(service: StruckService, blow: Blow, chance: Random) -> bool:
    """Inject the fault. Return False if the process to kill or pause did not exist at that moment."""
    verb, _, target = blow.name.partition(" ")
    if target == "service":
        _kill_service(service)
        return True
    found = _TARGETS[target](service)
    if not found:
        return False
    hit = found if target.startswith("everything") else [chance.choice(found)]
    for pid in hit:
        _send(pid, {"kill": signal.SIGKILL, "end": signal.SIGTERM, "stop": signal.SIGSTOP}[verb])
    if verb == "stop":
        time.sleep(blow.seconds)
        for pid in hit:
            _send(pid, signal.SIGCONT)
    return True


def _backends(service: StruckService) -> list[int]:
    """Return PostgreSQL's processes that serve a session of the service."""
    return [pid for pid in children(service.postmaster) if b"[local]" in _title(pid)]


def _title(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


_TARGETS: dict[str, Callable[[StruckService], list[int]]] = {
    "worker": StruckService.workers,
    "postmaster": lambda service: [service.postmaster] if service.postmaster else [],
    "backend": _backends,
    "everything of postgres": lambda service: (
        [*children(service.postmaster), service.postmaster] if service.postmaster else []
    ),
}


def _send(pid: int, number: signal.Signals) -> None:
    assert pid > 1
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _kill_service(service: StruckService) -> None:
    """Kill the parent. Its workers end by themselves, and a new parent is started at once."""
    parent, workers = service.started[-1], len(service.workers())
    parent.kill()
    parent.wait()
    service.start(max(1, workers))
