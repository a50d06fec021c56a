"""The list of merchants: searched by name or id, filtered by state, sorted by name or the newest first."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import urlencode
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from cuota.core import money
from cuota.core.operator.role import OperatorAction
from cuota.core.refusal import Refused
from cuota.db.operator import merchant_list
from cuota.db.operator.merchant_list import (
    MOST_COUNTED,
    ListedMerchant,
    MerchantQuery,
    MerchantSort,
    MerchantState,
)
from cuota.db.pool import Pool
from cuota.db.session import Session
from cuota.web.ids import guid
from cuota.web.pages.checkout.session import see_other
from cuota.web.pages.desk.view import day_of
from cuota.web.pages.operator.parts import cell, position_of, state, table
from cuota.web.pages.operator.view import common
from cuota.web.pages.operator.visit import PATH, OperatorDesk, allowed
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of

A_PAGE = 50
MERCHANTS = f"{PATH}/merchants"
LONGEST_TEXT = 100
STATE_WORDS = {
    MerchantState.ACTIVE: ("Active", "done"),
    MerchantState.ONBOARDING: ("Onboarding", "wait"),
    MerchantState.SUSPENDED: ("Suspended", "bad"),
    MerchantState.REVOKED: ("Revoked", "off"),
    MerchantState.TO_CHECK: ("To check", "wait"),
}
_SORTS = {MerchantSort.NAME: "By name", MerchantSort.NEWEST: "Newest first"}
_EMPTY = {
    None: "No merchant yet. Add the first one.",
    MerchantState.ACTIVE: "No merchant is active.",
    MerchantState.ONBOARDING: "No merchant waits for its approval.",
    MerchantState.SUSPENDED: "No merchant is suspended.",
    MerchantState.REVOKED: "No merchant is revoked.",
    MerchantState.TO_CHECK: "Nothing needs to be checked.",
}


@allowed(OperatorAction.READ_MERCHANTS)
async def listed(request: Request, desk: OperatorDesk) -> Response:
    """List the merchants, 50 on a page. A search for a whole id opens the merchant's page."""
    pool, asked = service_of(request).context.pool, _query_of(request)
    if (found_id := await _by_id(pool, asked.text)) is not None:
        return see_other(f"{MERCHANTS}/{found_id}")
    after = request.query_params.get("after", "")
    found = await _page_of(desk.every, asked, after)
    shown = found[:A_PAGE]
    # If all merchants are on the first page, their number is known without a count in the database.
    whole = not after and len(found) <= A_PAGE
    count = len(found) if whole else await merchant_list.count(desk.every, asked)
    checks = await merchant_list.to_check(desk.every, [each.merchant_id for each in shown])
    values: PageContext = {
        **common(request, desk, "Merchants", here=MERCHANTS),
        "sections": [_table(shown, checks, asked, _links(asked, after, found))],
        "summary": _summary(asked, count),
        "filters": {"q": asked.text, "state": asked.state or "", "sort": asked.sort},
        "any": bool(asked.text or asked.state),
        "states": [{"value": "", "label": "All"}, *_options(STATE_WORDS)],
        "sorts": [{"value": each.value, "label": label} for each, label in _SORTS.items()],
        "can_add": desk.may(OperatorAction.CHANGE_MERCHANTS),
    }
    return page(request, "operator/merchants.html", values)


def _options(words: dict[MerchantState, tuple[str, str]]) -> list[PageContext]:
    return [{"value": each.value, "label": label} for each, (label, _) in words.items()]


def _query_of(request: Request) -> MerchantQuery:
    """Read the filters from the address. Unknown values are ignored."""
    given = request.query_params
    text = "".join(char for char in given.get("q", "").strip()[:LONGEST_TEXT] if char.isprintable())
    of_state, sort = given.get("state", ""), given.get("sort", "")
    return MerchantQuery(
        text,
        MerchantState(of_state) if of_state in set(MerchantState) else None,
        MerchantSort(sort) if sort in set(MerchantSort) else MerchantSort.NAME,
    )


async def _by_id(pool: Pool, text: str) -> UUID | None:
    try:
        merchant_id = guid(text)
    except Refused:
        return None
    return merchant_id if await merchant_list.read_one(pool, merchant_id) else None


async def _page_of(session: Session, asked: MerchantQuery, after: str) -> list[ListedMerchant]:
    """Return one row more than fits on a page, if there is a next page."""
    if asked.sort is MerchantSort.NEWEST:
        return await merchant_list.newest(session, asked, position_of(after), A_PAGE + 1)
    name = after[:LONGEST_TEXT] if after.isprintable() else ""
    return await merchant_list.by_name(session, asked, name, A_PAGE + 1)


def _links(asked: MerchantQuery, after: str, found: list[ListedMerchant]) -> list[tuple[str, str]]:
    links = [(_address(asked), "First page")] if after else []
    if len(found) > A_PAGE:
        last = found[A_PAGE - 1]
        by_name = asked.sort is MerchantSort.NAME
        links.append((_address(asked, last.name if by_name else _at(last.created_at, last)), "Next page"))
    return links


def _at(created_at: datetime, last: ListedMerchant) -> str:
    return f"{created_at.isoformat()}_{last.merchant_id}"


def _address(asked: MerchantQuery, after: str = "") -> str:
    """Return the address of a page of the list, which a person can send to a colleague."""
    sort = "" if asked.sort is MerchantSort.NAME else asked.sort.value
    given = {"q": asked.text, "state": asked.state or "", "sort": sort, "after": after}
    query = urlencode({name: text for name, text in given.items() if text})
    return f"{MERCHANTS}?{query}" if query else MERCHANTS


def _summary(asked: MerchantQuery, count: int) -> str:
    """Return a text with the number of merchants and the filters."""
    many = f"More than {MOST_COUNTED:,} merchants" if count > MOST_COUNTED else f"{count:,} merchants"
    said = "1 merchant" if count == 1 else many
    if asked.state is not None:
        said += f", {STATE_WORDS[asked.state][0].lower()}"
    return f"{said}, with “{asked.text}” in the name" if asked.text else said


def _table(
    shown: list[ListedMerchant], checks: set[UUID], asked: MerchantQuery, links: list[tuple[str, str]]
) -> PageContext:
    columns = [
        cell("Name"), cell("Since", wide=True), cell("Status"), cell("Largest order", amount=True, wide=True),
    ]  # fmt: skip
    rows = [
        [
            cell(
                each.name,
                f"{MERCHANTS}/{each.merchant_id}",
                more="something needs to be checked" if each.merchant_id in checks else "",
            ),
            cell(day_of(each.created_at), wide=True),
            state(*STATE_WORDS[each.state]),
            cell(money.shown(each.maximum, each.currency), amount=True, wide=True),
        ]
        for each in shown
    ]
    empty = "No merchant has this in its name. Enter a part of the name, or the whole id."
    return table("", columns, rows, empty if asked.text else _EMPTY[asked.state], links)
