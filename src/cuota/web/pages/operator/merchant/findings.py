"""A possible match of a merchant's name with an entry of a list: both names side by side, and the form for the decision."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.merchant import Merchant, Onboarding
from cuota.core.onboarding.checklist import Item
from cuota.core.onboarding.owner import us_day
from cuota.core.onboarding.screening import SUBJECT_WORDS, Finding, FindingState, ScreenedName
from cuota.core.operator.role import OperatorAction
from cuota.db.onboarding import onboardings
from cuota.flows.desk.change_team import BadTeam
from cuota.flows.onboarding.decide_item import decide_finding
from cuota.flows.onboarding.read_checklist import read_checklist
from cuota.flows.onboarding.screen_names import screen_merchant
from cuota.flows.onboarding.sealed_details import subject_hash
from cuota.flows.operator.log_action import OperatorNote, log_action
from cuota.web.pages.checkout.session import Stop, see_other
from cuota.web.pages.desk.view import when
from cuota.web.pages.operator.acting import acted
from cuota.web.pages.operator.merchant.items import item_page
from cuota.web.pages.operator.merchant.listing import MERCHANTS
from cuota.web.pages.operator.merchant.onboarding import root_of
from cuota.web.pages.operator.merchant.sections import FINDING_WORDS
from cuota.web.pages.operator.merchant.view import merchant_in_path
from cuota.web.pages.operator.parts import section
from cuota.web.pages.operator.view import common, failed
from cuota.web.pages.operator.visit import OperatorDesk, allowed, id_in_path, missing
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of

_DECIDES = (OperatorAction.READ_MERCHANTS, OperatorAction.DECIDE_ONBOARDING)
_STATES = {"clear": FindingState.CLEARED, "confirm": FindingState.CONFIRMED}


@dataclass(frozen=True, slots=True)
class _Found:
    merchant: Merchant
    finding: Finding
    subject: ScreenedName | None  # None: a confirmed match of a name that the merchant has removed


async def _find(request: Request) -> _Found:
    """Return the finding in the path, if it is about a current name or confirmed. Raises Stop with the 404 page."""
    context, merchant = service_of(request).context, await merchant_in_path(request)
    finding_id = id_in_path(request, "finding_id")
    opened = await read_checklist(context, merchant.merchant_id)
    subjects = {subject_hash(context.vault, each): each for each in opened.subjects}
    for each in opened.facts.screening.findings:
        if each.finding_id == finding_id:
            return _Found(merchant, each, subjects.get(each.subject))
    raise Stop(missing(request))


@allowed(*_DECIDES)
async def finding(request: Request, desk: OperatorDesk) -> Response:
    """Show both names. The log records who looked at an owner's name."""
    found = await _find(request)
    if request.method != "HEAD":
        subject = f"{found.merchant.name}, {found.finding.list_name} {found.finding.entry}"
        note = OperatorNote("screening.read", subject, "", found.merchant.merchant_id)
        await log_action(service_of(request).context, desk.actor, note)
    return _page(request, desk, found)


def _page(
    request: Request, desk: OperatorDesk, found: _Found, errors: dict[str, str] | None = None
) -> Response:
    one, root = found.finding, root_of(found.merchant)
    links = [(f"{root}/items/screening", "Back to the screening")]
    shown: PageContext = {
        **common(request, desk, f"Possible match, {found.merchant.name}", here=MERCHANTS),
        "sections": [section(pairs=_facts(found), links=links)],
        "address": f"{root}/findings/{one.finding_id}",
        "state": dict(zip(("word", "kind"), FINDING_WORDS[one.state], strict=True)),
        "said_before": _decided(one),
        "ends": found.merchant.onboarding is Onboarding.APPROVED,
        "can_clear": one.state is not FindingState.CLEARED,
        "can_confirm": one.state is not FindingState.CONFIRMED,
        "values": {},
    }
    if errors:
        return page(request, "operator/finding.html", failed(shown, errors, desk.form), status=400)
    return page(request, "operator/finding.html", shown)


def _facts(found: _Found) -> list[tuple[str, object]]:
    one, subject = found.finding, found.subject
    born = [("Date of birth", us_day(subject.born))] if subject and subject.born else []
    name = subject.name if subject else "removed by the merchant after it was screened"
    return [
        (SUBJECT_WORDS[one.kind], name),
        *born,
        ("On the list", one.listed_name),
        ("What the list says", one.detail or "nothing more"),
        ("List and entry", f"{one.list_name}, {one.entry}"),
        ("Alike", f"{one.score} %"),
        ("Found", when(one.found_at)),
    ]


def _decided(one: Finding) -> str:
    if one.decided_at is None:
        return ""
    return f"{one.state} on {when(one.decided_at)} by {one.decider}: {one.reason}"


@allowed(*_DECIDES)
async def decide(request: Request, desk: OperatorDesk) -> Response:
    """Clear or confirm the match."""
    found, do = await _find(request), desk.form.get("do", "")
    context, merchant = service_of(request).context, found.merchant

    async def act(reason: str) -> None:
        if do not in _STATES:
            raise BadTeam("Choose what to do.")
        await decide_finding(context, merchant, desk.actor, found.finding.finding_id, _STATES[do], reason)

    if errors := await acted(request, desk, act):
        return _page(request, desk, found, errors)
    now = await onboardings.standing(context.pool, merchant.merchant_id)
    approved = now is Onboarding.APPROVED and merchant.onboarding is not Onboarding.APPROVED
    return see_other(f"{root_of(merchant)}?said={'approved' if approved else _STATES[do].value}")


@allowed(*_DECIDES)
async def screen_again(request: Request, desk: OperatorDesk) -> Response:
    """Screen all names now. If the rail does not answer, the page says so, and the job retries."""
    merchant, context = await merchant_in_path(request), service_of(request).context

    async def act(reason: str) -> None:
        note = OperatorNote("screening.again", merchant.name, reason, merchant.merchant_id)
        await log_action(context, desk.actor, note)
        if problem := await screen_merchant(context, merchant.merchant_id, actor=desk.actor):
            raise BadTeam(f"The names were not screened: {problem}")

    if errors := await acted(request, desk, act):
        return await item_page(request, desk, merchant, Item.SCREENING, errors)
    return see_other(f"{root_of(merchant)}/items/screening?said=screened")
