"""The operator's list of merchants: search, states, orders, pages, and addresses that can be shared."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from urllib.parse import quote
from uuid import UUID, uuid4

import pytest

from cuota.core.merchant import Onboarding
from cuota.core.operator.role import OperatorRole
from cuota.db.onboarding import onboardings
from cuota.flows.context import Context
from cuota.flows.merchant.manage_merchants import MerchantTerms, create_merchant, revoke_merchant
from cuota.flows.merchant.suspend_merchant import suspend_merchant
from cuota.web.pages.operator.merchant import listing
from support.makers import Merchant
from support.pages.operator_staff import OperatorStaff

LIST = "/operator/merchants"
ODD = ("%", "_x", "a' OR 'b", "Äpfel & Söhne", "ZOË <b>", "zoë", "日本", "a\\b", "+1")


@pytest.fixture
def context(merchant: Merchant) -> Context:
    return merchant.service.context


@pytest.fixture
def word() -> str:
    """A word that only the merchants of one test have in their names."""
    return f"w{uuid4().hex[:10]}"


async def made(context: Context, name: str) -> UUID:
    return (await create_merchant(context, MerchantTerms(name=name))).merchant.merchant_id


def shown(operator: OperatorStaff) -> list[str]:
    """Return the names on the page, in its order."""
    return [
        text
        for link, text in operator.page.seen.links.items()
        if re.fullmatch(rf"{LIST}/[0-9a-f-]{{36}}", link)
    ]


async def every_page(operator: OperatorStaff, address: str) -> list[str]:
    """Return the names on all pages."""
    await operator.open(address)
    names = shown(operator)
    while "Next page" in operator.page.text:
        await operator.open(operator.page.link("Next page"))
        names += shown(operator)
    return names


async def test_merchants_are_found_by_a_part_of_the_name_regardless_of_case(
    operator: OperatorStaff, context: Context, word: str
) -> None:
    await made(context, f"Blue {word.upper()} Bakery")
    await operator.enter(OperatorRole.SUPPORT)
    await operator.open(LIST)
    action, held = operator.page.form("merchants")
    page = await operator.open(f"{action}?q={word}&state={held['state']}&sort={held['sort']}")
    assert shown(operator) == [f"Blue {word.upper()} Bakery"]
    assert f"1 merchant, with “{word}” in the name" in page.text
    assert page.form("merchants")[1]["q"] == word


async def test_the_whole_id_opens_the_merchant_and_an_unknown_id_finds_nothing(
    operator: OperatorStaff, merchant: Merchant
) -> None:
    await operator.enter(OperatorRole.SUPPORT)
    for typed in (str(merchant.merchant_id), f" {str(merchant.merchant_id).upper()} "):
        page = await operator.open(f"{LIST}?q={quote(typed)}")
        assert page.heading == merchant.name
    page = await operator.open(f"{LIST}?q={uuid4()}")
    assert (page.status, page.heading) == (200, "Merchants")
    assert "Enter a part of the name, or the whole id" in page.text


async def test_each_merchant_is_in_the_list_of_exactly_one_state(
    operator: OperatorStaff, context: Context, word: str
) -> None:
    ids = {
        name: await made(context, f"{name} {word}")
        for name in ("active", "onboarding", "suspended", "revoked")
    }
    await onboardings.set_standing(context.pool, ids["onboarding"], Onboarding.OPEN)
    await suspend_merchant(context, str(ids["suspended"]), hold=False)
    # A merchant is in one list, even if it has more than one state.
    await onboardings.set_standing(context.pool, ids["suspended"], Onboarding.OPEN)
    await suspend_merchant(context, str(ids["revoked"]), hold=False)
    await revoke_merchant(context, str(ids["revoked"]))
    await operator.enter(OperatorRole.SUPPORT)
    for sort in ("name", "newest"):
        for name in ids:
            page = await operator.open(f"{LIST}?q={word}&state={name}&sort={sort}")
            assert shown(operator) == [f"{name} {word}"]
            assert f"1 merchant, {name}, with" in page.text
            assert "Show all merchants" in page.text
    assert len(await every_page(operator, f"{LIST}?q={word}")) == 4


async def test_each_merchant_with_an_unusual_name_is_on_exactly_one_page_in_both_orders(
    operator: OperatorStaff, context: Context, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "A_PAGE", 2)
    # Two names cannot differ only in their case, so each name has a number.
    names = [f"{each} {number} {word}" for number, each in enumerate(ODD)]
    for name in names:
        await made(context, name)
    await operator.enter(OperatorRole.SUPPORT)
    for sort in ("name", "newest"):
        found = await every_page(operator, f"{LIST}?q={word}&sort={sort}")
        assert sorted(found) == sorted(names), sort
        assert (found == names[::-1]) is (sort == "newest")


@pytest.mark.parametrize("text", ODD)
async def test_a_search_treats_every_character_literally(
    operator: OperatorStaff, context: Context, word: str, text: str
) -> None:
    await made(context, f"{text}{word}")
    await made(context, f"zzz {word}")
    await operator.enter(OperatorRole.SUPPORT)
    await operator.open(f"{LIST}?q={quote(text + word)}")
    assert shown(operator) == [f"{text}{word}"]


async def test_each_merchant_that_was_created_at_the_same_moment_is_on_exactly_one_page(
    operator: OperatorStaff, context: Context, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "A_PAGE", 2)
    ids = [await made(context, f"Same {number} {word}") for number in range(5)]
    await context.pool.execute(
        "UPDATE merchants SET created_at = $2 WHERE merchant_id = ANY ($1::uuid[])",
        ids,
        datetime(2020, 1, 1, tzinfo=UTC),
    )
    await operator.enter(OperatorRole.SUPPORT)
    found = await every_page(operator, f"{LIST}?q={word}&sort=newest")
    assert sorted(found) == [f"Same {number} {word}" for number in range(5)]


async def test_the_address_of_a_page_shows_the_same_page_to_a_colleague(
    operator: OperatorStaff, context: Context, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "A_PAGE", 1)
    for name in ("a", "b", "c"):
        await made(context, f"{name} {word}")
    await operator.enter(OperatorRole.SUPPORT)
    page = await operator.open(f"{LIST}?q={word}&state=active")
    address = page.link("Next page")
    page = await operator.open(address)
    assert shown(operator) == [f"b {word}"]
    filters = page.form("merchants")[1]
    assert (filters["q"], filters["state"], filters["sort"]) == (word, "active", "name")
    assert page.link("First page") == f"{LIST}?q={word}&state=active"


@pytest.mark.parametrize(
    "query",
    ["state=x&sort=y", "after=%00", "sort=newest&after=x", "sort=newest&after=_", "q=%00", "q=%ff", f"q={'x' * 3000}", "after=" + "y" * 3000],
    ids=["values", "nul", "position", "half", "nul-text", "bytes", "long", "long-name"],
)  # fmt: skip
async def test_an_address_with_wrong_parameters_still_shows_a_list(
    operator: OperatorStaff, query: str
) -> None:
    await operator.enter(OperatorRole.SUPPORT)
    page = await operator.open(f"{LIST}?{query}")
    assert (page.status, page.heading) == (200, "Merchants")


async def test_an_empty_list_says_which_merchants_it_would_contain(
    operator: OperatorStaff, word: str
) -> None:
    await operator.enter(OperatorRole.SUPPORT)
    page = await operator.open(f"{LIST}?q={word}")
    assert "No merchant has this in its name" in page.text
    assert "0 merchants" in page.text
    assert page.link("Show all merchants") == LIST


async def test_a_person_who_may_not_add_merchants_sees_no_button(operator: OperatorStaff) -> None:
    await operator.enter(OperatorRole.SUPPORT)
    assert "Add a merchant" not in (await operator.open(LIST)).text
