"""`cuota desk`: sign-in links for the merchant's dashboard in the sandbox, and a team's first owner."""

from __future__ import annotations

import argparse
from dataclasses import replace
from datetime import timedelta

from cuota.commands.common import Add, run, show
from cuota.core.desk.role import Role
from cuota.core.merchant import Merchant
from cuota.core.refusal import Code, Refused
from cuota.db.desk import people
from cuota.flows.context import Context
from cuota.flows.desk.change_team import BadTeam, invite
from cuota.flows.desk.record import Actor
from cuota.flows.desk.sign_in import make_link
from cuota.flows.merchant.manage_merchants import BadMerchant, find_merchant

OPERATOR = Actor(None)
SANDBOX_LINK_LIFE = timedelta(days=1)
_SANDBOX_ONLY = (
    "`cuota desk link` works only in the sandbox. In production, invite the first owner with `cuota desk invite`; the link then"
    " arrives by e-mail."
)


async def sandbox_link(context: Context, merchant: Merchant, role: Role) -> str:
    """Return the address of a link that signs in a person of this role, who is added to the team if there is none."""
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
    """Return the context with the address of the running service, which the settings of this command may not name."""
    served = context.settings.audience
    if not served.startswith(("http://", "https://")):
        return context
    return replace(context, settings=replace(context.settings, public_url=served))


def link(options: argparse.Namespace) -> int:
    """`cuota desk link`."""
    role = Role(options.role)

    async def flow(context: Context) -> str:
        if not context.settings.sandbox:
            raise Refused(Code.NOT_FOUND, _SANDBOX_ONLY)
        return await sandbox_link(_served(context), await find_merchant(context, options.merchant), role)

    address = run(flow)
    lines = [f"Open this link within a day. It works once, and signs in as {role}:", address]
    show(options, {"address": address, "role": role}, lines)
    return 0


def invite_owner(options: argparse.Namespace) -> int:
    """`cuota desk invite`."""

    async def flow(context: Context) -> str:
        merchant = await find_merchant(context, options.merchant)
        try:
            person = await invite(
                context,
                merchant.merchant_id,
                OPERATOR,
                options.name,
                options.email,
                Role(options.role),
                options.reason,
            )
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


def register(add: Add) -> None:
    """Register the commands."""
    roles = [role.value for role in Role]
    parser = add("link", link, "print a link that signs in to a merchant's dashboard (sandbox only)")
    parser.add_argument("--merchant", required=True, metavar="NAME_OR_ID")
    parser.add_argument("--role", choices=roles, default=Role.OWNER.value)
    parser = add("invite", invite_owner, "invite a person to a merchant's dashboard by e-mail")
    parser.add_argument("--merchant", required=True, metavar="NAME_OR_ID")
    parser.add_argument("--name", required=True, help="the person's name")
    parser.add_argument("--email", required=True, help="the person's e-mail address")
    parser.add_argument("--role", choices=roles, default=Role.OWNER.value)
    parser.add_argument("--reason", default="invited by the operator", help="for the audit log")
