"""The random life of one plan: who takes part in it, and everything that happened."""

from __future__ import annotations

import contextlib
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import httpx

from cuota.core import money
from cuota.db.plan import plans
from cuota.db.plan.plans import Agreed
from support.makers import Merchant, make_merchant
from support.pages.consumer import Consumer, Plan
from support.pages.operator_staff import OperatorStaff
from support.pages.staff import Staff
from support.phones import phone_number
from support.time.receiver import Receiver, callback, receiving
from support.time.sandbox import Sandbox

# Most cards pay. The others fail later, are lost or disputed, must be confirmed at the bank, pay slowly, or are replaced.
CARDS = ("4242 4242 4242 4242",) * 4 + (
    "4000 0000 0000 0341", "4000 0000 0000 9987", "4000 0000 0000 2685", "4000 0027 6000 3184",
    "4000 0025 0000 3155", "4000 0000 0000 3006", "4000 0000 0000 4004",
)  # fmt: skip
# Time zones from Hawaii to the east coast, one of them without daylight saving.
STATES = {"HI": "96813", "CA": "94103", "NY": "10001", "AZ": "85001", "AK": "99501"}
AMOUNTS = (10_001, 3_503, 10_000, 401)


@dataclass
class PlanLife:
    """An agreed plan and its people. `story` has one line for each thing that happened."""

    sandbox: Sandbox
    shop: Merchant
    dice: random.Random
    consumer: Consumer
    plan: Plan
    receiver: Receiver
    staff: Staff
    operator: OperatorStaff
    uploads: httpx.AsyncClient
    story: list[str] = field(default_factory=list)

    @property
    def ids(self) -> tuple[UUID, UUID]:
        return self.shop.merchant_id, UUID(self.plan.order["orderId"])

    async def agreed(self) -> Agreed:
        """Read the order and its plan."""
        found = await plans.read(self.sandbox.context.pool, *self.ids)
        assert found is not None
        return found

    def some(self, most: int) -> int:
        """Return an amount from one cent to `most`, often exactly that."""
        most = max(1, most)
        return self.dice.choice([1, most, most, self.dice.randint(1, most), self.dice.randint(1, most)])

    def note(self, line: str) -> None:
        self.story.append(line)

    @contextlib.asynccontextmanager
    async def second_tab(self) -> AsyncIterator[PlanLife]:
        """The same life with a second tab of the consumer's browser, for two things at once."""
        http = self.sandbox.service.client()
        http.cookies = self.consumer.http.cookies
        try:
            yield replace(self, consumer=Consumer(http, self.sandbox.service, self.consumer.phone))
        finally:
            await http.aclose()


@contextlib.asynccontextmanager
async def begun(sandbox: Sandbox, seed: int) -> AsyncIterator[PlanLife | None]:
    """Let a consumer agree to a plan of a random amount. Yields None if the first payment failed."""
    dice = random.Random(seed)
    async with contextlib.AsyncExitStack() as stack:
        receiver = await stack.enter_async_context(receiving())
        shop = await stack.enter_async_context(
            make_merchant(sandbox.service, defer_funds_capture=dice.random() < 0.55)
        )
        http = [await stack.enter_async_context(sandbox.service.client()) for _ in range(3)]
        uploads = httpx.AsyncClient(
            base_url=str(shop.http.base_url), trust_env=False, timeout=60,
            headers={"Authorization": shop.http.headers["Authorization"]},
        )  # fmt: skip
        await stack.enter_async_context(uploads)
        consumer = Consumer(http[0], sandbox.service, phone_number())
        staff, operator = Staff(http[1], shop), OperatorStaff(http[2], sandbox.service)
        order, terms = await _ordered(shop, dice, seed, receiver)
        life = PlanLife(sandbox, shop, dice, consumer, Plan(shop, order), receiver, staff, operator, uploads)
        life.note(f"seed {seed}: {terms}")
        if not await _approved(life, seed):
            yield None
            return
        for person in (consumer, staff, operator):
            await person.enter()
        yield life


async def _ordered(
    shop: Merchant, dice: random.Random, seed: int, receiver: Receiver
) -> tuple[dict[str, Any], str]:
    amount = dice.choice([*AMOUNTS, dice.randint(400, 90_000), dice.randint(400, 30_000)])
    fee = dice.choice([0, 0, 0, 1, dice.randint(0, amount // 20)])
    more = callback(receiver.url)
    if fee:
        more["merchantFeeForPaymentPlan"] = money.text_of(fee)
    order = await shop.create(money.text_of(amount), merchantReference=f"W-{seed}", **more)
    return order, f"{money.text_of(amount)} with a fee of {money.text_of(fee)}"


async def _approved(life: PlanLife, seed: int) -> bool:
    """Complete the checkout, with a confirmation at the bank and waiting if the card needs them."""
    consumer, state, card = life.consumer, life.dice.choice(list(STATES)), life.dice.choice(CARDS)
    life.note(f"card {card}, in {state}")
    known = {"phone": consumer.phone, "state": state, "postcode": STATES[state]}
    await consumer.until("pay", life.plan.order, **known, email=f"w{seed}@example.com")
    page = await consumer.send("pay", card_number=card, card_expiry="12/39", card_cvc="737")
    for _ in range(4):
        if page.outcome:
            break
        if "Go to your bank" in page.text:
            answer = await consumer.http.post(page.link("Go to your bank"), data={"answer": "confirm"})
            page = await consumer.open(answer.headers["location"])
        else:
            await life.sandbox.advance("2m")
            page = await consumer.open(page.answer.url.path)
    return page.outcome == "approved"
