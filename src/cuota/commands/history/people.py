"""The people of the demo's history, and the goods that they buy. All names, numbers and addresses are invented."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from cuota.core.sandbox import TEST_CARDS

GIVEN = (
    "Olivia", "Noah", "Emma", "Liam", "Amelia", "Mateo", "Sofia", "Lucas", "Mia", "Ezra", "Nora", "Elijah", "Hazel",
    "Theo", "Layla", "Owen", "Priya", "Wei", "Aisha", "Diego", "Hannah", "Marcus", "Grace", "Jamal", "Ruth",
    "Victor", "Zoe", "Henry", "Camila", "Peter", "Naomi", "Samuel", "Ingrid", "Dmitri", "Yara", "Felix", "Keiko",
    "Walter", "Ana", "Jonas",
)  # fmt: skip
SURNAMES = (
    "Smith", "Nguyen", "Garcia", "Johnson", "Patel", "Brown", "Kim", "Martinez", "Williams", "Cohen", "Davis",
    "Okafor", "Miller", "Rossi", "Wilson", "Haddad", "Moore", "Silva", "Taylor", "Novak", "Anderson", "Chen",
    "Thomas", "Reyes", "Jackson", "Larsen", "White", "Ahmed", "Harris", "Dubois", "Clark", "Ivanova", "Lewis",
    "Mendoza", "Young", "Fischer", "Walker", "Sato", "Hall", "Romero", "Allen", "Kowalski", "Wright", "Tran",
    "Scott", "Bauer", "Green", "Osei", "Baker", "Lindqvist",
)  # fmt: skip
# City, state, the first three digits of the city's postcodes, and area code.
PLACES = (
    ("Brooklyn", "NY", "112", "718"), ("Albany", "NY", "122", "518"), ("Boston", "MA", "021", "617"),
    ("Portland", "ME", "041", "207"), ("Philadelphia", "PA", "191", "215"), ("Pittsburgh", "PA", "152", "412"),
    ("Atlanta", "GA", "303", "404"), ("Miami", "FL", "331", "305"), ("Chicago", "IL", "606", "312"),
    ("Madison", "WI", "537", "608"), ("Minneapolis", "MN", "554", "612"), ("Austin", "TX", "787", "512"),
    ("Houston", "TX", "770", "713"), ("Denver", "CO", "802", "303"), ("Boise", "ID", "837", "208"),
    ("Phoenix", "AZ", "850", "602"), ("Oakland", "CA", "946", "510"), ("Los Angeles", "CA", "900", "213"),
    ("Portland", "OR", "972", "503"), ("Seattle", "WA", "981", "206"),
)  # fmt: skip
STREETS = (
    "Oak", "Maple", "Cedar", "Elm", "Pine", "Walnut", "Lake", "Hill", "Park", "River", "Mill", "Church", "Spring",
    "Chestnut", "Prospect",
)  # fmt: skip
WAYS = (
    "Street", "Avenue", "Road", "Lane",
)  # fmt: skip
DOMAINS = ("example.com", "example.org", "example.net")
CARDS = {card.behaviour: card.number.replace(" ", "") for card in TEST_CARDS}


@dataclass(frozen=True)
class Goods:
    """Something that the shop sells; the price is in cents. `weight` says how often it is bought."""

    sku: str
    name: str
    price: int
    weight: int


CATALOG = (
    Goods("beans", "Morning Blend", 1725, 14),
    Goods("cup", "Stoneware Cup", 2200, 12),
    Goods("towels", "Linen Towels", 2650, 9),
    Goods("stand", "Pour-over Stand", 6490, 8),
    Goods("kettle", "Gooseneck Kettle", 8995, 10),
    Goods("grinder", "Hand Grinder", 11800, 7),
    Goods("board", "Walnut Serving Board", 5400, 6),
    Goods("tray", "Oak Tray", 7250, 5),
    Goods("throw", "Wool Throw", 13900, 4),
    Goods("stool", "Three-legged Stool", 18500, 3),
    Goods("lamp", "Paper Lamp", 15900, 3),
    Goods("table", "Side Table", 32900, 2),
)


@dataclass(frozen=True)
class Shopper:
    """A consumer. `behaviour` is the behavior of the consumer's card in the sandbox (`core/sandbox.py`)."""

    given_names: str
    surname: str
    email: str
    phone: str
    line1: str
    city: str
    state: str
    postcode: str
    card: str
    behaviour: str

    @property
    def typed(self) -> dict[str, str]:
        """Return the shopper's input for the checkout's forms, by field name."""
        return {
            "given_names": self.given_names, "surname": self.surname, "email": self.email, "phone": self.phone,
            "address_line1": self.line1, "city": self.city, "state": self.state, "postcode": self.postcode,
            "card_number": self.card, "card_cvc": "1234" if self.card.startswith("3") else "123",
        }  # fmt: skip

    @property
    def consumer(self) -> dict[str, str]:
        """Return the shopper's data as the merchant sends it in an order."""
        return {"givenNames": self.given_names, "surname": self.surname, "email": self.email}

    @property
    def address(self) -> dict[str, str]:
        """Return the address as the merchant sends it in an order."""
        return {
            "addressLine1": self.line1, "city": self.city, "state": self.state, "postcode": self.postcode,
        }  # fmt: skip


def shopper(chance: Random, number: int, behaviour: str = "pays") -> Shopper:
    """Invent a person. Two numbers below 2,000 never give the same phone number."""
    city, state, postcodes, area = PLACES[number % len(PLACES)]
    given, surname = chance.choice(GIVEN), chance.choice(SURNAMES)
    # 555-0100 to 555-0199 belong to nobody.
    phone = f"{area}55501{number // len(PLACES) % 100:02}"
    line1 = f"{chance.randrange(1, 990)} {chance.choice(STREETS)} {chance.choice(WAYS)}"
    email = f"{given}.{surname}{number}@{chance.choice(DOMAINS)}".lower()
    card = _card(chance) if behaviour == "pays" else CARDS[behaviour]
    postcode = f"{postcodes}{chance.randrange(1, 99):02}"
    return Shopper(given, surname, email, phone, line1, city, state, postcode, card, behaviour)


def basket(chance: Random) -> tuple[tuple[Goods, int], ...]:
    """Choose one to three kinds of goods with a quantity, for at most $1,000 in total."""
    kinds = chance.choices((1, 2, 3), (5, 4, 2))[0]
    chosen = dict.fromkeys(chance.choices(CATALOG, [each.weight for each in CATALOG], k=kinds))
    return tuple(
        (each, chance.choices((1, 2, 4), (7, 2, 1))[0] if each.price < 3000 else 1) for each in chosen
    )


def _card(chance: Random) -> str:
    """Invent a card number that is not a test card of the sandbox. So the card pays, and has its own fingerprint."""
    start, length = chance.choices((("4", 16), ("5", 16), ("37", 15), ("6011", 16)), (6, 3, 1, 1))[0]
    if start == "5":
        start = f"5{chance.randrange(1, 6)}"
    digits = start + "".join(str(chance.randrange(10)) for _ in range(length - len(start) - 1))
    number = digits + _check_digit(digits)
    return _card(chance) if number in CARDS.values() else number


def _check_digit(digits: str) -> str:
    doubled = [int(digit) * (2 - place % 2) for place, digit in enumerate(reversed(digits))]
    return str(-sum(each // 10 + each % 10 for each in doubled) % 10)
