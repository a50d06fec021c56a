"""A consumer: plans at all merchants, debt, and personal data, which is masked until a person with the right reveals it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from cuota.core import money
from cuota.core.consumer import Consumer, is_us_number, typed_number
from cuota.core.installment import owed
from cuota.core.operator.mask import masked_email, masked_name, masked_phone
from cuota.core.operator.role import OperatorAction
from cuota.core.privacy.erasure import STAYS
from cuota.db.checkout import consumers
from cuota.db.plan import accounts
from cuota.db.plan.accounts import ShownPlan
from cuota.flows.desk.change_team import BadTeam
from cuota.flows.operator.change_operators import reason_of
from cuota.flows.operator.log_action import OperatorNote, log_action, log_refusal
from cuota.flows.plan.read_messages import read_messages
from cuota.flows.privacy.erase_consumer import Erasure, erase_consumer
from cuota.flows.privacy.export_consumer import export_consumer
from cuota.flows.risk.block_consumer import blocks_of
from cuota.flows.risk.show_exposure import ConsumerExposure, show_exposure
from cuota.web.pages.checkout.session import Stop, see_other
from cuota.web.pages.desk.view import day_of
from cuota.web.pages.operator.block_view import block_section, in_force, kinds
from cuota.web.pages.operator.message_list import shown_messages
from cuota.web.pages.operator.parts import cell, section, state, table
from cuota.web.pages.operator.view import common, failed
from cuota.web.pages.operator.visit import PATH, OperatorDesk, allowed, id_in_path, missing, prove
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of

CONSUMERS = f"{PATH}/consumers"
MOST_SHOWN = 100
LAST_MESSAGES = 5
_WRONG_NUMBER = "Enter a US mobile number of ten digits, such as (212) 555-0142."


@allowed(OperatorAction.READ_CONSUMERS)
async def ask(request: Request, desk: OperatorDesk) -> Response:
    """Show the form for a phone number."""
    return _ask_page(request, desk)


def _ask_page(request: Request, desk: OperatorDesk, error: str = "") -> Response:
    lead = "A consumer is identified by a phone number that was verified with a code."
    shown: PageContext = {
        **common(request, desk, "Consumers", here=CONSUMERS, lead=lead),
        "sections": [],
        "values": {},
    }
    if error:
        return page(
            request, "operator/consumers.html", failed(shown, {"phone": error}, desk.form), status=400
        )
    return page(request, "operator/consumers.html", shown)


@allowed(OperatorAction.READ_CONSUMERS)
async def find(request: Request, desk: OperatorDesk) -> Response:
    """Find the consumer with a phone number. No address contains the number, so no browser history and no log contains it."""
    context, phone = service_of(request).context, typed_number(desk.form.get("phone", ""))
    if not is_us_number(phone):
        return _ask_page(request, desk, _WRONG_NUMBER)
    consumer_id = context.vault.consumer_id(phone)
    # A person who can search for numbers can guess the masked digits. So the log records each search, by the consumer's id.
    note = OperatorNote("consumer.find", f"Consumer {consumer_id}", "", consumer_id)
    await log_action(context, desk.actor, note)
    if await consumers.read(context.pool, consumer_id) is None:
        return _ask_page(
            request, desk, "No consumer has verified this number, or the person's data was erased."
        )
    return see_other(f"{CONSUMERS}/{consumer_id}")


async def find_consumer(request: Request) -> Consumer:
    """Return the consumer in the path. Raises Stop with the 404 page."""
    found = await consumers.read(service_of(request).context.pool, id_in_path(request, "consumer_id"))
    if found is None:
        raise Stop(missing(request))
    return found


@allowed(OperatorAction.READ_CONSUMERS)
async def consumer(request: Request, desk: OperatorDesk) -> Response:
    """Show a consumer, with masked personal data."""
    return await consumer_page(request, desk, await find_consumer(request))


async def consumer_page(
    request: Request,
    desk: OperatorDesk,
    found: Consumer,
    errors: dict[str, str] | None = None,
    *,
    revealed: bool = False,
    planned: Erasure | None = None,
    form: str = "",
    notice: str | None = None,
) -> Response:
    """Show a consumer. `errors` and the typed values belong to the form named `form`. An empty `form` means the other forms."""
    context, consumer_id = service_of(request).context, found.consumer_id
    plans = await accounts.plans_of(context.pool, consumer_id, MOST_SHOWN, 0)
    blocks = await blocks_of(context, consumer_id)
    messages = await read_messages(context, consumer_id, None, LAST_MESSAGES)
    blocked = block_section(context, blocks)
    shown: PageContext = {
        **common(request, desk, "Consumer", here=CONSUMERS),
        "sections": [
            *([blocked] if blocked and in_force(blocks, context.now()) else []),
            section(pairs=person_pairs(found, revealed=revealed)),
            exposure_section(await show_exposure(context, consumer_id)),
            plans_table(plans),
            *([blocked] if blocked and not in_force(blocks, context.now()) else []),
        ],
        "messages": shown_messages(messages, revealed=revealed),
        "address": f"{CONSUMERS}/{consumer_id}",
        "can_reveal": desk.may(OperatorAction.REVEAL_CONSUMERS) and not revealed,
        "can_block": desk.may(OperatorAction.BLOCK_CONSUMERS),
        "is_blocked": in_force(blocks, context.now()) is not None,
        "block_kinds": kinds(),
        "can_erase": desk.may(OperatorAction.ERASE_CONSUMERS),
        "planned": _planned(planned) if planned else None,
        "failed_form": form,
        "values": {},
    }
    if notice:
        shown["notice"] = notice
    if errors:
        return page(request, "operator/consumer.html", failed(shown, errors, desk.form), status=400)
    if planned:
        shown["values"] = desk.form
    return page(request, "operator/consumer.html", shown)


def person_pairs(found: Consumer, *, revealed: bool = False) -> Sequence[tuple[str, object]]:
    """Return the consumer's personal data, masked unless `revealed`."""
    profile = found.profile
    name, email = (profile.name, profile.email) if profile else ("not known", "")
    pairs: list[tuple[str, object]] = [("Consumer id", found.consumer_id)]
    if not revealed:
        mail = masked_email(email) if email else "not known"
        return [*pairs, ("Name", masked_name(name)), ("Phone", masked_phone(found.phone)), ("E-mail", mail)]
    pairs += [("Name", name), ("Phone", found.phone), ("E-mail", email or "not known")]
    if profile:
        at = profile.address
        lines = (at.line1, at.line2, f"{at.city}, {at.state} {at.postcode}")
        pairs.append(("Address", ", ".join(filter(None, lines))))
    return pairs


