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
# The data that the merchant sent about its customer is stored with its order.
HOLD_TOLD = {"public.order_details.document"}
PERSONAL = ("phone", "e-mail", "phone told", "e-mail told")
Life = tuple[Left, dict[str, str]]


@pytest.fixture(scope="module")
async def life() -> AsyncIterator[Life]:
    """Yield the texts that all the steps produced, and the database after them, by column."""
    with served() as service:
        left = await live(service)
        # A process writes the last calls into the request log when it ends.
        ended(service)
        yield left, columns(dumped(service.data))


@contextlib.contextmanager
def served() -> Iterator[LoudService]:
    base = new_folder("cuota-canaries-")
    service = LoudService(base / "data", free_port())
    try:
        service.start()
        yield service
    finally:
        ended(service)
        shutil.rmtree(base, ignore_errors=True)


def ended(service: LoudService) -> None:
    """Stop the service, and wait until its database has ended, too."""
    service.stop()
    until(lambda: not (service.data / "pg" / "postmaster.pid").exists())


def personal(left: Left) -> list[Canary]:
    return [left.canaries[name] for name in PERSONAL]


def secret(left: Left) -> list[Canary]:
    """Return the canaries that are not personal data: cards, codes, secrets, tokens, sessions."""
    return [each for name, each in left.canaries.items() if name not in PERSONAL]


async def test_no_log_line_contains_a_secret_or_personal_data(life: Life) -> None:
    left, _ = life
    assert left.logs.count('"route": "/checkout/{merchant_id}/{order_id}/pay"') >= 3
    assert '"level": "debug"' in left.logs or '"level": "info"' in left.logs
    assert seen(left.canaries.values(), dict(enumerate_lines(left.logs))) == set()


def enumerate_lines(text: str) -> list[tuple[str, str]]:
    return [(f"line {number}: {line[:300]}", line) for number, line in enumerate(text.splitlines())]


async def test_no_refusal_contains_a_secret_or_personal_data(life: Life) -> None:
    left, _ = life
    assert len(left.refusals) > 20
    assert seen(left.canaries.values(), {text[:300]: text for text in left.refusals}) == set()


async def test_no_page_contains_a_typed_card_a_code_or_a_secret(life: Life) -> None:
    left, _ = life
    hidden = [each for each in secret(left) if each.name != "virtual card"]
    # A page shows a typed phone or postcode again in the same field, but never a typed card.
    own = re.compile(r'<input[^>]*name="(?:phone|postcode)"[^>]*>')
    assert sum(CARD in text for text in left.pages) == 2
    pages = {f"page {number}": own.sub("", text) for number, text in enumerate(left.pages)}
    assert seen(hidden, pages) == set()


async def test_metrics_and_reports_contain_no_secret_and_a_record_only_the_data_that_the_merchant_sent(
    life: Life,
) -> None:
    left, _ = life
    assert seen(left.canaries.values(), {"metrics": left.reports["metrics"]}) == set()
    assert seen(secret(left), left.reports) == set()
    # The order's record shows only the customer data that the merchant sent. The event of the authorization names the
    # consumer who paid.
    assert {name for name, _ in seen(personal(left), {"record": left.reports["record"]})} == {
        "phone told",
        "e-mail told",
    }


async def test_no_webhook_contains_a_secret_and_only_the_event_of_the_authorization_names_the_consumer(
    life: Life,
) -> None:
    left, _ = life
    assert seen(secret(left), dict(enumerate_lines("\n".join(left.hooks)))) == set()
    told = [json.loads(body) for body in left.hooks]
    who = [
        event["type"]
        for event, body in zip(told, left.hooks, strict=True)
        if left.canaries["phone"].found(body)
    ]
    assert set(who) == {"order.approved"}


async def test_no_column_of_the_database_contains_a_card_or_a_secret(life: Life) -> None:
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


async def test_phone_numbers_and_mail_addresses_are_stored_only_in_the_listed_columns(
    life: Life,
) -> None:
    left, kept = life
    places = {name: {column for _, column in seen([left.canaries[name]], kept)} for name in PERSONAL}
    assert places["phone"] - INBOX == HOLD_PHONE
    assert places["e-mail"] - INBOX == HOLD_MAIL
    assert places["phone told"] == places["e-mail told"] == HOLD_TOLD


def test_the_docs_name_the_columns_with_phone_numbers_and_mail_addresses() -> None:
    text = DOCS.read_text()
    missing = [
        name
        for name in HOLD_PHONE | HOLD_MAIL | HOLD_TOLD | INBOX
        if f"`{name.removeprefix('public.')}`" not in text
    ]
    assert missing == []


def test_the_search_finds_a_canary_in_every_encoded_form() -> None:
    card = Canary("card", "4012 8888 8888 1881", digits=True)
    assert all(card.found(f'"{form}"') for form in card.forms())
    assert not card.found("14012888888881881")
    dump = "COPY public.a (b, c) FROM stdin;\nx\t\\\\x34303132383838383838383831383831\n\\.\n"
    assert seen([card], columns(dump)) == {("card", "public.a.c")}
