"""Consumers on the account page: plans of one phone number, and a browser that goes through the page's forms."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from support.makers import Merchant, Running
from support.pages.consumer import NEW_CARD, Consumer, new_number


@pytest.fixture
async def sign_in(service: Running) -> AsyncIterator[Callable[..., Consumer]]:
    """Makes browsers of consumers, each with a new number unless one is given."""
    async with AsyncExitStack() as stack:

        def browser(phone: str | None = None, at: Running = service, **more: Any) -> Consumer:
            # Other tests use numbers that begin with 212 555.
            number = phone or f"3{secrets.randbelow(90) + 10}44{secrets.randbelow(90_000) + 10_000}"
            consumer = Consumer(at.client(**more), service, number)
            stack.push_async_callback(consumer.http.aclose)
            return consumer

        yield browser


@pytest.fixture(autouse=True)
def card_of_this_test() -> None:
    """A new card for each test."""
    NEW_CARD["card_number"] = new_number()


@pytest.fixture
def consumer(sign_in: Callable[..., Consumer]) -> Consumer:
    """One consumer who has not signed in yet."""
    return sign_in()


@pytest.fixture
def shop(auto_merchant: Merchant) -> Merchant:
    """The shop of most plans. Its orders are captured at once."""
    return auto_merchant
