"""Plans the demo's history: who buys what and when, and what happens to each order afterwards. The same seed gives the same plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import Enum
from random import Random
from zoneinfo import ZoneInfo

from cuota.commands.history.people import Goods, Shopper, basket, shopper
from cuota.flows.payout.change_terms import LEAD

ZONE = ZoneInfo("America/New_York")
MINUTE = timedelta(minutes=1)
# The first order comes after the merchant's terms have begun. The step that makes them takes less than a minute.
FIRST_AFTER = 2 * MINUTE
assert LEAD + MINUTE < FIRST_AFTER
SHIPPING, FREE_FROM = 495, 7500
FIRST_NUMBER = 20001
# The relative numbers of orders at each hour from 7 to 23, and on each weekday from Monday.
_HOURS = (2, 3, 4, 5, 6, 8, 7, 6, 5, 5, 6, 7, 9, 10, 8, 4, 2)
_WEEKDAYS = (10, 9, 9, 10, 12, 13, 14)
# The shop's staff work at these times, so many captures, voids and refunds happen at the same moment.
_MORNING, _AFTERNOON = time(10, 15), time(15, 40)


class HistoryAct(Enum):
    """The kinds of steps."""

    BUY = "buy"
    CAPTURE = "capture"
    VOID = "void"
    REFUND = "refund"
    DISPUTE = "dispute"
    EVIDENCE = "evidence"
    ACCEPT = "accept"
    FOR_MERCHANT = "decide for the merchant"
    FOR_CONSUMER = "decide for the consumer"
    RETURN = "return"
    BANK = "bank account"
    TERMS = "terms"


@dataclass(frozen=True)
class Purchase:
    """An order to make.

    `ending` is its end: `approved`, `declined`, `abandoned`, or `left` (the shopper never opens the checkout).
    """

    who: Shopper
    goods: tuple[tuple[Goods, int], ...]
    ending: str

    @property
    def shipping(self) -> int:
        """The shipping cost in cents."""
        return SHIPPING if self.lines < FREE_FROM else 0

    @property
    def lines(self) -> int:
        """The goods in cents."""
        return sum(each.price * count for each, count in self.goods)

    @property
    def amount(self) -> int:
        """The amount in cents."""
        return self.lines + self.shipping


@dataclass(frozen=True)
class Step:
    """One step at an instant, for the order with this reference. `amount` is in cents; `text` is a person's text."""

    at: datetime
    act: HistoryAct
    reference: str
    amount: int = 0
    text: str = ""
    purchase: Purchase | None = None


def plan(start: datetime, days: int, orders: int, seed: int) -> list[Step]:
    """Return all steps between `start` and `days` later, the earliest first."""
    return sorted(_steps(start, days, orders, Random(seed)), key=lambda step: step.at)  # noqa: S311


