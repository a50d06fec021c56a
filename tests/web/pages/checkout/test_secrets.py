"""Card numbers, one-time codes and phone numbers are not in logs, and not in tables where they do not belong."""

from __future__ import annotations

import base64
import hashlib
import io
import logging
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import UUID

import asyncpg
import pytest

from cuota.core.checkout.card import CardEntry
from cuota.rails.card.sandbox import SandboxCardRail
from cuota.rails.message import SandboxMessageRail
from cuota.run import runtime
from cuota.run.json_lines import JsonLines
from support.makers import Clock, Running, make_merchant
from support.pages.beside import Beside, beside
from support.pages.visitor import Visitor
from support.rails.parts import rail_parts

CARD = "4012 8888 8888 1881"
CODE = "739146"
PHONE = "9175550199"


class Mailbox(SandboxMessageRail):
    """A rail with a code that the test can search for."""

    def new_code(self) -> str:
        return CODE


class Breaks(SandboxCardRail):
    """A rail with a bug: its exception contains the card."""

    async def tokenize(self, card: CardEntry) -> str:
        raise RuntimeError(f"cannot tokenize {card!r}")


@dataclass
class Bought:
    """The traces of a purchase: every log line, and every row of every table."""

    logs: str
    tables: dict[str, str]


def _forms(secret: str) -> list[str]:
    """Return the forms of a secret: plain, grouped, in hexadecimal, in base64, as a plain digest."""
    plain = re.sub(r"\D", "", secret).encode()
    texts = [secret, plain.decode(), plain.hex(), base64.b64encode(plain).decode().rstrip("=")[:-1]]
    return [
        *texts,
        hashlib.sha256(plain).hexdigest(),
        hashlib.sha1(plain).hexdigest(),
        hashlib.md5(plain).hexdigest(),
    ]


def _found(secret: str, text: str) -> list[str]:
    # Six digits may be part of any random identifier. A value consists of them alone.
    return [
        form
        for form in _forms(secret)
        if re.search(rf"(?<![0-9A-Za-z]){re.escape(form)}(?![0-9A-Za-z])", text)
    ]


@pytest.fixture
def logs() -> AsyncIterator[io.StringIO]:
    """Return every line that the service logs at log level debug, as the server prints them."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    loggers = [logging.getLogger(name) for name in ("", "cuota", "cuota.request", "asyncpg", "uvicorn")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.DEBUG)
    logging.getLogger().addHandler(handler)
    # The test's own HTTP client logs its addresses. Those lines are not the service's.
    handler.addFilter(lambda record: not record.name.startswith(("http", "asyncio")))
    yield stream
    logging.getLogger().removeHandler(handler)
    for logger, level in zip(loggers, before, strict=True):
        logger.setLevel(level)


@pytest.fixture
async def bought(service: Running, own_database: dict[str, object], logs: io.StringIO) -> Bought:
    """Make a purchase with every kind of mistake, in a separate database."""
    async with runtime.opened(service.settings, own_database, pool_size=4) as context:
        running = beside(context, Clock(), message=Mailbox(*rail_parts(context.pool)))
        async with make_merchant(running) as merchant, running.client() as http:
            consumer = {
                "phoneNumber": PHONE,
                "givenNames": "Jordan",
                "surname": "Rivera",
                "email": "j@mail.example",
            }
            order = await merchant.create(consumer=consumer)
            visitor = Visitor(http)
            await visitor.until("code", order, phone=PHONE)
            await visitor.send("code", code="111111")
            await visitor.send("code", code=CODE)
            await visitor.send("details")
            await visitor.send("pay", card_number=CARD, card_expiry="01/20")
            await visitor.send("pay", card_number="4000 0000 0000 0002")
            page = await visitor.send("pay", card_number=CARD)
            assert page.outcome == "approved"
            assert (await merchant.move(order, "capture", "10.00")).status_code == 200
    return Bought(logs.getvalue(), await _dump(own_database))


async def _dump(where: dict[str, object]) -> dict[str, str]:
    connection = await asyncpg.connect(**where)
    try:
        # The sandbox's inbox is not searched, because it stands for the consumers' phones, to which codes are sent.
        sql = """SELECT format('%I.%I', schemaname, tablename) FROM pg_tables
            WHERE schemaname NOT IN ('pg_catalog', 'information_schema', 'message_simulator')"""
        names = [row[0] for row in await connection.fetch(sql)]
        return {
            name: "\n".join(
                row[0] for row in await connection.fetch(f"SELECT to_jsonb(t)::text FROM {name} t")
            )
            for name in names
        }
    finally:
        await connection.close()


def test_no_table_contains_a_card_number(bought: Bought) -> None:
    assert bought.tables["card_simulator.cards"].count("1881") == 1  # the last four digits may be in tables
    assert {name: _found(CARD, text) for name, text in bought.tables.items() if _found(CARD, text)} == {}


def test_no_table_contains_a_one_time_code(bought: Bought) -> None:
    assert bought.tables["public.checkout_sessions"]
    assert {name: _found(CODE, text) for name, text in bought.tables.items() if _found(CODE, text)} == {}


def test_a_phone_number_is_stored_only_with_the_consumer_the_order_and_the_payer(
    bought: Bought,
) -> None:
    found = {name for name, text in bought.tables.items() if _found(PHONE, text)}
    assert found == {"public.consumers", "public.checkout_sessions", "public.order_details", "public.plans"}


def test_no_log_line_contains_a_card_a_code_personal_data_or_a_browser_s_secret(bought: Bought) -> None:
    assert bought.logs.count('"route": "/checkout/{merchant_id}/{order_id}/pay"') == 3
    for secret in (CARD, "4000 0000 0000 0002", CODE, PHONE):
        assert _found(secret, bought.logs) == []
    assert not re.search(
        r"Jordan|Rivera|@|Mission|94103|csrf|cookie|token=|(?<![\w.-])737(?![\w.-])|checkout-", bought.logs
    )


async def test_an_exception_with_the_card_number_does_not_put_the_number_into_the_log(
    service: Running, logs: io.StringIO
) -> None:
    broken = beside(service.context, service.clock, card=Breaks(*rail_parts(service.context.pool)))
    async with make_merchant(broken) as merchant:
        order = await merchant.create()
        async with raising_nothing(broken).client() as http:
            page = await Visitor(http).buy(order, card_number=CARD)
    assert (page.status, page.heading) == (500, "We cannot answer right now")
    assert "accident" in logs.getvalue()
    assert "cannot tokenize CardEntry(brand='visa')" in logs.getvalue()
    assert _found(CARD, logs.getvalue() + page.answer.text) == []
    sql = "SELECT status, charging FROM orders WHERE order_id = $1"
    [row] = await service.context.pool.fetch(sql, UUID(order["orderId"]))
    assert tuple(row) == ("Created", None)


class Answering(Beside):
    """Answer errors as a server does, instead of raising them in the client."""

    def client(self, **more: object) -> object:
        import httpx

        transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=False)
        return Running.client(self, transport=transport, **more)


def raising_nothing(running: Beside) -> Answering:
    return Answering(running.settings, running.context, running.clock, running.app)
