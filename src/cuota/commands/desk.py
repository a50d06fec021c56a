"""`cuota desk`: sign-in links for the two dashboards in the sandbox, and the first owner of a team."""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import TypeVar
from uuid import UUID

from cuota.commands.common import acting, changes, one_line, run, show
from cuota.commands.parsers import Add
from cuota.core.desk.changed_values import changes_of
from cuota.core.desk.person import read_email
from cuota.core.desk.role import Role
from cuota.core.expected_failure import WrongUsage
from cuota.core.instant import timestamp
from cuota.core.merchant import Merchant
from cuota.core.operator.role import OperatorRole
from cuota.core.order.id_bounds import BEYOND
from cuota.core.refusal import Code, Refused
from cuota.db.desk import audit, people
from cuota.db.desk.audit import Entry
from cuota.db.operator import operator_log, operators
from cuota.db.operator.operator_log import OperatorEntry
from cuota.flows.context import Context
from cuota.flows.desk.change_team import BadTeam, invite
from cuota.flows.desk.record import OPERATOR
from cuota.flows.desk.sign_in import make_link
from cuota.flows.merchant.manage_merchants import BadMerchant, find_merchant
from cuota.flows.operator.change_operators import invite_operator, second_factor_of
from cuota.flows.operator.emergency_link import make_emergency_link
from cuota.flows.operator.operator_sign_in import make_operator_link

MOST_LOGGED = 10_000
EntryT = TypeVar("EntryT", OperatorEntry, Entry)
SANDBOX_LINK_LIFE = timedelta(days=1)
_SANDBOX_ONLY = (
    "`cuota desk link` works only in the sandbox. In production, invite the first owner with `cuota desk invite`; the link then"
    " arrives by e-mail. For an owner who cannot sign in, run `cuota desk link --operator --emergency`."
)


async def sandbox_link(context: Context, merchant: Merchant, role: Role) -> str:
    """Return the address of a link that signs in a person with this role. If the team has no such person, add one."""
    email = f"{role}@sandbox.example"
    team = await people.team(context.pool, merchant.merchant_id)
    person = next((each for each in team if each.email == email), None)
    if person is None:
        name = f"Sandbox {role}"
        person = await invite(
            context, merchant.merchant_id, OPERATOR, name, email, role, "sandbox link", mail=False
        )
    address = await make_link(context, person, mail=False, one_step=True, life=SANDBOX_LINK_LIFE)
    assert address is not None
    return address


def _served(context: Context) -> Context:
    """Return the context with the address of the running service, which this command's settings may not contain."""
    served = context.settings.audience
    if not served.startswith(("http://", "https://")):
        return context
    return replace(context, settings=replace(context.settings, public_url=served))


async def operator_sandbox_link(context: Context, role: OperatorRole) -> str:
    """Return the address of a link to the operator's dashboard for a person with this role. If there is none, add one."""
    email = f"{role}@operator.example"
    person = await operators.by_email(context.pool, email)
    if person is None:
        person = await invite_operator(
            context, acting(), f"Sandbox {role}", email, role, "sandbox link", mail=False
        )
    address = await make_operator_link(context, person, mail=False, one_step=True, life=SANDBOX_LINK_LIFE)
    assert address is not None
    return address


def _role(options: argparse.Namespace) -> Role | OperatorRole:
    """Return the role of the options, in the operator's or in a merchant's team. Raises WrongUsage."""
    if bool(options.merchant) is options.operator:
        raise WrongUsage("Give either --merchant NAME_OR_ID, or --operator.")
    roles = OperatorRole if options.operator else Role
    try:
        return roles(options.role)
    except ValueError:
        whose = "the operator's team" if options.operator else "a merchant's team"
        known = ", ".join(each.value for each in roles)
        raise WrongUsage(f"{options.role} is not a role of {whose}. Choose one of: {known}.") from None


def _emergency(options: argparse.Namespace) -> int:
    """`cuota desk link --operator --emergency`: a link for an owner, even in production."""
    if not options.operator or not options.email or not (options.reason or "").strip():
        raise WrongUsage(
            "An emergency link needs --operator, the --email of an owner, and a --reason for the log."
        )

    async def flow(context: Context) -> str:
        given = _served(context) if context.settings.sandbox else context
        try:
            return await make_emergency_link(given, options.email, new_factor=options.new_factor)
        except BadTeam as bad:
            raise BadMerchant(f"There is no link. {bad}") from None

    async def before(context: Context) -> dict[str, str]:
        person = await operators.by_email(context.pool, read_email(options.email) or "")
        return {} if person is None else {"secondFactor": await second_factor_of(context.pool, person)}

    removed = "removed" if options.new_factor else None
    note = changes("team.emergency", options.email, options.reason, secondFactor=removed)
    address = run(flow, note, before=before)
    lines = [
        f"Open this link within 15 minutes. It works once, and asks {options.email} for the second factor:",
        address,
    ]
    show(options, {"address": address, "email": options.email}, lines)
    return 0


