"""What the shop sells, and what a cart of it costs. All prices in cents, tax included."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MOST_OF_ONE = 9
SHIPPING = 495
FREE_SHIPPING_FROM = 7500


@dataclass(frozen=True)
class Product:
    """One thing on the shelf. Its picture is static/<sku>.svg."""

    sku: str
    name: str
    about: str
    price: int


@dataclass(frozen=True)
class Line:
    """Some of one product, at the price of the day it was ordered."""

    sku: str
    name: str
    quantity: int
    price: int

    @property
    def total(self) -> int:
        """Cents for the whole line."""
        return self.quantity * self.price


@dataclass(frozen=True)
class Cart:
    """What a visitor wants to buy."""

    lines: tuple[Line, ...]

    @property
    def goods(self) -> int:
        """Cents before shipping."""
        return sum(line.total for line in self.lines)

    @property
    def shipping(self) -> int:
        """Cents for shipping: one flat price, free for a large cart."""
        return SHIPPING if 0 < self.goods < FREE_SHIPPING_FROM else 0

    @property
    def amount(self) -> int:
        """Cents in all; this is the amount of the order."""
        return self.goods + self.shipping

    @property
    def count(self) -> int:
        """How many pieces."""
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
    """Price the stored quantities; a product that is sold no more falls out."""
    return Cart(
        tuple(
            Line(sku, product.name, quantities[sku], product.price)
            for sku, product in PRODUCTS.items()
            if quantities.get(sku, 0) > 0
        )
    )
