"""The data of the hosted checkout's templates in every state: template and context by name."""

from cuota.core.risk.adverse import sentences

Context = dict[str, object]
DAYS = [
    ("Today", "2026-11-11"),
    ("Wed, Nov 25", "2026-11-25"),
    ("Wed, Dec 9", "2026-12-09"),
    ("Wed, Dec 23", "2026-12-23"),
]
REVIEW_TEXTS = [
    "Nothing has been charged. Nothing is charged before you confirm.",
    "If the answer is yes, the message has a link. You confirm the order once more and pay, until 3:00 PM EST.",
    "If the answer is no, you get the reasons in writing, and can choose another way to pay in the shop.",
    "You do not have to wait here: you can close this page. If you leave it open, it shows the answer automatically.",
]
REVIEWED_NOTICE = "We reviewed your order. You can complete it until 3:00 PM EST. Nothing has been charged."
SHOP = "http://127.0.0.1:8001/confirm?token=6c1f"
LONG_SHOP = "The Extraordinarily Comprehensive Outdoor, Camping & Mountaineering Equipment Company of Northern California"
BRAND: Context = {"name": "Pay in four", "logo": None, "stylesheet": None}
FINANCE: Context = {
    "apr": "43.68%",
    "finance_charge": "$2.50",
    "amount_financed": "$100.00",
    "total_of_payments": "$102.50",
}
LINES: list[Context] = [
    {"name": "Merino base layer, forest", "quantity": 1, "amount": "$54.00"},
    {"name": "Trail socks", "quantity": 2, "amount": "$28.00"},
]
CHARGES: list[Context] = [{"label": "Shipping", "amount": "$9.75"}, {"label": "Tax", "amount": "$8.25"}]
MANY: list[Context] = [
    {"name": f"Item {n}: stainless steel tent peg, 24 cm", "quantity": n % 3 + 1, "amount": f"${n}.10"}
    for n in range(1, 31)
]
STATES = [
    ("AL", "Alabama"),
    ("CA", "California"),
    ("DC", "District of Columbia"),
    ("NY", "New York"),
    ("WY", "Wyoming"),
]
CARDS = [
    ("4242 4242 4242 4242", "Pays"),
    ("4000 0000 0000 0002", "Declined by its bank"),
    ("4000 0000 0000 9995", "No funds"),
    ("4000 0000 0000 0341", "Pays the first installment, later ones fail"),
    ("4000 0000 0000 2685", "Pays, and is later disputed"),
]
CARD_FORM: Context = {
    "simulated": True,
    "scripts": ("/static/sandbox-card.js",),
    "options": '{"tokens": "/sandbox-processor/cards"}',
    "test_cards": CARDS,
}
AGREEMENT: Context = {
    "text": [
        "You buy from Northwind Outfitters for $100.00 and pay in four installments of $25.00: today, on Wed, Nov 25, on Wed, Dec 9 and on Wed, Dec 23.",
        "You allow us to charge your card for each installment on its date. We remind you before each one. You may pay early at any time, at no cost.",
        "There is no interest and there are no fees. If a charge fails we try again and tell you; no late fee is added.",
        "If the shop refunds all or part of your order, we cancel the last unpaid installments first. What is left over goes back to the card that paid.",
        "This agreement is between you and the provider named at the top of this page. A copy is sent to your email address.",
    ],
    "hash": "9f2c4be1d07a5583c6e0b1f4a7d2938e5fa6c07b1e4d8829b3c5f6071a2e4d98",
}
PAYER: Context = {
    "name": "Jordan Rivera",
    "email": "jordan.rivera@mail.example",
    "address": "1480 Mission Street, Apt 5\nSan Francisco, CA 94103",
}


def plan(
    amounts: str = "$25.00", total: str = "$100.00", states: str = "today due due due", **more: object
) -> Context:
    """Return four payments of one amount, in the given states."""
    days = zip(DAYS, states.split(), strict=True)
    payments = [
        {"number": n, "label": label, "iso": iso, "amount": amounts, "state": state}
        for n, ((label, iso), state) in enumerate(days, 1)
    ]
    return {"payments": payments, "total": total, "no_cost": True, "finance": None, **more}


