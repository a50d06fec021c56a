"""The receivers, the example and the tables of docs/webhooks.md are correct."""

from __future__ import annotations

import re
from datetime import timedelta
from itertools import accumulate
from typing import Any

import pytest

from cuota.core.webhook.delivery import TIMETABLE
from cuota.core.webhook.signature import pay_signature, webhook_signature
from cuota.web.docs.bundle import bundle
from support.makers import Merchant
from support.receivers.programs import DOCS
from support.sending import deliver

PAGE = (DOCS / "webhooks.md").read_text()


def block(language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None, language
    return found[1]


@pytest.mark.parametrize(("language", "name"), [("python", "py"), ("js", "mjs"), ("php", "php")])
def test_the_page_shows_exactly_the_tested_receivers(language: str, name: str) -> None:
    assert block(language) == (DOCS / f"receivers/receiver.{name}").read_text()


def _raw_example() -> bytes:
    """Return the example as it was sent, without the spaces and line breaks between its parts."""
    parts = re.sub(r'("(?:[^"\\]|\\.)*")|\s+', lambda found: found[1] or "", block("json"))
    return parts.encode()


def test_the_example_s_signatures_fit_its_body_and_secrets() -> None:
    headers = dict(line.split(": ", 1) for line in block("http").splitlines()[1:])
    webhook, signing = (
        re.search(rf"^{name}=(\S+)$", PAGE, re.MULTILINE)[1] for name in ("WEBHOOK_SECRET", "SIGNING_SECRET")
    )
    name, at = headers["webhook-id"], int(headers["webhook-timestamp"])
    assert headers["webhook-signature"] == webhook_signature([webhook], name, at, _raw_example())
    assert headers["X-Pay-Signature"] == pay_signature(signing, _raw_example())


async def test_the_example_has_the_fields_of_a_real_event_in_the_same_order(merchant: Merchant) -> None:
    import json

    order = await merchant.approved("119.96")
    await merchant.move(order, "capture", "59.98")
    await deliver(merchant)
    sent = (await merchant.http.get("/events")).json()["events"][-1]
    example = json.loads(_raw_example())
    assert sent["type"] == example["type"]

    def names(value: Any) -> Any:
        return {key: names(each) for key, each in value.items()} if isinstance(value, dict) else None

    sent["metadata"] = sent["order"]["metadata"] = example["metadata"]
    assert list(sent) == list(example)
    assert list(sent["order"]) == list(example["order"])
    assert names(sent) == names(example)


def test_every_event_type_has_a_row() -> None:
    contract = bundle()
    types = [*contract["components"]["schemas"]["EventType"]["enum"], "webhook.test"]
    assert sorted(re.findall(r"^\| `([a-z_]+\.[a-z_]+)` \|", PAGE, re.MULTILINE)) == sorted(types)


def _wait(text: str) -> timedelta:
    """Return a delay as the page writes it."""
    units = {"s": "seconds", "min": "minutes", "h": "hours", "day": "days", "days": "days"}
    parts = re.findall(r"(\d+) (s|min|h|days?)\b", text)
    return timedelta(**{units[unit]: int(number) for number, unit in parts})


def test_the_page_has_the_schedule_of_the_code() -> None:
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \| ([^|]+) \|$", PAGE, re.MULTILINE)
    assert [int(row[0]) for row in rows] == list(range(1, len(TIMETABLE) + 1))
    assert [_wait(row[1]).total_seconds() for row in rows] == list(TIMETABLE)
    for (_, _, said), exact in zip(rows, accumulate(TIMETABLE), strict=True):
        off = abs(_wait(said).total_seconds() - exact)
        assert off <= (1800 if "day" in said else 60), said