def _left(each: ShownPlan) -> int:
    """Return the unpaid amount of a plan, in cents."""
    return sum(item.total for item in owed(each.plan))


def _late(each: ShownPlan) -> int:
    return sum(item.total for item in owed(each.plan) if item.state in {"overdue", "written_off"})


def exposure_section(exposure: ConsumerExposure) -> PageContext:
    """Return the consumer's debt at all merchants, and the limit."""
    held = exposure.reserved
    pairs: list[tuple[str, object]] = [
        ("Owes at all merchants", money.shown(exposure.owed)),
        ("of this overdue or written off", money.shown(exposure.late)),
        ("Limit by the policy in force", money.shown(exposure.limit)),
        ("A new order may be at most", money.shown(exposure.left)),
    ]
    if held:
        reserved = money.shown(sum(each.amount for each in held))
        pairs.insert(2, ("Reserved by orders that are being decided", f"{reserved} by {len(held)}"))
    return section("Exposure", pairs=pairs)


def plans_table(plans: Sequence[ShownPlan]) -> PageContext:
    """Return the list of the consumer's plans at all merchants."""
    columns = [
        cell("Order"), cell("Merchant", wide=True), cell("Agreed", wide=True), cell("Status"), cell("Left", amount=True),
    ]  # fmt: skip
    rows = [
        [
            cell(each.reference, f"{PATH}/orders/{each.order.order_id}"),
            cell(each.merchant, wide=True),
            cell(day_of(each.agreed_at), wide=True),
            _state(each),
            cell(money.shown(_left(each), each.order.currency), amount=True),
        ]
        for each in plans
    ]
    title = f"The first {MOST_SHOWN} plans" if len(plans) == MOST_SHOWN else "Plans"
    return table(title, columns, rows, "No plan: no order of this consumer was approved.")


