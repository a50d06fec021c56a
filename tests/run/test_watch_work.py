"""A process whose background work has failed exits, so that its parent starts another."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
import uvicorn

from cuota.run.process import _watch_work


async def _breaks() -> None:
    raise RuntimeError("a job's own bug")


async def _ends() -> None:
    return


@pytest.mark.parametrize(("work", "stops"), [(_breaks, True), (_ends, False)])
async def test_broken_work_ends_the_process_and_says_why(
    work: Any, *, stops: bool, caplog: pytest.LogCaptureFixture
) -> None:
    server = uvicorn.Server(uvicorn.Config("nowhere:app", log_config=None))
    task = asyncio.create_task(work())
    await asyncio.wait([task])
    with caplog.at_level(logging.CRITICAL, logger="cuota.run.process"):
        _watch_work(task, server)
    assert server.should_exit is stops
    assert ("background work broke down" in caplog.text) is stops
