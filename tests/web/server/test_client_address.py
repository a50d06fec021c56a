"""Which address counts as the client's, and the warning about a proxy that the settings do not name."""

from __future__ import annotations

import logging
from dataclasses import replace
from ipaddress import ip_network

import pytest

from cuota.config import Settings, load
from cuota.web.server.client_address import seen_address_of
from support.production import PRODUCTION


def production(*trusted: str) -> Settings:
    """Return settings of production. The warning comes once for the same proxies, so each test names its own."""
    return replace(load(PRODUCTION), trusted_proxies=tuple(ip_network(each) for each in trusted))


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def test_production_warns_once_about_a_proxy_that_the_settings_do_not_name(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = production("192.0.2.1")
    for sender in ("127.0.0.1", "10.0.0.5", "127.0.0.1"):
        assert seen_address_of(settings, sender, "203.0.113.7") == sender
    assert len(warnings(caplog)) == 1
    assert "CUOTA_TRUSTED_PROXIES" in warnings(caplog)[0]
    assert caplog.records[0].__dict__["facts"] == {"proxy": "127.0.0.1"}


@pytest.mark.parametrize(
    ("sender", "forwarded"), [("10.0.0.5", "203.0.113.7"), ("127.0.0.1", ""), ("8.8.4.4", "203.0.113.7")]
)
def test_a_named_proxy_a_call_without_a_proxy_and_a_public_sender_cause_no_warning(
    sender: str, forwarded: str, caplog: pytest.LogCaptureFixture
) -> None:
    seen_address_of(production("192.0.2.2", "10.0.0.0/8"), sender, forwarded)
    assert warnings(caplog) == []


def test_the_sandbox_does_not_warn(caplog: pytest.LogCaptureFixture) -> None:
    settings = replace(production("192.0.2.3"), environment="sandbox")
    seen_address_of(settings, "127.0.0.1", "203.0.113.7")
    assert warnings(caplog) == []
