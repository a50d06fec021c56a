"""Limits on one-time codes by text: for the installation, a range of numbers, an IP address and a number."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from cuota import config
from cuota.config import derived
from cuota.core.checkout.texting import Limit, TextLimits
from cuota.flows.checkout.limit_texts import (
    NUMBER_AN_HOUR,
    NUMBER_FROM_ADDRESS_AN_HOUR,
    OWN_BROWSER_AN_HOUR,
    Browser,
    count_code,
)
from cuota.flows.checkout.remember_browser import remember_browser
from cuota.flows.context import Context
from cuota.web.server.metrics import CODES_REFUSED
from support.own_service import Own

NOW = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
PHONE = "2125550187"


def limited(own: Own, environment: str = "sandbox", **limits: int) -> tuple[Context, Counter[str]]:
    """A service with these limits, and the counts of its metrics."""
    settings = replace(own.context.settings, text_limits=TextLimits(**limits), environment=environment)
    noted: Counter[str] = Counter()
    return replace(own.context, settings=settings, texted=lambda outcome: noted.update([outcome])), noted


async def test_of_forty_codes_requested_at_once_no_more_than_the_limit_are_sent(own: Own) -> None:
    context, noted = limited(own, installation=7)
    phones = [f"212555{n:04d}" for n in range(40)]
    said = await asyncio.gather(*(count_code(context, "phone", phone, Browser(), NOW) for phone in phones))
    assert Counter(said) == {None: 7, Limit.INSTALLATION: 33}
    assert noted == {Limit.INSTALLATION: 33}


async def test_the_next_hour_begins_with_zero(own: Own) -> None:
    context, _ = limited(own, installation=1)
    said = [
        await count_code(context, "phone", PHONE, Browser(), NOW + timedelta(minutes=minutes))
        for minutes in (0, 10, 30)
    ]
    assert said == [None, Limit.INSTALLATION, None]


async def test_numbers_that_share_area_code_and_exchange_share_a_limit(own: Own) -> None:
    context, _ = limited(own, prefix=2)
    phones = ("2125550001", "2125550002", "2125550003", "2125560001")
    said = [await count_code(context, "phone", phone, Browser(), NOW) for phone in phones]
    assert said == [None, None, Limit.PREFIX, None]


async def test_an_ip_address_has_a_limit_over_all_numbers(own: Own) -> None:
    context, _ = limited(own, address=2)
    asked = [("2125550001", "a"), ("2135550002", "a"), ("2145550003", "a"), ("2125550001", "b")]
    said = [await count_code(context, "phone", phone, Browser(network), NOW) for phone, network in asked]
    assert said == [None, None, Limit.ADDRESS, None]


async def test_a_refused_code_is_not_counted(own: Own) -> None:
    """Refused requests from one address do not count against the installation's limit."""
    context, _ = limited(own, installation=3, address=1)
    for _ in range(20):
        await count_code(context, "phone", PHONE, Browser("a"), NOW)
    said = [await count_code(context, "phone", PHONE, Browser(network), NOW) for network in "bcd"]
    assert said == [None, None, Limit.INSTALLATION]


async def test_codes_that_strangers_request_do_not_block_a_number_for_its_owner(own: Own) -> None:
    context, _ = limited(own, "production")
    stranger = [await count_code(context, "phone", PHONE, Browser("stranger"), NOW) for _ in range(40)]
    assert Counter(stranger) == {None: NUMBER_FROM_ADDRESS_AN_HOUR, Limit.NUMBER_FROM_ADDRESS: 40 - 8}
    assert await count_code(context, "phone", PHONE, Browser("owner"), NOW) is None
    assert await count_code(context, "account-phone", PHONE, Browser("owner"), NOW) is None


async def test_a_number_gets_no_more_codes_than_its_limit_from_any_number_of_ip_addresses(own: Own) -> None:
    context, _ = limited(own, "production")
    said = [await count_code(context, "phone", PHONE, Browser(f"a{n}"), NOW) for n in range(60)]
    assert Counter(said) == {None: NUMBER_AN_HOUR, Limit.NUMBER: 60 - NUMBER_AN_HOUR}


