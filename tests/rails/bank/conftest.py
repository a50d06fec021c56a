"""The bank rails that must keep the promises of this folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from cuota.core.payout.arrival import business_days_after, day_at_bank
from cuota.core.sandbox import TEST_ACCOUNTS, TEST_ROUTING
from cuota.rails.bank.protocol import BankOrder, BankRail
from cuota.rails.bank.rails import BoundedBankRail
from cuota.rails.bank.sandbox import SandboxBankRail
from support.makers import Running
from support.rails.parts import rail_parts

# A Monday, 07:00 in New York.
MONDAY = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)


@dataclass
class Bank:
    """A bank, the rail to it, and the clock of both. `accounts` has an account number for each result of an order."""

    make: Callable[[Callable[[], datetime]], BankRail]
    routing: str
    accounts: dict[str, str]
    at: datetime = MONDAY
    rail: BoundedBankRail = field(init=False)

    def __post_init__(self) -> None:
        self.rail = BoundedBankRail(self.make(lambda: self.at))

    def order(self, behaviour: str = "pays", amount: int = 1_204_37) -> BankOrder:
        """Return an order with new ids to the account with this behavior."""
        return BankOrder(
            uuid4(), uuid4(), "Shop", 1, amount, "USD", self.routing, self.accounts[behaviour],
            business_days_after(day_at_bank(self.at), 1),
        )  # fmt: skip


@pytest.fixture
def sandbox_bank(service: Running) -> Bank:
    """The sandbox's bank."""
    accounts = {each.behaviour: each.number for each in TEST_ACCOUNTS}
    return Bank(
        lambda now: SandboxBankRail(*rail_parts(service.context.pool, now=now)), TEST_ROUTING, accounts
    )


@pytest.fixture(params=["sandbox"])
def bank(request: pytest.FixtureRequest) -> Bank:
    """A bank and the rail to it. Add each new rail here."""
    found: Bank = request.getfixturevalue(f"{request.param}_bank")
    return found


@pytest.fixture(autouse=True)
def expected_log(caplog: pytest.LogCaptureFixture) -> None:
    """Silence the log: rails fail in these tests on purpose."""
    caplog.set_level("CRITICAL", "cuota.rails")
