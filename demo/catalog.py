"""The shop's products, and the price of a cart. All prices are in cents and include tax."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MOST_OF_ONE = 9
SHIPPING = 495
FREE_SHIPPING_FROM = 7500


@dataclass(frozen=True)
class Product:
    """A product that the shop sells. Its picture is static/<sku>.svg."""

    sku: str
    name: str
    about: str
    price: int


@dataclass(frozen=True)
class Line:
    """A line of a cart or an order: a product, its quantity, and its price in cents when it was ordered."""

    sku: str
    name: str
    quantity: int
    price: int

    @property
    def total(self) -> int:
        """The price of the whole line, in cents."""
        return self.quantity * self.price


@dataclass(frozen=True)
class Cart:
    """The products that a visitor wants to buy."""

    lines: tuple[Line, ...]

    @property
    def goods(self) -> int:
        """The price of all lines without shipping, in cents."""
        return sum(line.total for line in self.lines)

    @property
    def shipping(self) -> int:
        """The shipping cost in cents: a flat price, or free for a large cart."""
        return SHIPPING if 0 < self.goods < FREE_SHIPPING_FROM else 0

    @property
    def amount(self) -> int:
        """The total in cents. This becomes the amount of the order."""
        return self.goods + self.shipping

    @property
    def count(self) -> int:
        """The number of items."""
        return sum(line.quantity for line in self.lines)


PRODUCTS = {
    product.sku: product
    for product in (
        Product("beans", "Morning Blend", "Whole beans, roasted on Tuesdays, 12 oz", 1725),
        Product("cup", "Stoneware Cup", "Thrown by hand, ash glaze, 8 oz", 2200),
        Product("towels", "Linen Towels", "Stone-washed, a set of two", 2650),
        Product("stand", "Pour-over Stand", "Oiled oak and a glass cone", 6490),
        Product("kettle", "Gooseneck Kettle", "Steel, pours where you look", 8995),
        Product("grinder", "Hand Grinder", "Burrs for life, walnut knob", 11800),
    )
}


def cart_of(quantities: Mapping[str, int]) -> Cart:
    """Make a cart from quantities by SKU, at today's prices. A product that is no longer sold is left out."""
    return Cart(
        tuple(
            Line(sku, product.name, quantities[sku], product.price)
            for sku, product in PRODUCTS.items()
            if quantities.get(sku, 0) > 0
        )
    )