def link(options: argparse.Namespace) -> int:
    """`cuota desk link`."""
    if options.emergency:
        return _emergency(options)
    role = _role(options)

    async def flow(context: Context) -> str:
        if not context.settings.sandbox:
            raise Refused(Code.NOT_FOUND, _SANDBOX_ONLY)
        if isinstance(role, OperatorRole):
            return await operator_sandbox_link(_served(context), role)
        return await sandbox_link(_served(context), await find_merchant(context, options.merchant), role)

    address = run(flow)
    lines = [f"Open this link within a day. It works once, and signs in as {role}:", address]
    show(options, {"address": address, "role": role}, lines)
    return 0


def invite_owner(options: argparse.Namespace) -> int:
    """`cuota desk invite`."""
    role, given = _role(options), (options.name, options.email)

    async def flow(context: Context) -> str:
        try:
            if isinstance(role, OperatorRole):
                invited = await invite_operator(context, acting(), *given, role, options.reason)
                return invited.email
            merchant = await find_merchant(context, options.merchant)
            person = await invite(context, merchant.merchant_id, OPERATOR, *given, role, options.reason)
        except BadTeam as bad:
            raise BadMerchant(f"Nobody was invited. {bad}") from None
        return person.email

    email = run(flow)
    show(
        options,
        {"email": email},
        [f"An invitation to {email} is queued. The link in it works for seven days."],
    )
    return 0


def show_log(options: argparse.Namespace) -> int:
    """`cuota desk log`: the operator's log, or with --merchant the merchant's own audit log."""

    async def flow(context: Context) -> list[OperatorEntry] | list[Entry]:
        pool, action = context.pool, options.action
        if options.merchant is None:
            return await _newest(
                options.limit,
                lambda before, limit: operator_log.page(pool, before, limit, action=action),
                lambda before: operator_log.last_scanned(pool, before),
            )
        merchant_id = (await find_merchant(context, options.merchant)).merchant_id
        return await _newest(
            options.limit,
            lambda before, limit: audit.page(pool, merchant_id, before, limit, action=action),
            lambda before: audit.last_scanned(pool, merchant_id, before),
        )

    found = run(flow)
    facts = [
        {
            "at": timestamp(each.at), "actor": each.actor, "role": each.role, "address": each.address, "action": each.action,
            "subject": each.subject, "reason": each.reason, "before": each.before, "after": each.after,
        }
        for each in found
    ]  # fmt: skip
    show(options, facts, [_log_line(each) for each in found] or ["The log is empty."])
    return 0


async def _newest(
    limit: int,
    page: Callable[[UUID, int], Awaitable[list[EntryT]]],
    last_scanned: Callable[[UUID], Awaitable[UUID | None]],
) -> list[EntryT]:
    """Return the newest entries of a log. A page reads a limited number of entries, and few of them may match."""
    found: list[EntryT] = []
    before: UUID | None = BEYOND
    while before is not None and len(found) < limit:
        found += await page(before, limit - len(found))
        before = await last_scanned(before)
    return found


def _log_line(each: OperatorEntry | Entry) -> str:
    values = "; ".join(changes_of(each.before, each.after))
    parts = [
        f"{timestamp(each.at)}  {each.action:24} {each.subject}",
        values,
        each.actor,
        f"({each.reason})" if each.reason else "",
    ]
    return one_line("  ".join(part for part in parts if part))


def _limit(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:6]) <= MOST_LOGGED:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 to {MOST_LOGGED}")
    return int(text)


def _whose(parser: argparse.ArgumentParser) -> None:
    """Add the options for the team and the role."""
    parser.add_argument("--merchant", metavar="NAME_OR_ID", help="the team of this merchant")
    parser.add_argument("--operator", action="store_true", help="the operator's own team")
    roles = ", ".join(dict.fromkeys(role.value for role in (*Role, *OperatorRole)))
    parser.add_argument("--role", default=Role.OWNER.value, metavar="ROLE", help=f"one of: {roles}")


def register(add: Add) -> None:
    """Register the commands."""
    parser = add(
        "link",
        link,
        "print a link that signs in to a dashboard (sandbox; in production with --emergency only)",
    )
    _whose(parser)
    parser.add_argument(
        "--emergency", action="store_true",
        help="with --operator: a link for an owner, when the company's provider is down or a second factor is lost",
    )  # fmt: skip
    parser.add_argument("--email", help="with --emergency: the owner's e-mail address")
    parser.add_argument("--reason", help="with --emergency: for the log")
    parser.add_argument(
        "--new-factor", action="store_true",
        help="with --emergency: forget the owner's authenticator app and passkeys, and end the owner's sessions",
    )  # fmt: skip
    parser = add("invite", invite_owner, "invite a person to a dashboard by e-mail")
    _whose(parser)
    parser.add_argument("--name", required=True, help="the person's name")
    parser.add_argument("--email", required=True, help="the person's e-mail address")
    parser.add_argument("--reason", default="invited by the operator", help="for the audit log")
    parser = add("log", show_log, "print what the operator's people and commands changed, the newest first")
    parser.add_argument(
        "--merchant", metavar="NAME_OR_ID", help="the audit log of this merchant's dashboard instead"
    )
    parser.add_argument(
        "--action",
        default="",
        metavar="BEGINNING",
        help="only actions that begin with this text, such as merchant.",
    )
    parser.add_argument(
        "--limit", type=_limit, default=50, metavar="N", help="at most this many entries (default 50)"
    )
