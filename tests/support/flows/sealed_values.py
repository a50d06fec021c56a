"""Stores a value in every column that the secret key encrypts."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pyotp

from cuota.core.desk.role import Role
from cuota.core.dispute.dispute import DisputeParty
from cuota.core.dispute.evidence import EvidenceFile
from cuota.core.operator.role import OperatorRole
from cuota.core.payout.bank_order import Credit, Originator
from cuota.core.plan.hardship import PausePlan
from cuota.core.plan.plan import Plan
from cuota.core.risk.block import BlockKind
from cuota.db.merchant.secrets import SecretKind
from cuota.db.order import outcomes
from cuota.db.plan.messages import SentText
from cuota.flows.context import Context, new_id
from cuota.flows.desk.change_team import invite
from cuota.flows.desk.factor import new_factor
from cuota.flows.desk.record import OPERATOR
from cuota.flows.desk.sign_in import Place, enter, finish, load_visit, make_link
from cuota.flows.dispute.evidence import store_evidence
from cuota.flows.merchant.keys import rotate_keys
from cuota.flows.merchant.manage_merchants import MerchantTerms, NewCredentials, create_merchant
from cuota.flows.merchant.rotate_secrets import rotate_merchant_secret
from cuota.flows.operator import operator_sign_in
from cuota.flows.operator.change_operators import invite_operator
from cuota.flows.operator.log_action import OperatorActor
from cuota.flows.operator.operator_factor import new_operator_factor
from cuota.flows.plan.change_plan import agree_on_change, preview_change
from cuota.flows.plan.read_messages import seal_text
from cuota.flows.risk.block_consumer import block_consumer
from cuota.flows.webhook.manage_endpoints import OLD_SECRET_LIVES, register
from cuota.rails.bank.file_books import FileBooks
from support.core.values import PROFILE, TODAY
from support.db import made_orders
from support.onboarding import fill

BROWSER = Place("browser", "127.0.0.1")


async def filled(context: Context) -> NewCredentials:
    """Store a value in every column that the secret key encrypts. Return the new merchant's credentials."""
    made = await create_merchant(context, MerchantTerms(name="Shop"))
    merchant_id = made.merchant.merchant_id
    for kind in SecretKind:
        await rotate_merchant_secret(context, "Shop", kind, OLD_SECRET_LIVES)
    endpoint, _ = await register(context, merchant_id, "http://127.0.0.1:9/hooks", "")
    await context.pool.execute("UPDATE webhook_endpoints SET old_secret = secret, old_secret_ends_at = now()")
    await rotate_keys(context, algorithm="RS256")
    assert context.rails.issuing is not None
    await context.rails.issuing.issue(new_id(), merchant_id, new_id(), 1000, "USD")
    books = FileBooks(context.pool, context.vault, Originator("C", "1", "B", "011000015", "1234"))
    await books.order(Credit(new_id(), 0, "Shop", "021000021", "123456789", 100, "USD"), context.now())
    await books.make("nacha", context.now(), context.now().date())
    sealed = context.vault.encrypt('{"secret": "whsec_"}', f"idempotency:{merchant_id}:key-1")
    insert = """INSERT INTO idempotency_keys (merchant_id, key, request_hash, lease, lease_ends_at, status, body, created_at)
        VALUES ($1, $2, '', $1, now(), 200, $3, now())"""
    await context.pool.execute(insert, merchant_id, "key-1", sealed)
    await context.pool.execute(insert, merchant_id, "key-2", b'{"plain": true}')
    del endpoint
    # A statement and a file of a dispute, which no order here has.
    dispute_id, files = new_id(), [EvidenceFile("note.txt", "text/plain", b"I waited.")]
    said = await store_evidence(
        context, merchant_id, dispute_id, DisputeParty.CONSUMER, "Nothing came.", files
    )
    await context.pool.execute(
        """INSERT INTO dispute_evidence (merchant_id, dispute_id, evidence_id, order_id, party, text, at)
        VALUES ($1, $2, $3, $2, 'consumer', $4, now())""",
        merchant_id,
        dispute_id,
        said.evidence_id,
        said.text,
    )
    await change_a_plan(context, merchant_id)
    await fill(context, merchant_id)
    await set_up_apps(context, merchant_id)
    await set_up_operators_apps(context)
    return made


async def change_a_plan(context: Context, merchant_id: UUID) -> None:
    """Change a plan in hardship, store the text of the message about it, and block the consumer."""
    new, consumer_id = made_orders.created(merchant_id), new_id()
    assert await outcomes.create(context.pool, new)
    now = context.now()
    plan = Plan(consumer_id, PROFILE, "2125550142", "America/New_York", TODAY, "text", "hash", now)
    assert await outcomes.save(context.pool, replace(made_orders.approved(new.order), plan=plan))
    given = merchant_id, new.order.order_id, PausePlan(7)
    mark = (await preview_change(context, *given)).found.before.mark
    made = await agree_on_change(context, *given, by="Ana", reason="called", mark=mark)
    said = seal_text(context, made.message_id, SentText("Your plan", "It has changed.", "2125550142", None))
    await context.pool.execute("UPDATE messages SET said = $2 WHERE message_id = $1", made.message_id, said)
    await block_consumer(context, consumer_id, BlockKind.IDENTITY, "odd", None, by="Ana")


def _link_of(address: str | None) -> tuple[UUID, str]:
    """Return the id and the code of a sign-in link."""
    assert address is not None
    link_id, code = address.split("/")[-2:]
    return UUID(link_id), code


async def set_up_apps(context: Context, merchant_id: UUID) -> None:
    """Sign two people in to the merchant's dashboard: one has an authenticator app, the other is setting one up."""
    for email, ends in (("ana@shop.example", True), ("ben@shop.example", False)):
        person = await invite(context, merchant_id, OPERATOR, "Ana", email, Role.OWNER, "new", mail=False)
        link = _link_of(await make_link(context, person, mail=False))
        secret = await enter(context, merchant_id, *link, BROWSER)
        assert secret is not None
        visit = await load_visit(context, merchant_id, secret)
        assert visit is not None
        key = await new_factor(context, visit.session)
        if ends:
            await finish(context, visit, pyotp.TOTP(key).now(), BROWSER)


async def set_up_operators_apps(context: Context) -> None:
    """Do the same for two people of the operator."""
    for email, ends in (("ana@operator.example", True), ("ben@operator.example", False)):
        person = await invite_operator(
            context, OperatorActor(None), "Ana", email, OperatorRole.OWNER, "new", mail=False
        )
        link = _link_of(await operator_sign_in.make_operator_link(context, person, mail=False))
        secret = await operator_sign_in.enter_operator(context, *link, BROWSER)
        assert secret is not None
        visit = await operator_sign_in.load_operator_visit(context, secret)
        assert visit is not None
        key = await new_operator_factor(context, visit.session)
        if ends:
            await operator_sign_in.finish_sign_in(context, visit, pyotp.TOTP(key).now(), BROWSER)
