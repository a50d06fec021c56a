"""The facts of a decision: plain numbers about an order and its consumer, without a name, a phone number or an address.

A decision stores its facts, and they must be enough to repeat the decision.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Literal, TypeVar, get_args

Mode = Literal["off", "trial", "on"]
Steer = Literal["", "decline", "approve", "refer"]
ReviewFact = Literal["", "unavailable", "approved", "declined"]
# The operator has blocked the consumer, for one of the reasons of core/risk/block.py; empty: not blocked.
BlockFact = Literal["", "identity", "misuse", "unpaid", "own_request"]
FieldValue = bool | int | str

_MODES: tuple[Mode, ...] = get_args(Mode)
_STEERS: tuple[Steer, ...] = get_args(Steer)
_BLOCKS: tuple[BlockFact, ...] = get_args(BlockFact)
_REVIEWS: tuple[ReviewFact, ...] = get_args(ReviewFact)
_Word = TypeVar("_Word", bound=str)


class BadInputs(ValueError):
    """The stored inputs are not the facts of a decision. A release that stored no facts wrote them."""


@dataclass(frozen=True, slots=True)
class History:
    """The consumer's history with all merchants of this installation. Money is in cents.

    `outstanding`: the unpaid installments of approved plans, and the full amount of orders whose card is being charged
    now. `late_installments` were paid after a failed charge. `declined_orders` counts the last 30 days. `days_known`
    counts from the first approved order; it is None if there is none.
    """

    approved_orders: int = 0
    paid_installments: int = 0
    late_installments: int = 0
    overdue_installments: int = 0
    outstanding: int = 0
    declined_orders: int = 0
    days_known: int | None = None
    disputes: int = 0


@dataclass(frozen=True, slots=True)
class MerchantDisputes:
    """How often the merchant's orders were disputed in the last 90 days, chargebacks included, and how many captures there were."""

    captures: int = 0
    disputes: int = 0

    @property
    def per_thousand(self) -> int | None:
        """The disputes for each thousand captures, rounded down; None without a capture."""
        return self.disputes * 1000 // self.captures if self.captures else None


@dataclass(frozen=True, slots=True)
class Velocity:
    """How many other orders used the same phone, card, address or device lately, within the policy's window for each.

    `phone` and `card` also count failed charges and card changes on the account page. The order itself is not counted.
    `device` is 0 if the browser stores no id.
    """

    phone: int = 0
    card: int = 0
    address: int = 0
    device: int = 0


@dataclass(frozen=True, slots=True)
class Mismatches:
    """Facts that contradict each other.

    The order names another phone number; the billing state differs from the order's; an express order ships to another
    state; the name differs from the name that this consumer gave before.
    """

    order_phone: bool = False
    billing_state: bool = False
    shipping_state: bool = False
    surname: bool = False


