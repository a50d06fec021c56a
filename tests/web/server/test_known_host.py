"""The sandbox answers only to its own host names, so a page whose name resolves to this machine reads nothing here."""

from __future__ import annotations

import httpx
import pytest

from cuota import config
from cuota.web.server.known_host import KnownHost
from support.makers import Running

OWN = [
    "localhost",
    "LOCALHOST:8000",
    "127.0.0.1",
    "127.0.0.1:1",
    "127.3.2.1:80",
    "[::1]:8000",
    "[::1]",
    "pay.test",
    "shop.test:8000",
    "pay.test.",
]
STRANGE = ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "localhost.evil.example", "evil@localhost",
    "10.0.0.1", "[::2]", "", ":80", "localhost:8000:80", "127.0.0.1, evil.example"]  # fmt: skip


async def ask(service: Running, host: str, path: str, **more: str) -> httpx.Response:
    hosts = config.load({"CUOTA_HOSTS": "shop.test, other.test"}, listen="http://pay.test:8000").hosts
    app = KnownHost(service.app, service.app, hosts)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as http:
        return await http.get(path, headers={"Host": host, **more})


@pytest.mark.parametrize("host", OWN)
async def test_the_service_answers_to_its_own_host_names(service: Running, host: str) -> None:
    assert (await ask(service, host, "/sandbox/inbox")).status_code == 200


@pytest.mark.parametrize("host", STRANGE)
async def test_any_other_host_name_is_refused_on_every_path_except_the_health_checks(
    service: Running, host: str
) -> None:
    for path in (
        "/sandbox/inbox",
        "/account",
        "/docs",
        "/openapi.json",
        "/order",
        "/oauth/token",
        "/nowhere",
        "/health",
    ):
        answer = await ask(service, host, path)
        assert answer.status_code == 400, (path, answer.text)
        assert "one-time" not in answer.text
        assert not host or host not in answer.text
    for path in ("/health/live", "/health/ready"):
        assert (await ask(service, host, path)).status_code == 200


def test_a_sandbox_answers_to_its_listening_address_and_to_its_public_address() -> None:
    loaded = config.load(
        {"CUOTA_PUBLIC_URL": "https://pay.test/x", "CUOTA_AUTH_URL": "https://id.test"},
        listen="http://[::1]:1",
    )
    assert {"pay.test", "id.test", "[::1]", "localhost", "127.0.0.1"} <= loaded.hosts
    with pytest.raises(config.BadSettings, match="CUOTA_HOSTS: must be host names without ports"):
        config.load({"CUOTA_HOSTS": "shop.test:80"})
