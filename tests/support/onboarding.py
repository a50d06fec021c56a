"""The data of a merchant's onboarding as forms send it, and a screening rail that a test controls."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID, uuid4

from cuota.core.dispute.evidence import EvidenceFile
from cuota.core.merchant import Merchant
from cuota.core.onboarding.business import read_business
from cuota.core.onboarding.checklist import DECIDABLE, Item, ItemState
from cuota.core.onboarding.document import DocumentKind
from cuota.core.onboarding.owner import read_owner
from cuota.core.onboarding.screening import Finding
from cuota.db.merchant import merchants
from cuota.flows.context import Context
from cuota.flows.desk.record import Actor
from cuota.flows.merchant.manage_merchants import MerchantTerms, create_merchant
from cuota.flows.onboarding.change_business import change_business
from cuota.flows.onboarding.change_checklist import Hand
from cuota.flows.onboarding.change_owners import add_owner
from cuota.flows.onboarding.decide_item import decide_item
from cuota.flows.onboarding.keep_documents import add_documents
from cuota.flows.onboarding.read_checklist import read_checklist
from cuota.flows.onboarding.screen_names import screen_merchant
from cuota.flows.operator.log_action import OperatorActor
from cuota.rails.screening.protocol import ScreeningMatch, ScreeningRequest
from cuota.rails.screening.rails import BoundedScreeningRail
from cuota.rails.unavailable import RailUnavailable

BUSINESS = {
    "legal_name": "Northwind Outfitters LLC", "trading_name": "Northwind", "ein": "12-3456789", "type": "llc",
    "website": "https://northwind.example", "address_line1": "1480 Mission Street", "address_line2": "", "city": "San Francisco",
    "state": "CA", "postcode": "94103", "sells": "Tents and outdoor clothing, online.",
}  # fmt: skip
OWNER = {"name": "Jordan Rivera", "born": "03/09/1979", "share": "60", "controlling": "yes"}
NOTE = EvidenceFile("registration.txt", "text/plain", b"Registered in California.")
# A person of the merchant's team who is in no table, and a person of the operator.
THEIRS = Hand(Actor(None))
RISK = OperatorActor(None, user="risk")


def requiring_approval(context: Context) -> Context:
    """Return the service with settings that require an approval of new merchants."""
    return replace(context, settings=replace(context.settings, onboarding="required"))


async def new_merchant(context: Context) -> UUID:
    """Create a merchant, and return its id."""
    made = await create_merchant(context, MerchantTerms(name=f"Shop {uuid4().hex[:8]}"))
    return made.merchant.merchant_id


async def fill(context: Context, merchant_id: UUID, *, business: str = "", owner: str = "") -> None:
    """Enter all data of a merchant, with these names instead of the usual names."""
    named = {**BUSINESS, "legal_name": business} if business else BUSINESS
    seen = (await read_checklist(context, merchant_id)).facts.version
    await change_business(context, merchant_id, THEIRS, read_business(named), seen)
    person = read_owner({**OWNER, "name": owner or OWNER["name"]}, context.now().date())
    await add_owner(context, merchant_id, THEIRS, context.new_id(), person)
    await add_documents(context, merchant_id, THEIRS, DocumentKind.REGISTRATION, [NOTE])


async def stored(context: Context, merchant_id: UUID) -> Merchant:
    """Return the stored merchant."""
    found = await merchants.read(context.pool, merchant_id)
    assert found is not None
    return found


async def state_of(context: Context, merchant_id: UUID, item: Item) -> ItemState:
    """Return the current state of an item."""
    return (await read_checklist(context, merchant_id)).checklist[item].state


async def finding_of(context: Context, merchant_id: UUID) -> Finding:
    """Return the only possible match of the merchant's names."""
    (found,) = (await read_checklist(context, merchant_id)).facts.screening.findings
    return found


async def decide(
    context: Context, merchant_id: UUID, item: Item, *, accepted: bool = True, reason: str = "checked"
) -> None:
    """Decide about the current state of an item."""
    seen = (await read_checklist(context, merchant_id)).checklist[item].about
    merchant = await stored(context, merchant_id)
    await decide_item(context, merchant, RISK, item, seen, reason, accepted=accepted)


async def approve(context: Context, merchant_id: UUID) -> None:
    """Enter all data, screen the names, and accept every item."""
    await fill(context, merchant_id)
    assert await screen_merchant(context, merchant_id) is None
    for item in Item:
        if item in DECIDABLE:
            await decide(context, merchant_id, item)


class TestRail:
    """A screening rail that returns the matches that the test sets, or does not answer."""

    __test__ = False
    name = "testing"

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.found: dict[str, list[ScreeningMatch]] = {}
        self.silent = False

    async def screen(self, request: ScreeningRequest) -> list[ScreeningMatch]:
        self.asked.append(request.name)
        if self.silent:
            raise RailUnavailable("the list is being updated")
        return self.found.get(request.name, [])


def with_screening(context: Context, rail: TestRail | None) -> Context:
    """Return the context with another screening rail, or without one."""
    bounded = None if rail is None else BoundedScreeningRail(rail)
    return replace(context, rails=replace(context.rails, screening=bounded))
