"""What may happen to a plan, each with random choices: by the shop, the consumer, the operator, and time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

from cuota.core import money
from cuota.core.installment import owed
from cuota.core.plan.hardship import (
    CannotChange,
    HardshipRequest,
    MoveDates,
    PausePlan,
    SmallerPayments,
    WaiveFee,
    changeable,
)
from cuota.core.refusal import Refused
from cuota.flows.dispute.answer_dispute import decide_dispute
from cuota.flows.plan.change_plan import agree_on_change, preview_change
from support.pages.consumer import new_number
from support.plan_life.life import CARDS, PlanLife

Step = Callable[[PlanLife], Awaitable[None]]
NO_FILE = [("files", ("", b"", ""))]
ONE_FILE = [("files", ("a.txt", b"hello", "text/plain"))]
_OPEN_DISPUTES = "SELECT dispute_id, kind, status FROM disputes WHERE order_id = $1 AND status <> 'closed' ORDER BY opened_at"


async def move(life: PlanLife) -> None:
    """The shop captures, voids or refunds, sometimes more than it may."""
    order = (await life.agreed()).order
    kind = life.dice.choice(["capture", "capture", "refund", "refund", "refund", "void"])
    amount = money.text_of(life.some(order.refundable if kind == "refund" else order.capturable))
    answer = await life.shop.move(life.plan.order, kind, amount, f"{kind}-{life.dice.getrandbits(64):x}")
    life.note(f"{kind} {amount}: {answer.status_code} {answer.json().get('code', '')}")
    assert answer.status_code in {200, 422}, answer.text


async def pay(life: PlanLife) -> None:
    """The consumer pays one payment early, all that is overdue, or everything."""
    numbers = [item.number for item in owed((await life.agreed()).plan)] or [2]
    which = life.dice.choice(
        [f"number={life.dice.choice(numbers)}", "overdue=1", "all=1", f"number={numbers[-1]}"]
    )
    page = await life.consumer.open(f"{life.plan.path}/pay?{which}")
    if not page.has_form("pay"):
        life.note(f"pay {which}: the page has no form")
        return
    page = await life.consumer.send("pay")
    life.note(f"pay {which}: {page.status} {page.answer.url.query.decode()}")
    assert page.status in {200, 429}, page.text


async def confirm(life: PlanLife) -> None:
    """If a payment waits for the consumer at the bank, the consumer confirms or refuses it."""
    page = await life.consumer.open(life.plan.path)
    if "Go to your bank" not in page.text:
        return
    given = life.dice.choice(["confirm", "confirm", "refuse"])
    answer = await life.consumer.http.post(page.link("Go to your bank"), data={"answer": given})
    life.note(f"at the bank: {given}, {answer.status_code}")
    if answer.is_redirect:
        await life.consumer.open(answer.headers["location"])


async def change_card(life: PlanLife) -> None:
    """The consumer gives another card."""
    page = await life.consumer.open(f"{life.plan.path}/card")
    if not page.has_form("card"):
        return
    number = life.dice.choice([*CARDS, new_number()])
    page = await life.consumer.send("card", card_number=number, card_expiry="12/39", card_cvc="737")
    life.note(f"card {number}: {page.status} {page.answer.url.query.decode()}")
    assert page.status in {200, 400, 429}, page.text


async def open_dispute(life: PlanLife) -> None:
    """The consumer disputes a part of the order."""
    page = await life.consumer.open(f"{life.plan.path}/dispute")
    if not page.has_form("dispute"):
        return
    action, held = page.form("dispute")
    amount = money.text_of(life.some(money.cents_of(held["amount"])))
    data = {**held, "reason": "not_received", "amount": amount, "text": "No."}
    answer = await life.consumer.http.post(action, data=data, files=ONE_FILE)
    life.note(f"dispute {amount}: {answer.status_code}")
    assert answer.status_code in {303, 400, 429}, answer.text


async def act_in_dispute(life: PlanLife) -> None:
    """One of the three parties does something in an open dispute. What is not possible is refused."""
    found = await life.sandbox.fetch(_OPEN_DISPUTES, life.ids[1])
    if not found:
        return
    dispute = life.dice.choice(found)
    act = life.dice.choice([_withdraw, _decide, _decide, _accept, _submit, _appeal_as_shop, _appeal])
    try:
        result = await act(life, str(dispute["dispute_id"]))
    except Refused as refused:
        result = f"refused, {refused.code}"
    life.note(f"{dispute['kind']}, {dispute['status']}: {act.__name__}, {result}")


async def _withdraw(life: PlanLife, dispute: str) -> str:
    return await _send(life, dispute, "withdraw")


async def _appeal(life: PlanLife, dispute: str) -> str:
    return await _send(life, dispute, "appeal", text="again")


async def _send(life: PlanLife, dispute: str, form: str, **fields: str) -> str:
    page = await life.consumer.open(f"{life.plan.path}/disputes/{dispute}")
    if not page.has_form(form):
        return "the page has no form"
    action, held = page.form(form)
    files = NO_FILE if form == "appeal" else None
    answer = await life.consumer.http.post(action, data={**held, **fields}, files=files)
    return str(answer.status_code)


async def _decide(life: PlanLife, dispute: str) -> str:
    for_consumer = life.dice.random() < 0.5
    found = [
        each
        for each in await life.sandbox.fetch(_OPEN_DISPUTES, life.ids[1])
        if str(each["dispute_id"]) == dispute
    ]
    if not found:
        return "closed meanwhile"
    await decide_dispute(life.sandbox.context, life.ids[0], found[0]["dispute_id"], for_consumer=for_consumer)
    return "for the consumer" if for_consumer else "for the shop"


async def _accept(life: PlanLife, dispute: str) -> str:
    return str((await life.shop.http.post(f"/disputes/{dispute}/accept")).status_code)


async def _submit(life: PlanLife, dispute: str) -> str:
    text = life.dice.choice(["winning_evidence", "nothing"])
    return str(
        (
            await life.uploads.post(f"/disputes/{dispute}/evidence", data={"text": text}, files=ONE_FILE)
        ).status_code
    )


async def _appeal_as_shop(life: PlanLife, dispute: str) -> str:
    return str(
        (
            await life.uploads.post(f"/disputes/{dispute}/appeal", data={"text": "x"}, files=ONE_FILE)
        ).status_code
    )


async def send_back(life: PlanLife) -> None:
    """The consumer says that the goods are on their way back."""
    page = await life.consumer.open(f"{life.plan.path}/return")
    if not page.has_form("return"):
        return
    action, held = page.form("return")
    answer = await life.consumer.http.post(action, data={**held, "carrier": "UPS", "tracking": "1Z9"})
    life.note(f"sent back: {answer.status_code}")


async def hardship(life: PlanLife) -> None:
    """The operator agrees with the consumer on another plan."""
    asked = await _request(life)
    try:
        seen = await preview_change(life.sandbox.context, *life.ids, asked)
        mark = seen.found.before.mark
        await agree_on_change(life.sandbox.context, *life.ids, asked, by="Ana", reason="why", mark=mark)
    except CannotChange as refused:
        life.note(f"{asked}: {refused}")
    else:
        life.note(f"{asked}: agreed")


async def _request(life: PlanLife) -> HardshipRequest:
    agreed, dice = await life.agreed(), life.dice
    left = changeable(agreed.plan)
    today = life.sandbox.context.now().astimezone(agreed.zone).date()
    kind = dice.choice(["pause", "move", "smaller", "waive"])
    if kind == "pause":
        return PausePlan(dice.randint(1, 40))
    if kind == "move" and left:
        return MoveDates({left[-1].number: max(today, left[-1].due_on) + timedelta(days=dice.randint(1, 20))})
    if kind == "smaller" and left:
        first = max(today + timedelta(days=1), left[0].due_on) + timedelta(days=dice.randint(0, 9))
        return SmallerPayments(dice.randint(2, 9), dice.randint(7, 31), first)
    return WaiveFee(None)


async def text(life: PlanLife) -> None:
    """The consumer stops or restarts the text messages."""
    said = life.dice.choice(["STOP", "START"])
    await life.consumer.http.post("/sandbox/inbox", data={"to": life.consumer.phone, "text": said})
    life.note(said)


async def wait(life: PlanLife) -> None:
    """Time passes."""
    by = life.dice.choice(
        ["2m", "1h", "6h", "1d", "1d", "3d", "7d", "7d", "14d", "14d", "20d", "45d", "130d"]
    )
    await life.sandbox.advance(by)
    life.note(f"{by} later: {life.sandbox.context.now():%Y-%m-%d %H:%M}")


async def two_at_once(life: PlanLife) -> None:
    """Two things happen at the same moment."""
    first, second = life.dice.sample([move, pay, open_dispute, hardship, send_back, change_card], 2)
    life.note(f"at once: {first.__name__} and {second.__name__}")
    async with life.second_tab() as one, life.second_tab() as other:
        await asyncio.gather(first(one), second(other))


STEPS: tuple[Step, ...] = (
    *[move] * 5, *[pay] * 3, *[wait] * 6, *[change_card] * 2, *[confirm] * 2, *[open_dispute] * 2, *[act_in_dispute] * 3,
    send_back, *[hardship] * 2, text, *[two_at_once] * 3,
)  # fmt: skip