@dataclass(frozen=True, slots=True)
class Approvals:
    """The Advanced Approvals data as it was read, and the points that the merchant's model gives it."""

    mode: Mode
    fields: dict[str, FieldValue]
    model: str | None = None
    points: int = 0
    contributions: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that is known when the consumer submits the checkout. Money is in cents.

    `steer` is the result that a test surname of the sandbox asks for; it is always empty in production. `review` is the
    answer of the person who reviewed this order for this consumer. It is empty if nobody reviewed it, and `unavailable` if,
    in addition, the order cannot be referred to a person, for example because too little of its time is left.
    """

    amount: int
    currency: str
    merchant_minimum: int
    merchant_maximum: int
    history: History = History()
    velocity: Velocity = Velocity()
    mismatches: Mismatches = Mismatches()
    approvals: Approvals | None = None
    steer: Steer = ""
    merchant_disputes: MerchantDisputes = MerchantDisputes()
    block: BlockFact = ""
    review: ReviewFact = ""

    def as_inputs(self) -> dict[str, object]:
        """Return the facts as plain JSON values, which `of_inputs` reads back exactly."""
        inputs = asdict(self)
        if self.approvals is not None:
            inputs["approvals"]["contributions"] = [list(each) for each in self.approvals.contributions]
        return inputs

    @staticmethod
    def of_inputs(inputs: Mapping[str, object]) -> Facts:
        """Read the stored facts of a decision. Raises BadInputs if anything is missing, unknown or of another type."""
        # Decisions that were made before these facts were known do not have them.
        later = {"merchant_disputes": asdict(MerchantDisputes()), "block": "", "review": ""}
        given = _members({**later, **inputs}, Facts, "inputs")
        approvals = given["approvals"]
        return Facts(
            amount=_integer(given["amount"], "amount"),
            currency=_text(given["currency"], "currency"),
            merchant_minimum=_integer(given["merchant_minimum"], "merchant_minimum"),
            merchant_maximum=_integer(given["merchant_maximum"], "merchant_maximum"),
            history=_history(given["history"]),
            velocity=Velocity(**_integers(given["velocity"], Velocity, "velocity")),
            mismatches=_mismatches(given["mismatches"]),
            approvals=None if approvals is None else _approvals(approvals),
            steer=_one_of(given["steer"], _STEERS, "steer"),
            merchant_disputes=MerchantDisputes(
                **_integers(given["merchant_disputes"], MerchantDisputes, "merchant_disputes")
            ),
            block=_one_of(given["block"], _BLOCKS, "block"),
            review=_one_of(given["review"], _REVIEWS, "review"),
        )


def _history(value: object) -> History:
    members = _members(value, History, "history")
    days = members.pop("days_known")
    numbers = {name: _integer(number, f"history.{name}") for name, number in members.items()}
    return History(**numbers, days_known=None if days is None else _integer(days, "history.days_known"))


def _mismatches(value: object) -> Mismatches:
    members = _members(value, Mismatches, "mismatches")
    return Mismatches(**{name: _flag(flag, f"mismatches.{name}") for name, flag in members.items()})


def _approvals(value: object) -> Approvals:
    members = _members(value, Approvals, "approvals")
    model, read, listed = members["model"], members["fields"], members["contributions"]
    if not isinstance(read, Mapping) or not isinstance(listed, list | tuple):
        raise BadInputs("approvals must have its fields as an object and its contributions as a list")
    return Approvals(
        mode=_one_of(members["mode"], _MODES, "approvals.mode"),
        fields={_text(name, "a field's name"): _field(found, name) for name, found in read.items()},
        model=None if model is None else _text(model, "approvals.model"),
        points=_integer(members["points"], "approvals.points"),
        contributions=tuple(_contribution(each) for each in listed),
    )


def _contribution(value: object) -> tuple[str, int]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise BadInputs("each contribution must be a name and its points")
    return _text(value[0], "a contribution's name"), _integer(value[1], "a contribution's points")


def _field(value: object, name: object) -> FieldValue:
    if not isinstance(value, bool | int | str):
        raise BadInputs(f"approvals.fields.{name} must be true, false, a whole number or text")
    return value


_Kind = (
    type[Facts] | type[MerchantDisputes] | type[History] | type[Velocity] | type[Mismatches] | type[Approvals]
)


def _members(value: object, kind: _Kind, where: str) -> dict[str, object]:
    if not isinstance(value, Mapping):
        raise BadInputs(f"{where} must be an object")
    names = {field.name for field in fields(kind)}
    if wrong := sorted(names.symmetric_difference(map(str, value))):
        raise BadInputs(
            f"{where} must have exactly {', '.join(sorted(names))}; it differs in {', '.join(wrong)}"
        )
    return dict(value)


def _integers(value: object, kind: type[Velocity | MerchantDisputes], where: str) -> dict[str, int]:
    return {
        name: _integer(number, f"{where}.{name}") for name, number in _members(value, kind, where).items()
    }


def _integer(value: object, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadInputs(f"{where} must be a whole number")
    return value


def _flag(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise BadInputs(f"{where} must be true or false")
    return value


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise BadInputs(f"{where} must be text")
    return value


def _one_of(value: object, known: tuple[_Word, ...], where: str) -> _Word:
    for each in known:
        if value == each:
            return each
    raise BadInputs(f"{where} must be one of {', '.join(repr(each) for each in known)}")
