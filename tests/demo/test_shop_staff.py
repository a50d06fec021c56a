"""The back office requires a login if other machines can reach the shop."""

from __future__ import annotations

import base64
from dataclasses import replace

import httpx
import pytest

from cuota_demo.app import make_app
from cuota_demo.settings import ShopSettings
from cuota_demo.staff import is_loopback

PATHS = ("/orders", "/orders/1", "/orders/1/capture")


def login(text: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(text.encode()).decode()}


async def statuses(settings: ShopSettings, headers: dict[str, str]) -> list[int]:
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(make_app(settings)), base_url="http://127.0.0.1:8001", headers=headers
    ) as browser:
        return [
            (await browser.request("POST" if path.endswith("capture") else "GET", path)).status_code
            for path in PATHS
        ]


async def test_without_the_login_no_page_of_the_back_office_is_shown(settings: ShopSettings) -> None:
    guarded = replace(settings, staff_password="right")
    for headers in (
        {},
        login("staff:wrong"),
        login("right"),
        {"Authorization": "Basic ?"},
        {"Authorization": "Bearer right"},
    ):
        assert await statuses(guarded, headers) == [401, 401, 401]
    assert 401 not in await statuses(guarded, login("staff:right"))


async def test_on_loopback_no_login_is_required(settings: ShopSettings) -> None:
    assert 401 not in await statuses(settings, {})


async def test_the_shop_itself_needs_no_login(settings: ShopSettings) -> None:
    app = make_app(replace(settings, staff_password="right"))
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8001"
    ) as browser:
        assert (await browser.get("/")).status_code == 200


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("127.0.0.1", True),
        ("localhost", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("192.168.1.5", False),
        ("shop.test", False),
    ],
)
def test_hosts_that_only_this_machine_can_reach_are_recognized(host: str, *, own: bool) -> None:
    assert is_loopback(host) is own