def page(title: str, lead: str | None, step: int | None = None, /, **more: object) -> Context:
    """Return the data that every page gets."""
    common: Context = {
        "brand": BRAND,
        "page": {"title": title, "lead": lead, "step": step, "steps": 4},
        "merchant": {"name": "Northwind Outfitters"},
        "total": "$100.00",
        "sandbox": True,
        "form": {"action": "/c/3f9a51", "csrf": "csrf-token", "query": "", "more": ""},
        "errors": {},
        "notice": None,
        "values": {},
        "lines": LINES,
        "charges": CHARGES,
        "plan": plan(),
    }
    return {**common, **more}


def phone(**more: object) -> Context:
    """Return the data of step 1."""
    return page("Pay in four", "Four payments, two weeks apart. First, confirm your phone number.", 1, **more)


def code(**more: object) -> Context:
    """Return the data of step 2."""
    lead = "We texted a code to •••• ••42, to make sure that it is you."
    return page("Enter your code", lead, 2, **{"phone_masked": "•••• ••42", "sandbox_code": "123456", **more})


def details(**more: object) -> Context:
    """Return the data of step 3."""
    lead = "We need to know who pays and where the card is billed."
    return page("Your details", lead, 3, states=STATES, **more)


def pay(**more: object) -> Context:
    """Return the data of step 4."""
    given: Context = {
        "payer": PAYER,
        "card": CARD_FORM,
        "agreement": AGREEMENT,
        "details_hash": "0" * 64,
        "pay_label": "Pay $25.00 today",
    }
    return page(
        "Review and pay",
        "You pay the first installment now, the rest from the same card.",
        4,
        **{**given, **more},
    )


def review(answer: str, **more: object) -> Context:
    """Return the data of the page that waits for a person."""
    lead = f"We need a little more time: a person is reviewing your order. The answer comes {answer}."
    return page("We are looking at your order", lead, texts=REVIEW_TEXTS, **more)


def result(
    outcome: str, headline: str, *text: str, label: str = "Back to Northwind Outfitters", **more: object
) -> Context:
    """Return the data of the last page, for any result."""
    given: Context = {
        "outcome": outcome,
        "headline": headline,
        "text": text,
        "return_url": SHOP,
        "return_label": label,
    }
    return page(headline, None, **{**given, **more})


def problem(headline: str, text: str, **more: object) -> Context:
    """Return the data of an error page, which has little data."""
    bare: Context = {
        "brand": BRAND,
        "page": {"title": headline, "lead": None, "step": None, "steps": 4},
        "merchant": None,
    }
    return {**bare, "headline": headline, "text": text, **more}


DETAILS_ERRORS = {
    "given_names": "Enter your first name.",
    "email": "Enter an email address such as name@mail.example.",
    "address_line1": "Enter your street and number.",
    "city": "Enter your city.",
    "state": "Choose your state.",
    "postcode": "Enter the 5 digits of your ZIP code.",
}
DETAILS_VALUES = {"given_names": "J", "surname": "Rivera", "email": "jordan.rivera@", "postcode": "941"}
PAY_ERRORS = {
    "card_number": "Check the card number: a digit seems to be wrong.",
    "card_expiry": "Use a date in the future.",
    "card_cvc": "Enter 3 digits.",
    "agree": "To pay, read and accept the agreement.",
}
DECLINED_NOTICE = "This card was declined by its bank. Try another card: your order is kept for 58 minutes."
COSTED = plan("$25.63", "$102.50", no_cost=False, finance=FINANCE)
DEAR = plan("$12,345.67", "$49,382.68")