def _state(each: ShownPlan) -> PageContext:
    if _late(each):
        return state("Overdue", "bad")
    return state("Paying", "wait") if _left(each) else state("Paid", "done")


@allowed(OperatorAction.READ_CONSUMERS, OperatorAction.REVEAL_CONSUMERS)
async def reveal(request: Request, desk: OperatorDesk) -> Response:
    """Show the personal data once. The log records the person and the reason."""
    found = await find_consumer(request)
    if errors := await prove(request, desk):
        return await consumer_page(request, desk, found, errors, form="reveal")
    try:
        reason = reason_of(desk.form.get("reason", ""))
    except BadTeam as bad:
        return await consumer_page(request, desk, found, {bad.name: str(bad)}, form="reveal")
    await _log(request, desk, found, "consumer.reveal", reason)
    return await consumer_page(request, desk, found, revealed=True)


async def _log(
    request: Request, desk: OperatorDesk, found: Consumer, action: str, reason: str
) -> OperatorNote:
    note = OperatorNote(action, f"Consumer {found.consumer_id}", reason, found.consumer_id)
    await log_action(service_of(request).context, desk.actor, note)
    return note


@allowed(OperatorAction.READ_CONSUMERS, OperatorAction.ERASE_CONSUMERS)
async def privacy(request: Request, desk: OperatorDesk) -> Response:
    """Export or erase a consumer's data. The page shows an erasure before it is done. Both need the phone number once more."""
    found, do = await find_consumer(request), desk.form.get("do")
    phone, errors = typed_number(desk.form.get("phone", "")), await _errors(request, desk, found)
    if errors:
        return await consumer_page(request, desk, found, errors)
    context = service_of(request).context
    note = None
    if do in {"export", "erase"}:
        note = await _log(request, desk, found, f"consumer.{do}", reason_of(desk.form["reason"]))
    if do == "export":
        return await exported_file(await export_consumer(context, phone))
    done = await erase_consumer(context, phone, dry_run=do != "erase")
    if done.done:
        return see_other(f"{CONSUMERS}?said=erased")
    if note is not None:
        await log_refusal(context, desk.actor, note, " ".join(done.reasons))
    return await consumer_page(request, desk, found, planned=done)


async def _errors(request: Request, desk: OperatorDesk, found: Consumer) -> dict[str, str]:
    """Return the errors of the form, by the name of the field."""
    phone = typed_number(desk.form.get("phone", ""))
    if not is_us_number(phone) or service_of(request).context.vault.consumer_id(phone) != found.consumer_id:
        return {"phone": "This is not the consumer's phone number."}
    if errors := await prove(request, desk):
        return errors
    try:
        reason_of(desk.form.get("reason", ""))
    except BadTeam as bad:
        return {bad.name: str(bad)}
    return {}


def _planned(found: Erasure) -> PageContext:
    """Return the values that show the effects of an erasure."""
    return {
        "reasons": found.reasons,
        "rows": [f"{count} {name}" for name, count in found.rows.items() if count],
        "kept": [f"{what}: {why}." for what, why in STAYS],
    }


async def exported_file(exported: dict[str, object]) -> Response:
    """Return the file to download. The file of a consumer with thousands of orders takes seconds to write, so a thread writes it."""
    headers = {
        "Content-Disposition": 'attachment; filename="consumer.json"',
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
    }
    text = await asyncio.to_thread(json.dumps, exported, indent=2, ensure_ascii=False)
    return Response(text + "\n", media_type="application/json", headers=headers)
