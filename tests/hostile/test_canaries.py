"""Takes secrets and personal data through every step, and checks that they are stored only where they belong."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from support.faults.served import until
from support.folders import new_folder
from support.hostile.life import CARD, Left, LoudService, live
from support.hostile.traces import Canary, columns, dumped, seen
from support.ports import free_port

DOCS = Path(__file__).parents[2] / "docs" / "proof.md"
# The only columns that hold a person's number or address. The sandbox's inbox stands for the consumer's own phone.
INBOX = {"message_simulator.inbox.recipient", "message_simulator.inbox.text"}
HOLD_PHONE = {
    "public.account_sessions.phone",
    "public.checkout_sessions.phone",
    "public.consumers.phone",
    "public.plans.payer",
}
HOLD_MAIL = {"public.checkout_sessions.profile", "public.consumers.profile", "public.plans.payer"}
# What the merchant said of its customer stands with its order.
HOLD_TOLD = {"public.order_details.document"}
PERSONAL = ("phone", "e-mail", "phone told", "e-mail told")
Life = tuple[Left, dict[str, str]]


@pytest.fixture(scope="module")
async def life() -> AsyncIterator[Life]:
    """What a life left, and the database after it, by column."""
    with served() as service:
        yield await live(service), columns(dumped(service.data))


@contextlib.contextmanager
def served() -> Iterator[LoudService]:
    base = new_folder("cuota-canaries-")
    service = LoudService(base / "data", free_port())
    try:
        service.start()
        yield service
    finally:
        service.stop()
        until(lambda: not (service.data / "pg" / "postmaster.pid").exists())
        shutil.rmtree(base, ignore_errors=True)


def personal(left: Left) -> list[Canary]:
    return [left.canaries[name] for name in PERSONAL]


def secret(left: Left) -> list[Canary]:
    """All that is no person's: cards, codes, secrets, tokens, sessions."""
    return [each for name, each in left.canaries.items() if name not in PERSONAL]


async def test_no_log_line_holds_a_canary(life: Life) -> None:
    left, _ = life
    assert left.logs.count('"route": "/checkout/{merchant_id}/{order_id}/pay"') >= 3
    assert '"level": "debug"' in left.logs or '"level": "info"' in left.logs
    assert seen(left.canaries.values(), dict(enumerate_lines(left.logs))) == set()


def enumerate_lines(text: str) -> list[tuple[str, str]]:
    return [(f"line {number}: {line[:300]}", line) for number, line in enumerate(text.splitlines())]


async def test_no_refusal_holds_a_canary(life: Life) -> None:
    left, _ = life
    assert len(left.refusals) > 20
    assert seen(left.canaries.values(), {text[:300]: text for text in left.refusals}) == set()


async def test_no_page_holds_a_card_that_was_typed_a_code_or_a_secret(life: Life) -> None:
    left, _ = life
    hidden = [each for each in secret(left) if each.name != "virtual card"]
    # What was typed for a phone or a postcode is shown again in its own field; what was typed for a card never is.
    own = re.compile(r'<input[^>]*name="(?:phone|postcode)"[^>]*>')
    assert sum(CARD in text for text in left.pages) == 2
    pages = {f"page {number}": own.sub("", text) for number, text in enumerate(left.pages)}
    assert seen(hidden, pages) == set()


async def test_no_metric_and_no_report_holds_a_canary_that_is_not_the_order_s_own(life: Life) -> None:
    left, _ = life
    assert seen(left.canaries.values(), {"metrics": left.reports["metrics"]}) == set()
    assert seen(secret(left), left.reports) == set()
    # The merchant reads of its customer what it said itself; who paid is in the event that tells of the authorization.
    assert {name for name, _ in seen(personal(left), {"record": left.reports["record"]})} == {
        "phone told",
        "e-mail told",
    }


async def test_no_webhook_holds_a_secret_and_only_the_authorization_says_who_paid(life: Life) -> None:
    left, _ = life
    assert seen(secret(left), dict(enumerate_lines("\n".join(left.hooks)))) == set()
    told = [json.loads(body) for body in left.hooks]
    who = [
        event["type"]
        for event, body in zip(told, left.hooks, strict=True)
        if left.canaries["phone"].found(body)
    ]
    assert set(who) == {"order.approved"}


async def test_no_byte_of_the_database_holds_a_card_or_a_secret(life: Life) -> None:
    left, kept = life
    assert kept["public.orders.order_id"].count("\n") >= 2
    # The request log is a part of what is searched.
    assert kept["public.api_requests.request"].count('"amount"') > 10
    found = {
        (name, column)
        for name, column in seen(secret(left), kept)
        if column not in INBOX or name != "one-time code"
    }
    assert found == set()


async def test_a_person_s_number_and_address_stand_in_the_columns_that_are_named_and_in_no_other(
    life: Life,
) -> None:
    left, kept = life
    places = {name: {column for _, column in seen([left.canaries[name]], kept)} for name in PERSONAL}
    assert places["phone"] - INBOX == HOLD_PHONE
    assert places["e-mail"] - INBOX == HOLD_MAIL
    assert places["phone told"] == places["e-mail told"] == HOLD_TOLD


def test_the_columns_that_hold_a_person_are_named_in_the_docs() -> None:
    text = DOCS.read_text()
    missing = [
        name
        for name in HOLD_PHONE | HOLD_MAIL | HOLD_TOLD | INBOX
        if f"`{name.removeprefix('public.')}`" not in text
    ]
    assert missing == []


def test_a_canary_is_found_in_every_form_in_which_it_might_hide() -> None:
    card = Canary("card", "4012 8888 8888 1881", digits=True)
    assert all(card.found(f'"{form}"') for form in card.forms())
    assert not card.found("14012888888881881")
    dump = "COPY public.a (b, c) FROM stdin;\nx\t\\\\x34303132383838383838383831383831\n\\.\n"
    assert seen([card], columns(dump)) == {("card", "public.a.c")}
