"""Makes a service crowded, for the tests of admission control."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from prometheus_client import REGISTRY

from cuota.web import app
from cuota.web.server.admission import Admission, AdmissionSlot
from cuota.web.server.parties import Parties
from cuota.web.server.places import START, AdmissionSlots
from cuota.web.server.routes import Routes
from support.makers import Running

ROUTES = Routes(app.ROUTES)
NO_ORDER = "/order/01990000-0000-7000-8000-000000000001"


def scope_of(caller: str, method: str = "GET", path: str = NO_ORDER) -> dict[str, Any]:
    return routed({"method": method, "path": path, "headers": [(b"authorization", caller.encode())]})


def routed(scope: dict[str, Any]) -> dict[str, Any]:
    """Return a scope with its route, as the edge passes it to admission."""
    route, params = ROUTES.find(scope["method"], scope["path"])
    return {**scope, "route": route, "path_params": params}


def party_of(parties: Parties, scope: dict[str, Any], token: int = 0) -> str:
    return parties.of(scope["route"].area, scope["path_params"], token, scope.get("token_client"))


def admission_of(service: Running) -> Admission:
    return service.app.admission


class Clock:
    """A clock whose seconds pass only when a test advances it."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


async def known(admission: Admission, *callers: str) -> None:
    """Let admission learn the tokens of these merchants.

    The clock of `admission` stands still, so its window does not end.
    """
    for caller in callers:
        scope = scope_of(caller)
        place = admission.enter(scope)
        assert place is not None
        admission.leave(place, {**scope, "merchant_id": UUID(int=hash(caller) % 2**64), "token_good": True})
    await gone_round()
    admission._seen.clear()
    admission._count = 1


async def gone_round() -> None:
    """Wait until the event loop has run all callbacks that were ready."""
    for _ in range(3):
        await asyncio.sleep(0)


def fill(admission: Admission, callers: list[str], count: int) -> list[tuple[AdmissionSlot, dict[str, Any]]]:
    """Take `count` places, by these callers in turn."""
    taken = []
    for number in range(count):
        scope = scope_of(callers[number % len(callers)])
        place = admission.enter(scope)
        assert place is not None, (number, admission.in_hand)
        taken.append((place, scope))
    return taken


@contextlib.contextmanager
def busy(service: Running, share: float) -> Iterator[None]:
    """Inside the block, many merchants in equal parts occupy this share of the places."""
    admission = admission_of(service)
    learned, admission.places = admission.places, AdmissionSlots()
    taken = []
    for number in range(int(START * share)):
        place = AdmissionSlot(str(UUID(int=number % 4)), 0, 0.0)
        admission._held[place.party] = admission._held.get(place.party, 0) + 1
        admission.in_hand += 1
        taken.append(place)
    try:
        yield
    finally:
        admission.places = learned
        for place in taken:
            admission.leave(place, {})


def refused(why: str) -> float:
    """Return how many refusals `cuota_refused_total` has counted in this process. `/metrics` may be a second old."""
    counted = REGISTRY.get_sample_value("cuota_refused_total", {"why": why})
    assert counted is not None, why
    return counted


async def settled(service: Running) -> None:
    """Wait until no request is in progress. Fails if some request never ends."""
    admission = admission_of(service)
    for _ in range(2400):
        if admission.in_hand == 0:
            break
        await asyncio.sleep(0.05)
    assert (admission.in_hand, admission._held) == (0, {})


def port_of(service: Running) -> int:
    return int(service.settings.public_url.rpartition(":")[2])


async def raw(service: Running, *packets: bytes) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Send these requests on one connection. Return status, headers and body of as many answers."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(service))
    for packet in packets:
        writer.write(packet)
        await asyncio.sleep(0.05)
    answers = []
    for _ in range(b"".join(packets).count(b" HTTP/1.1\r\n")):
        head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)).decode().splitlines()
        headers = dict(line.split(": ", 1) for line in head[1:-1])
        answers.append(
            (head[0], headers, json.loads(await reader.readexactly(int(headers["content-length"]))))
        )
    writer.close()
    return answers
