"""The versions of the policy: the decisions of each with their results, its text, and a simulation with another text."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from cuota.core import money
from cuota.core.operator.role import OperatorAction
from cuota.core.risk.policy import BadPolicy, Policy, load_policy
from cuota.db.risk import policies as stored
from cuota.flows.risk.compare_policies import PolicyRecord, policy_changes, policy_records
from cuota.flows.risk.keep_policy import WrongPolicy, load_kept, policy_in_force
from cuota.flows.risk.review_decisions import simulate
from cuota.web.pages.desk.view import when
from cuota.web.pages.operator.parts import cell, section, table
from cuota.web.pages.operator.risk import BUSY, DAYS, RISK, day_options, one_simulation, simulated
from cuota.web.pages.operator.view import common, failed
from cuota.web.pages.operator.visit import OperatorDesk, allowed, missing
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of

_POLICIES = f"{RISK}/policies"
COMPARED_DAYS = 30


@allowed(OperatorAction.READ_RISK)
async def policies(request: Request, desk: OperatorDesk) -> Response:
    """Show the decisions of each version in the last 30 days, and the form for a simulation with another text."""
    return await _page(request, desk, await policy_in_force(service_of(request).context))


async def _page(
    request: Request,
    desk: OperatorDesk,
    policy: Policy,
    result: list[PageContext] | None = None,
    errors: dict[str, str] | None = None,
) -> Response:
    shown: PageContext = {
        **common(request, desk, "Policies", here=RISK),
        "sections": [
            *(result or [await _records(request, policy)]),
            section(links=[(RISK, "Risk"), (f"{_POLICIES}/{quote(policy.version)}", "The policy in force")]),
        ],
        "values": {"text": policy.text, "days": "7", **desk.form},
        "days": day_options(),
    }
    if errors:
        return page(request, "operator/policies.html", failed(shown, errors, desk.form), status=400)
    return page(request, "operator/policies.html", shown)


async def _records(request: Request, policy: Policy) -> PageContext:
    title = f"The decisions of the last {COMPARED_DAYS} days, by version"
    if one_simulation.locked():
        return section(title, texts=[BUSY])
    context = service_of(request).context
    async with one_simulation:
        now = context.now()
        found = await policy_records(context, now - timedelta(days=COMPARED_DAYS), now)
    columns = [
        cell("Version"), cell("Decided", wide=True), cell("Orders", amount=True), cell("Approved", amount=True),
        cell("Approved amount", amount=True, wide=True), cell("Overdue now", amount=True),
    ]  # fmt: skip
    rows = [_record(each, policy) for each in found]
    return table(title, columns, rows, "No order was decided in these days.")


def _record(each: PolicyRecord, policy: Policy) -> list[PageContext]:
    return [
        cell(
            each.version,
            f"{_POLICIES}/{quote(each.version)}",
            more="in force" if each.version == policy.version else "",
        ),
        cell(f"{when(each.first)} to {when(each.last)}", wide=True),
        cell(f"{each.approved.orders + each.declined.orders:,}", amount=True),
        cell(f"{each.approval_percent} %", amount=True),
        cell(money.shown(each.approved.amount), amount=True, wide=True),
        cell(money.shown(each.approved.unpaid), amount=True),
    ]


@allowed(OperatorAction.READ_RISK)
async def policy_text(request: Request, desk: OperatorDesk) -> Response:
    """Show the text of one version, and its differences from the current policy."""
    context, version = service_of(request).context, request.path_params["version"]
    if not version.isprintable():
        return missing(request)
    now, text = await policy_in_force(context), await stored.read(context.pool, version)
    if text is None:
        return missing(request)
    try:
        changes = policy_changes(now, load_kept(version, text))
    except WrongPolicy as wrong:
        changes = [str(wrong)]
    same = version == now.version
    sections = [] if same else [section("Compared with the policy in force", lines=changes)]
    shown: PageContext = {
        **common(request, desk, f"Policy {version}", here=RISK, lead="in force" if same else None),
        "sections": [
            *sections,
            section("The whole policy", lines=text.splitlines(), links=[(_POLICIES, "Policies")]),
        ],
    }
    return page(request, "operator/page.html", shown)


@allowed(OperatorAction.READ_RISK)
async def try_policy(request: Request, desk: OperatorDesk) -> Response:
    """Decide the orders of the chosen days again with another text. Nothing is changed or stored."""
    context = service_of(request).context
    policy = await policy_in_force(context)
    # Browsers send each line end as two characters, and forms are read without the line end after the last line.
    text, days = desk.form.get("text", "").replace("\r\n", "\n") + "\n", desk.form.get("days", "")
    if days not in {str(each) for each in DAYS}:
        return await _page(request, desk, policy, errors={"days": "Choose a number of days."})
    try:
        other = load_policy(text)
    except BadPolicy as bad:
        return await _page(request, desk, policy, errors={"text": f"This is not a policy: {bad}"})
    if one_simulation.locked():
        return await _page(request, desk, policy, errors={"": BUSY})
    async with one_simulation:
        now = context.now()
        found = await simulate(context, other, now - timedelta(days=int(days)), now, None)
    changes = policy_changes(policy, other) or ["Nothing: this is the text of the policy in force."]
    result = [simulated(found, "this policy"), section("What the text changes", lines=changes)]
    if other.version == policy.version and other.text.strip() != policy.text.strip():
        result[1]["texts"] = [
            "Before you use this text, give it a new version: a version always means the same text."
        ]
    return await _page(request, desk, policy, result)