def _steps(start: datetime, days: int, orders: int, chance: Random) -> Iterator[Step]:
    end = start + timedelta(days=days)
    known: dict[str, list[tuple[datetime, Shopper]]] = {"pays": [], "pays_once": []}
    for number, at in enumerate(_instants(start, end, orders, chance)):
        kind = _kind(number)
        who = _who(known, at, number, chance, kind)
        bought = Purchase(who, basket(chance), _ENDINGS.get(kind, "approved"))
        reference = f"W-{FIRST_NUMBER + number}"
        steps = [Step(at, HistoryAct.BUY, reference, bought.amount, purchase=bought)]
        if bought.ending == "approved":
            steps += _afterwards(at, reference, bought, kind, chance)
            if kind in known:
                known[kind].append((at, who))
        yield from (step for step in steps if step.at < end)
    # Before the first order, the merchant gets terms and a bank account.
    yield Step(start + MINUTE, HistoryAct.TERMS, "")
    yield Step(start + MINUTE, HistoryAct.BANK, "")
    # The bank account is changed to one that returns payouts, and corrected when the first payout has come back.
    for day, account in ((days * 2 // 7, 1), (days * 2 // 7 + 8, 0)):
        if days >= MOST_DAYS // 2:
            yield Step(_work(start, day, _AFTERNOON), HistoryAct.BANK, "", account)


MOST_DAYS = 42
# The second payment is due after two weeks. A few days later, it has certainly failed.
LATE_AFTER = timedelta(days=17)
# The kinds of special orders. Each kind is repeated after the first number of orders, beginning at the second number.
_KINDS = {
    "declined": (13, 3), "no_funds": (31, 17), "abandoned": (14, 7), "left": (23, 9), "pays_once": (17, 5),
    "lost_later": (41, 19), "disputed": (26, 2), "renewed": (37, 13), "dispute": (19, 4), "return": (29, 11),
    "void": (24, 14), "expires": (34, 21),
}  # fmt: skip
_ENDINGS = {"declined": "declined", "no_funds": "declined", "abandoned": "abandoned", "left": "left"}
_CARDS = {"declined", "no_funds", "pays_once", "lost_later", "disputed", "renewed"}


def _kind(number: int) -> str:
    for name, (every, first) in _KINDS.items():
        if number % every == first:
            return name
    return "pays"


def _who(
    known: dict[str, list[tuple[datetime, Shopper]]], at: datetime, number: int, chance: Random, kind: str
) -> Shopper:
    """Return a new shopper or, sometimes, a shopper who bought before.

    A shopper whose card has failed since then is declined because of overdue payments, before the card is charged.
    """
    if kind == "declined":
        late = [who for since, who in known["pays_once"] if at - since > LATE_AFTER]
        if late:
            return chance.choice(late)
    regulars = [who for since, who in known["pays"] if at - since > timedelta(days=4)]
    if kind == "pays" and regulars and chance.random() < 0.2:
        return chance.choice(regulars)
    return shopper(chance, number, kind if kind in _CARDS else "pays")


def _instants(start: datetime, end: datetime, orders: int, chance: Random) -> list[datetime]:
    """Return the instants of the orders: more in the evening and on weekends, and a few more in each later week."""
    first, found = start.astimezone(ZONE).date(), set[datetime]()
    days = (end.astimezone(ZONE).date() - first).days + 1
    weights = [
        _WEEKDAYS[(first + timedelta(days=day)).weekday()] * (1 + day / (2 * days)) for day in range(days)
    ]
    while len(found) < orders:
        day = first + timedelta(days=chance.choices(range(days), weights)[0])
        hour = chance.choices(range(7, 7 + len(_HOURS)), _HOURS)[0]
        at = _instant(day, time(hour, chance.randrange(60), chance.randrange(60)))
        if start + FIRST_AFTER < at < end - MINUTE:
            found.add(at)
    return sorted(found)


def _instant(day: date, at: time) -> datetime:
    return datetime.combine(day, at, ZONE).astimezone(UTC)


def _work(since: datetime, days: int, at: time) -> datetime:
    """Return a working time `days` later. If that day is on a weekend, use the next Monday."""
    day = since.astimezone(ZONE).date() + timedelta(days=days)
    return _instant(day + timedelta(days=max(0, 7 - day.weekday()) if day.weekday() > 4 else 0), at)


def _afterwards(at: datetime, reference: str, bought: Purchase, kind: str, chance: Random) -> Iterator[Step]:
    """Return the later steps of an approved order."""
    shipped = _work(at, chance.choices((1, 2, 3), (5, 3, 1))[0], chance.choice((_MORNING, _AFTERNOON)))
    amount, part = bought.amount, bought.goods[0][0].price
    if kind == "expires":
        return
    if kind == "void":
        yield Step(shipped, HistoryAct.VOID, reference, amount)
    elif len(bought.goods) > 1 and chance.random() < 0.35:
        yield Step(shipped, HistoryAct.CAPTURE, reference, part)
        rest = HistoryAct.VOID if chance.random() < 0.3 else HistoryAct.CAPTURE
        yield Step(_work(shipped, chance.randrange(2, 6), _MORNING), rest, reference, amount - part)
        amount = amount if rest is HistoryAct.CAPTURE else part
    else:
        yield Step(shipped, HistoryAct.CAPTURE, reference, amount)
    if kind == "dispute":
        yield from _disputed(shipped, reference, part, chance)
    elif kind == "disputed":
        yield from _charged_back(at, reference, chance)
    elif kind == "return":
        told = shipped + timedelta(days=chance.randrange(4, 8), hours=chance.randrange(1, 8))
        yield Step(told, HistoryAct.RETURN, reference, text=f"1Z{chance.randrange(10**9, 10**10)}")
        yield Step(_work(told, chance.randrange(4, 9), _MORNING), HistoryAct.REFUND, reference, part)
    elif kind == "pays" and chance.random() < 0.15:
        back = amount if chance.random() < 0.4 else min(amount, part)
        yield Step(_work(shipped, chance.randrange(7, 16), _AFTERNOON), HistoryAct.REFUND, reference, back)


_OBJECTIONS = (
    (
        "not_received",
        "The parcel never came. The carrier says that it was delivered, but nobody here has it.",
    ),
    ("not_as_described", "The glaze is cracked, and the color is not the one in the picture."),
    ("wrong_amount", "I was charged for two, but I ordered one."),
    ("not_refunded", "I sent it back two weeks ago, and I am still paying for it."),
)


def _disputed(shipped: datetime, reference: str, amount: int, chance: Random) -> Iterator[Step]:
    """Return the steps of a consumer's dispute: those of the consumer, the shop and the operator.

    The last disputes are still open at the end.
    """
    opened = shipped + timedelta(days=chance.randrange(3, 8), hours=chance.randrange(1, 9))
    yield Step(opened, HistoryAct.DISPUTE, reference, amount, "|".join(chance.choice(_OBJECTIONS)))
    answered = _work(opened, chance.randrange(1, 4), _AFTERNOON)
    what = chance.choice(("won", "lost", "accepted", "refunded", "waits"))
    if what == "accepted":
        yield Step(answered, HistoryAct.ACCEPT, reference)
    elif what == "refunded":
        yield Step(answered, HistoryAct.REFUND, reference, amount)
    else:
        yield Step(
            answered, HistoryAct.EVIDENCE, reference, text="The carrier's proof of delivery is attached."
        )
    if what in {"won", "lost"}:
        act = HistoryAct.FOR_MERCHANT if what == "won" else HistoryAct.FOR_CONSUMER
        yield Step(_work(answered, chance.randrange(2, 5), _MORNING), act, reference)


def _charged_back(at: datetime, reference: str, chance: Random) -> Iterator[Step]:
    """Return the shop's steps about a chargeback, which the card network opens a week after the payment."""
    answered, what = _work(at, 9, _AFTERNOON), chance.choice(("won", "lost", "accepted", "silent"))
    if what == "accepted":
        yield Step(answered, HistoryAct.ACCEPT, reference)
    elif what != "silent":
        text = "Delivered and signed for; see the receipt." + (" winning_evidence" if what == "won" else "")
        yield Step(answered, HistoryAct.EVIDENCE, reference, text=text)
