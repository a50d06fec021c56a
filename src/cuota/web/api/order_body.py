"""Reads the body of `POST /order` by the rules of the merchant's profile. One refusal lists all failures."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from cuota.core.consumer import is_email, is_name, is_typed_name, is_us_number
from cuota.core.installment import COUNT
from cuota.core.merchant import BodyProfile, Merchant
from cuota.core.money import decimal_from, split
from cuota.flows.order.create_order import OrderRequest
from cuota.web.addresses import BadAddress, read_address
from cuota.web.api import lenient
from cuota.web.api.profile import read_by_profile
from cuota.web.api.unknown import Shape, shape, unknown_fields
from cuota.web.fields import Check, Reader, WrongField, as_object, cents, number, reference, text, wrong_type

MOST_ITEMS = 1000
MOST_METADATA = 50

PHONE = text(
    0, 50, also=is_us_number, must="must be a US number of exactly 10 digits, starting with the area code"
)
NAME = text(2, 50, composed=True, also=is_name, must="must contain only letters, spaces and dashes")
# A name as a person types it on a page. The lenient profile accepts it as prefill.
TYPED_NAME = text(
    1,
    50,
    composed=True,
    also=is_typed_name,
    must="must contain only letters, spaces, dashes, apostrophes and periods",
)
EMAIL = text(0, 250, also=is_email, must="must be an e-mail address")
REFERENCE = reference(0)
AMOUNT, AMOUNT_OR_ZERO = cents(low=1), cents()
DESCRIPTION = text(0, 256 * 1024, lines=True)
CONSUMER: dict[str, Check] = {"phoneNumber": PHONE, "givenNames": NAME, "surname": NAME, "email": EMAIL}
_TYPED: dict[str, Check] = {**CONSUMER, "givenNames": TYPED_NAME, "surname": TYPED_NAME}
ADDRESS: dict[str, tuple[Check, bool]] = {
    "addressLine1": (text(3, 50), True),
    "addressLine2": (text(0, 50), False),
    "city": (text(3, 50), True),
    "state": (text(2, 2), True),
    "postcode": (text(5, 5), True),
}


def quantity(value: Any) -> Any:
    """Check a quantity: a JSON number. Only amounts may be text."""
    if isinstance(value, str):
        raise wrong_type("a number")
    return number(value)


ITEM: dict[str, Check] = {
    "description": DESCRIPTION,
    "name": text(0, 1000),
    "sku": text(0, 100),
    "quantity": quantity,
    "price": number,
}


SHAPE = shape(
    *("amount", "currency", "description", "merchantReference", "taxAmount", "shippingAmount"),
    *("metadata", "merchantFeeForPaymentPlan"),
    consumer=Shape(frozenset(CONSUMER)),
    billing=Shape(frozenset(ADDRESS)),
    shipping=Shape(frozenset(ADDRESS)),
    items=Shape(frozenset(ITEM)),
    merchant=shape("redirectConfirmUrl", "redirectCancelUrl", "statusCallbackUrl"),
)


def read_order_body(body: dict[str, Any], merchant: Merchant, *, https_only: bool) -> OrderRequest:
    """Read the body. Raises Refused with all failures.

    `https_only`: the merchant's addresses must be https addresses (production).
    """

    def read(profile: BodyProfile) -> OrderRequest:
        return _read(body, merchant, forgiving=profile is BodyProfile.LENIENT, https_only=https_only)

    order = read_by_profile(merchant, read)
    order.warnings.extend(unknown_fields(body, SHAPE))
    return order


def _read(body: dict[str, Any], merchant: Merchant, *, forgiving: bool, https_only: bool) -> OrderRequest:
    reader = Reader(lenient=forgiving)
    if forgiving:
        body = lenient.normalised(body)
    sums = read_amounts(reader, body)
    read_currency(reader, body, merchant, "currency")
    own_reference = reader.read(body, "merchantReference", REFERENCE, required=True)
    document = {
        "consumer": _consumer(reader, body),
        "billing": _address(reader, body, "billing"),
        "shipping": _address(reader, body, "shipping"),
        "description": reader.read(body, "description", DESCRIPTION),
        "items": _items(reader, body),
        "merchant": _merchant(reader, body, https_only=https_only),
        "merchantReference": own_reference,
        **sums.shown(),
        "metadata": reader.read(body, "metadata", metadata) or {},
        "promotions": None,
    }
    warnings = reader.finish()
    assert sums.amount is not None
    return OrderRequest(sums.amount, sums.fee or 0, own_reference, document, warnings)


@dataclass(frozen=True, slots=True)
class Sums:
    """The amounts of an order in cents. An amount is None if it is absent, or invalid and reported to the reader."""

    amount: int | None
    tax: int | None
    shipping: int | None
    fee: int | None

    def shown(self) -> dict[str, Decimal | None]:
        """Return tax, shipping and fee as decimals, under their names in the order's document."""
        named = {
            "taxAmount": self.tax,
            "shippingAmount": self.shipping,
            "merchantFeeForPaymentPlan": self.fee,
        }
        return {name: None if cents is None else decimal_from(cents) for name, cents in named.items()}


