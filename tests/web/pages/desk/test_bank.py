"""The bank account in the merchant's dashboard: last four digits, a delayed change with mails, and its withdrawal."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import replace

import pytest

from cuota.core.desk.role import Role
from cuota.core.message import Message
from cuota.core.payout.bank_account import CHANGE_DELAY, BankDetails
from cuota.flows.desk import change_team
from cuota.flows.desk.record import OPERATOR
from cuota.flows.desk.send_notices import send_notices
from cuota.flows.payout.change_bank_account import BankStanding, change_bank_account, read_standing
from cuota.rails import inbox
from cuota.rails.message import SandboxMessageRail
from cuota.rails.unavailable import RailUnavailable
from support.pages.staff import Staff
from support.pages.visitor import Page

PATH = "/desk/payouts/bank"
ROUTING, ACCOUNT = "021000021", "998877664433"


def new_email() -> str:
    return f"{secrets.token_hex(6)}@shop.example"


async def standing(staff: Staff) -> BankStanding:
    return await read_standing(staff.service.context, staff.shop.merchant_id)


async def change(staff: Staff, **fields: str) -> Page:
    await staff.open(PATH)
    given = {
        "routing": ROUTING,
        "account": ACCOUNT,
        "again": ACCOUNT,
        "reason": "another bank",
        "do": "change",
    }
    return await staff.press_in("change", **{**given, **fields})


async def mails(staff: Staff, *addresses: str) -> list[list[inbox.Received]]:
    """Send all mails that are due, and return them by address, without sign-in links."""
    while await send_notices(staff.service.context):
        pass
    pool = staff.service.context.pool
    found = [await inbox.look(pool, to=address) for address in addresses]
    return [[mail for mail in each if "bank account" in mail.subject] for each in found]


async def test_a_change_waits_three_days_and_every_owner_gets_a_mail(staff: Staff) -> None:
    addresses = [new_email(), new_email(), new_email()]
    for address, role in zip(addresses, (Role.OWNER, Role.OWNER, Role.ADMIN), strict=True):
        await staff.invited(address, role)
    before = await standing(staff)
    assert before.in_force is not None
    await staff.enter(Role.ADMIN)
    page = await change(staff)
    assert "All owners get an e-mail" in page.text
    assert f"Until then, they go to the account ending in {before.in_force.last4}" in page.text
    after = await standing(staff)
    assert after.in_force == before.in_force
    assert after.pending is not None
    assert after.pending.last4 == "4433"
    first, second, admin = await mails(staff, *addresses)
    assert [len(each) for each in (first, second, admin)] == [1, 1, 0]
    (mail,) = first
    for words in ("Sandbox admin", "127.0.0.1", "ends in 4433", f"ending in {before.in_force.last4}", PATH):
        assert words in mail.text, words
    assert ACCOUNT not in mail.text
    text = (await staff.open("/desk/audit?action=bank.")).text
    assert f"account: ending in {before.in_force.last4} → ending in 4433" in text
    assert "Reason: another bank" in text
    text = (await staff.open("/desk/payouts")).text
    assert f"Paid to the account ending in {before.in_force.last4}. From " in text


async def test_the_page_never_shows_more_than_the_last_four_digits(staff: Staff) -> None:
    await staff.enter()
    for page in (
        await change(staff),
        await staff.open(PATH),
        await staff.open("/desk/audit"),
        await change(staff, again="1234567"),
    ):
        assert ACCOUNT not in page.answer.text
        assert ACCOUNT[:-4] not in page.answer.text
        assert ROUTING not in page.answer.text


async def test_an_owner_withdraws_a_change_and_the_owners_get_a_mail(staff: Staff) -> None:
    address = new_email()
    await staff.invited(address, Role.OWNER)
    before = await standing(staff)
    await staff.enter()
    await change(staff)
    await staff.open(PATH)
    page = await staff.press_in("withdraw", do="withdraw", reason="nobody asked for this")
    assert "The change was withdrawn" in page.text
    assert await standing(staff) == before
    assert "A change is waiting" not in (await staff.open(PATH)).text
    ((newest, _),) = await mails(staff, address)
    assert "withdrew the change" in newest.text
    assert (
        "change: to the account ending in 4433 → none" in (await staff.open("/desk/audit?action=bank.")).text
    )


async def test_a_change_that_took_effect_cannot_be_withdrawn(staff: Staff) -> None:
    await staff.enter()
    await change(staff)
    await staff.open(PATH)
    action, held = staff.form_named("withdraw")
    async with staff.service.clock.moved(seconds=CHANGE_DELAY.total_seconds() + 1):
        answer = await staff.http.post(action, data={**held, "do": "withdraw", "reason": "late"})
        assert (answer.status_code, "No change is waiting" in answer.text) == (400, True)
        page = await staff.open(PATH)
        assert "account ending in 4433, since" in page.text


async def test_a_second_click_changes_nothing_more(staff: Staff) -> None:
    address = new_email()
    await staff.invited(address, Role.OWNER)
    await staff.enter()
    await staff.open(PATH)
    action, held = staff.form_named("change")
    form = {**held, "routing": ROUTING, "account": ACCOUNT, "again": ACCOUNT, "reason": "x", "do": "change"}
    answers = await asyncio.gather(*(staff.http.post(action, data=form) for _ in range(3)))
    assert sorted(each.status_code for each in answers) == [303, 400, 400]
    assert "Your first click already" in max(answers, key=lambda each: each.status_code).text
    ((_,),) = await mails(staff, address)
    assert (await standing(staff)).pending is not None


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"routing": "12"}, "must have 9 digits"),
        ({"routing": "021000022"}, "its last digit does not match"),
        ({"account": "12", "again": "12"}, "4 to 17 digits"),
        ({"again": "998877664434"}, "The two account numbers differ"),
        ({"again": ""}, "The two account numbers differ"),
        ({"reason": " "}, "Say why"),
        ({"once": "x"}, "This form is too old"),
    ],
)
async def test_wrong_numbers_change_nothing_and_the_error_says_what_to_do(
    staff: Staff, wrong: dict[str, str], words: str
) -> None:
    await staff.enter()
    page = await change(staff, **wrong)
    assert (page.status, words in page.text) == (400, True)
    assert (await standing(staff)).pending is None


async def test_numbers_may_be_typed_as_on_a_check(staff: Staff) -> None:
    await staff.enter()
    page = await change(staff, routing="0210 00021", account="9988-7766 4433", again="9988 7766-4433")
    assert page.status == 200


@pytest.mark.parametrize("role", [Role.FINANCE, Role.READ_ONLY])
async def test_other_roles_see_the_last_four_digits_and_change_nothing(staff: Staff, role: Role) -> None:
    await staff.enter(role)
    page = await staff.open(PATH)
    found = (await standing(staff)).in_force
    assert found is not None
    assert found.last4 in page.text
    assert all(fields.get("form") != "change" for _, fields in page.seen.forms)
    csrf = page.form("leave")[1]["csrf"]
    answer = await staff.http.post(PATH, data={"csrf": csrf, "do": "change"})
    assert answer.status_code == 403


async def test_a_change_needs_a_fresh_code(staff: Staff) -> None:
    person = await staff.invited(new_email(), Role.OWNER)
    await staff.sign_in(person)
    await staff.service.context.pool.execute(
        "UPDATE desk_sessions SET proved_at = now() - interval '6 minutes' WHERE merchant_id = $1",
        staff.shop.merchant_id,
    )
    page = await change(staff)
    assert (page.status, "Enter the code of your authenticator app" in page.text) == (400, True)
    assert (await standing(staff)).pending is None


async def test_an_owner_who_was_removed_recently_also_gets_the_mail(staff: Staff) -> None:
    context, merchant_id = staff.service.context, staff.shop.merchant_id
    victim, thief = new_email(), new_email()
    person = await staff.invited(victim, Role.OWNER)
    await staff.invited(thief, Role.OWNER)
    await change_team.remove(context, merchant_id, OPERATOR, person.person_id, "coup")
    await staff.enter()
    await change(staff)
    assert [len(each) for each in await mails(staff, victim, thief)] == [1, 1]


async def test_a_change_by_the_operators_command_is_mailed_as_a_change_by_the_provider(staff: Staff) -> None:
    address = new_email()
    await staff.invited(address, Role.OWNER)
    context, merchant_id = staff.service.context, staff.shop.merchant_id
    await change_bank_account(context, merchant_id, BankDetails(ROUTING, ACCOUNT))
    ((mail,),) = await mails(staff, address)
    assert mail.text.startswith("Your payment provider changed the bank account")


class DownRail(SandboxMessageRail):
    """A mail provider that does not answer."""

    async def send(self, message: Message) -> None:
        raise RailUnavailable(message.subject)


async def test_a_mail_that_cannot_be_sent_is_retried(staff: Staff) -> None:
    address = new_email()
    await staff.invited(address, Role.OWNER)
    await staff.enter()
    await change(staff)
    context = staff.service.context
    down = DownRail(context.settings.rails, context.pool, context.vault, context.now)
    assert await send_notices(replace(context, rails=replace(context.rails, message=down))) > 0
    assert await mails(staff, address) == [[]]
    later = "UPDATE desk_notices SET mail_at = mail_at - interval '1 hour' WHERE merchant_id = $1"
    await context.pool.execute(later, staff.shop.merchant_id)
    assert [len(each) for each in await mails(staff, address)] == [1]
