"""Every role against every route of the merchant's dashboard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest

from cuota.core.desk.person import Person
from cuota.core.desk.role import MAY, ROLE_WORDS, Action, Role, grantable
from cuota.core.dispute.evidence import EvidenceFile
from cuota.core.order.movement import MovementKind, MovementRequest
from cuota.db.desk import approvals
from cuota.flows.desk.approve_move import ask_approval
from cuota.flows.desk.record import Actor
from cuota.flows.onboarding.read_checklist import read_checklist
from cuota.flows.webhook.show_event import event_id
from cuota.web.app import ROUTES
from cuota.web.desk_routes import DESK
from support.disputes import disputed
from support.makers import Merchant
from support.onboarding import fill
from support.pages.passkeys import Keyed
from support.pages.staff import Staff
from support.request_log import written
from support.settlement_rows import Row, paid

# These routes are for a browser that is not signed in yet, or that signs out.
OPEN = {
    "/desk/sign-in",
    "/desk/enter/{merchant_id}/{link_id}/{code}",
    "/desk/code",
    "/desk/leave",
    "/desk/sign-in/passkey",
    "/desk/sign-in/passkey/options",
}
GUARDED = [
    (method, row)
    for row in ROUTES
    if row.area is DESK and row.path not in OPEN
    for method in row.methods.split()
]
NAMES = [f"{method} {row.path}" for method, row in GUARDED]


def needed(row: Any) -> tuple[Action, ...]:
    actions: tuple[Action, ...] = row.endpoint.actions
    return actions


def test_every_route_of_the_dashboard_names_the_actions_that_it_needs() -> None:
    for _, row in GUARDED:
        assert needed(row), row.path


def test_every_action_belongs_to_a_role_and_every_role_has_a_text() -> None:
    assert set().union(*MAY.values()) == set(Action)
    assert set(MAY) == set(ROLE_WORDS) == set(Role)


def test_a_role_that_may_not_change_the_team_cannot_grant_roles() -> None:
    assert {role: bool(grantable(role)) for role in Role} == {
        role: role in {Role.OWNER, Role.ADMIN} for role in Role
    }
    assert Role.OWNER not in grantable(Role.ADMIN)


@pytest.mark.parametrize("role", list(Role))
async def test_a_role_can_use_exactly_the_routes_whose_actions_it_has(staff: Staff, role: Role) -> None:
    await staff.enter(role)
    csrf = staff.page.form("leave")[1]["csrf"]
    ids = {"order_id": (await staff.shop.approved())["orderId"]}
    for method, row in GUARDED:
        path = "/".join(
            ids.get(part[1:-1], str(uuid4())) if part.startswith("{") else part
            for part in row.path.split("/")
        )
        answer = await staff.http.request(method, path, data={"csrf": csrf} if method == "POST" else None)
        refused = answer.status_code == 403 and "Your role does not include this" in answer.text
        assert refused is not (set(needed(row)) <= MAY[role]), (method, path, answer.status_code)


@pytest.mark.parametrize(("method", "row"), GUARDED, ids=NAMES)
async def test_a_browser_without_a_session_can_use_no_route(staff: Staff, method: str, row: Any) -> None:
    path = "/".join(str(uuid4()) if part.startswith("{") else part for part in row.path.split("/"))
    answer = await staff.http.request(method, path, data={"csrf": "x"} if method == "POST" else None)
    assert (answer.status_code, answer.headers.get("location")) == (303, "/desk/sign-in")


async def asked_for(shop: Merchant, person: Person, order: dict[str, Any]) -> UUID:
    """Ask for a refund that a second person must approve."""
    context, order_id = shop.service.context, UUID(order["orderId"])
    asked = MovementRequest(MovementKind.REFUND, "desk-0123456789ab", 1000)
    await ask_approval(context, shop.merchant_id, Actor(person), order_id, asked, "returned")
    (found,) = await approvals.newest(context.pool, shop.merchant_id, 1)
    return found.approval_id


async def passkey_of(staff: Staff) -> str:
    """Sign in, and add a passkey. Return its id."""
    await staff.enter()
    keyed = Keyed(staff, "/desk")
    await keyed.add()
    return (await keyed.listed()).link("laptop").rpartition("/")[2]


async def test_another_merchant_s_ids_get_the_same_answer_as_unknown_ids(
    staff: Staff, browser: Callable[..., Staff], auto_merchant: Merchant
) -> None:
    other = browser(auto_merchant)
    person = await other.invited("foreign@shop.example")
    order = await auto_merchant.approved()
    note = EvidenceFile("note.txt", "text/plain", b"Nothing came.")
    dispute = await disputed(auto_merchant, order, 4000, files=(note,))
    hook = await auto_merchant.http.post("/webhook-endpoints", json={"url": "https://shop.example/hooks"})
    pool = staff.service.context.pool
    (file,) = await pool.fetch(
        "SELECT evidence_id FROM dispute_files WHERE dispute_id = $1", dispute.dispute_id
    )
    await fill(auto_merchant.service.context, auto_merchant.merchant_id)
    onboarding = (await read_checklist(auto_merchant.service.context, auto_merchant.merchant_id)).facts
    theirs = {
        "owner_id": str(onboarding.owners[0].owner_id),
        "document_id": str(onboarding.documents[0].document_id),
        "order_id": order["orderId"],
        "person_id": str(person.person_id),
        "event_id": event_id(UUID(order["orderId"]), 1),
        "payout_id": await paid(auto_merchant, Row("capture", 100)),
        "dispute_id": str(dispute.dispute_id),
        "approval_id": str(await asked_for(auto_merchant, person, order)),
        "request_id": str((await written(auto_merchant))[0].request_id),
        "endpoint_id": hook.json()["id"],
        "passkey_id": await passkey_of(other),
        "evidence_id": str(file["evidence_id"]),
        "number": "1",
    }
    await staff.enter()
    csrf = staff.page.form("leave")[1]["csrf"]
    for method, row in GUARDED:
        names = [part[1:-1] for part in row.path.split("/") if part.startswith("{")]
        if not names:
            continue
        seen = []
        for ids in (theirs, {name: str(uuid4()) for name in names}, dict.fromkeys(names, "no-id")):
            path = "/".join(ids[part[1:-1]] if part.startswith("{") else part for part in row.path.split("/"))
            # The service reads a form with files before it looks for the dispute.
            files = {"files": ("", b"")} if path.endswith(("/evidence", "/appeal")) else None
            form = {"csrf": csrf} if method == "POST" else None
            answer = await staff.http.request(method, path, data=form, files=files)
            assert answer.status_code == 404, (method, row.path)
            seen.append(answer.text)
        assert seen[0] == seen[1] == seen[2], row.path


async def test_the_menu_shows_only_what_the_role_may_see(browser: Callable[..., Staff]) -> None:
    for role in Role:
        staff = browser()
        await staff.enter(role)
        assert ("/desk/audit" in staff.page.seen.links) is (Action.READ_AUDIT in MAY[role])
        assert ("/desk/team" in staff.page.seen.links) is (Action.READ_TEAM in MAY[role])


@pytest.mark.parametrize("role", list(Role))
async def test_the_first_page_has_no_link_to_a_page_that_the_role_may_not_see(
    staff: Staff, role: Role
) -> None:
    await staff.enter(role)
    for path in sorted({link for link in staff.page.seen.links if link.startswith("/desk")}):
        assert (await staff.open(path)).status == 200, path