def read_amounts(reader: Reader, source: dict[str, Any], prefix: str = "") -> Sums:
    """Read the amounts of an order, and check them against each other. `prefix` comes before their names in errors."""
    amount = reader.read(source, f"{prefix}amount", AMOUNT, required=True)
    tax = reader.read(source, f"{prefix}taxAmount", AMOUNT_OR_ZERO, prefill=True)
    shipping = reader.read(source, f"{prefix}shippingAmount", AMOUNT_OR_ZERO, prefill=True)
    fee = reader.read(source, f"{prefix}merchantFeeForPaymentPlan", AMOUNT_OR_ZERO)
    if amount is not None:
        if (tax or 0) + (shipping or 0) > amount:
            _refuse_sides(reader, prefix, tax, shipping)
            tax = shipping = None
        if fee and split(amount, COUNT)[0] + split(fee, COUNT)[0] >= amount:
            # Without this rule nothing would be financed after today's payment, and the plan would have no annual
            # percentage rate.
            wrong = WrongField("out_of_range", "must be less, so that today's payment is less than amount")
            reader.fail(f"{prefix}merchantFeeForPaymentPlan", wrong)
        elif (fee or 0) > amount:
            reader.fail(
                f"{prefix}merchantFeeForPaymentPlan", WrongField("out_of_range", "must not exceed amount")
            )
    return Sums(amount, tax, shipping, fee)


def consumer_rules(reader: Reader) -> dict[str, Check]:
    """Return the checks of the consumer's fields for the merchant's profile, by field name."""
    return _TYPED if reader.lenient else CONSUMER


def _refuse_sides(reader: Reader, prefix: str, tax: int | None, shipping: int | None) -> None:
    """Record that tax and shipping together exceed the amount. It is unclear which is wrong, so both count as invalid."""
    if not reader.lenient:
        wrong = WrongField(
            "out_of_range", "and shippingAmount together exceed amount, which must include both"
        )
        reader.fail(f"{prefix}taxAmount", wrong)
        return
    wrong = WrongField(
        "out_of_range",
        "was ignored: taxAmount and shippingAmount together exceed amount, which must include both",
    )
    for name, value in (("taxAmount", tax), ("shippingAmount", shipping)):
        if value is not None:
            reader.fail(f"{prefix}{name}", wrong, prefill=True)


def _consumer(reader: Reader, body: dict[str, Any]) -> dict[str, Any] | None:
    value = reader.read(body, "consumer", as_object, prefill=True)
    if value is None:
        return None
    return {
        name: reader.read(value, f"consumer.{name}", check, prefill=True)
        for name, check in consumer_rules(reader).items()
    }


def _address(reader: Reader, body: dict[str, Any], name: str) -> dict[str, Any] | None:
    value = reader.read(body, name, as_object, prefill=True)
    if value is None:
        return None
    return {
        part: reader.read(value, f"{name}.{part}", check, required=required, prefill=True)
        for part, (check, required) in ADDRESS.items()
    }


def _items(reader: Reader, body: dict[str, Any]) -> list[dict[str, Any]] | None:
    values = reader.read(body, "items", as_items, prefill=True)
    if values is None:
        return None
    items = []
    for index, value in enumerate(values):
        if not isinstance(value, dict):
            reader.fail(f"items[{index}]", wrong_type("an object"), prefill=True)
            continue
        items.append(
            {
                name: reader.read(value, f"items[{index}].{name}", check, prefill=True)
                for name, check in ITEM.items()
            }
        )
    return items


def as_items(value: Any) -> list[Any]:
    """Check that a value is an array of at most MOST_ITEMS items."""
    if not isinstance(value, list):
        raise wrong_type("an array of objects")
    if len(value) > MOST_ITEMS:
        raise WrongField("too_long", f"must have at most {MOST_ITEMS} items")
    return value


def _merchant(reader: Reader, body: dict[str, Any], *, https_only: bool) -> dict[str, Any] | None:
    value = reader.read(body, "merchant", as_object, required=True)
    if value is None:
        return None
    address = web_address(https_only=https_only)
    callback = None
    if value.get("statusCallbackUrl") != "":
        callback = reader.read(value, "merchant.statusCallbackUrl", address)
    return {
        "redirectConfirmUrl": reader.read(value, "merchant.redirectConfirmUrl", address, required=True),
        "redirectCancelUrl": reader.read(value, "merchant.redirectCancelUrl", address, required=True),
        "statusCallbackUrl": callback,
    }


def web_address(*, https_only: bool) -> Check:
    """Make a check for a web address of the merchant. The checked value is the address in normalized form."""

    def address(found: Any) -> str:
        if not isinstance(found, str):
            raise wrong_type("a string")
        try:
            return read_address(found, https_only=https_only)
        except BadAddress as bad:
            raise WrongField("invalid", str(bad)) from None

    return address


def read_currency(
    reader: Reader, source: dict[str, Any], merchant: Merchant, path: str, *, required: bool = False
) -> None:
    """Check that the currency is exactly the merchant's. Amounts are never converted."""

    def check(value: Any) -> str:
        if not isinstance(value, str):
            raise wrong_type("a string")
        if value != merchant.currency:
            raise WrongField("invalid", f"must be {merchant.currency}, the currency of this merchant")
        return value

    reader.read(source, path, check, required=required)


def metadata(value: Any) -> dict[str, str]:
    """Check a flat map of strings. An entry that is null counts as absent."""
    entries = {key: entry for key, entry in as_object(value).items() if entry is not None}
    if len(entries) > MOST_METADATA:
        raise WrongField("too_long", f"must have at most {MOST_METADATA} keys")
    check = text(0, 500, lines=True)
    for key, entry in entries.items():
        try:
            text(1, 500)(key)
            check(entry)
        except WrongField as wrong:
            raise WrongField(wrong.code, f"key {key[:40]!r} {wrong}") from None
    return entries
