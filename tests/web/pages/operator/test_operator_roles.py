"""Every role of the operator against every route of the operator's dashboard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from cuota.core.operator.role import (
    OPERATOR_MAY,
    OPERATOR_WORDS,
    OperatorAction,
    OperatorRole,
    operator_grantable,
)
from cuota.web.app import ROUTES
from cuota.web.operator_routes import OPERATOR
from support.makers import Merchant
from support.pages.operator_staff import OperatorStaff
from support.pages.staff import Staff

OPEN = {
    "/operator/sign-in", "/operator/enter/{link_id}/{code}", "/operator/code", "/operator/leave",
    "/operator/sign-in/passkey", "/operator/sign-in/passkey/options", "/operator/provider", "/operator/provider/return",
}  # fmt: skip
GUARDED = [
    (method, row)
    for row in ROUTES
    if row.area is OPERATOR and row.path not in OPEN
    for method in row.methods.split()
]
NAMES = [f"{method} {row.path}" for method, row in GUARDED]


def needed(row: Any) -> tuple[OperatorAction, ...]:
    actions: tuple[OperatorAction, ...] = row.endpoint.actions
    return actions


def path_of(row: Any) -> str:
    return "/".join(str(uuid4()) if part.startswith("{") else part for part in row.path.split("/"))


def test_every_route_names_the_actions_that_it_needs() -> None:
    for _, row in GUARDED:
        assert needed(row), row.path


def test_every_action_belongs_to_a_role_and_every_role_has_a_text() -> None:
    assert set().union(*OPERATOR_MAY.values()) == set(OperatorAction)
    assert set(OPERATOR_MAY) == set(OPERATOR_WORDS) == set(OperatorRole)


def test_only_an_owner_grants_roles() -> None:
    assert {role for role in OperatorRole if operator_grantable(role)} == {OperatorRole.OWNER}


@pytest.mark.parametrize("role", list(OperatorRole))
async def test_a_role_can_use_exactly_the_routes_whose_actions_it_has(
    operator: OperatorStaff, role: OperatorRole
) -> None:
    await operator.enter(role)
    csrf = operator.page.form("leave")[1]["csrf"]
    for method, row in GUARDED:
        answer = await operator.http.request(
            method, path_of(row), data={"csrf": csrf} if method == "POST" else None
        )
        refused = answer.status_code == 403 and "Your role does not include this" in answer.text
        assert refused is not (set(needed(row)) <= OPERATOR_MAY[role]), (method, row.path, answer.status_code)


@pytest.mark.parametrize(("method", "row"), GUARDED, ids=NAMES)
async def test_a_browser_without_a_session_can_use_no_route(
    operator: OperatorStaff, method: str, row: Any
) -> None:
    data = {"csrf": "x"} if method == "POST" else None
    answer = await operator.http.request(method, path_of(row), data=data)
    assert (answer.status_code, answer.headers.get("location")) == (303, "/operator/sign-in")


async def test_a_session_of_the_merchant_s_dashboard_gives_no_access_to_the_operator_s_dashboard(
    operator: OperatorStaff, merchant: Merchant
) -> None:
    staff = Staff(operator.http, merchant)
    await staff.enter()
    secret = operator.http.cookies["desk"].partition(".")[2]
    for cookie in (operator.http.cookies["desk"], secret):
        operator.http.cookies.set("operator", cookie)
        for method, row in GUARDED:
            data = {"csrf": "x"} if method == "POST" else None
            answer = await operator.http.request(method, path_of(row), data=data)
            assert answer.headers.get("location") == "/operator/sign-in", row.path


async def test_a_session_of_the_operator_s_dashboard_gives_no_access_to_a_merchant_s_dashboard(
    operator: OperatorStaff, merchant: Merchant
) -> None:
    await operator.enter()
    secret = operator.http.cookies["operator"]
    operator.http.cookies.set("desk", f"{merchant.merchant_id.hex}.{secret}")
    assert (await operator.open("/desk/orders")).heading == "Sign in"


@pytest.mark.parametrize("role", list(OperatorRole))
async def test_the_first_page_has_no_link_to_a_page_that_the_role_may_not_see(
    operator: OperatorStaff, role: OperatorRole
) -> None:
    await operator.enter(role)
    for path in sorted({link for link in operator.page.seen.links if link.startswith("/operator")}):
        assert (await operator.open(path)).status == 200, path


async def test_unknown_ids_and_malformed_ids_show_the_same_page(
    desk_browser: Callable[..., OperatorStaff],
) -> None:
    operator = desk_browser()
    await operator.enter()
    csrf = operator.page.form("leave")[1]["csrf"]
    for method, row in GUARDED:
        if "{" not in row.path:
            continue
        malformed = "/".join("no-id" if part.startswith("{") else part for part in row.path.split("/"))
        seen = []
        for path in (path_of(row), malformed):
            data = {"csrf": csrf, "reason": "r"} if method == "POST" else None
            answer = await operator.http.request(method, path, data=data)
            assert answer.status_code == 404, (method, path)
            seen.append(answer.text)
        assert seen[0] == seen[1], row.path