SAMPLES: dict[str, tuple[str, Context]] = {
    "phone": ("phone.html", phone()),
    "phone-error": (
        "phone.html",
        phone(errors={"phone": "Enter the 10 digits of a US mobile number."}, values={"phone": "415555"}),
    ),
    "phone-no-lines": ("phone.html", phone(lines=[], charges=[], sandbox=False)),
    "phone-30-lines": ("phone.html", phone(lines=MANY)),
    "phone-long": ("phone.html", phone(merchant={"name": LONG_SHOP}, total="$49,382.68", plan=DEAR)),
    "phone-500": ("phone.html", phone(total="$2,000.00", plan=plan("$500.00", "$2,000.00"))),
    "phone-brand": (
        "phone.html",
        phone(
            brand={"name": "Lumen", "logo": "/static/logo.svg", "stylesheet": "/static/brand.css"},
            sandbox=False,
        ),
    ),
    "code": ("code.html", code()),
    "code-error": (
        "code.html",
        code(errors={"code": "That code does not match. You have 3 more tries."}, values={"code": "123455"}),
    ),
    "code-resent": (
        "code.html",
        code(notice="A new code is on its way to •••• ••42.", notice_tone="done", sandbox_code=None),
    ),
    "details": ("details.html", details()),
    "details-filled": (
        "details.html",
        details(values={**DETAILS_VALUES, "given_names": "Jordan", "state": "CA"}),
    ),
    "details-errors": ("details.html", details(errors=DETAILS_ERRORS, values=DETAILS_VALUES)),
    "pay": ("pay.html", pay()),
    "pay-finance": ("pay.html", pay(plan=COSTED, pay_label="Pay $25.63 today")),
    "pay-declined": ("pay.html", pay(notice=DECLINED_NOTICE)),
    "pay-errors": ("pay.html", pay(errors=PAY_ERRORS, card={**CARD_FORM, "test_cards": []}, sandbox=False)),
    "pay-30-lines": ("pay.html", pay(lines=MANY, merchant={"name": LONG_SHOP})),
    "review": ("review.html", review("by text message to •••• ••42, by 2:50 PM EST at the latest")),
    "pay-reviewed": ("pay.html", pay(notice=REVIEWED_NOTICE, notice_tone="calm")),
    "working": ("working.html", page("Your payment is on its way", "There is nothing you need to do.")),
    "approved": (
        "result.html",
        result(
            "approved",
            "You paid $25.00",
            "Your order at Northwind Outfitters is confirmed.",
            "We remind you before each of the three payments to come.",
            plan=plan(states="paid due due due"),
        ),
    ),
    "approved-refunded": (
        "result.html",
        result(
            "approved",
            "You paid $25.00",
            "Part of it was refunded.",
            plan=plan(total="$50.00", states="paid due cancelled cancelled"),
        ),
    ),
    "declined": (
        "result.html",
        result(
            "declined",
            "This payment was not approved",
            "The card was declined by its bank three times. Nothing was charged.",
            "Northwind Outfitters may offer other ways to pay. Your bank can tell you why it declined the card.",
            label="Return to Northwind Outfitters",
        ),
    ),
    "declined-by-risk": (
        "result.html",
        result(
            "declined",
            "This payment was not approved",
            "We could not approve this purchase. Nothing was charged.",
            "You can choose another way to pay in the shop.",
            label="Return to Northwind Outfitters",
            reasons=sentences(["overdue_payments", "over_limit"], "$2,000.00"),
        ),
    ),
    "abandoned": (
        "result.html",
        result(
            "abandoned",
            "You left this checkout",
            "Nothing was charged.",
            label="Return to Northwind Outfitters",
        ),
    ),
    "problem-unknown": (
        "problem.html",
        problem("We cannot find this checkout", "The link is incomplete or was copied wrongly."),
    ),
    "problem-expired": (
        "problem.html",
        problem(
            "This checkout has expired",
            "An order is kept for 60 minutes. Nothing was charged.",
            merchant={"name": "Northwind Outfitters"},
            return_url=SHOP,
            return_label="Return to Northwind Outfitters",
            sandbox=True,
        ),
    ),
    "problem-session": (
        "problem.html",
        problem(
            "Open the link from the shop again",
            "This checkout was started in another browser.",
            form={"action": "/c/3f9a51"},
        ),
    ),
}
