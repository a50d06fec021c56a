"""What the measurements of both dashboards share: a signed-in browser, and the times of pages that four people open."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Mapping

import httpx

from bench import service
from bench.service import BenchService

PEOPLE, REQUESTS = 4, 100


@contextlib.asynccontextmanager
async def signed_in(place: BenchService, *whose: str) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a browser in which an owner is signed in. `whose` are the options of `cuota desk link` that name the dashboard."""
    printed = await asyncio.to_thread(service.cuota, place, "desk", "link", *whose)
    address = printed.split()[-1]
    async with httpx.AsyncClient(base_url=place.url, trust_env=False, timeout=60) as http:
        csrf = (await http.get(address)).text.partition('name="csrf" value="')[2][:64]
        (await http.post(address, data={"csrf": csrf}, follow_redirects=True)).raise_for_status()
        yield http


async def print_times(http: httpx.AsyncClient, pages: Mapping[str, Callable[[], str]]) -> None:
    """Measure each kind of page, and print a row for it. A page is a function that returns an address."""
    print("| request | p50 ms | p95 ms | slowest ms |\n|---|--:|--:|--:|")
    for label, address in pages.items():
        taken = [1000 * each for each in await _measure(http, address)]
        print(
            f"| {label} | {taken[len(taken) // 2]:.0f} | {taken[len(taken) * 95 // 100]:.0f} | {taken[-1]:.0f} |",
            flush=True,
        )


async def _measure(http: httpx.AsyncClient, address: Callable[[], str]) -> list[float]:
    """Return the seconds of each request of four people at the same time, the shortest first."""
    taken: list[float] = []

    async def ask() -> None:
        for _ in range(REQUESTS // PEOPLE):
            began = time.perf_counter()
            answer = await http.get(address())
            assert answer.status_code == 200, answer.status_code
            taken.append(time.perf_counter() - began)

    await asyncio.gather(*(ask() for _ in range(PEOPLE)))
    return sorted(taken)