async def test_a_browser_that_used_the_number_before_gets_codes_even_when_the_number_s_limit_is_reached(
    own: Own,
) -> None:
    context, _ = limited(own, "production")
    for n in range(NUMBER_AN_HOUR):
        await count_code(context, "phone", PHONE, Browser(f"a{n}"), NOW)
    ids = own.merchant.merchant_id, context.new_id()
    mine = await remember_browser(context, context.vault.consumer_id(PHONE), *ids, None)
    other = await remember_browser(context, context.vault.consumer_id("9175550104"), *ids, None)
    said = [await count_code(context, "phone", PHONE, Browser("x", mine), NOW) for _ in range(8)]
    assert Counter(said) == {None: OWN_BROWSER_AN_HOUR, Limit.BROWSER: 2}
    assert await count_code(context, "phone", PHONE, Browser("x", other), NOW) is Limit.NUMBER
    assert await count_code(context, "phone", PHONE, Browser("x", "forged"), NOW) is Limit.NUMBER


@pytest.mark.parametrize("environment", ["sandbox", "production"])
async def test_a_browser_that_used_the_number_before_gets_codes_even_when_its_prefix_s_limit_is_reached(
    own: Own, environment: str
) -> None:
    context, _ = limited(own, environment, prefix=2)
    ids = own.merchant.merchant_id, context.new_id()
    mine = await remember_browser(context, context.vault.consumer_id(PHONE), *ids, None)
    other = await remember_browser(context, context.vault.consumer_id("2125550104"), *ids, None)
    for n in range(2):
        assert await count_code(context, "phone", f"212555000{n}", Browser("stranger"), NOW) is None
    assert await count_code(context, "phone", PHONE, Browser("x"), NOW) is Limit.PREFIX
    assert await count_code(context, "phone", PHONE, Browser("x", other), NOW) is Limit.PREFIX
    assert await count_code(context, "phone", PHONE, Browser("x", "forged"), NOW) is Limit.PREFIX
    assert await count_code(context, "phone", PHONE, Browser("x", mine), NOW) is None


async def test_one_ip_address_alone_cannot_reach_the_limit_of_a_prefix(own: Own) -> None:
    usual = derived.text_limits({}, "production")
    context, _ = limited(own, "production", prefix=usual.prefix or 0, address=usual.address or 0)
    phones = [f"2125551{n:03d}" for n in range(70)]
    said = Counter([await count_code(context, "phone", phone, Browser("stranger"), NOW) for phone in phones])
    assert said == {None: 12, Limit.ADDRESS: 58}
    assert await count_code(context, "phone", PHONE, Browser("owner"), NOW) is None


async def test_the_sandbox_has_no_limits_unless_they_are_set_except_the_limit_of_an_order(own: Own) -> None:
    context, _ = limited(own)
    said = [await count_code(context, "phone", PHONE, Browser("a"), NOW) for _ in range(70)]
    assert set(said) == {None}
    said = [await count_code(context, "phone", PHONE, Browser("a"), NOW, "order") for _ in range(26)]
    assert said == [None] * 24 + [Limit.ORDER] * 2


def test_the_settings_have_the_defaults_that_the_docs_state() -> None:
    assert config.load({}).text_limits == TextLimits()
    chosen = {
        "CUOTA_TEXTS_AN_HOUR": "9",
        "CUOTA_TEXTS_AN_HOUR_PREFIX": "8",
        "CUOTA_TEXTS_AN_HOUR_ADDRESS": "7",
    }
    assert config.load(chosen).text_limits == TextLimits(9, 8, 7)
    assert derived.text_limits({}, "production") == TextLimits(2000, 60, 12)


@pytest.mark.parametrize("text", ["0", "-1", "many", "1e3"])
def test_an_invalid_limit_stops_the_start(text: str) -> None:
    with pytest.raises(config.BadSettings, match="CUOTA_TEXTS_AN_HOUR: must be a whole number"):
        config.load({"CUOTA_TEXTS_AN_HOUR": text})


def test_every_limit_has_its_metric_from_the_start() -> None:
    [family] = CODES_REFUSED.collect()
    there = {sample.labels["limit"] for sample in family.samples if sample.name.endswith("_total")}
    assert there == {limit.value for limit in Limit}
